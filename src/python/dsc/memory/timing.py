"""Times: layers in forward and backward, the split between parameter and feature gradient, copies."""

import copy
import statistics
import time

import torch

from .segments import Segments


class StepClock:
    """Marks instants on the device that runs the model; reads them when the step is over, in microseconds."""

    def __init__(self, device):
        self.is_cuda = device.type == "cuda"
        self.marks = []

    def mark(self, what):
        if self.is_cuda:
            event = torch.cuda.Event(enable_timing=True)
            event.record()
            self.marks.append((what, event))
        else:
            self.marks.append((what, time.perf_counter()))

    def read(self):
        """Pairs of (what, microseconds until the next mark)."""
        if self.is_cuda:
            torch.cuda.synchronize()
        pairs = zip(self.marks, self.marks[1:])
        if self.is_cuda:
            return [(what, 1e3 * now.elapsed_time(later)) for (what, now), (_, later) in pairs]
        return [(what, 1e6 * (later - now)) for (what, now), (_, later) in pairs]


def time_step(model, step, device):
    """Runs one step; returns {(segment, 'fwd' | 'bwd'): microseconds}."""
    clock = StepClock(device)
    segments = Segments(model, lambda index: clock.mark((index, "fwd")))
    at = {"segment": None}

    def pack(tensor):
        return segments.current, tensor.detach()

    def unpack(packed):
        segment, tensor = packed
        if at["segment"] is None or segment < at["segment"]:
            at["segment"] = segment
            clock.mark((segment, "bwd"))
        return tensor

    try:
        clock.mark((0, "fwd"))
        with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
            loss = step()
        clock.mark((segments.current, "bwd"))
        loss.backward()
        clock.mark(("end", ""))
    finally:
        segments.close()
    times = {}
    for what, microseconds in clock.read():
        times[what] = times.get(what, 0.0) + microseconds
    return times


def time_gradients(model, step, device):
    """Shares of backward spent on the parameter gradient, per call of a leaf module, in order.

    Each leaf is run alone on a copy of itself and of its input, so that neither its state (batch-norm statistics)
    nor random numbers change. None where a leaf has no parameters or cannot be run alone.
    """
    shares = []
    handles = []

    def hook(module, inputs, output):
        shares.append(_share_of_parameters(module, inputs, device))

    for module in model.modules():
        if next(module.children(), None) is None:
            handles.append(module.register_forward_hook(hook))
    try:
        with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
            step()
    finally:
        for handle in handles:
            handle.remove()
    return shares


def _share_of_parameters(module, inputs, device):
    if next(module.parameters(), None) is None:
        return 0.0
    if not any(isinstance(x, torch.Tensor) and x.is_floating_point() for x in inputs):
        return 1.0  # an embedding: its indices have no gradient
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []), torch.enable_grad():
        try:
            alone = copy.deepcopy(module)
            for hooks in (alone._forward_hooks, alone._forward_pre_hooks):
                hooks.clear()
            own = [
                x.detach().clone().requires_grad_(x.is_floating_point()) if isinstance(x, torch.Tensor) else x
                for x in inputs
            ]
            output = alone(*own)
            parameters = [p for p in alone.parameters() if p.requires_grad]
            features = [x for x in own if isinstance(x, torch.Tensor) and x.requires_grad]
            if not parameters:
                return 0.0
            seed = torch.ones_like(output)
            times = []
            for targets in (parameters, features):
                clock = StepClock(device)
                clock.mark("start")
                torch.autograd.grad(output, targets, seed, retain_graph=True)
                clock.mark("end")
                times.append(clock.read()[0][1])
            return times[0] / max(1e-9, sum(times))
        except (RuntimeError, TypeError, AttributeError):
            return 0.5  # not runnable alone (several outputs, unused parameters): both halves alike


SIZES = (1 << 20, 16 << 20, 128 << 20)


def measure_copies(device):
    """Measured link: GB/s out, in, and both at once (sum), and the latency of one copy in microseconds."""
    if device.type == "cuda":
        return _measure_cuda_copies(device)
    rows = []
    for size in SIZES[:2]:  # a CPU stands in: 128 MiB would only measure its caches' absence once more
        one = torch.ones(size, dtype=torch.uint8)
        other = torch.empty(size, dtype=torch.uint8)
        rows.append((size, _median_seconds(lambda: other.copy_(one))))
    gbs, latency = _fit(rows)
    return {"d2hGBs": gbs, "h2dGBs": gbs, "bothGBs": gbs, "copyLatencyUs": latency}


def _measure_cuda_copies(device):
    out_stream, in_stream = torch.cuda.Stream(device), torch.cuda.Stream(device)
    rows = {"out": [], "in": [], "both": []}
    for size in SIZES:
        host = [torch.empty(size, dtype=torch.uint8, pin_memory=True) for _ in range(2)]
        there = [torch.empty(size, dtype=torch.uint8, device=device) for _ in range(2)]

        def go(directions):
            if "out" in directions:
                with torch.cuda.stream(out_stream):
                    host[0].copy_(there[0], non_blocking=True)
            if "in" in directions:
                with torch.cuda.stream(in_stream):
                    there[1].copy_(host[1], non_blocking=True)
            torch.cuda.synchronize(device)

        rows["out"].append((size, _median_seconds(lambda: go(["out"]))))
        rows["in"].append((size, _median_seconds(lambda: go(["in"]))))
        rows["both"].append((2 * size, _median_seconds(lambda: go(["out", "in"]))))
    out_gbs, out_latency = _fit(rows["out"])
    in_gbs, in_latency = _fit(rows["in"])
    return {
        "d2hGBs": out_gbs,
        "h2dGBs": in_gbs,
        "bothGBs": _fit(rows["both"])[0],
        "copyLatencyUs": max(out_latency, in_latency),
    }


def _median_seconds(copy_once, repeats=7):
    copy_once()
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        copy_once()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def _fit(rows):
    """Bandwidth from the largest size, latency from what the smallest takes longer than that."""
    largest, seconds = rows[-1]
    gbs = largest / seconds / 1e9
    smallest, small_seconds = rows[0]
    latency = max(0.0, 1e6 * (small_seconds - smallest / gbs / 1e9))
    return round(gbs, 3), round(latency, 3)
