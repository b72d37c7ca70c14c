"""Map-style access, for frameworks that insist on a dataset with an index and a batch sampler."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

from .accelerate_guard import refuse_to_be_divided_again
from .batch import Sample
from .client import FeedClient
from .dataset import FeedDataset
from .errors import FeedError, FeedGone
from .state import FIXED, require_same_sequence
from .torch_data import Dataset, Sampler, get_worker_info


class MapDataset(Dataset[Any]):
    """Samples by id. torch hands `__getitems__` a whole batch of ids, which is one message to the feed.

    Args:
        target: a FeedDataset, or what one is made of.
        transform: function of a Sample.
        **options: of FeedDataset.
    """

    def __init__(
        self,
        target: FeedDataset | str | os.PathLike[str],
        *,
        transform: Callable[[Sample], Any] | None = None,
        **options: Any,
    ) -> None:
        self.feed = target if isinstance(target, FeedDataset) else FeedDataset(target, batch_size=1, **options)
        self.transform = transform
        self._client: FeedClient | None = None

    @property
    def dsc_timed(self) -> FeedDataset:
        """The dataset whose feed hears what trainers waited for."""
        return self.feed

    def own_connection(self) -> FeedClient | None:
        """A connection of this process, if it has one."""
        return self._client if self._client is not None and self._client.pid == os.getpid() else None

    def __len__(self) -> int:
        return int(self.feed.info["n"])

    def __getitems__(self, ids: list[int]) -> list[Any]:
        """The samples with these ids, in this order."""
        self._client = _connected(self.feed, self._client)
        batch = self._client.get(ids)
        if self.transform is None or get_worker_info() is not None:  # it outlives the next request
            batch = batch.copy()
        return list(batch) if self.transform is None else [self.transform(sample) for sample in batch]

    def __getitem__(self, id: int) -> Any:
        if not 0 <= id < len(self):  # a loop over the dataset ends with it
            raise IndexError(f"sample {id} is not one of the {len(self)} of this dataset")
        return self.__getitems__([id])[0]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_client": None}


class FeedBatchSampler(Sampler[list[int]]):
    """The ids of this rank's batches, in the feed's order. Stateful: resume with StatefulDataLoader or by hand.

    Each pass is the next epoch, also after one that was left early; the first one after a state goes on from there.
    """

    def __init__(self, feed: FeedDataset) -> None:
        self.feed = feed
        self._epoch, self._step = 0, 0
        self._wanted_epoch: int | None = None
        self._is_resuming = True
        self._pass: object = None
        self._client: FeedClient | None = None

    def __len__(self) -> int:
        return len(self.feed)

    def __iter__(self) -> Iterator[list[int]]:
        refuse_to_be_divided_again(self.feed.reading.world)
        return self._batches_of_ids()

    def set_epoch(self, epoch: int) -> None:
        """Makes the next pass that epoch's; a place inside of it that a state was loaded for stays."""
        self._wanted_epoch = epoch

    def _begin_pass(self) -> tuple[int, int]:
        """Where the next pass begins."""
        wanted, self._wanted_epoch = self._wanted_epoch, None
        if wanted is not None and not (self._is_resuming and wanted == self._epoch):
            self._epoch, self._step = wanted, 0
        elif not self._is_resuming and self._step > 0:
            self._epoch, self._step = self._epoch + 1, 0
        self._is_resuming = False
        return self._epoch, self._step

    def _batches_of_ids(self) -> Iterator[list[int]]:
        epoch, first = self._begin_pass()  # not before a batch is asked for: loaders load states in between
        this_pass = self._pass = object()
        self._client = _connected(self.feed, self._client)
        size, total = self.feed.reading.batch_size or 1, len(self)
        ids: list[int] = []
        for step in range(first, total):
            at = (step - first) % 64
            if at == 0:
                ids = self._ask(epoch, step)
            if self._pass is this_pass:  # the state is that of the pass that was begun last
                self._epoch, self._step = epoch, step + 1
            yield ids[at * size : (at + 1) * size]
        if self._pass is this_pass:
            self._epoch, self._step = epoch + 1, 0

    def _ask(self, epoch: int, step: int) -> list[int]:
        """The ids of the next 64 batches."""
        assert self._client is not None
        try:
            return self._client.ids(epoch, step, 64)
        except FeedGone as gone:
            gone.state = self.state_dict()
            raise

    def state_dict(self) -> dict[str, Any]:
        """Where the next batch begins, and of which sequence."""
        info = self.feed.info
        return {
            "v": 1,
            "epoch": self._epoch,
            "step": self._step,
            "B": info["globalBatch"],
            "fingerprint": info["fingerprint"],
            "listing": info.get("listing"),
            **{name: info.get(name) for name in FIXED},
            "last": self.feed.reading.last,
        }

    def load_state_dict(self, state: dict[str, Any], override: bool = False) -> None:
        """Goes to where `state` was taken.

        Args:
            state: of `state_dict()`.
            override: takes a state of other data, another order or seed, too.

        Raises:
            FeedError: the state does not fit; the message says what differs.
        """
        if not override:
            require_same_sequence(self.feed, state, [name for name in FIXED if name in state])
        batch = self.feed.info["globalBatch"]
        if state["B"] != batch:
            raise FeedError("FEED_STATE_MISMATCH", f"the state has B {state['B']!r}, this feed has {batch!r}")
        self._epoch, self._step = state["epoch"], state["step"]
        self._wanted_epoch = None
        self._is_resuming = True
        self._pass = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_client": None}


def _connected(feed: FeedDataset, client: FeedClient | None) -> FeedClient:
    """The connection if it is this process's and the feed is there; else one to the feed that is there, or started."""
    if client is not None and client.pid == os.getpid() and client.is_alive():
        return client
    return feed.connect()
