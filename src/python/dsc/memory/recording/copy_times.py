"""Times of what a plan's steps add: copies, and on a CPU the hooks of saved tensors."""

from __future__ import annotations

import functools
import statistics
import time
from collections.abc import Callable, Sequence

import torch

from ..carrying.cuda_copies import CudaCopies

SIZES = (1 << 20, 16 << 20)
CUDA_SIZES = (1 << 20, 8 << 20, 32 << 20)  # the largest takes half a millisecond, and twice that much of the device


@functools.cache
def measure_copies(device: torch.device) -> dict[str, float]:
    """Measured link: GB/s out, in, and both at once (sum), and the latency of one copy in microseconds.

    On a CPU, where hooks take time of the model's own processor, also what the hooks of one saved tensor take, in
    microseconds (``hookUs``).
    """
    if device.type == "cuda":
        return _measure_cuda_copies(device)
    # A CPU stands in: 128 MiB would only measure its caches' absence once more.
    gbs, latency = _fit([(size, _time_host_copy(size)) for size in SIZES])
    return {"d2hGBs": gbs, "h2dGBs": gbs, "bothGBs": gbs, "copyLatencyUs": latency, "hookUs": _time_hooks()}


def _time_host_copy(size: int) -> float:
    one = torch.ones(size, dtype=torch.uint8)
    return _median_seconds(one.clone, clock=time.thread_time)


def _time_hooks(count: int = 64) -> float:
    """Microseconds that hooks which copy take for one saved tensor of a few bytes, out and in."""
    hooks = torch.autograd.graph.saved_tensors_hooks(lambda saved: saved.detach().clone(), lambda kept: kept.clone())

    def run() -> None:
        found = torch.zeros(1, requires_grad=True)
        for _ in range(count):
            found = found.sin()
        found.backward()

    def run_hooked() -> None:
        with hooks:
            run()

    with torch.enable_grad():
        plain, hooked = (_median_seconds(one, clock=time.thread_time) for one in (run, run_hooked))
    return round(1e6 * max(0.0, hooked - plain) / count, 3)


def _measure_cuda_copies(device: torch.device) -> dict[str, float]:
    streams = {"out": torch.cuda.Stream(device), "in": torch.cuda.Stream(device)}
    timed: list[tuple[int, dict[str, float]]] = []
    for size in CUDA_SIZES:
        try:
            timed.append((size, _time_cuda_copies(device, size, streams)))
        except torch.OutOfMemoryError:  # the model has nearly all of the device: smaller copies tell less, but enough
            if not timed:
                raise
    out_gbs, out_latency = _fit([(size, seconds["out"]) for size, seconds in timed])
    in_gbs, in_latency = _fit([(size, seconds["in"]) for size, seconds in timed])
    return {
        "d2hGBs": out_gbs,
        "h2dGBs": in_gbs,
        "bothGBs": _fit([(2 * size, seconds["both"]) for size, seconds in timed])[0],
        "copyLatencyUs": max(out_latency, in_latency),
    }


def _time_cuda_copies(device: torch.device, size: int, streams: dict[str, torch.cuda.Stream]) -> dict[str, float]:
    """Median seconds of a copy of ``size`` bytes out, in, and of both at once."""
    copies = CudaCopies(device)  # pins as for a plan, and gives back: torch's own pinned memory stays for good
    host = [copies.pinned(size) for _ in range(2)]
    there = [torch.empty(size, dtype=torch.uint8, device=device) for _ in range(2)]

    def go(directions: Sequence[str]) -> None:
        if "out" in directions:
            with torch.cuda.stream(streams["out"]):
                host[0].copy_(there[0], non_blocking=True)
        if "in" in directions:
            with torch.cuda.stream(streams["in"]):
                there[1].copy_(host[1], non_blocking=True)
        torch.cuda.synchronize(device)

    try:
        return {
            "out": _median_seconds(lambda: go(["out"])),
            "in": _median_seconds(lambda: go(["in"])),
            "both": _median_seconds(lambda: go(["out", "in"])),
        }
    finally:
        for arena in host:
            copies.release(arena)


def _median_seconds(
    run_once: Callable[[], object], repeats: int = 7, clock: Callable[[], float] = time.perf_counter
) -> float:
    run_once()
    seconds = []
    for _ in range(repeats):
        start = clock()
        run_once()
        seconds.append(clock() - start)
    return statistics.median(seconds)


def _fit(rows: Sequence[tuple[int, float]]) -> tuple[float, float]:
    """Bandwidth from the largest size, latency from what the smallest takes longer than that."""
    largest, seconds = rows[-1]
    gbs = largest / seconds / 1e9
    smallest, small_seconds = rows[0]
    latency = max(0.0, 1e6 * (small_seconds - smallest / gbs / 1e9))
    return round(gbs, 3), round(latency, 3)
