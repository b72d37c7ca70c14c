"""Columns that the folders of a file name, as Hive and Spark lay tables out: `year=2025/kind=a/part-0.parquet`."""

from __future__ import annotations

import functools
import re
import urllib.parse
from collections.abc import Iterable
from typing import Any

_INTEGER = re.compile(r"0|-?[1-9][0-9]*")
_NULL = "__HIVE_DEFAULT_PARTITION__"


class Partitions:
    """The columns of a table's folders. One is int if all its values are whole numbers, as none is in `zip=02139`."""

    def __init__(self, names: Iterable[str]) -> None:
        """Learns the columns from the paths of all files of rows."""
        pairs = {pair for folder in {_folder_of(name) for name in names} for pair in _read(folder)}
        texts = {column for column, value in pairs if not (value is None or _INTEGER.fullmatch(value))}
        self._integers = {column for column, _ in pairs} - texts

    def add_to(self, row: dict[str, Any], name: str) -> dict[str, Any]:
        """Adds to a row the columns that its sample's name tells; what the row has itself stays.

        Args:
            row: changed in place.
            name: of its sample, such as `year=2025/part-0.parquet:17`.

        Returns:
            `row`. Hive's word for no value is None.
        """
        for column, value in _read(_folder_of(name)):
            row.setdefault(column, value if value is None or column not in self._integers else int(value))
        return row


def _folder_of(name: str) -> str:
    return name.rpartition("/")[0]


@functools.lru_cache(maxsize=4096)
def _read(folder: str) -> tuple[tuple[str, str | None], ...]:
    parts = (part.partition("=") for part in folder.split("/"))
    return tuple((urllib.parse.unquote(column), _value(value)) for column, equals, value in parts if equals and column)


def _value(text: str) -> str | None:
    return None if text == _NULL else urllib.parse.unquote(text)
