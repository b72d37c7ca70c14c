"""How a trainer spends its time: it tells its feed, which keeps the sums for `dsc report --job`."""

from __future__ import annotations

import contextlib
import os
import struct
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from .client import WAITED, FeedClient
from .torch_data import get_worker_info
from .wire import Message

_TELL_SECONDS = 10.0  # at most so much is lost with a trainer that is killed
_MOST_STEPS = 1000  # that are kept until then
_MOST_SECONDS = 4294.0  # of a step or a wait, which u32 microseconds can tell
_FIRST_TELL_SECONDS, _MOST_TELL_SECONDS = 0.05, 1.0  # of a worker, which says more and more seldom


class _Clock:
    """Until when this process has told its time; its loaders share it, or each would count all of the time."""

    def __init__(self) -> None:
        self._pid = 0
        self.told_at = 0.0
        self._step_began = 0.0

    @property
    def has_begun(self) -> bool:
        """Whether this process counts, and not only one that it was forked from."""
        return self._pid == os.getpid()

    def begin(self) -> None:
        """Begins to count, in a process that does not yet; a forked one counts from now."""
        if not self.has_begun:
            self._pid, self.told_at = os.getpid(), time.monotonic()
            self._step_began = self.told_at

    def take_beginning(self) -> float:
        """When this process began to count, for the dataset that it reads first; 0.0 for any other."""
        began, self._step_began = self._step_began, 0.0
        return began


_clock = _Clock()


class Lap(NamedTuple):
    """How long this thread had waited when it began to wait once more, in seconds; `began` by the clock."""

    began: float
    waited: float
    starting: float


def begin_lap() -> Lap:
    """The lap that begins now."""
    return Lap(time.monotonic(), WAITED.seconds, WAITED.starting)


@contextlib.contextmanager
def count_as_start() -> Iterator[None]:
    """Counts what this thread waits inside as the start of a feed, also what it waits there for its words.

    A process with a feed no longer waits for its dataset to be staged, so its time counts from then on.
    """
    began, waited = time.monotonic(), WAITED.seconds
    try:
        yield
        _clock.begin()
    finally:
        WAITED.starting += time.monotonic() - began
        WAITED.seconds = waited


@dataclass
class _Steps:
    """How long each step of a trainer took, from one request for a batch to the next, and how long it waited in it.

    What comes before the first request counts as a step: ranks may wait there for one whose dataset is staged longer.
    Ranks that exchange gradients wait for the slowest of them in the same step, which only their feed can tell.
    """

    _first: int = 0
    _began: float = 0.0
    _waited: float = 0.0
    _told: list[float] = field(default_factory=list)  # pairs, in seconds

    @property
    def is_full(self) -> bool:
        """Whether there are so many that the feed should hear of them."""
        return len(self._told) >= 2 * _MOST_STEPS

    def begin(self, began: float, waited: float, starting: float) -> None:
        """Ends the step before, which before the first waited `starting` for feeds; begins one that waited so long."""
        if self._began == 0:
            self._began, self._waited = _clock.take_beginning(), starting
        if self._began > 0:
            self._told += (began - self._began, self._waited)
        self._began, self._waited = began, waited

    def take(self) -> tuple[int, bytes]:
        """The number of the first step that ended since the last call; the pairs of all of them, as u32."""
        first, told = self._first, self._told
        self._first, self._told = first + len(told) // 2, []
        return first, struct.pack(f"<{len(told)}I", *[round(1e6 * min(_MOST_SECONDS, each)) for each in told])


class Waits:
    """The waits of one trainer since it told last, in seconds. It trains in the thread that makes this object."""

    def __init__(self) -> None:
        self._home_thread = threading.get_ident()
        self._feed = self._transform = self._start = self._loader = 0.0
        self._steps = _Steps()

    @property
    def can_begin(self) -> bool:
        """Whether a wait that begins now holds training up, and nothing around it counts it already.

        Waits in workers, and in threads that read ahead, do not hold training up by themselves.
        """
        return not WAITED.is_counted and get_worker_info() is None and threading.get_ident() == self._home_thread

    @property
    def has_begun(self) -> bool:
        """Whether this process trains and counts its time."""
        return get_worker_info() is None and _clock.has_begun

    def begin(self) -> Lap | None:
        """Begins to wait for an item; None if this wait does not count."""
        if not self.can_begin:
            return None
        _clock.begin()
        WAITED.is_counted = True
        return begin_lap()

    def end(self, lap: Lap | None, *, has_workers: bool = False) -> None:
        """Counts what has passed: what the feed did not take was `transform`'s or, with workers, the loader's."""
        if lap is None:
            return
        WAITED.is_counted = False
        feed, start = WAITED.seconds - lap.waited, WAITED.starting - lap.starting
        waited = time.monotonic() - lap.began
        rest = waited - feed - start
        self._steps.begin(lap.began, waited, self._start)
        self._feed += feed
        self._start += start
        if has_workers:
            self._loader += rest
        else:
            self._transform += rest

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

    def add(self, began: float, share: float) -> bool:
        """Adds what the trainer has waited since `began` for a batch made elsewhere.

        Args:
            began: by the clock.
            share: of the wait, the part that is the feed's: 0 to 1.

        Returns:
            Whether it is time to tell the feed.
        """
        now = time.monotonic()
        seconds = now - began
        self._feed += seconds * share
        self._transform += seconds * (1 - share)
        self._steps.begin(began, seconds, self._start)
        return now - _clock.told_at >= _TELL_SECONDS or self._steps.is_full

    def tell(self, feed: FeedClient, rank: int, *, is_last: bool) -> None:
        """Tells the feed, if it is time or the pass is over, and starts from zero."""
        now = time.monotonic()
        if now - _clock.told_at < _TELL_SECONDS and not is_last and not self._steps.is_full:
            return
        milliseconds = {
            "elapsedMs": now - _clock.told_at,
            "feedMs": self._feed,
            "transformMs": self._transform,
            "startMs": self._start,
            "loaderMs": self._loader,
        }
        fields = {name: round(1000 * seconds) for name, seconds in milliseconds.items()}
        first, steps = self._steps.take()
        feed.tell(Message.WAITS, {"rank": rank, "gpus": count_gpus(), "firstStep": first, **fields}, steps)
        _clock.told_at = now
        self._feed = self._transform = self._start = self._loader = 0.0


class Made:
    """How long a worker of torch's DataLoader takes to make batches, and for how much of it it waits for the feed."""

    def __init__(self) -> None:
        self._made = self._waited = 0.0
        self._told_after = _FIRST_TELL_SECONDS

    def add(self, lap: Lap) -> None:
        """Adds the batch that was begun at `lap`."""
        self._made += time.monotonic() - lap.began - (WAITED.starting - lap.starting)
        self._waited += WAITED.seconds - lap.waited

    def tell(self, feed: FeedClient, rank: int) -> None:
        """Tells the feed, which divides by it what the trainer waited for its workers, if there is enough to say."""
        if self._made < self._told_after:
            return
        fields = {"madeMs": round(1000 * self._made), "waitedMs": round(1000 * self._waited)}
        feed.tell(Message.MADE, {"rank": rank, **fields})
        self._made = self._waited = 0.0
        self._told_after = min(_MOST_TELL_SECONDS, 2 * self._told_after)


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
