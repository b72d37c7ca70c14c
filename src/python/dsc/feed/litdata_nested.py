"""Lists and dicts in LitData's items: JSON, or a tag and what follows it (litdata/streaming/serializers.py)."""

from __future__ import annotations

import json
import struct
from typing import Any

_FIRST_JSON = 0x21  # lower first bytes are tags
_LENGTH = struct.Struct("<I")
_INTEGER = struct.Struct("<q")
_FLOAT = struct.Struct("<d")
_ARRAYS = {2: "q", 3: "d", 4: "?"}
_RECORD_TAGS = {0x10: 11, 0x11: 7, 0x12: 8, 0x13: 9, 0x14: 10}  # of values in records: their tags elsewhere


def read_nested(data: bytes) -> Any:
    """One list, dict or other value.

    Args:
        data: its bytes, at least one.

    Raises:
        ValueError, struct.error, IndexError: the bytes are no such value.
    """
    if data[0] >= _FIRST_JSON:
        return json.loads(data)
    value, end = _value(data, 0)
    if end != len(data):
        raise ValueError(f"a nested value ends at byte {end} of {len(data)}")
    return value


def _value(data: bytes, at: int) -> tuple[Any, int]:
    return _tagged(data, at + 1, data[at])


def _tagged(data: bytes, at: int, tag: int) -> tuple[Any, int]:
    if tag == 7:
        return _text(data, at)
    if tag == 8:
        return _INTEGER.unpack_from(data, at)[0], at + 8
    if tag == 9:
        return _FLOAT.unpack_from(data, at)[0], at + 8
    if tag == 10:
        return data[at] != 0, at + 1
    if tag == 11:
        return None, at
    (count,) = _LENGTH.unpack_from(data, at)
    at += 4
    if tag == 0:
        return json.loads(data[at : at + count]), at + count
    if tag in _ARRAYS:
        values = struct.Struct(f"<{count}{_ARRAYS[tag]}")
        return list(values.unpack_from(data, at)), at + values.size
    if tag == 1:
        return _repeat(data, at, count, _text)
    if tag == 5:
        pairs, at = _repeat(data, at, count, _pair)
        return dict(pairs), at
    if tag == 6:
        return _records(data, at, count)
    raise ValueError(f"a nested value has the tag {tag}")


def _repeat(data: bytes, at: int, count: int, read: Any) -> tuple[list[Any], int]:
    values = []
    for _ in range(count):
        value, at = read(data, at)
        values.append(value)
    return values, at


def _text(data: bytes, at: int) -> tuple[str, int]:
    (length,) = _LENGTH.unpack_from(data, at)
    end = at + 4 + length
    if end > len(data):
        raise ValueError(f"a text of {length} bytes at byte {at}")
    return data[at + 4 : end].decode(), end


def _pair(data: bytes, at: int) -> tuple[tuple[str, Any], int]:
    key, at = _text(data, at)
    value, at = _value(data, at)
    return (key, value), at


def _records(data: bytes, at: int, count: int) -> tuple[list[dict[str, Any]], int]:
    (columns,) = _LENGTH.unpack_from(data, at)
    keys, at = _repeat(data, at + 4, columns, _text)
    if not keys:
        raise ValueError("records without keys")
    records = []
    for _ in range(count):
        record = {}
        for key in keys:
            if data[at] not in _RECORD_TAGS:
                raise ValueError(f"a record has the tag {data[at]}")
            record[key], at = _tagged(data, at + 1, _RECORD_TAGS[data[at]])
        records.append(record)
    return records, at
