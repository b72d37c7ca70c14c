"""The carrier: moves the runs of a step between ranks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from .run import Run

Arrived = Callable[[Exception | None], None]


class Carrier(Protocol):
    """Takes the mean of runs over all ranks. By default it holds nothing back and keeps nothing from step to step."""

    def send(self, run: Run, arrived: Arrived) -> None:
        """Sends a run on its way; `arrived(error)` is called when its mean is there, or did not fit half precision."""

    def flush(self) -> None:
        """Waits for what is held back until the last run of a step is sent."""
        return

    def end_step(self) -> None:
        """Gives up what only this step needed."""
        return
