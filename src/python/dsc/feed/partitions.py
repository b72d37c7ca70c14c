"""Columns that the folders of a file name, as Hive and Spark lay tables out: `year=2025/kind=a/part-0.parquet`."""

from __future__ import annotations

import functools
import re
import urllib.parse
from typing import Any

_INTEGER = re.compile(r"-?(0|[1-9][0-9]*)")
_NULL = "__HIVE_DEFAULT_PARTITION__"


def add_partitions(row: dict[str, Any], name: str) -> dict[str, Any]:
    """Adds to a row the columns that its sample's name tells; what the row has itself stays.

    Args:
        row: changed in place.
        name: of its sample, such as `year=2025/part-0.parquet:17`.

    Returns:
        `row`. Whole numbers are int, Hive's word for no value is None, other values are text.
    """
    if "=" in name:
        for column, value in _read(name.rpartition("/")[0]):
            row.setdefault(column, value)
    return row


@functools.lru_cache(maxsize=4096)
def _read(folder: str) -> tuple[tuple[str, Any], ...]:
    parts = (part.partition("=") for part in folder.split("/"))
    return tuple((urllib.parse.unquote(column), _value(value)) for column, equals, value in parts if equals and column)


def _value(text: str) -> int | str | None:
    if text == _NULL:
        return None
    return int(text) if _INTEGER.fullmatch(text) else urllib.parse.unquote(text)
