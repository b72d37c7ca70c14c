"""The central node's optimizers beside torch.optim: the same bits, in sync mode, on CPU.

Intel's MKL, which takes PyTorch's square roots, rounds 0.6 % of them the other way unless it is told to compute the
same on all machines (MKL_CBWR=AVX2); AdamW's reference therefore runs in a process that says so.
"""

import copy
import json
import os
import subprocess
import sys
import threading

import pytest

torch = pytest.importorskip("torch")

from params_client_test import Server, in_threads, serve  # noqa: E402, F401

from dsc.params import ParameterClient, ParamsError  # noqa: E402

STEPS = 60


# Ranks are threads here, and what models are initialized with is drawn from one generator.
DRAWING = threading.Lock()


def make_model(kind="mlp"):
    with DRAWING:
        torch.manual_seed(0)
        if kind == "norm":
            layers = [torch.nn.Conv2d(3, 7, 3), torch.nn.BatchNorm2d(7), torch.nn.ReLU(), torch.nn.Flatten()]
            return torch.nn.Sequential(*layers, torch.nn.Linear(7 * 36, 3))
        return torch.nn.Sequential(torch.nn.Linear(37, 300), torch.nn.GELU(), torch.nn.Linear(300, 5))


def batch_of(step, rank, kind="mlp"):
    random = torch.Generator().manual_seed(97 * step + rank)
    return torch.randn((6, 3, 8, 8) if kind == "norm" else (8, 37), generator=random)


def loss_of(model, x):
    return (model(x.to(next(model.parameters()).dtype)).float() - 1).square().mean()


def rate_at(step):
    return 0.003 * (1 + step % 7)


def set_gradients(model, step, rank):
    """Gradients that need no matrix product, whose bits depend on threads and on MKL_CBWR."""
    random = torch.Generator().manual_seed(97 * step + rank)
    for p in model.parameters():
        p.grad = torch.randn(p.shape, generator=random) * 10.0 ** (step % 5 - 3)


def train_rank(
    url, rank, finals, *, model=None, steps=STEPS, kind="mlp", schedule=False, between=None, given=False, **options
):
    model = make_model(kind) if model is None else model
    client = ParameterClient(model, url, rank, **options)
    while (step := client.begin_step()) < steps:
        if between is not None:
            between(client, step)
        model.zero_grad()
        if given:
            set_gradients(model, step, rank)
        else:
            loss_of(model, batch_of(step, rank, kind)).backward()
        client.push(**({"lr": rate_at(step)} if schedule else {}))
    client.load()
    client.close()
    finals[rank] = model


def mean_gradients(models):
    for parameters in zip(*(m.parameters() for m in models)):
        mean = torch.stack([p.grad for p in parameters]).sum(0) / len(models)
        for p in parameters:
            p.grad.copy_(mean)


def train_with_torch(optimizer, options, ranks, schedule):
    """What torch.optim gets on the mean of the ranks' gradients; runs in a process of its own, see above."""
    model = make_model()
    stepper = getattr(torch.optim, optimizer)(model.parameters(), foreach=False, **options)
    for step in range(STEPS):
        copies = [copy.deepcopy(model) for _ in range(ranks)]
        for rank, each in enumerate(copies):
            set_gradients(each, step, rank)
        mean_gradients(copies)
        for own, other in zip(model.parameters(), copies[0].parameters()):
            own.grad = other.grad
        if schedule:
            stepper.param_groups[0]["lr"] = rate_at(step)
        stepper.step()
    some = torch.rand(10_000)
    has_rounded_roots = torch.equal(some.sqrt(), some.double().sqrt().float())
    return [p.detach() for p in model.parameters()], has_rounded_roots


