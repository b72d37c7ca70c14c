"""FSDP2 with scaled halves: gradients, losses and refusals beside PyTorch's own reduce-scatter in fp32."""

import copy

import pytest
import torch
import torch.distributed as dist
from exchange_models import TinyGpt, text_batch
from exchange_workers import run_ranks
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.functional import cross_entropy

from dsc.exchange import ScaledReduceScatter, use_scaled_half
from dsc.exchange.sharded import HALVES


class Perceptron(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Linear(30, 64), nn.GELU(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 7))


class Convolutions(nn.Sequential):
    def __init__(self):
        first = [nn.Conv2d(3, 8, 3), nn.GroupNorm(2, 8), nn.ReLU(), nn.Conv2d(8, 16, 3), nn.ReLU()]
        super().__init__(*first, nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(64, 7))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRU(20, 24, batch_first=True)
        self.head = nn.Linear(24, 7)

    def forward(self, x):
        return self.head(self.cell(x)[0][:, -1])


INPUTS = {Perceptron: (16, 30), Convolutions: (8, 3, 12, 12), Recurrent: (8, 6, 20)}


def loss_of(model, kind, step, rank):
    if kind is TinyGpt:
        words, following = text_batch(step, rank)
        return cross_entropy(model(words).flatten(0, 1), following.flatten())
    random = torch.Generator().manual_seed(step * 100 + rank)
    x, y = torch.randn(INPUTS[kind], generator=random), torch.randint(0, 7, INPUTS[kind][:1], generator=random)
    return cross_entropy(model(x), y)


def shard(model, mesh):
    for child in model.children():
        if any(True for _ in child.parameters()) and not isinstance(child, nn.ModuleList):
            fully_shard(child, mesh=mesh)
        elif isinstance(child, nn.ModuleList):
            for block in child:
                fully_shard(block, mesh=mesh)
    return fully_shard(model, mesh=mesh)


def _all_gradients(rank, ranks, shards):
    return {
        kind.__name__: _gradients(rank, ranks, shards, kind) for kind in (Perceptron, Convolutions, Recurrent, TinyGpt)
    }


def _gradients(rank, ranks, shards, kind):
    torch.manual_seed(0)
    plain = kind()
    model = copy.deepcopy(plain)
    mesh = init_device_mesh("cpu", (ranks // shards, shards), mesh_dim_names=("replicate", "shard"))
    shard(model, mesh["shard"])
    units = use_scaled_half(model, replicas=mesh.get_group("replicate") if shards < ranks else None)
    assert units > 1
    worst, worst_of_small = 0.0, 0.0  # small: under 200 values, whose roundings do not average
    for step in range(3):
        model.zero_grad()
        plain.zero_grad()
        loss_of(model, kind, step, rank).backward()
        sum(loss_of(plain, kind, step, each) for each in range(ranks)).div(ranks).backward()
        for own, other in zip(model.parameters(), plain.parameters()):
            found = own.grad.full_tensor()
            error = ((found - other.grad).norm() / other.grad.norm()).item()
            if other.numel() < 200:
                worst_of_small = max(worst_of_small, error)
            else:
                worst = max(worst, error)
    return worst, worst_of_small


@pytest.mark.parametrize(("ranks", "shards"), [(2, 2), (4, 4), (4, 2)])
def test_gradients_are_within_half_a_thousandth_of_fp32s_in_every_layer(ranks, shards):
    for errors in run_ranks(ranks, _all_gradients, ranks, shards):
        for kind, (worst, worst_of_small) in errors.items():
            assert worst < 5e-4, kind
            # Between replicas values are rounded twice more.
            assert worst_of_small < (5e-4 if shards == ranks else 1e-3), kind


def _final_loss(rank, is_scaled, steps):
    torch.manual_seed(1)
    model = TinyGpt(width=32)
    mesh = init_device_mesh("cpu", (2,))
    shard(model, mesh)
    if is_scaled:
        use_scaled_half(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for step in range(steps):
        optimizer.zero_grad()
        loss_of(model, TinyGpt, step, rank).backward()
        optimizer.step()
    with torch.no_grad():
        losses = [loss_of(model, TinyGpt, 10_000 + at, 0).item() for at in range(10)]
    return sum(losses) / len(losses)


def _final_losses(rank, steps):
    return [_final_loss(rank, is_scaled, steps) for is_scaled in (True, False)]


def test_a_small_gpt_ends_with_the_loss_of_fp32_after_300_steps():
    scaled, plain = run_ranks(2, _final_losses, 300)[0]
    assert scaled != plain and scaled == pytest.approx(plain, rel=0.005)


@pytest.mark.parametrize("size", [1e-38, 1e-20, 1.0, 65_504.0, 1e30, 3e38])
def test_values_of_any_size_travel(size):
    rows = torch.tensor([[1.0, -0.37, 0.0], [0.0, 0.0, 0.0]]) * size
    assert torch.allclose(HALVES.decode(HALVES.encode(rows), rows.shape[1]), rows, rtol=2**-11, atol=0)


@pytest.mark.parametrize("bad", [float("inf"), float("-inf"), float("nan")])
def test_what_is_not_finite_gets_through_and_spoils_no_other_row(bad):
    rows = torch.tensor([[1e-9, bad], [1e-9, 2e-9]])
    found = HALVES.decode(HALVES.encode(rows), rows.shape[1])
    assert torch.equal(found[0, 1].isnan(), rows[0, 1].isnan()) and not found[0, 1].isfinite()
    assert torch.allclose(found[1], rows[1], rtol=2**-11, atol=0)


def _refusals(rank):
    said = []
    model = Perceptron()
    mesh = init_device_mesh("cpu", (1, 2), mesh_dim_names=("replicate", "shard"))
    calls = [
        lambda: use_scaled_half(model),
        lambda: use_scaled_half(fully_shard(model, mesh=mesh), replicas=mesh.get_group("replicate")),
        lambda: ScaledReduceScatter()(torch.ones(1), torch.ones(2), dist.group.WORLD, dist.ReduceOp.MAX),
    ]
    for call in calls:
        try:
            call()
        except Exception as error:
            said.append(str(error))
    return said


def test_what_cannot_work_is_refused_by_name():
    said = run_ranks(2, _refusals)[0]
    assert "no module is sharded" in said[0]
    assert "two-dimensional mesh" in said[1]
    assert "expected SUM or AVG" in said[2]
