import os
import signal
import time

import pytest
import torch
import torch.distributed as dist
from exchange_models import Products
from exchange_workers import run_ranks
from torch.nn.parallel import DistributedDataParallel

from dsc.exchange import PeerLost, SharedMemory, shared_memory_hook


def _files():
    return {name for name in os.listdir("/dev/shm") if name.startswith("dsc-exchange-")}


def _means(rank, ranks):
    memory = SharedMemory(piece_bytes=4096)
    files = _files()
    worst = 0.0
    for round_, count in enumerate([1, 7, 1000, 100_003, 8, 64 * ranks]):
        values = [torch.randn(count, generator=torch.Generator().manual_seed(round_ * 10 + q)) for q in range(ranks)]
        found = memory.all_reduce(values[rank].clone())
        worst = max(worst, (found - sum(values) / ranks).abs().max().item())
        same = [torch.empty_like(found) for _ in range(ranks)]
        dist.all_gather(same, found)
        assert all(torch.equal(found, other) for other in same)
    return worst, files


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_every_rank_gets_the_same_mean_and_no_file_is_left(ranks):
    before = _files()
    for worst, files in run_ranks(ranks, _means, ranks):
        assert worst < 1e-6
        assert files <= before


def _hook(rank):
    ddp = DistributedDataParallel(Products([(50, 50), (1000,)]), bucket_cap_mb=0.005)
    ddp.register_comm_hook(SharedMemory(), shared_memory_hook)
    for _ in range(3):
        ddp.zero_grad()
        ddp([torch.full((50, 50), float(rank)), torch.full((1000,), 2.0 * rank)]).backward()
    return [parameter.grad.unique().tolist() for parameter in ddp.parameters()]


def test_the_hook_gives_ddp_its_means():
    for found in run_ranks(2, _hook):
        assert found == [[0.5], [1.0]]


def _stands_still(rank):
    memory = SharedMemory()
    memory.all_reduce(torch.ones(10))
    if rank == 1:
        return None  # and waits for the other rank to be done
    memory.timeout = 1.0
    peer, _ = memory._peers[1]
    os.kill(peer, signal.SIGSTOP)
    start = time.monotonic()
    try:
        memory.all_reduce(torch.ones(10))
    except PeerLost as lost:
        return lost.rank, str(lost), time.monotonic() - start
    finally:
        os.kill(peer, signal.SIGCONT)


def test_a_rank_that_stands_still_is_named_after_the_timeout():
    lost_rank, message, seconds = run_ranks(2, _stands_still)[0]
    assert lost_rank == 1 and "no progress for 1 s" in message
    assert 0.9 < seconds < 25, "after its own timeout, not after the default of 30 s"


def _killed(rank):
    memory = SharedMemory()
    # The pid of a process that is gone by the time it is looked for.
    child = os.fork()
    if child == 0:
        time.sleep(0.2)
        os._exit(0)
    from dsc.exchange import shared_memory

    memory._peers[1 - rank] = (child, shared_memory._started(child))
    if rank == 0:
        start = time.monotonic()
        try:
            memory.all_reduce(torch.ones(10))
        except PeerLost as lost:
            return lost.rank, str(lost), time.monotonic() - start
    time.sleep(1.5)
    return None


def test_a_dead_rank_is_named_before_the_timeout():
    lost_rank, message, seconds = run_ranks(2, _killed)[0]
    assert lost_rank == 1 and "is gone" in message
    assert seconds < 25, "at once, not after the timeout of 30 s"


def _another_container(rank, path):
    if rank == 0:  # what the others find under the number of its memory
        os.memfd_create = lambda name: os.open(path, os.O_RDWR)
    try:
        SharedMemory(piece_bytes=4096)
    except Exception as error:
        return str(error)


def test_what_is_not_the_first_ranks_memory_is_refused_and_never_written(tmp_path):
    file = tmp_path / "samples"
    file.write_bytes(b"x" * (1 << 20))
    answers = run_ranks(2, _another_container, str(file), killed=(2,))
    assert "cannot open the memory of rank 0" in answers[1] and "containers" in answers[1]
