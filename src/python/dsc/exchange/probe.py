"""Measures what an all-reduce of the process group itself costs: network, back end and Python, as DDP will pay it.

Also what half precision and int8 cost to convert, which on a fast link is more than they save.
"""

from __future__ import annotations

import json
import os
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist

from .int8_carrier import Int8Exchange

LINK_FORMAT = "dsc.exchange.link/1"
SMALL_SIZES = (64, 1024, 4096)
LARGE_SIZES = (1 << 20, 4 << 20, 8 << 20)
# A first few warm up the path; small messages are cheap and noisy, so they are repeated more often.
_WARM_UP = 3
_SMALL_REPEATS = 10  # times `repeats`
_CONVERTED_VALUES = 8 << 20  # beyond the caches, as gradients are


def probe_link(
    path: str | os.PathLike[str] | None = None,
    *,
    process_group: dist.ProcessGroup | None = None,
    device: str | torch.device = "cpu",
    repeats: int = 15,
) -> dict[str, Any]:
    """Measures the link that `dsc exchange plan --link` reads. Every rank must call it.

    Fits T(n) = 2(P-1)α + 2(P-1)/P · n/B to all-reduces of fp32 tensors. What a call takes is what it takes the rank
    that joins it last: the others' time holds their wait for that rank.

    Args:
        path: where rank 0 writes the link; None writes nothing.
        process_group: the ranks; None is the default group.
        device: where the tensors lie.
        repeats: calls per size, of which the median counts.

    Returns:
        The link: α in microseconds, B in bytes per second, and the calls' medians.

    Raises:
        ValueError: there is one rank only.
    """
    ranks = dist.get_world_size(process_group)
    if ranks < 2:
        raise ValueError("a link needs two ranks")
    medians = {}
    for size in SMALL_SIZES + LARGE_SIZES:
        tensor = torch.ones(size // 4, dtype=torch.float32, device=device)
        seconds = []
        for _ in range(_WARM_UP + repeats * (_SMALL_REPEATS if size in SMALL_SIZES else 1)):
            dist.barrier(group=process_group)
            start = time.perf_counter()
            dist.all_reduce(tensor, group=process_group)
            if tensor.is_cuda:
                torch.cuda.synchronize(tensor.device)
            seconds.append(time.perf_counter() - start)
            tensor.fill_(1.0)
        # The minimum over the ranks, call by call, also makes all of them plan alike.
        shortest = torch.tensor(seconds[_WARM_UP:], dtype=torch.float64, device=device)
        dist.all_reduce(shortest, op=dist.ReduceOp.MIN, group=process_group)
        medians[size] = statistics.median(shortest.tolist())
    slopes = [(medians[b] - medians[a]) / (b - a) for at, a in enumerate(LARGE_SIZES) for b in LARGE_SIZES[at + 1 :]]
    per_byte = statistics.median(slopes)
    if per_byte <= 0:
        per_byte = medians[LARGE_SIZES[-1]] / LARGE_SIZES[-1]
    call = statistics.median(max(0.0, medians[size] - size * per_byte) for size in SMALL_SIZES)
    messages = 2 * (ranks - 1)
    link = {
        "format": LINK_FORMAT,
        "alphaMicroseconds": call / messages * 1e6,
        "bandwidthBytesPerSecond": messages / ranks / per_byte,
        "ranks": ranks,
        "halfValuesPerSecond": _measure_conversion(_convert_halves, process_group, device),
        "int8ValuesPerSecond": _measure_conversion(_convert_int8, process_group, device),
        "sizes": [{"bytes": size, "medianMicroseconds": seconds * 1e6} for size, seconds in medians.items()],
    }
    if path is not None and dist.get_rank(process_group) == 0:
        with open(path, "w", encoding="utf-8") as file:
            json.dump(link, file, indent=1)
            file.write("\n")
    return link


def _convert_halves(values: torch.Tensor, ranks: int) -> torch.Tensor:
    """Converts values as `scaled_half_hook` does."""
    scaled, wire = torch.empty_like(values), torch.empty_like(values, dtype=torch.float16)
    wire.copy_(torch.mul(values, 2.0, out=scaled))
    scaled.copy_(wire)
    float(torch.aminmax(scaled).max)
    return torch.mul(scaled, 0.5, out=values)


def _convert_int8(values: torch.Tensor, ranks: int) -> torch.Tensor:
    """Converts values as `blockwise_int8_hook` does: all of them, and one share of the mean."""
    exchange = Int8Exchange(values, [len(values)], ranks)
    wire = exchange.encode()
    exchange.sum(wire)
    exchange.accept(wire)
    return values


def _measure_conversion(
    convert: Callable[[torch.Tensor, int], torch.Tensor],
    process_group: dist.ProcessGroup | None,
    device: str | torch.device,
) -> float:
    """Values per second that the slowest rank converts, all ranks at once."""
    values = torch.ones(_CONVERTED_VALUES, dtype=torch.float32, device=device)
    ranks = dist.get_world_size(process_group)
    seconds = []
    for _ in range(_WARM_UP + 5):
        dist.barrier(group=process_group)
        start = time.perf_counter()
        convert(values, ranks)
        if values.is_cuda:
            torch.cuda.synchronize(values.device)
        seconds.append(time.perf_counter() - start)
    longest = torch.tensor(statistics.median(seconds[_WARM_UP:]), dtype=torch.float64, device=device)
    dist.all_reduce(longest, op=dist.ReduceOp.MAX, group=process_group)
    return _CONVERTED_VALUES / longest.item()