def torch_alone(tmp_path, *case):
    script = (
        "import json, sys, torch; import params_optimizer_test as t;"
        "torch.save(t.train_with_torch(*json.loads(sys.argv[1])), sys.argv[2])"
    )
    path = str(tmp_path / "expected.pt")
    here = os.path.dirname(__file__)
    environment = {**os.environ, "MKL_CBWR": "AVX2", "PYTHONPATH": os.pathsep.join([here, os.path.dirname(here)])}
    subprocess.run([sys.executable, "-c", script, json.dumps(case), path], check=True, env=environment)
    return torch.load(path)


@pytest.mark.parametrize(
    ("optimizer", "options", "flags"),
    [
        ("SGD", {"lr": 0.05}, ["--lr", "0.05"]),
        (
            "SGD",
            {"lr": 0.05, "momentum": 0.9, "weight_decay": 0.01, "nesterov": True},
            ["--lr", "0.05", "--momentum", "0.9", "--weight-decay", "0.01", "--nesterov"],
        ),
        ("AdamW", {"lr": 0.003}, ["--optimizer", "adamw", "--lr", "0.003"]),
        (
            "AdamW",
            {"lr": 0.003, "betas": (0.3, 0.95), "eps": 1e-6, "weight_decay": 0.1},
            ["--optimizer", "adamw", "--lr", "0.003", "--betas", "0.3,0.95", "--eps", "1e-6", "--weight-decay", "0.1"],
        ),
    ],
)
@pytest.mark.parametrize("schedule", [False, True])
def test_two_sync_ranks_have_the_bits_of_torch_optim(serve, tmp_path, optimizer, options, flags, schedule):  # noqa: F811
    server = serve("--mode", "sync", "--workers", "2", *flags)
    finals = {}
    in_threads(*(lambda r=r: train_rank(server.url, r, finals, given=True, schedule=schedule) for r in range(2)))
    expected, has_rounded_roots = torch_alone(tmp_path, optimizer, options, 2, schedule)
    for rank in (0, 1):
        for own, other in zip(finals[rank].parameters(), expected):
            # On AMD's processors MKL heeds no MKL_CBWR: there AdamW cannot have its bits.
            if optimizer == "SGD" or has_rounded_roots:
                assert torch.equal(own.detach(), other), (own - other).abs().max()
            else:
                torch.testing.assert_close(own.detach(), other, rtol=2**-22, atol=2**-24)


def test_clipping_has_the_bits_of_torch_where_the_norm_does(serve):  # noqa: F811
    server = serve("--mode", "sync", "--workers", "1", "--lr", "0.1", "--clip-norm", "0.05")
    finals = {}
    train_rank(server.url, 0, finals)
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, foreach=False)
    clipped = 0
    for step in range(STEPS):
        model.zero_grad()
        loss_of(model, batch_of(step, 0)).backward()
        norm = torch.stack([p.grad.double().square().sum() for p in model.parameters()]).sum().sqrt().float()
        clipped += bool(norm > 0.05)
        torch.nn.utils.clip_grads_with_norm_(list(model.parameters()), 0.05, norm)
        optimizer.step()
    assert 0 < clipped <= STEPS
    for own, other in zip(finals[0].parameters(), model.parameters()):
        assert torch.equal(own, other)


def test_halves_are_trained_on_float32_masters(serve):  # noqa: F811
    server = serve("--mode", "sync", "--workers", "1", "--lr", "0.001", "--momentum", "0.9")
    finals = {}
    train_rank(server.url, 0, finals, model=make_model().bfloat16())
    model = make_model().bfloat16()
    masters = [p.detach().float() for p in model.parameters()]
    optimizer = torch.optim.SGD(masters, lr=0.001, momentum=0.9, foreach=False)
    for step in range(STEPS):
        model.zero_grad()
        loss_of(model, batch_of(step, 0)).backward()
        for master, p in zip(masters, model.parameters()):
            master.grad = p.grad.float()
        optimizer.step()
        with torch.no_grad():
            for master, p in zip(masters, model.parameters()):
                p.copy_(master)
    for own, other in zip(finals[0].parameters(), model.parameters()):
        assert own.dtype == torch.bfloat16 and torch.equal(own, other)


