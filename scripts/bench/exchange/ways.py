"""Ways to exchange gradients with DDP, measured in turn."""

import statistics
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from torch.nn.parallel import DistributedDataParallel

from dsc.exchange import BlockwiseInt8, ScaledHalf, blockwise_int8_hook, scaled_half_hook


def hooked(model, hook, how=None, levels=1):
    """A model in DDP, and a list for each thing that is measured."""
    ddp = DistributedDataParallel(model, **(how or {}))
    if hook == "fp16":
        ddp.register_comm_hook(None, default_hooks.fp16_compress_hook)
    if hook == "bf16":
        ddp.register_comm_hook(None, default_hooks.bf16_compress_hook)
    if hook == "PowerSGD":
        state = powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=1, start_powerSGD_iter=2)
        ddp.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    if hook == "int8":
        ddp.register_comm_hook(BlockwiseInt8(levels=levels), blockwise_int8_hook)
    if hook == "scaled":
        ddp.register_comm_hook(ScaledHalf(model.parameters(), levels=levels), scaled_half_hook)
    return ddp, [], [], []


def measure(arguments, ways, batch):
    """Backward by each of the ways (model, seconds, processor seconds, bytes sent) in turn: the slowest rank's medians."""
    for round_ in range(arguments.rounds + 3):
        for ddp, seconds, busy_seconds, sent in ways.values():
            ddp.zero_grad()
            loss = ddp(batch).square().mean()
            dist.barrier()
            sent_start = sent_bytes(arguments)
            start, busy_start = time.perf_counter(), time.process_time()
            loss.backward()
            if round_ >= 3:
                seconds.append(time.perf_counter() - start)
                busy_seconds.append(time.process_time() - busy_start)
                sent.append(sent_bytes(arguments) - sent_start)
    rows = []
    for name, (_, *measured) in ways.items():
        slowest = torch.tensor(measured, dtype=torch.float64)
        dist.all_reduce(slowest, op=dist.ReduceOp.MAX)
        seconds, busy_seconds, sent = map(statistics.median, slowest.tolist())
        rows.append({"name": name, "ms": seconds * 1000, "busyMs": busy_seconds * 1000, "sentBytes": sent})
    return rows


def sent_bytes(arguments):
    return int(Path(f"/sys/class/net/{arguments.interface}/statistics/tx_bytes").read_text())
