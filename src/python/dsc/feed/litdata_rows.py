"""Items of LitData's chunks, without its package.

Format: litdata/streaming/serializers.py, and the dtypes of litdata/constants.py.
"""

from __future__ import annotations

import json
import struct
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

from .litdata_nested import read_nested

_NUMPY = [
    *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128", "bool"),
]
_TORCH = [
    *("float32", "float32", "float64", "float64", "complex64", "complex64", "complex128", "complex128"),
    *("float16", "float16", "bfloat16", "uint8", "int8", "int16", "int16", "int32", "int32", "int64", "int64"),
    *("bool", "uint16"),
]
_IMAGES = {"jpeg", "image", "file", "pdf", "video", "audio", "mesh", "nifti", "tifffile"}  # files as they are
_told: set[str] = set()


def decode_litdata(data: memoryview, encoding: Mapping[str, Any]) -> dict[str, Any]:
    """The values of one item.

    Args:
        data: a u32 length for each value, then the values.
        encoding: how each is stored (`types`), and what they are put together to (`spec`).

    Returns:
        Key → value where the item is a dict; of a list, tuple or single value, '0', '1', … → value. Files (JPEG and the
        like) and what is not known here stay bytes, views of `data`.

    Raises:
        ValueError: the lengths are not those of the item, or a value is not what its type says.
    """
    types: list[str] = encoding["types"]
    sizes = struct.unpack_from(f"<{len(types)}I", data)
    at = 4 * len(types)
    if at + sum(sizes) != len(data):
        raise ValueError(f"its values have {at + sum(sizes)} bytes, the item {len(data)}")
    values = []
    for kind, size in zip(types, sizes):
        values.append(_decode(kind, data[at : at + size]))
        at += size
    spec = json.loads(encoding["spec"])[1] if encoding.get("spec") else None
    item = values if spec is None else _put_together(spec, iter(values))
    if isinstance(item, dict):
        return {str(key): value for key, value in item.items()}
    return {str(place): value for place, value in enumerate(item if isinstance(item, (list, tuple)) else [item])}


def _put_together(spec: Mapping[str, Any], leaves: Iterator[Any]) -> Any:
    """A tree as torch.utils._pytree.treespec_dumps writes it."""
    kind = spec["type"]
    if kind is None:
        return next(leaves)
    children = [_put_together(child, leaves) for child in spec["children_spec"]]
    if kind == "builtins.dict":
        return dict(zip(json.loads(spec["context"]), children))
    return tuple(children) if kind == "builtins.tuple" else children


def _decode(kind: str, data: memoryview) -> Any:
    name, _, config = kind.partition(":")
    if name in ("str", "text", "string"):
        return bytes(data).decode()
    if name == "bytes":
        return bytes(data)
    if name == "bool":
        return data[0] != 0
    if name == "int":
        return struct.unpack("<q", data)[0]
    if name == "float":
        return struct.unpack("<d", data)[0]
    if name == "json" and data:
        return read_nested(bytes(data))
    if name in ("numpy", "no_header_numpy"):
        return _numpy(data, config)
    if name in ("tensor", "no_header_tensor"):
        return _tensor(data, config)
    if name not in _IMAGES and name not in _told:
        _told.add(name)
        warnings.warn(f"values of LitData's type {name!r} stay bytes: its own serializers read them", stacklevel=2)
    return data


def _numpy(data: memoryview, dtype: str) -> Any:
    import numpy

    if dtype:  # one dimension
        return numpy.frombuffer(data, _NUMPY[int(dtype)])
    index, rank = struct.unpack_from("<II", data)
    shape = struct.unpack_from(f"<{rank}I", data, 8)
    return numpy.frombuffer(data[8 + 4 * rank :], _NUMPY[index]).reshape(shape)


def _tensor(data: memoryview, dtype: str) -> Any:
    import torch

    shape: tuple[int, ...]
    if dtype:  # one dimension
        index, shape, at = int(dtype), (-1,), 0
    else:
        index, rank = struct.unpack_from(">II", data)
        shape, at = struct.unpack_from(f">{rank}I", data, 8), 8 + 4 * rank
    kind: torch.dtype = getattr(torch, _TORCH[index])
    if at == len(data):
        return torch.empty([0] if shape == (-1,) else shape, dtype=kind)
    return torch.frombuffer(bytearray(data[at:]), dtype=kind).reshape(shape)  # torch's memory must be writable
