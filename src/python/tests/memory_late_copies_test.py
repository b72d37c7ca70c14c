"""Copies as late as an executor permits: the order a GPU may choose, in which races show without one."""

import gc
import weakref

import pytest

torch = pytest.importorskip("torch")

from memory_host_parameters_test import plan_for as plan_of_parameters  # noqa: E402
from memory_networks import fresh, loss_of  # noqa: E402
from memory_tools import one_thread  # noqa: E402, F401
from memory_training import gradients as gradients_of  # noqa: E402
from memory_training import plan_of  # noqa: E402

from dsc.memory import Offload  # noqa: E402
from dsc.memory.carrying.copies import CpuCopies  # noqa: E402


class LateCopies(CpuCopies):
    """Runs a copy only when somebody waits for it, and does not keep the memory it touches alive, as streams do.

    ``given_away`` counts the device memory that was freed while a copy still had it to read or to write.
    """

    def __init__(self):
        super().__init__()
        self.given_away = []
        self.count = 0

    def pinned(self, size):
        return torch.full((size,), 255, dtype=torch.uint8)

    def start_out(self, host, device_bytes):
        return self._start("out", host, device_bytes, None)

    def start_in(self, device_bytes, host, after=None):
        return self._start("in", host, device_bytes, after)

    def wait(self, copy, on_late=None, stream=None):
        copy()

    wait_on_host = wait

    def is_done(self, copy):
        return copy.is_done

    def _start(self, direction, host, device_bytes, after):
        self.count += 1
        return Late(direction, host, device_bytes, after, self.given_away)


class Late:
    def __init__(self, direction, host, device_bytes, after, given_away):
        self.is_done = False
        self._direction, self._host, self._after = direction, host, after
        storage = device_bytes.untyped_storage()
        self._storage = weakref.ref(storage)
        self._place = device_bytes.storage_offset(), device_bytes.numel()
        self._freed = weakref.finalize(storage, given_away.append, direction)
        self._freed.atexit = False

    def __call__(self):
        if self.is_done:
            return
        if self._after is not None:
            self._after()
        self.is_done = True
        self._freed.detach()
        storage, (start, size) = self._storage(), self._place
        assert storage is not None, f"a copy {self._direction} ran on memory that was given away"
        device = torch.empty(0, dtype=torch.uint8).set_(storage, start, (size,), (1,))
        with torch.no_grad():
            if self._direction == "out":
                self._host.copy_(device)
            else:
                device.copy_(self._host)


def gradients(name, executor=None, batch=8, break_at=None):
    model, inputs = fresh(name, batch)
    if break_at is not None:
        parameters = list(model.parameters())
        parameters[break_at].register_hook(explode)
    torch.manual_seed(1)
    return gradients_of(model, inputs, executor)


def explode(gradient):
    raise ValueError("no")


@pytest.mark.parametrize("name", ["gpt", "convnet"])
@pytest.mark.parametrize("flags", [(), ("--reload", "slots")])
def test_the_latest_copies_give_the_same_gradients_and_touch_no_memory_given_away(name, flags, tmp_path):
    *_, plan = plan_of(name, tmp_path, "50%", *flags)
    copies = LateCopies()
    executor = Offload(plan, copies=copies)
    plain = gradients(name)
    for _ in range(3):
        assert all(map(torch.equal, plain, gradients(name, executor)))
    has_failed = False
    try:
        gradients(name, executor, break_at=len(plain) // 2)  # copies in are under way and nobody will use them
    except ValueError:
        has_failed = True
    gc.collect()
    assert has_failed
    for _ in range(2):  # torch frees the graph of the failed backward with the next one: that step is a miss
        assert all(map(torch.equal, plain, gradients(name, executor)))
    other = gradients(name, batch=5)
    assert all(map(torch.equal, other, gradients(name, executor, batch=5)))
    executor.end_step()
    assert executor.counts["plannedSteps"] == 5 and copies.count > 20
    assert copies.given_away == []


@pytest.mark.parametrize("name,budget", [("wide", "40%"), ("channels_last", "75%")])
def test_the_latest_copies_of_parameters_and_gradients_do_no_harm(name, budget, tmp_path):
    from memory_host_parameters_test import fresh

    plan, _, _ = plan_of_parameters(name, tmp_path, budget)
    copies = LateCopies()
    model, inputs = fresh(name)
    executor = Offload(plan, model=model, copies=copies)
    host = executor.host_parameters()
    optimizer = torch.optim.SGD(host, lr=0.01)
    plain, _ = fresh(name)
    alone = torch.optim.SGD(plain.parameters(), lr=0.01)
    for step in range(6):
        with executor:
            loss = loss_of(model(inputs))
        if step == 3:  # no backward: what was on its way back is given up
            executor.end_step()
            continue
        loss.backward()
        executor.end_step()
        alone.zero_grad()
        loss_of(plain(inputs)).backward()
        assert all(torch.equal(a.grad, b.grad) for a, b in zip(host, plain.parameters()))
        optimizer.step()
        alone.step()
        optimizer.zero_grad()
    del loss
    executor.close()
    assert copies.given_away == []
    assert all(map(torch.equal, model.parameters(), plain.parameters()))


@pytest.mark.filterwarnings("ignore:grad and param do not obey")
def test_a_gradient_that_lies_otherwise_than_its_parameter_is_held_until_its_copy_has_run(tmp_path):
    from memory_host_parameters_test import fresh, offloaded

    copies = LateCopies()
    model, inputs, executor, host = offloaded(tmp_path, copies=copies)
    with executor:
        loss = loss_of(model(inputs))
    for parameter in model.parameters():
        if parameter.dim() == 2:
            parameter.grad = torch.zeros(128, 128).t()
    loss.backward()
    executor.end_step()
    assert all(map(torch.equal, [p.grad for p in host], gradients_of(fresh("wide")[0], inputs)))
    assert copies.given_away == []
