"""A model under the scaled-half hook, with gradients that are drawn: what the tests of the hook run."""

import torch
from torch.nn.parallel import DistributedDataParallel

from dsc.exchange import ScaledHalf, scaled_half_hook

SHAPES = [(300, 20), (50, 50), (256,), (2000,), (64, 64)]
CAP_MB = 0.02  # several buckets


def wrap(model, **state_options):
    ddp = DistributedDataParallel(model, bucket_cap_mb=CAP_MB)
    state = ScaledHalf(model.parameters(), **state_options)
    ddp.register_comm_hook(state, scaled_half_hook)
    return ddp, state


def draw(rank, step, stds):
    generator = torch.Generator().manual_seed(step * 100 + rank)
    return [torch.randn(shape, generator=generator) * std for shape, std in zip(SHAPES, stds)]


def run_products(ddp, rank, step, stds, change=None):
    given = draw(rank, step, stds)
    if change:
        change(given)
    ddp.zero_grad()
    ddp(given).backward()
    return [parameter.grad.clone() for parameter in ddp.parameters()]


def mean_of(ranks, step, stds):
    drawn = [draw(rank, step, stds) for rank in range(ranks)]
    return [sum(values) / ranks for values in zip(*drawn)]
