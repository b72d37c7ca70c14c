"""Datasets that read from a feed, as those see them that count what their trainers wait for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

from .client import FeedClient
from .options import ReadOptions
from .waits import Waits


class Timed(Protocol):
    """A dataset that reads from a feed."""

    @property
    def dsc_timed(self) -> TimedFeed:
        """The dataset whose feed hears what trainers waited for."""

    def own_connection(self) -> FeedClient | None:
        """A connection of this process, if it has one."""


class TimedFeed(Timed, Protocol):
    """A dataset that keeps what its trainer waited for."""

    waits: Waits
    reading: ReadOptions

    def hold(self) -> None:
        """Connects to the feed, and stays connected."""

    def tell_waits(self, *, is_last: bool = False) -> None:
        """Tells the feed what this trainer has waited for, if it is time."""


def count_items(feed: TimedFeed, items: Iterator[Any]) -> Iterator[Any]:
    """The items. The waits for them are counted, unless something around this counts them already."""
    end = object()
    try:
        while True:
            lap = feed.waits.begin()
            try:
                item = next(items, end)
            finally:
                feed.waits.end(lap)
            if item is end:
                return
            if lap is not None:
                feed.tell_waits()
            yield item
    finally:
        if feed.waits.can_begin:
            feed.tell_waits(is_last=True)
