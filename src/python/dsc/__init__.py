"""Thin Python client of dsc. Importing it needs the standard library only; torch is loaded by the parts that use it."""

import importlib as _importlib

__version__ = "0.1.0"

# Name -> module that defines it; loaded on first use.
_LAZY = {
    "FeedDataset": "dsc.feed.dataset",
    "FeedLoader": "dsc.feed.loader",
    "FeedError": "dsc.feed.errors",
    "FeedGone": "dsc.feed.errors",
    "MapDataset": "dsc.feed.map_style",
    "FeedBatchSampler": "dsc.feed.map_style",
    "memory": "dsc.memory",
    "offload": "dsc.memory.executor",
    "params": "dsc.params",
}


def __getattr__(name):
    module = _LAZY.get(name)
    if module is None:
        raise AttributeError(f"module 'dsc' has no attribute {name!r}")
    value = getattr(_importlib.import_module(module), name)
    globals()[name] = value
    return value


def __dir__():
    return sorted([*globals(), *_LAZY])
