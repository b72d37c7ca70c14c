"""Thin Python client of dsc. Importing it needs the standard library only; torch is loaded by the parts that use it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .lazy import lazy_names

if TYPE_CHECKING:
    from . import exchange as exchange
    from . import feed as feed
    from . import memory as memory
    from . import params as params
    from .feed.dataset import FeedDataset as FeedDataset
    from .feed.errors import FeedError as FeedError
    from .feed.errors import FeedGone as FeedGone
    from .feed.loader import FeedLoader as FeedLoader
    from .feed.map_style import FeedBatchSampler as FeedBatchSampler
    from .feed.map_style import MapDataset as MapDataset
    from .memory.carrying.executors import offload as offload

__version__ = "0.1.0"

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "FeedBatchSampler": "feed.map_style",
        "FeedDataset": "feed.dataset",
        "FeedError": "feed.errors",
        "FeedGone": "feed.errors",
        "FeedLoader": "feed.loader",
        "MapDataset": "feed.map_style",
        "exchange": "exchange",
        "feed": "feed",
        "memory": "memory",
        "offload": "memory.carrying.executors",
        "params": "params",
    },
)
