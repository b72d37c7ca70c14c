"""The options of a feed, checked before anything is started."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .errors import FeedError

_ORDER = re.compile(r"shuffle|feistel6|sequential|groups-[1-9][0-9]{0,5}")
_MEMORY = re.compile(r"auto|[0-9]+(\.[0-9]+)?\s*([kmgtp]i?)?b?", re.IGNORECASE)


@dataclass(frozen=True)
class ServeOptions:
    """Which feed: two trainers with equal ones share it.

    Attributes:
        target: a directory or the name of a dataset; None for a mix.
        name: what the state of a trainer calls the data.
        arguments: options of `dsc feed serve`.
    """

    target: str | None
    name: str
    arguments: tuple[str, ...]


def serve_options(
    target: str | os.PathLike[str] | None,
    mix: Mapping[str, float] | None,
    *,
    feed_options: Sequence[str],
    columns: Sequence[str] | None = None,
    **named: object,
) -> ServeOptions:
    """The options of a feed; `named` are options of `dsc feed serve` (`on_error` is --on-error), left out where None.

    Raises:
        TypeError: an option of another type.
        ValueError: neither or both of `target` and `mix` are given, or an option has no such value.
    """
    if target is not None and not isinstance(target, (str, os.PathLike)):
        raise TypeError(f"the dataset is {target!r}, expected a folder or a name")
    for name, times in (mix or {}).items():
        if isinstance(times, bool) or not isinstance(times, (int, float)):
            raise TypeError(f"mix has {times!r} times {name}, expected a number")
        if not 0 < times < math.inf:
            raise ValueError(f"mix has {times!r} times {name}, expected more than 0")
    formats = (None, "files", "shards", "jsonl", "csv", "tsv", "parquet", "mds", "litdata")
    named["as_"], named["dialect"] = _format_and_dialect(named.get("as_"))
    _check_choices({"as_": (named["as_"], formats)})
    memory, k = named.get("memory"), named.get("k")
    if memory is not None and (not isinstance(memory, str) or not _MEMORY.fullmatch(memory.strip())):
        raise ValueError(f"memory is {memory!r}, expected a size such as '256MiB', or 'auto'")
    if k not in (None, "auto"):
        _check_numbers({"k": (k, 1)})
    _check_choices({"start": (named.get("start"), (None, "arriving", "unproven", "staged"))})
    if isinstance(feed_options, str):
        raise TypeError("feed_options is a text, expected a list of words")
    if (target is None) == (mix is None):
        raise ValueError("give either a dataset or mix={name: times, ...}")
    parts = None if mix is None else ",".join(f"{_locate(name)}={_plain(times)!r}" for name, times in mix.items())
    given = {"mix": parts, "columns": _names(columns), **named}
    arguments = [word for name, value in given.items() if value is not None for word in (_option(name), str(value))]
    whole = None if target is None else str(target)
    return ServeOptions(whole, whole or parts or "", (*arguments, *feed_options))


def _format_and_dialect(as_: object) -> tuple[object, str | None]:
    """`{'csv': {'delimiter': ';'}}` as the name of the format, and what `dsc feed serve --dialect` takes."""
    if not isinstance(as_, Mapping):
        return as_, None
    ((name, dialect),) = as_.items() if len(as_) == 1 else ((None, None),)
    if name not in ("csv", "tsv") or not isinstance(dialect, Mapping):
        raise ValueError(f"as_ is {as_!r}, expected the name of a format, or {{'csv': {{'delimiter': ';'}}}}")
    unknown = [key for key in dialect if key not in ("delimiter", "quote", "header")]
    if unknown:
        raise ValueError(f"as_ has {unknown[0]!r}, expected 'delimiter', 'quote' or 'header'")
    _check_choices(
        {"quote": (dialect.get("quote"), (None, '"', "none")), "header": (dialect.get("header"), (None, True, False))}
    )
    return name, json.dumps({key: value for key, value in dialect.items() if value is not None})


def _names(columns: Sequence[str] | None) -> str | None:
    if columns is None:
        return None
    if isinstance(columns, str) or not all(isinstance(name, str) for name in columns):
        raise TypeError(f"columns is {columns!r}, expected a list of names")
    if not columns or any("," in name or not name.strip() for name in columns):
        raise ValueError(f"columns is {columns!r}, expected names without commas, at least one")
    return ",".join(columns)


def _plain(times: float) -> float:
    return times if isinstance(times, int) else float(times)  # numpy's own say so in their text


def _option(name: str) -> str:
    return "--" + name.rstrip("_").replace("_", "-")


def _locate(name: str) -> str:
    """A folder by its whole path, so that processes elsewhere mean the same one; a dataset by its name."""
    return os.path.abspath(name) if os.path.isdir(name) else str(name)


@dataclass(frozen=True)
class ReadOptions:
    """How one rank reads; the fields are those of `FeedDataset`."""

    batch_size: int | None
    rank: int
    world: int
    replicate: int
    last: str
    assign: str
    on_error: str
    seed: int
    order: str | None
    depth: int | None

    def __post_init__(self) -> None:
        _check_numbers(
            {
                "batch_size": (self.batch_size, 1),
                "rank": (self.rank, 0),
                "world": (self.world, 1),
                "replicate": (self.replicate, 1),
                "seed": (self.seed, 0),
                "depth": (self.depth, 1),
            }
        )
        if self.rank >= self.world:
            raise ValueError(f"rank is {self.rank}, but there are {self.world} ranks: 0 to {self.world - 1}")
        _check_choices(
            {
                "last": (self.last, ("drop", "pad", "uneven")),
                "assign": (self.assign, ("fixed", "local")),
                "on_error": (self.on_error, ("raise", "skip")),
            }
        )
        if self.order is not None and not _ORDER.fullmatch(self.order):
            raise ValueError(f"order is {self.order!r}, expected 'shuffle', 'feistel6', 'sequential' or 'groups-16'")

    def hello(self, *, reader: str, worker: int, workers: int, keep: int | str) -> dict[str, Any]:
        """The first message of a connection, by one of a rank's workers."""
        optional = {"depth": self.depth, "order": self.order}
        return {
            "rank": self.rank,
            "reader": reader,
            "world": self.world,
            "replicate": self.replicate,
            "batch": self.batch_size or 1,
            "last": self.last,
            "assign": self.assign,
            "worker": worker,
            "workers": workers,
            "keep": keep,
            "onError": self.on_error,
            "seed": self.seed,
            **{name: value for name, value in optional.items() if value is not None},
        }


