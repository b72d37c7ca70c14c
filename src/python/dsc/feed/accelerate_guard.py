"""Refuses to be divided among ranks a second time: a feed gives every rank its own samples already."""

from __future__ import annotations

import sys

from .errors import FeedError

_DIVIDERS = ("BatchSamplerShard", "DataLoaderDispatcher", "IterableDatasetShard")


def refuse_to_be_divided_again(world: int) -> None:
    """Raises where a wrapper of Hugging Face Accelerate that gives each rank a part of what it reads is reading.

    Accelerate tells a dataset nothing of being wrapped; what shows is who asks for the samples.

    Raises:
        FeedError: some wrapper divides what is divided already.
    """
    if world == 1 or "accelerate.data_loader" not in sys.modules:
        return
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_globals.get("__name__") == "accelerate.data_loader":
            reader = frame.f_locals.get("self")
            if type(reader).__name__ in _DIVIDERS and getattr(reader, "num_processes", world) > 1:
                raise FeedError(
                    "USAGE",
                    f"Accelerate's {type(reader).__name__} gives each of {world} ranks a part of what the feed has "
                    "given this rank: samples would be left out",
                    "give accelerator.prepare no loader of a feed but FeedLoader, or make the dataset with "
                    "rank=0, world=1, which leaves the division to Accelerate",
                )
        frame = frame.f_back  # type: ignore[assignment]