@pytest.mark.parametrize("push_type", ["f32", "f16"])
def test_buffers_of_batch_norms_are_the_mean_of_all_ranks(serve, push_type):  # noqa: F811
    server = serve("--mode", "sync", "--workers", "2", "--lr", "0.01")
    finals = {}
    options = {"kind": "norm", "steps": 3, "buffers": True, "push_type": push_type}
    in_threads(*(lambda r=r: train_rank(server.url, r, finals, **options) for r in range(2)))
    copies = [make_model("norm") for _ in range(2)]
    for step in range(3):
        for rank, each in enumerate(copies):
            each.zero_grad()
            loss_of(each, batch_of(step, rank, "norm")).backward()
        mean_gradients(copies)
        with torch.no_grad():
            for each in copies:
                for p in each.parameters():
                    p.sub_(0.01 * p.grad)
            for name in ("running_mean", "running_var"):
                tensors = [getattr(each[1], name) for each in copies]
                mean = torch.stack(tensors).mean(0)
                for tensor in tensors:
                    tensor.copy_(mean)
    near = {"rtol": 1e-3, "atol": 1e-4} if push_type == "f16" else {"rtol": 1e-6, "atol": 1e-7}
    for rank in (0, 1):
        assert torch.allclose(finals[rank][1].running_var, copies[0][1].running_var, **near)
        assert torch.allclose(finals[rank][1].running_mean, copies[0][1].running_mean, **near)
        assert torch.equal(finals[rank][1].running_var, finals[0][1].running_var)
        assert int(finals[rank][1].num_batches_tracked) == 3


def test_a_parameter_without_gradient_stays_as_torch_leaves_it_and_groups_have_their_own_decay(serve):  # noqa: F811
    server = serve("--mode", "sync", "--workers", "1", "--lr", "0.1", "--weight-decay", "0.5")
    model, finals = make_model(), {}
    model[0].weight.requires_grad_(False)
    reference = copy.deepcopy(model)
    groups = [{"params": [model[2].bias], "weight_decay": 0.0}, {"params": [model[0].bias], "lr_scale": 0.5}]
    train_rank(server.url, 0, finals, model=model, steps=3, groups=groups)
    optimizer = torch.optim.SGD(
        [
            {"params": [reference[0].weight, reference[2].weight]},
            {"params": [reference[2].bias], "weight_decay": 0.0},
            {"params": [reference[0].bias], "lr": 0.05},
        ],
        lr=0.1,
        weight_decay=0.5,
        foreach=False,
    )
    for step in range(3):
        optimizer.zero_grad()
        loss_of(reference, batch_of(step, 0)).backward()
        optimizer.step()
    for own, other in zip(model.parameters(), reference.parameters()):
        assert torch.equal(own, other)
    with pytest.raises(ValueError, match="momentum, expected params"):
        ParameterClient(make_model(), server.url, 0, groups=[{"params": [], "momentum": 1}])


def test_settings_change_in_a_run_and_outlive_a_killed_server(serve, tmp_path):  # noqa: F811
    flags = ["--mode", "sync", "--workers", "1", "--optimizer", "adamw", "--lr", "0.01"]
    plain, killed = serve(*flags), serve(*flags, "--checkpoint", str(tmp_path))
    finals = {}

    def change(client, step):
        if step == 2:
            client.change(lr=0.001, clip_norm=0.5)
            with pytest.raises(ParamsError, match="adamw has no momentum"):
                client.change(momentum=0.9)

    def change_and_kill(client, step):
        change(client, step)
        if step == 5 and client.epoch == 0:
            killed.kill()
            killed.start()

    train_rank(plain.url, 0, finals, steps=10, between=change)
    finals_of_killed = {}
    train_rank(killed.url, 0, finals_of_killed, steps=10, between=change_and_kill)
    for own, other in zip(finals_of_killed[0].parameters(), finals[0].parameters()):
        assert torch.equal(own, other)
