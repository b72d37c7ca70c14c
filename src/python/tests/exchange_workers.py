"""Runs a function on several gloo ranks, each a process, and gives back what each returned."""

import os
import tempfile
import traceback

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def _run(rank, ranks, function, arguments, folder, queue):
    torch.set_num_threads(1)
    try:
        dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=ranks)
        result = function(rank, *arguments)
        dist.barrier()
        queue.put((rank, result, None))
    except BaseException:
        queue.put((rank, None, traceback.format_exc()))
    finally:
        if dist.is_initialized():
            dist.destroy_process_group()


def run_ranks(ranks, function, *arguments):
    """Calls `function(rank, *arguments)` on every rank; returns the results by rank, or raises the first failure."""
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    # One process imports torch, the ranks are its forks: importing it anew took most of a test's time.
    context = mp.get_context("forkserver")
    context.set_forkserver_preload(["torch", "torch.distributed", "torch.nn.parallel"])
    queue = context.SimpleQueue()
    with tempfile.TemporaryDirectory() as folder:
        processes = [
            context.Process(target=_run, args=(rank, ranks, function, arguments, folder, queue)) for rank in range(ranks)
        ]
        for process in processes:
            process.start()
        answers = [queue.get() for _ in processes]
        for process in processes:
            process.join()
    failures = [failure for _, _, failure in answers if failure]
    if failures:
        raise AssertionError(failures[0])
    return [result for _, result, _ in sorted(answers, key=lambda answer: answer[0])]
