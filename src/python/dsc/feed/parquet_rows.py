"""Reads rows of Parquet files, which a feed sends as MessagePack (https://msgpack.org) with four extensions.

By the package `msgpack` where it is installed, else by the code below, which is slower and gives the same.
"""

from __future__ import annotations

import decimal
import struct
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from .errors import FeedError

Row = dict[str, Any]
Binary = Callable[[memoryview, int, int], Any]

# Formats of the bytes after a tag: a number, or the length of a string, bytes or an extension.
_UINT8 = struct.Struct(">B").unpack_from
_UINT16 = struct.Struct(">H").unpack_from
_UINT32 = struct.Struct(">I").unpack_from
_NUMBERS: dict[int, tuple[Callable[..., tuple[Any, ...]], int]] = {
    0xCA: (struct.Struct(">f").unpack_from, 4),
    0xCB: (struct.Struct(">d").unpack_from, 8),
    0xCC: (_UINT8, 1),
    0xCD: (_UINT16, 2),
    0xCE: (_UINT32, 4),
    0xCF: (struct.Struct(">Q").unpack_from, 8),
    0xD0: (struct.Struct(">b").unpack_from, 1),
    0xD1: (struct.Struct(">h").unpack_from, 2),
    0xD2: (struct.Struct(">i").unpack_from, 4),
    0xD3: (struct.Struct(">q").unpack_from, 8),
}
_SIZES: dict[int, tuple[Callable[..., tuple[Any, ...]], int]] = {
    0xC4: (_UINT8, 1),
    0xC5: (_UINT16, 2),
    0xC6: (_UINT32, 4),
    0xC7: (_UINT8, 1),
    0xC8: (_UINT16, 2),
    0xC9: (_UINT32, 4),
    0xD9: (_UINT8, 1),
    0xDA: (_UINT16, 2),
    0xDB: (_UINT32, 4),
    0xDC: (_UINT16, 2),
    0xDD: (_UINT32, 4),
    0xDE: (_UINT16, 2),
    0xDF: (_UINT32, 4),
}
_CONSTANTS = {0xC0: None, 0xC2: False, 0xC3: True}

_EXTENSIONS = (1, 2, 3, 4)


def _extension(code: int, data: bytes) -> Any:
    if code == 1:
        return decimal.Decimal(bytes(data).decode("ascii"))
    if code in _EXTENSIONS:
        from .moments import read_moment

        return read_moment(code, data)
    raise ValueError(f"extension {code} is not one of rows")


def _value(view: memoryview, at: int, binary: Binary) -> tuple[Any, int]:
    tag = view[at]
    at += 1
    if tag < 0x80:
        return tag, at
    if tag >= 0xE0:
        return tag - 0x100, at
    if tag < 0x90:
        return _map(view, at, tag & 0x0F, binary)
    if tag < 0xA0:
        return _list(view, at, tag & 0x0F, binary)
    if tag < 0xC0:
        end = at + (tag & 0x1F)
        return str(view[at:end], "utf-8"), end
    number = _NUMBERS.get(tag)
    if number:
        return number[0](view, at)[0], at + number[1]
    size = _SIZES.get(tag)
    if size:
        (length,) = size[0](view, at)
        return _sized(view, at + size[1], tag, length, binary)
    return _CONSTANTS[tag], at


def _sized(view: memoryview, at: int, tag: int, length: int, binary: Binary) -> tuple[Any, int]:
    if tag >= 0xDE:
        return _map(view, at, length, binary)
    if tag >= 0xDC:
        return _list(view, at, length, binary)
    is_extension = 0xC7 <= tag <= 0xC9
    end = at + is_extension + length
    if end > len(view):
        raise ValueError(f"a value of {length} bytes at {at}")
    if is_extension:
        return _extension(view[at], bytes(view[at + 1 : end])), end
    if tag <= 0xC6:
        return binary(view, at, end), end
    return str(view[at:end], "utf-8"), end


def _map(view: memoryview, at: int, length: int, binary: Binary) -> tuple[Row, int]:
    members: Row = {}
    for _ in range(length):
        key, at = _value(view, at, binary)
        members[key], at = _value(view, at, binary)
    return members, at


def _list(view: memoryview, at: int, length: int, binary: Binary) -> tuple[list[Any], int]:
    values: list[Any] = []
    for _ in range(length):
        value, at = _value(view, at, binary)
        values.append(value)
    return values, at


def _copied(view: memoryview, start: int, end: int) -> bytes:
    return bytes(view[start:end])


def read_plainly(view: memoryview, binary: Binary = _copied) -> Any:
    """Reads one value, with the standard library only.

    Args:
        view: its bytes.
        binary: makes a value of the bytes between two places.

    Raises:
        ValueError, KeyError, IndexError, struct.error: the bytes are no such value.
    """
    value, end = _value(view, 0, binary)
    if end != len(view):
        raise ValueError(f"it ends at byte {end} of {len(view)}")
    return value


def _find_reader() -> Callable[[memoryview], Any]:
    try:
        import msgpack  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ImportError:
        return read_plainly

    return partial(msgpack.unpackb, ext_hook=_extension, strict_map_key=False)


_read: Callable[[memoryview], Any] | None = None


def read_row(view: memoryview) -> Row:
    """A row of a Parquet file.

    Args:
        view: the bytes of the sample.

    Returns:
        Column → value: bytes, str, int, float, bool, list, dict (a struct), None; Decimal, date, time and datetime for
        what Parquet marks as such (`moments.py`). A map is a list of [key, value] lists. Nothing in it needs `view`
        any more.

    Raises:
        FeedError: the sample is no row.
        UnicodeDecodeError: a column of text is not UTF-8.
    """
    return read_rows([view])[0]


def read_rows(samples: Sequence[memoryview]) -> list[Row]:
    """Several rows; as `read_row`."""
    return read_each(samples, find_reader())


def find_reader() -> Callable[[memoryview], Any]:
    """The fastest reader of one value that this machine has."""
    global _read
    if _read is None:
        _read = _find_reader()
    return _read


def read_each(samples: Sequence[memoryview], read: Callable[[memoryview], Any]) -> list[Row]:
    """Reads rows by `read`, and raises FeedError for bytes that are not a row."""
    try:
        rows = list(map(read, samples))
    except UnicodeDecodeError:
        raise  # a row all the same
    except Exception as error:  # msgpack raises errors of its own; for each, the bytes are not a row
        raise FeedError("COPY_DAMAGED", f"a sample is no row of a Parquet file: {error}", "see sample.name") from None
    for row in rows:
        if type(row) is not dict:
            said = f"a sample is {type(row).__name__}, no row of a Parquet file"
            raise FeedError("COPY_DAMAGED", said, "see sample.name")
    return rows
