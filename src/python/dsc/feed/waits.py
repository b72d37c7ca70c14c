"""How a trainer spends its time: it tells its feed, which keeps the sums for `dsc report --job`."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from .wire import Message

if TYPE_CHECKING:
    from .client import FeedClient
    from .parcels import Parcel

_TELL_SECONDS = 10.0  # at most so much is lost with a trainer that is killed


class _Clock:
    """Until when this process has told its time; its loaders share it, or each would count all of the time."""

    def __init__(self) -> None:
        self._pid = 0
        self.told_at = 0.0

    def begin(self) -> None:
        """Begins to count, in a process that does not yet; a forked one counts from now."""
        if self._pid != os.getpid():
            self._pid, self.told_at = os.getpid(), time.monotonic()


_clock = _Clock()


class Waits:
    """The waits of one loader since it told last, in seconds."""

    def __init__(self) -> None:
        _clock.begin()
        self._feed = self._transform = self._start = 0.0

    @contextlib.contextmanager
    def counted(self, *, is_start: bool) -> Iterator[None]:
        """Counts what is done inside as waiting for a feed to start, or for the loader's own work."""
        _clock.begin()
        began = time.monotonic()
        try:
            yield
        finally:
            seconds = time.monotonic() - began
            if is_start:
                self._start += seconds
            else:
                self._transform += seconds

    def add(self, seconds: float, parcel: Parcel | None) -> None:
        """Adds what the trainer waited for a parcel: for the feed in the share in which the parcel's maker did."""
        share = min(1.0, parcel.waited / parcel.made) if parcel is not None and parcel.made > 0 else 0.0
        self._feed += seconds * share
        self._transform += seconds * (1 - share)

    def tell(self, feed: FeedClient, rank: int, *, is_last: bool) -> None:
        """Tells the feed, if it is time or the pass is over, and starts from zero."""
        now = time.monotonic()
        if now - _clock.told_at < _TELL_SECONDS and not is_last:
            return
        milliseconds = {
            "elapsedMs": now - _clock.told_at,
            "feedMs": self._feed,
            "transformMs": self._transform,
            "startMs": self._start,
        }
        fields = {name: round(1000 * seconds) for name, seconds in milliseconds.items()}
        feed.tell(Message.WAITS, {"rank": rank, "gpus": count_gpus(), **fields})
        _clock.told_at = now
        self._feed = self._transform = self._start = 0.0


def count_gpus() -> int:
    """The GPUs that stand still while this process waits: its share of those that the job may use on this machine."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        gpus = len([each for each in visible.split(",") if each.strip() not in ("", "-1")])
    else:
        gpus = _number("SLURM_GPUS_ON_NODE")
    ranks = _number("LOCAL_WORLD_SIZE") or _number("SLURM_NTASKS_PER_NODE")
    return max(1, gpus // max(1, ranks))


def _number(name: str) -> int:
    value = os.environ.get(name, "")
    return int(value) if value.isdecimal() else 0
