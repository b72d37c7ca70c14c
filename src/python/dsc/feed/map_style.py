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
from .state import choose_identity
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

    def __len__(self) -> int:
        return int(self.feed.info["n"])

    def __getitems__(self, ids: list[int]) -> list[Any]:
        """The samples with these ids, in this order."""
        if self._client is None or self._client.pid != os.getpid():
            self._client = self.feed.connect()
        batch = self._client.get(ids)
        if self.transform is None or get_worker_info() is not None:  # it outlives the next request
            batch = batch.copy()
        return list(batch) if self.transform is None else [self.transform(sample) for sample in batch]

    def __getitem__(self, id: int) -> Any:
        return self.__getitems__([id])[0]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_client": None}


class FeedBatchSampler(Sampler[list[int]]):
    """The ids of this rank's batches, in the feed's order. Stateful: resume with StatefulDataLoader or by hand."""

    def __init__(self, feed: FeedDataset) -> None:
        self.feed = feed
        self._epoch, self._step = 0, 0
        self._client: FeedClient | None = None

    def __len__(self) -> int:
        return len(self.feed)

    def __iter__(self) -> Iterator[list[int]]:
        refuse_to_be_divided_again(self.feed.reading.world)
        return self._batches_of_ids()

    def _batches_of_ids(self) -> Iterator[list[int]]:
        if self._client is None or self._client.pid != os.getpid():
            self._client = self.feed.connect()
        size, total = self.feed.reading.batch_size or 1, len(self)
        ids: list[int] = []
        first = base = self._step
        while self._step < total:
            step = self._step
            if (step - first) % 64 == 0:
                try:
                    ids = self._client.ids(self._epoch, step, 64)
                except FeedGone as gone:
                    gone.state = self.state_dict()
                    raise
                base = step
            self._step += 1
            yield ids[(step - base) * size : (step - base + 1) * size]
        self._epoch, self._step = self._epoch + 1, 0

    def state_dict(self) -> dict[str, Any]:
        """Where the next batch begins."""
        return {
            "v": 1,
            "epoch": self._epoch,
            "step": self._step,
            "B": self.feed.info["globalBatch"],
            "fingerprint": self.feed.info["fingerprint"],
            "listing": self.feed.info.get("listing"),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Goes to where `state` was taken; refuses a state of other data."""
        info = self.feed.info
        samples = choose_identity(state, info)
        for name, found, current in (
            (samples, state.get(samples), info.get(samples)),
            ("B", state["B"], info["globalBatch"]),
        ):
            if found != current:
                raise FeedError("FEED_STATE_MISMATCH", f"the state has {name} {found!r}, this feed has {current!r}")
        self._epoch, self._step = state["epoch"], state["step"]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_client": None}
