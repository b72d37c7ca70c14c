"""Two levels of the exchange: shared memory within a host, one rank per host over the network."""

import os
import signal

import pytest
import torch
import torch.distributed as dist
from exchange_hook_test import SHAPES, mean_of, run_products, wrap
from exchange_models import Products, TinyGpt, text_batch
from exchange_workers import run_ranks
from torch.nn.functional import cross_entropy

from dsc.exchange import BlockwiseInt8, ScaledHalf, blockwise_int8_hook, two_level_carrier


def pretend_hosts(rank, sizes):
    """Hosts of one machine: ranks 0.. on the first, and so on."""
    host = next(at for at in range(len(sizes)) if rank < sum(sizes[: at + 1]))
    named = two_level_carrier.find_hosts
    assert named(None) == [list(range(sum(sizes)))]  # they are one, without pretending
    ranks = [list(range(sum(sizes[:at]), sum(sizes[: at + 1]))) for at in range(len(sizes))]
    two_level_carrier.find_hosts = lambda group: ranks
    return host


def _means(rank, sizes):
    pretend_hosts(rank, sizes)
    stds = [1e-9, 1e-7, 1e-5, 1e-4, 1e-3]
    ddp, state = wrap(Products(SHAPES), levels=2)
    worst = 0.0
    for step in range(5):
        found = run_products(ddp, rank, step, stds)
        expected = mean_of(sum(sizes), step, stds)
        for mine, mean in zip(found, expected):
            worst = max(worst, ((mine - mean).norm() / mean.norm()).item())
            everyone = [torch.empty_like(mine) for _ in range(sum(sizes))]
            dist.all_gather(everyone, mine)
            assert all(torch.equal(mine, other) for other in everyone)
    return worst, state.state_dict()


@pytest.mark.parametrize("sizes", [[2, 2], [3], [2, 1, 1]])
def test_all_ranks_get_the_same_mean_whatever_their_hosts(sizes):
    found = run_ranks(sum(sizes), _means, sizes)
    for worst, state in found:
        assert worst < 5e-4
        assert state == found[0][1]


def _int8_means(rank, sizes):
    pretend_hosts(rank, sizes)
    ddp = torch.nn.parallel.DistributedDataParallel(Products(SHAPES), bucket_cap_mb=0.02)
    ddp.register_comm_hook(BlockwiseInt8(levels=2), blockwise_int8_hook)
    sent = count_sent()
    worst = 0.0
    for step in range(4):
        found = run_products(ddp, rank, step, [1e-9, 1e20, 1e-5, 1.0, 1e-3])
        for mine, mean in zip(found, mean_of(sum(sizes), step, [1e-9, 1e20, 1e-5, 1.0, 1e-3])):
            worst = max(worst, ((mine - mean).norm() / mean.norm()).item())
            everyone = [torch.empty_like(mine) for _ in range(sum(sizes))]
            dist.all_gather(everyone, mine)
            assert all(torch.equal(mine, other) for other in everyone)
    return worst, sent["swapped"] > 0


def count_sent():
    sent, swap = {"swapped": 0}, dist.all_to_all_single

    def swapped(shown, own, **options):
        assert own.dtype == torch.uint8
        sent["swapped"] += own.nbytes
        return swap(shown, own, **options)

    dist.all_to_all_single = swapped
    return sent


@pytest.mark.parametrize("sizes", [[2, 2], [3], [2, 1, 1]])
def test_only_the_first_ranks_of_hosts_send_int8_to_each_other(sizes):
    found = run_ranks(sum(sizes), _int8_means, sizes)
    firsts = {sum(sizes[:at]) for at in range(len(sizes))}
    for rank, (worst, has_swapped) in enumerate(found):
        assert worst < (0.03 if len(sizes) > 1 else 1e-6) and (worst > 1e-3) == (len(sizes) > 1)
        assert has_swapped == (len(sizes) > 1 and rank in firsts)


def _int8_spoilt(rank):
    pretend_hosts(rank, [2, 2])
    ddp = torch.nn.parallel.DistributedDataParallel(Products(SHAPES), bucket_cap_mb=0.02)
    ddp.register_comm_hook(BlockwiseInt8(levels=2), blockwise_int8_hook)

    def spoil(given):
        if rank == 3:
            given[2][5] = float("nan")

    found = run_products(ddp, rank, 0, [1.0] * len(SHAPES), spoil)
    after = run_products(ddp, rank, 1, [1.0] * len(SHAPES))
    return bool(found[2].isnan().any()), all(value.isfinite().all() for value in after)


def test_a_nan_gets_through_as_int8_too_and_is_gone_in_the_next_step():
    assert run_ranks(4, _int8_spoilt) == [(True, True)] * 4


def _overflows(rank):
    pretend_hosts(rank, [2, 2])
    ddp, state = wrap(Products(SHAPES), levels=2)
    for step in range(6):
        stds = [1e-3 * (1e6 if step == 4 else 1)] * len(SHAPES)
        found = run_products(ddp, rank, step, stds)
        for mine, mean in zip(found, mean_of(4, step, stds)):
            assert ((mine - mean).norm() / mean.norm()).item() < 5e-4

    def spoil(given):
        if rank == 3:
            given[2][5] = float("nan")

    found = run_products(ddp, rank, 6, [1e-3] * len(SHAPES), spoil)
    assert torch.isnan(found[2]).any()
    return state.redone


def test_an_overflow_is_repeated_in_fp32_on_all_ranks_and_a_nan_gets_through():
    found = run_ranks(4, _overflows)
    assert found[0] > 0 and len(set(found)) == 1


def _train(rank, levels, steps):
    torch.manual_seed(1)
    if levels == 2:
        pretend_hosts(rank, [2, 2])
    model = TinyGpt(width=32)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    ddp = torch.nn.parallel.DistributedDataParallel(model, bucket_cap_mb=0.05)
    if levels:
        from dsc.exchange import scaled_half_hook

        ddp.register_comm_hook(ScaledHalf(model.parameters(), levels=levels), scaled_half_hook)
    for step in range(steps):
        words, following = text_batch(step, rank)
        optimizer.zero_grad()
        loss = cross_entropy(ddp(words).flatten(0, 1), following.flatten())
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        words, following = text_batch(10_000, 0)
        return cross_entropy(model(words).flatten(0, 1), following.flatten()).item()


def test_a_small_gpt_learns_as_with_plain_ddp():
    two, plain = run_ranks(4, _train, 2, 40)[0], run_ranks(4, _train, 0, 40)[0]
    assert two == pytest.approx(plain, rel=0.005)


def _dies(rank):
    pretend_hosts(rank, [2, 2])
    ddp, _ = wrap(Products(SHAPES), levels=2)
    stds = [1e-3] * len(SHAPES)
    run_products(ddp, rank, 0, stds)
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    try:
        for step in range(1, 50):
            run_products(ddp, rank, step, stds)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "went on"


def test_a_dead_rank_ends_the_others_steps():
    found = run_ranks(4, _dies, killed=(1, 2, 3))
    assert found[0] != "went on"  # whoever notices first tells: the neighbour in shared memory, or gloo