def _check_numbers(named: Mapping[str, tuple[object, int]]) -> None:
    """`named`: argument → its value, None where it is left out, and the least it may be."""
    for name, (value, least) in named.items():
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError(f"{name} is {value!r}, expected a whole number")
        if value < least:
            raise ValueError(f"{name} is {value}, expected at least {least}")


def _check_choices(named: Mapping[str, tuple[object, tuple[object, ...]]]) -> None:
    for name, (value, choices) in named.items():
        if value not in choices:
            raise ValueError(f"{name} is {value!r}, expected one of {', '.join(map(repr, choices))}")


def rank_and_world(rank: int | None, world: int | None) -> tuple[int, int]:
    """This process's place in the job: arguments beat torch.distributed, which beats the environment."""
    if rank is not None or world is not None:
        return rank or 0, world or 1
    try:
        import torch.distributed as distributed

        if distributed.is_available() and distributed.is_initialized():
            return distributed.get_rank(), distributed.get_world_size()
    except ImportError:
        pass
    return int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))


def refuse_order_of_one_machine(hello: Mapping[str, Any], info: Mapping[str, Any]) -> None:
    """Whether a disk has room for rows is a matter of each machine, and the order must be one for the whole job.

    Args:
        hello: what this process asked for.
        info: what its feed is.

    Raises:
        FeedError: the feed chose row groups by itself, and others of the job may have feeds of their own.
    """
    order = str(info.get("order"))
    local = int(os.environ.get("LOCAL_WORLD_SIZE", 1))
    if order.startswith("groups-") and "order" not in hello and hello.get("world", 1) > local:
        raise FeedError(
            "USAGE",
            f"this machine has no room to unpack rows, so its feed has the order {order}; others may have another",
            f"order={order!r} on all machines, or room: dsc status",
        )
