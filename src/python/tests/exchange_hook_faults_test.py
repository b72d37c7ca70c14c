"""What the hook refuses, and what it does when a rank sends NaN, drifts or dies."""

import os
import signal

import pytest
import torch
from exchange_hook_runs import SHAPES, draw, run_products, wrap
from exchange_models import Products
from exchange_workers import run_ranks
from torch.nn.parallel import DistributedDataParallel

from dsc.exchange import ScaledHalf, scaled_half_hook


def _sparse(rank):
    model = torch.nn.Sequential(torch.nn.Embedding(50, 8, sparse=True), torch.nn.Linear(8, 4))
    ddp = DistributedDataParallel(model)
    ddp.register_comm_hook(ScaledHalf(model.parameters()), scaled_half_hook)
    try:
        ddp(torch.arange(10)).sum().backward()
    except Exception as error:
        return str(error)


def test_a_sparse_gradient_is_refused_by_name():
    for message in run_ranks(2, _sparse):
        assert "gradient of parameter 0 (50 x 8) is sparse" in message
        assert "sparse=False" in message


def _nan(rank):
    stds = [1e-3] * len(SHAPES)
    ddp, state = wrap(Products(SHAPES))
    optimizer = torch.optim.SGD(ddp.parameters(), lr=1.0)
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
    skipped = []
    for step in range(5):
        given = draw(rank, step, stds)
        if step == 3 and rank == 0:
            given[2][3] = float("nan")
        optimizer.zero_grad()
        scaler.scale(ddp(given)).backward()
        before = scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        skipped.append(scaler.get_scale() < before)
    finite = all(parameter.isfinite().all().item() for parameter in ddp.parameters())
    return skipped, finite


def test_a_true_nan_reaches_the_grad_scaler_of_every_rank():
    for skipped, finite in run_ranks(2, _nan):
        assert skipped == [False, False, False, True, False] and finite


def _disagree(rank):
    stds = [1e-3] * len(SHAPES)
    ddp, state = wrap(Products(SHAPES), agree_every=4)
    for step in range(5):
        if step == 4 and rank == 1:
            state.redone += 1
        try:
            run_products(ddp, rank, step, stds)
        except Exception as error:
            return str(error)
    return None


def test_scales_that_drift_apart_are_fatal_and_named():
    for message in run_ranks(2, _disagree):
        assert "scales of ranks [1] differ" in message


def _lose_a_rank(rank, ranks):
    """The last rank is killed in the middle of a backward pass."""
    stds = [1e-3] * len(SHAPES)
    ddp, _ = wrap(Products(SHAPES))
    for step in range(3):
        run_products(ddp, rank, step, stds)
    if rank == ranks - 1:
        next(ddp.parameters()).register_hook(lambda gradient: os.kill(os.getpid(), signal.SIGKILL))
    try:
        run_products(ddp, rank, 3, stds)
    except RuntimeError as error:
        return str(error)
    return None


@pytest.mark.parametrize("ranks", [2, 3])
def test_when_a_rank_dies_backward_raises_on_all_others(ranks):
    for message in run_ranks(ranks, _lose_a_rank, ranks, killed=[ranks - 1])[:-1]:
        assert message and ("closed by peer" in message or "reset by peer" in message)
