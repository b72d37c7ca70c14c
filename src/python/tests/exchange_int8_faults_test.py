"""What the int8 hook refuses, and what it does when a rank sends inf, is late or dies."""

import os
import signal
import time

import torch
from exchange_int8_runs import SHAPES, draw, exchange, wrap
from exchange_models import Products
from exchange_workers import run_ranks
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from dsc.exchange import BlockwiseInt8, blockwise_int8_hook, int8_carrier


def _not_finite(rank):
    ddp = wrap(Products(SHAPES))
    stds = [1.0] * len(SHAPES)
    given = draw(rank, 0, stds)
    if rank == 1:
        given[5][300] = float("inf")
    found = exchange(ddp, given)
    after = exchange(ddp, draw(rank, 1, stds))
    spoilt = [index for index, value in enumerate(found) if not value.isfinite().all()]
    return spoilt, found[5].isnan().nonzero().flatten().tolist(), all(value.isfinite().all() for value in after)


def test_inf_of_one_rank_is_nan_in_its_block_on_every_rank_and_gone_in_the_next_step():
    for spoilt, places, is_gone in run_ranks(2, _not_finite):
        assert spoilt == [5] and places == list(range(256, 512)) and is_gone


def _sparse(rank):
    model = nn.Sequential(nn.Embedding(50, 8, sparse=True), nn.Linear(8, 4))
    ddp = wrap(model)
    try:
        ddp(torch.arange(10)).sum().backward()
    except Exception as error:
        return str(error)


def test_a_sparse_gradient_is_refused():
    assert all("sparse=False" in message for message in run_ranks(2, _sparse))


class Branches(nn.Module):
    """Runs one of two layers."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(32, 32) for _ in range(2))
        self.head = nn.Linear(32, 32)

    def forward(self, given, at):
        return self.head(self.layers[at](given))


def _leave_a_layer_out(rank):
    encode = int8_carrier.encode_blocks

    def encode_late(blocks, out):
        time.sleep(0.1 * rank)
        return encode(blocks, out)

    def hook(state, bucket):
        sent = blockwise_int8_hook(state, bucket)
        time.sleep(0.1 * (1 - rank))
        return sent

    int8_carrier.encode_blocks = encode_late
    ddp = DistributedDataParallel(Branches(), bucket_cap_mb=0.003, find_unused_parameters=True)
    ddp.register_comm_hook(BlockwiseInt8(), hook)
    ddp(torch.ones(1, 32), 0).sum().backward()
    return [parameter.grad is not None for parameter in ddp.parameters()]


def test_a_parameter_that_no_rank_uses_has_no_gradient_and_keeps_nobody_waiting():
    # DDP asks all ranks which parameters they used: rank 0 does so after it has sent its gradients, rank 1 before.
    for are_used in run_ranks(2, _leave_a_layer_out):
        assert are_used == [True, True, False, False, True, True]


def _lose_a_rank(rank, ranks):
    ddp = wrap(Products(SHAPES))
    for step in range(2):
        exchange(ddp, draw(rank, step, [1.0] * len(SHAPES)))
    if rank == ranks - 1:
        next(ddp.parameters()).register_hook(lambda gradient: os.kill(os.getpid(), signal.SIGKILL))
    try:
        exchange(ddp, draw(rank, 2, [1.0] * len(SHAPES)))
    except RuntimeError as error:
        return str(error)


def test_when_a_rank_dies_backward_raises_on_all_others():
    for message in run_ranks(3, _lose_a_rank, 3, killed=[2])[:-1]:
        assert message and ("closed by peer" in message or "reset by peer" in message)
