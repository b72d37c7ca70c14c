"""What the hook refuses, and what it does when a rank sends NaN, drifts, repeats late or dies."""

import os
import signal
import time

import pytest
import torch
from exchange_hook_runs import SHAPES, draw, run_products, wrap
from exchange_models import Products
from exchange_workers import run_ranks
from torch.nn.parallel import DistributedDataParallel

from dsc.exchange import ScaledHalf, scaled_half_hook
from dsc.exchange.run import Run


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


class _Unused(torch.nn.Module):
    """One of its layers takes no part."""

    def __init__(self):
        super().__init__()
        self.used, self.unused = torch.nn.Linear(64, 64), torch.nn.Linear(64, 64)

    def forward(self, given):
        return self.used(given)


def _repeat_late(rank):
    restart = Run.restart
    is_spike = False

    def restart_late(run):
        time.sleep(0.2 * rank)
        restart(run)

    def hook(state, bucket):
        sent = scaled_half_hook(state, bucket)
        if is_spike and bucket.is_last():
            time.sleep(0.2 * (1 - rank))
        return sent

    Run.restart = restart_late
    torch.manual_seed(1)
    ddp = DistributedDataParallel(_Unused(), find_unused_parameters=True)
    state = ScaledHalf(ddp.parameters())
    ddp.register_comm_hook(state, hook)
    for step in range(4):
        is_spike = step == 3
        ddp.zero_grad()
        (ddp(torch.ones(1, 64)).sum() * (1e9 if is_spike else 1.0)).backward()
    largest = ddp.module.used.weight.grad.max().item()
    return state.redone, largest, ddp.module.unused.weight.grad


def test_a_late_repeat_keeps_nobody_waiting_who_asks_which_parameters_were_used():
    # DDP asks so after the last bucket: rank 0 after it has repeated that, rank 1 before.
    for redone, largest, unused in run_ranks(2, _repeat_late):
        assert redone == 1 and largest == 1e9 and unused is None


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
