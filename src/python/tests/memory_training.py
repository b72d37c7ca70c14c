"""A short training with or without a plan, whose gradients and counted peak tests compare."""

import torch
from memory_networks import fresh, loss_of
from memory_tools import make_plan, under

from dsc.memory import AccountingDevice, profile


def plan_of(name, folder, budget="50%", *flags):
    """A network, a batch, and the plan of a step with both."""
    model, inputs = fresh(name)
    return model, inputs, make_plan(profile(model, inputs, loss=loss_of), folder, budget, *flags)[0]


def gradients(model, inputs, executor=None):
    """The gradients of one step, under the plan of ``executor`` if there is one."""
    with under(executor):
        loss = loss_of(model(inputs))
    loss.backward()
    return [p.grad for p in model.parameters()]


def train(name, steps, executor=None, batch=8, on_step=None):
    """Trains and returns gradients per step, parameters at the end, and the counted peak."""
    model, inputs = fresh(name, batch)
    return train_model(model, inputs, lambda: loss_of(model(inputs)), steps, executor=executor, on_step=on_step)


def train_model(model, inputs, loss_now, steps, *, executor=None, on_step=None):
    """Like ``train``, for any model; `loss_now` runs the forward. A parameter without a gradient has None."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    gradients = []
    with AccountingDevice() as device:
        device.hold(model, inputs)
        device.reset_peak()
        for step in range(steps):
            torch.manual_seed(step)
            with under(executor):
                loss = loss_now()
            loss.backward()
            del loss
            with device.uncounted():
                gradients.append([None if p.grad is None else p.grad.clone() for p in model.parameters()])
            optimizer.step()
            optimizer.zero_grad()
            if on_step:
                on_step(step)
    return gradients, [p.detach().clone() for p in model.parameters()], device.peak_bytes


def same(one, other):
    return all(torch.equal(a, b) for a, b in zip(one, other)) and len(one) == len(other)
