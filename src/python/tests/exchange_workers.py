"""Runs a function on several gloo ranks, each a process, and gives back what each returned."""

import os
import tempfile
import traceback
from multiprocessing import connection

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def _run(rank, ranks, function, arguments, folder, queue, are_all_left):
    torch.set_num_threads(1)
    try:
        dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=ranks)
        result = function(rank, *arguments)
        if are_all_left:
            dist.barrier()
        queue.put((rank, result, None))
    except BaseException:
        queue.put((rank, None, traceback.format_exc()))
    finally:
        if dist.is_initialized():
            dist.destroy_process_group()


def run_ranks(ranks, function, *arguments, killed=()):
    """Calls `function(rank, *arguments)` on every rank; returns the results by rank, or raises the first failure.

    killed: ranks that end without an answer; their result is None. The others do not wait for them at the end.
    """
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    # One process imports what the first steps of DDP and AdamW import, and public models, the ranks are its forks: at 2
    # to 4 s a rank, importing that in every rank took most of a test's time. A library that is missing is left out.
    context = mp.get_context("forkserver")
    models = ["timm", "transformers.models.gpt2.modeling_gpt2"]
    context.set_forkserver_preload(["torch.nn.parallel", "torch.distributed.fsdp", "torch._dynamo", *models])
    queue = context.SimpleQueue()
    with tempfile.TemporaryDirectory() as folder:
        processes = [
            context.Process(target=_run, args=(rank, ranks, function, arguments, folder, queue, not killed))
            for rank in range(ranks)
        ]
        for process in processes:
            process.start()
        answers, running = {}, {process.sentinel: rank for rank, process in enumerate(processes)}
        while running or not queue.empty():
            for ready in connection.wait([queue._reader, *running]):
                if ready in running:
                    del running[ready]
                else:
                    rank, result, failure = queue.get()
                    answers[rank] = (result, failure)
    failures = [failure for _, failure in answers.values() if failure]
    failures += [
        f"rank {rank} ended without an answer" for rank in range(ranks) if rank not in answers and rank not in killed
    ]
    if failures:
        raise AssertionError(failures[0])
    return [answers.get(rank, (None, None))[0] for rank in range(ranks)]
