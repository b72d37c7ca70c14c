"""The first steps with one shape of batch: steps of the training like any other, from which their profile is made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ...torch_private import storage_key
from ..plan.runnable_plan import PlanError
from ..recording.dropped import DroppedTensors
from ..recording.kept_record import keep_dropped
from ..recording.record import MemoryRecord
from ..recording.timing import StepClock, TimedStep
from .build_profile import build_profile
from .measured import Measured
from .observer import Observer, PeakMemory, run_observed
from .profiler import tensors_in


def counts_peaks(device: torch.device) -> bool:
    """Whether a device says how much of its memory was taken at most."""
    return device.type == "cuda"


class FirstSteps:
    """Runs a step, on a GPU two, with saved tensors on the host: with about the least memory, and slowly.

    The first is recorded. On CPU its times are taken, too; on a GPU it loads kernels, so the second is timed, and what
    the device held at most in it is compared with what the record knows of.

    Args:
        model: that is trained.
    """

    def __init__(self, model: torch.nn.Module) -> None:
        self._model = model
        self._held: Any = ()
        self._device = device = next(model.parameters()).device
        self._record = MemoryRecord(model, self._list_held, is_offloading=True, clock=StepClock(device))
        has_peaks = counts_peaks(device)
        self._peak = PeakMemory(device) if has_peaks else None
        self._timed: TimedStep | None = None
        self._dropped: DroppedTensors | None = None  # of the timed step
        self._unseen_bytes = 0  # of the device, that the record does not know of
        self._left = 2 if has_peaks else 1

    @property
    def is_complete(self) -> bool:
        """Whether the profile can be made."""
        return self._left == 0

    def run(self, step: Callable[[], torch.Tensor], held: Any, state_bytes: int = 0) -> torch.Tensor:
        """Runs a forward and its backward; gradients are added as always.

        Args:
            step: runs the forward and returns the loss.
            held: the tensors that it is given.
            state_bytes: of optimizers, that lie on the device and are counted elsewhere.

        Returns:
            The loss, without its graph.
        """
        self._held = held
        observer = self._next_observer()
        try:
            if self._peak is None or observer is self._record:
                return run_observed(observer, step)
            self._peak.begin()
            try:
                return run_observed(observer, step)
            finally:
                self._peak.end()
                self._unseen_bytes = self._count_unseen(self._peak.bytes - state_bytes)
        finally:
            self._held = ()
            self._left -= 1

    def write(self) -> dict[str, Any]:
        """The profile, as ``dsc.memory.profile`` returns it.

        Raises:
            PlanError: the model calls no layers, or its forward runs a backward, whose saved tensors have moved.
        """
        if self._record.has_inner_backward:
            raise PlanError(
                "the loss is computed with a backward of its own (torch.autograd.grad, as for a gradient penalty), "
                "which dsc.memory.fit does not plan: profile the step by dsc.memory.profile, plan it by "
                "dsc memory plan, and train under dsc.memory.offload"
            )
        times = self._record.times if self._timed is None else self._timed.times
        measured = Measured([times], [], keep_dropped(self._record), self._record, None, self._unseen_bytes)
        return build_profile(self._model, self._device, measured)

    def _next_observer(self) -> Observer:
        if self._record.events:
            kept = {storage_key(tensor) for tensors in self._list_held().values() for tensor in tensors}
            self._dropped = DroppedTensors(kept)
            self._timed = TimedStep(self._model, self._device, self._dropped)
            return self._timed
        return self._record

    def _count_unseen(self, peak_bytes: int) -> int:
        assert self._dropped is not None
        return max(0, peak_bytes - self._dropped.most_device_bytes - self._record.device.peak_bytes)

    def _list_held(self) -> dict[str, list[torch.Tensor]]:
        left = [p.grad for p in self._model.parameters() if p.grad is not None]
        return {
            "param": list(self._model.parameters()),
            "buffer": [*self._model.buffers(), *tensors_in(self._held), *left],
        }
