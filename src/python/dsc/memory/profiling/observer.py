"""Observers: each watches one training step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import torch

from ..peaks import begin_peak


class Observer(Protocol):
    """Something that is on during one step: `begin` before the forward, `turn` before the backward, `end` after it."""

    def begin(self) -> None:
        """The forward begins."""

    def turn(self) -> None:
        """The loss is computed, its backward begins."""

    def end(self) -> None:
        """The backward is over, or the step has failed."""


class PeakMemory:
    """The most that CUDA's allocator held during a step.

    Args:
        device: of that allocator.
    """

    def __init__(self, device: torch.device) -> None:
        self.bytes = 0
        self._device = device

    def begin(self) -> None:
        """See `Observer`."""
        begin_peak(self._device)

    def turn(self) -> None:
        """See `Observer`."""

    def end(self) -> None:
        """See `Observer`."""
        self.bytes = torch.cuda.max_memory_allocated(self._device)


class Idle:
    """Sees nothing: for a first step, in which lazy layers are made and kernels chosen."""

    def begin(self) -> None:
        """See `Observer`."""

    def turn(self) -> None:
        """See `Observer`."""

    def end(self) -> None:
        """See `Observer`."""


def run_observed(observer: Observer, step: Callable[[], torch.Tensor]) -> torch.Tensor:
    """Runs a forward, and the backward of the loss that it returns, under an observer; the loss without its graph."""
    observer.begin()
    try:
        loss = step()
        observer.turn()
        torch.autograd.backward(loss)
        return loss.detach()
    finally:
        observer.end()
