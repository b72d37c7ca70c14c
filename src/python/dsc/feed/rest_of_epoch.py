"""An epoch from some batch on, for Accelerate's `skip_first_batches`, which Trainer resumes with.

It rebuilds a DataLoader from the parts of another: its dataset, and options by their names. Built of a FeedLoader's
dataset it would read from disk every batch that it skips, collate otherwise, and leave the FeedLoader's own place
behind. So where it asks, the dataset is this one: it counts the skipped batches without reading them, and goes on with
the FeedLoader, whose state stays right.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from .torch_data import IterableDataset

OPTIONS: dict[str, Any] = {
    "batch_size": None,
    "drop_last": False,
    "collate_fn": lambda batch: batch,
    "prefetch_factor": None,
}
"""Options of a DataLoader that gives what its dataset gives; Accelerate's own defaults do for the others."""


class Skip(NamedTuple):
    """A call of `skip_first_batches`: the number of batches, and the epoch that Trainer is in, if Trainer calls."""

    batches: int
    epoch: int | None


def find_skip() -> Skip | None:
    """The call of `skip_first_batches` that is asking; None: something else asks."""
    if "accelerate.data_loader" not in sys.modules:
        return None
    asker = sys._getframe(2)
    for _ in range(2):  # up to Python 3.11, a comprehension has a frame of its own
        if asker.f_code.co_name == "skip_first_batches" and asker.f_globals["__name__"] == "accelerate.data_loader":
            caller = asker.f_back
            by_trainer = caller is not None and caller.f_globals.get("__name__") == "transformers.trainer"
            epoch = caller.f_locals.get("epoch") if caller is not None and by_trainer else None
            return Skip(int(asker.f_locals["num_batches"]), epoch)
        if asker.f_back is None:
            return None
        asker = asker.f_back
    return None


class RestOfEpoch(IterableDataset[Any]):
    """`count` times None, which the loader built of it drops, then the batches behind those.

    Args:
        count: batches to skip.
        total: batches of an epoch.
        begin: begins the pass so many batches further on.
    """

    def __init__(self, count: int, total: int, begin: Callable[[int], Iterator[Any]]) -> None:
        self._count = count
        self._total = total
        self._begin = begin

    def __len__(self) -> int:
        return self._total

    def __iter__(self) -> Iterator[Any]:
        yield from itertools.repeat(None, self._count)
        yield from self._begin(self._count)
