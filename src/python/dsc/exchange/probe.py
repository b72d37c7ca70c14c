"""Measures what an all-reduce of the process group itself costs: network, back end and Python, as DDP will pay it.

Also what half precision and int8 cost to convert, which on a fast link is more than they save.
"""

from __future__ import annotations

import json
import os
import statistics
import threading
import time
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist

from .buffers import Buffers
from .carrier import Carrier
from .device_carrier import DeviceCarrier
from .host_carrier import HostCarrier
from .int8_carrier import Int8Carrier, Int8Exchange
from .run import BLOCK, Run, peaks_of

LINK_FORMAT = "dsc.exchange.link/1"
SMALL_SIZES = (64, 1024, 4096)
LARGE_SIZES = (1 << 20, 4 << 20, 8 << 20)
# A first few warm up the path; small messages are cheap and noisy, so they are repeated more often.
_WARM_UP = 3
_SMALL_REPEATS = 10  # times `repeats`
_CONVERTED_VALUES = 8 << 20  # beyond the caches, as gradients are
_STREAM_CALLS = 6
_STREAM_VALUES = (1 << 16, 1 << 20)


def probe_link(
    path: str | os.PathLike[str] | None = None,
    *,
    process_group: dist.ProcessGroup | None = None,
    device: str | torch.device = "cpu",
    repeats: int = 15,
) -> dict[str, Any]:
    """Measures the link that `dsc exchange plan --link` reads. Every rank must call it.

    Fits T(n) = 2(P-1)α + 2(P-1)/P · n/B to all-reduces of fp32 tensors. What a call takes is what it takes the rank
    that joins it last: the others' time holds their wait for that rank. Halves and int8 are exchanged as the hooks do
    it, as their conversion, messages and back end share the processors.

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
        "exchanges": {"ranks": ranks, **_measure_exchanges(process_group, torch.device(device))},
        "sizes": [{"bytes": size, "medianMicroseconds": seconds * 1e6} for size, seconds in medians.items()],
    }
    if path is not None and dist.get_rank(process_group) == 0:
        with open(path, "w", encoding="utf-8") as file:
            json.dump(link, file, indent=1)
            file.write("\n")
    return link


def _convert_halves(values: torch.Tensor, ranks: int, room: Buffers | None) -> None:
    """Converts values as `scaled_half_hook` does."""
    piece = BLOCK if room else len(values)
    wire, product = (
        room.take(count, dtype) if room else torch.empty(count, dtype=dtype, device=values.device)
        for count, dtype in ((len(values), torch.float16), (piece, torch.float32))
    )
    for part, target in zip(values.split(piece), wire.split(piece)):
        target.copy_(torch.mul(part, 2.0, out=product[: len(part)]))
    peaks_of(wire, [len(values)]).tolist()
    for part, source in zip(values.split(piece), wire.split(piece)):
        part.copy_(source).mul_(0.5)
    if room:
        room.give(wire, product)


def _convert_int8(values: torch.Tensor, ranks: int, room: Buffers | None) -> None:
    """Converts values as `blockwise_int8_hook` does: all of them, and one share of the mean."""
    exchange = Int8Exchange(values, [len(values)], ranks, room)
    wire = exchange.encode()
    share = exchange.sum(wire)
    exchange.accept(wire)
    exchange.give(wire, share)


def _measure_conversion(
    convert: Callable[[torch.Tensor, int, Buffers | None], None],
    process_group: dist.ProcessGroup | None,
    device: str | torch.device,
) -> float:
    """Values per second that the slowest rank converts, all ranks at once."""
    values = torch.ones(_CONVERTED_VALUES, dtype=torch.float32, device=device)
    ranks = dist.get_world_size(process_group)
    room = None if values.is_cuda else Buffers()  # used again, as the hooks do: fresh memory takes longer
    seconds = []
    for _ in range(_WARM_UP + 5):
        dist.barrier(group=process_group)
        start = time.perf_counter()
        convert(values, ranks, room)
        if values.is_cuda:
            torch.cuda.synchronize(values.device)
        seconds.append(time.perf_counter() - start)
    longest = torch.tensor(statistics.median(seconds[_WARM_UP:]), dtype=torch.float64, device=device)
    dist.all_reduce(longest, op=dist.ReduceOp.MAX, group=process_group)
    return _CONVERTED_VALUES / longest.item()


def _measure_exchanges(process_group: dist.ProcessGroup | None, device: torch.device) -> dict[str, dict[str, float]]:
    """Costs of exchanges that follow each other, as those of buckets do: seconds per call and per value."""
    carriers: dict[str, Carrier] = {
        "fp16": HostCarrier(process_group) if device.type == "cpu" else DeviceCarrier(process_group),
        "int8": Int8Carrier(process_group, device),
    }
    found = {}
    for wire, carrier in carriers.items():
        streams = [_runs(wire, size, device) for size in _STREAM_VALUES]
        small, large = (_time_stream(carrier, runs, process_group) / _STREAM_CALLS for runs in streams)
        per_value = max(1e-15, (large - small) / (_STREAM_VALUES[1] - _STREAM_VALUES[0]))
        found[wire] = {"callSeconds": max(0.0, small - per_value * _STREAM_VALUES[0]), "secondsPerValue": per_value}
    return found


def _runs(wire: str, size: int, device: torch.device) -> list[Run]:
    """Runs of a type, each with `size` values of its own."""
    exponents = [0] if wire == "fp16" else []
    return [Run((0,), [0], torch.ones(size, device=device), [size], wire, exponents) for _ in range(_STREAM_CALLS)]


def _time_stream(carrier: Carrier, runs: list[Run], process_group: dist.ProcessGroup | None) -> float:
    """Seconds that the slowest rank takes to exchange runs that are begun one after the other."""
    device = runs[0].values.device
    failures: list[Exception | None] = []
    here = threading.Semaphore(0)

    def arrived(error: Exception | None) -> None:
        failures.append(error)
        here.release()

    seconds = []
    for _ in range(_WARM_UP + 3):
        dist.barrier(group=process_group)
        start = time.perf_counter()
        for run in runs:
            carrier.send(run, arrived)
        carrier.flush()
        for _ in runs:
            here.acquire()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        seconds.append(time.perf_counter() - start)
        carrier.end_step()
    error = next((error for error in failures if error is not None), None)
    if error is not None:
        raise error
    longest = torch.tensor(statistics.median(seconds[_WARM_UP:]), dtype=torch.float64, device=device)
    dist.all_reduce(longest, op=dist.ReduceOp.MAX, group=process_group)
    return longest.item()
