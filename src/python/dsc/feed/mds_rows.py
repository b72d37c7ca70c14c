"""Rows of MosaicML Streaming's shards, without its package.

Encodings: streaming/base/format/mds/encodings.py of mosaicml-streaming.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

_SCALARS = {
    "uint8": "<B",
    "uint16": "<H",
    "uint32": "<I",
    "uint64": "<Q",
    "int8": "<b",
    "int16": "<h",
    "int32": "<i",
    "int64": "<q",
    "float16": "<e",
    "float32": "<f",
    "float64": "<d",
    "int": "<q",
}

_TEXTS: Mapping[str, Callable[[str], Any]] = {
    "str": str,
    "json": json.loads,
    "str_int": int,
    "str_float": float,
    "str_decimal": Decimal,
}

_ARRAY_SHAPES = {0: "uint8", 1: "uint16", 2: "uint32", 3: "uint64"}  # dtypes of the dimensions
_ARRAY_VALUES = {
    8: "uint8",
    9: "int8",
    16: "uint16",
    17: "int16",
    18: "float16",
    32: "uint32",
    33: "int32",
    34: "float32",
    64: "uint64",
    65: "int64",
    66: "float64",
}


def decode_mds(data: memoryview, encoding: Mapping[str, Any]) -> dict[str, Any]:
    """The columns of one row.

    Args:
        data: first a u32 length for each column without a length of its own, then the columns.
        encoding: their names (`columns`), encodings (`types`) and lengths (`sizes`).

    Returns:
        Name → value. Images and pickles stay the bytes that they are stored as, views of `data`.

    Raises:
        ValueError: the lengths are not those of the row, or a column is not what its encoding says.
    """
    sizes: list[int] = []
    at = 0
    for size in encoding["sizes"]:
        if not size:
            (size,) = struct.unpack_from("<I", data, at)
            at += 4
        sizes.append(size)
    if at + sum(sizes) != len(data):
        raise ValueError(f"its columns have {at + sum(sizes)} bytes, the row {len(data)}")
    row: dict[str, Any] = {}
    for name, kind, size in zip(encoding["columns"], encoding["types"], sizes):
        row[name] = _decode(kind, data[at : at + size])
        at += size
    return row


def _decode(kind: str, data: memoryview) -> Any:
    if kind in _SCALARS:
        return struct.unpack(_SCALARS[kind], data)[0]
    if kind in _TEXTS:
        return _TEXTS[kind](bytes(data).decode())
    name, _, config = kind.partition(":")
    if name == "ndarray":
        return _array(data, config)
    return bytes(data) if name == "bytes" else data


def _array(data: memoryview, config: str) -> Any:
    """An array: its dtype and shape are in the encoding (`float32:2,3`), or before the values."""
    import numpy

    dtype, _, dimensions = config.partition(":")
    at = 0
    if not dtype:
        dtype = _ARRAY_VALUES[data[0]]
        at = 1
    if dimensions:
        shape = [int(size) for size in dimensions.split(",")]
    else:
        head = data[at]
        kind = numpy.dtype(_ARRAY_SHAPES[head % 4])
        end = at + 1 + (head >> 2) * kind.itemsize
        shape = numpy.frombuffer(data[at + 1 : end], kind).tolist()
        at = end
    return numpy.frombuffer(data[at:], dtype).reshape(shape)
