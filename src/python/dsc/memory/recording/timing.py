"""Times: layers in forward and backward, the split between parameter and feature gradient."""

from __future__ import annotations

import contextlib
import copy
import gc
import time
from typing import Any, TypeAlias

import torch
from torch.utils.hooks import RemovableHandle

from ...torch_private import clear_forward_hooks, keep_busy
from .dropped import Dropped, DroppedTensors
from .segments import Segments, only_of

HEAD_START_US = 1000.0  # longer than Python takes to launch what lies between two saved tensors

StepTimes: TypeAlias = dict[tuple[Any, str], float]  # (segment, "fwd" | "bwd") → microseconds


class StepClock:
    """Marks instants on the device that runs the model; reads them when the step is over, in microseconds."""

    def __init__(self, device: torch.device) -> None:
        self.is_cuda = device.type == "cuda"
        self.marks: list[tuple[Any, Any]] = []
        self._device = device

    def mark(self, what: Any) -> None:
        """Takes down the present instant, and what begins with it."""
        if self.is_cuda:
            event = torch.cuda.Event(enable_timing=True)
            event.record(torch.cuda.current_stream(self._device))
            self.marks.append((what, event))
        else:
            self.marks.append((what, time.thread_time()))  # what else runs on this processor is not the model's

    def get_ahead(self) -> None:
        """Keeps the device busy while the host queues what is timed next.

        After a copy that the host has waited for, the device is idle: without this the time until the next mark would
        be that of launching kernels, not that of running them.
        """
        if self.is_cuda:
            keep_busy(self._device, HEAD_START_US)

    def read(self) -> list[tuple[Any, float]]:
        """Pairs of (what, microseconds until the next mark)."""
        if self.is_cuda:
            torch.cuda.synchronize(self._device)
        pairs = zip(self.marks, self.marks[1:])
        if self.is_cuda:
            return [(what, 1e3 * now.elapsed_time(later)) for (what, now), (_, later) in pairs]
        return [(what, 1e6 * (later - now)) for (what, now), (_, later) in pairs]

    def sums(self) -> StepTimes:
        """Microseconds per what was marked."""
        sums: StepTimes = {}
        for what, microseconds in self.read():
            sums[what] = sums.get(what, 0.0) + microseconds
        return sums


class TimedStep:
    """Times one step by segment; ``times`` are those it took, at the end.

    Args:
        model: whose layers are timed.
        device: that runs it.
        dropped: keeps saved tensors away during the step; what that costs is not in the times.
    """

    def __init__(self, model: torch.nn.Module, device: torch.device, dropped: DroppedTensors | None = None) -> None:
        self.times: StepTimes = {}
        self._model = model
        self._clock = StepClock(device)
        self._dropped = dropped
        self._reached: list[int] = []  # segments whose backward has begun
        self._back: list[Dropped] = []  # to give a copy's host memory back takes longer than many a kernel
        self._is_collecting = False
        self._hooks = contextlib.ExitStack()

    def begin(self) -> None:
        """See `Observer`."""
        self._is_collecting = gc.isenabled()
        gc.disable()  # a collection, too: the device would wait for it
        self._segments = Segments(self._model, lambda index: self._clock.mark((index, "fwd")))
        self._clock.mark((0, "fwd"))
        self._hooks.callback(self._segments.close)
        self._hooks.enter_context(torch.autograd.graph.saved_tensors_hooks(self._pack, self._unpack))

    def turn(self) -> None:
        """See `Observer`."""
        self._hooks.close()
        self._clock.mark((self._segments.current, "bwd"))

    def end(self) -> None:
        """See `Observer`."""
        self._hooks.close()
        self._clock.mark(("end", ""))
        self.times = self._clock.sums()
        self._back.clear()
        if self._is_collecting:
            gc.enable()

    def _pack(self, tensor: torch.Tensor) -> tuple[int, torch.Tensor | Dropped]:
        if self._dropped is None:
            return self._segments.current, tensor.detach()
        self._clock.mark(("copy", ""))
        dropped = self._dropped.drop(tensor)
        self._clock.get_ahead()
        self._clock.mark((self._segments.current, "fwd"))
        return self._segments.current, tensor.detach() if dropped is None else dropped

    def _unpack(self, packed: tuple[int, torch.Tensor | Dropped]) -> torch.Tensor:
        segment, kept = packed
        is_new = not self._reached or segment < self._reached[-1]
        if is_new:
            self._reached.append(segment)
        if isinstance(kept, Dropped):
            self._clock.mark(("copy", ""))
            if kept.host.device.type == "cpu":
                self._back.append(kept)
            kept = kept.bring_back()
            self._clock.get_ahead()
            is_new = True
        if is_new:
            self._clock.mark((self._reached[-1], "bwd"))
        return kept


class TimedGradients:
    """Shares of backward spent on the parameter gradient, per call of a leaf module, in order.

    Each leaf is run alone on a copy of itself and of its input, so that neither its state (batch-norm statistics)
    nor random numbers change.

    Args:
        model: whose leaves are timed, while its forward runs.
        device: that runs it.
    """

    def __init__(self, model: torch.nn.Module, device: torch.device) -> None:
        self.shares: list[float] = []
        self._model, self._device = model, device
        self._handles: list[RemovableHandle] = []

    def begin(self) -> None:
        """See `Observer`."""
        for module in self._model.modules():
            if next(module.children(), None) is None:
                # No method of our own: copying a leaf copies what its hooks are bound to, here the whole model.
                see = only_of(module, lambda m, inputs, output: self._see(m, inputs))
                self._handles.append(module.register_forward_hook(see))

    def turn(self) -> None:
        """See `Observer`."""
        while self._handles:
            self._handles.pop().remove()

    def end(self) -> None:
        """See `Observer`."""
        self.turn()

    def _see(self, module: torch.nn.Module, inputs: tuple[Any, ...]) -> None:
        self.shares.append(_share_of_parameters(module, inputs, self._device))


def _share_of_parameters(module: torch.nn.Module, inputs: tuple[Any, ...], device: torch.device) -> float:
    if next(module.parameters(), None) is None:
        return 0.0
    if not any(isinstance(x, torch.Tensor) and x.is_floating_point() for x in inputs):
        return 1.0  # an embedding: its indices have no gradient
    # Hooks of its own: what a copy saves is not for those of a checkpointed block around the leaf.
    apart = torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensor, lambda tensor: tensor)
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []), torch.enable_grad(), apart:
        try:
            alone = copy.deepcopy(module)
            clear_forward_hooks(alone)
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
