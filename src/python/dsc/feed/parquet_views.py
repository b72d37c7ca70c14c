"""Reads rows of Parquet files without copying what is large in them: images, sound."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .parquet_rows import Row, find_reader, read_each, read_plainly

VIEWED_BYTES = 4096  # copying less than that costs no more than a view does

_NIL = b"\xc0"
_LENGTH_BYTES = {0xC5: 2, 0xC6: 4}  # of bytes as long as that


def view_rows(samples: Sequence[memoryview]) -> list[Row]:
    """Several rows; as `read_rows`, but bytes of 4 KiB and more are views of the samples."""
    return read_each(samples, _viewer)


class RowViewer:
    """Reads rows. Those of one dataset mostly begin alike, up to their first large bytes.

    So the place of these is learned from one row. A row that begins like it is read without them, by the fastest
    reader here, and gets a view in their place.
    """

    def __init__(self) -> None:
        self._head = b""
        self._path: list[Any] = []

    def __call__(self, view: memoryview) -> Any:
        """Reads one row."""
        if len(view) < VIEWED_BYTES:
            return find_reader()(view)
        size = len(self._head)
        start = bytes(view[: size + 5])
        width = _LENGTH_BYTES.get(start[size]) if size and start.startswith(self._head) else None
        if width is None:
            return self._learn(view)
        at = size + 1 + width
        end = at + int.from_bytes(start[size + 1 : at], "big")
        if end - at < VIEWED_BYTES or not 0 <= len(view) - end < VIEWED_BYTES:
            return self._learn(view)
        row = find_reader()(memoryview(self._head + _NIL + view[end:]))
        holder = row
        for step in self._path[:-1]:
            holder = holder[step]
        holder[self._path[-1]] = view[at:end]
        return row

    def _learn(self, view: memoryview) -> Any:
        found: list[tuple[int, memoryview]] = []

        def binary(whole: memoryview, start: int, end: int) -> Any:
            if end - start < VIEWED_BYTES:
                return bytes(whole[start:end])
            value = whole[start:end]
            found.append((start, value))
            return value

        row = read_plainly(view, binary)
        if found:
            start, value = found[0]
            self._head = bytes(view[: start - (3 if len(value) < 2**16 else 5)])
            self._path = _path_to(row, value) or []
        return row


def _path_to(holder: Any, value: memoryview) -> list[Any] | None:
    """The keys and places that lead from a row to a value of it."""
    members = holder.items() if isinstance(holder, dict) else enumerate(holder) if isinstance(holder, list) else ()
    for step, member in members:
        if member is value:
            return [step]
        rest = _path_to(member, value)
        if rest is not None:
            return [step, *rest]
    return None


_viewer = RowViewer()
