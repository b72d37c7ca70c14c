"""Batches on their way to the trainer, from its own process or from workers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from .client import WAITED
from .dataset import FeedDataset
from .errors import FeedError
from .handover import Packed, Sender
from .torch_data import IterableDataset, get_worker_info
from .waits import begin_lap


class Parcel(NamedTuple):
    """Items of a dataset, from the trainer's process or a worker: torch turns the errors of workers into text."""

    batch: Any
    skipped: list[list[int]]  # [epoch, id] of samples that the batch came without
    error: FeedError | None
    made: float = 0.0  # seconds that it took
    waited: float = 0.0  # the part in which its maker waited for the feed

    @property
    def feed_share(self) -> float:
        """The part of its time in which its maker waited for the feed: 0 to 1."""
        return min(1.0, self.waited / self.made) if self.made > 0 else 0.0


class Parcels(IterableDataset[Parcel]):
    """The items of a dataset, each as a parcel."""

    def __init__(self, dataset: FeedDataset) -> None:
        self._dataset = dataset

    def __iter__(self) -> Iterator[Parcel]:
        self._dataset.is_packed_at_once = get_worker_info() is not None
        return self._parcels(self._dataset.items())

    def _parcels(self, batches: Iterator[Any]) -> Iterator[Parcel]:
        skipped = self._dataset.skipped
        while True:
            known = len(skipped)
            lap = begin_lap()
            try:
                batch = next(batches)
            except StopIteration:
                return
            except FeedError as error:
                yield Parcel(None, [], error)
                return
            made = time.monotonic() - lap.began - (WAITED.starting - lap.starting)
            yield Parcel(batch, skipped[known:], None, made=made, waited=WAITED.seconds - lap.waited)


class CollateParcel:
    """Collates what a parcel holds. A worker packs it for the trainer's process."""

    def __init__(self, collate: Callable[[Any], Any], rooms: int) -> None:
        self._collate = collate
        self._rooms = rooms
        self._sender: Sender | None = None  # of a worker

    def __call__(self, parcel: Parcel) -> Parcel | Packed:
        """The parcel with its items collated."""
        if parcel.error:
            return parcel
        began = time.monotonic()
        batch = self._collate(parcel.batch)
        collated = parcel._replace(batch=batch, made=parcel.made + time.monotonic() - began)
        if get_worker_info() is None:
            return collated
        if self._sender is None:
            self._sender = Sender(self._rooms)
        return self._sender.pack(collated)
