"""Times torch's DataLoader around a dataset of a feed, also as Lightning and Accelerate make it.

The loader says nothing of its waiting, and its workers know only how long they take. So each batch that a loader gives
is timed where the trainer asks for it, and each that a worker makes where it is made; the feed puts both together.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import weakref
from collections.abc import Callable
from typing import Any

from .errors import FeedError
from .timed_feed import Timed, TimedFeed
from .torch_data import get_worker_info
from .waits import Made, begin_lap

# Lightning counts the batches of a loader, and training may go on after the last of them, so nothing says that it ends.
_feeds: weakref.WeakSet[Any] = weakref.WeakSet()


def watch_loaders(feed: TimedFeed) -> None:
    """Times what this process does with a feed until it ends, also in torch's DataLoaders."""
    _feeds.add(feed)
    _watch_torch()


@functools.cache
def _watch_torch() -> None:
    atexit.register(_tell_last)
    try:
        from ..torch_private import watch_loaders as watch
    except ImportError:
        return
    made = Made()
    watch("dsc_timed", _begin, _wait, functools.partial(_make, made))


def _tell_last() -> None:
    for feed in list(_feeds):
        if feed.waits.has_begun:
            feed.tell_waits(is_last=True)


def _begin(dataset: Timed, begin: Callable[[], Any]) -> Any:
    """Begins a pass, and counts the time in which its workers start as the loader's own work."""
    feed = dataset.dsc_timed
    lap = feed.waits.begin()
    try:
        return begin()
    finally:
        feed.waits.end(lap)


def _wait(dataset: Timed, workers: int, give: Callable[[], Any]) -> Any:
    """Gives the next batch of a loader, and counts the time that this takes."""
    feed = dataset.dsc_timed
    lap = feed.waits.begin()
    if lap is None:
        return give()
    is_last = True
    try:
        if feed.own_connection() is None:
            with contextlib.suppress(FeedError):  # the maker of the batch meets it, too
                feed.hold()
        batch = give()
        is_last = False
        return batch
    finally:
        feed.waits.end(lap, has_workers=workers > 0)
        feed.tell_waits(is_last=is_last)


def _make(made: Made, dataset: Timed, make: Callable[[], Any]) -> Any:
    """Makes a batch, in a worker or for a loader without workers, which counts it already."""
    if get_worker_info() is None:
        return make()
    lap = begin_lap()
    try:
        return make()
    finally:
        made.add(lap)
        client = dataset.own_connection()
        if client is not None:
            made.tell(client, dataset.dsc_timed.reading.rank)
