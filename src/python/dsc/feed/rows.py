"""Takes samples apart into named values, by the format that they are stored in."""

from __future__ import annotations

import csv
import functools
import json
import re
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from .errors import FeedError

_Decoder: TypeAlias = Callable[[memoryview, Mapping[str, Any]], dict[str, Any]]
_ESCAPED = re.compile(r'\\["\\]|""')


def decode_row(data: memoryview, encoding: Mapping[str, Any], name_of: Callable[[], str]) -> dict[str, Any]:
    """The values of one sample by name.

    Args:
        data: its bytes as the feed gives them.
        encoding: how they are stored, as `Catalog.encoding_of` says.
        name_of: gives the name of the sample, for one that is not as it should be.

    Returns:
        Name → value; a tar shard's members are views of `data`, what other formats hold are Python's own values.

    Raises:
        FeedError: the sample has no parts, or is not what its format says.
    """
    if encoding["format"] == "member":
        from .members import extension_of

        return {extension_of(name_of()) or "": data}
    decode = _DECODERS.get(encoding["format"])
    if decode is None:
        raise FeedError("USAGE", "these samples are whole files, which have no fields", "use sample.data")
    try:
        return decode(data, encoding)
    except FeedError as error:
        raise FeedError(error.code, f"{name_of()}: {error.message}", error.hint) from None


def decode_rows(
    samples: Sequence[memoryview],
    encodings: Sequence[Mapping[str, Any]],
    name_of: Callable[[int], str],
    views: bool = False,
) -> list[dict[str, Any]]:
    """Several samples, each as `decode_row`; with `views`, large bytes of rows of Parquet as views of the samples.

    `name_of` gives the name of a sample by its place among them.
    """
    if all(encoding["format"] == "row" for encoding in encodings):
        if views:
            from .parquet_views import view_rows

            return view_rows(samples)
        from .parquet_rows import read_rows

        return read_rows(samples)
    pairs = enumerate(zip(samples, encodings))
    return [decode_row(sample, encoding, functools.partial(name_of, at)) for at, (sample, encoding) in pairs]


def _members(data: memoryview, _: Mapping[str, Any]) -> dict[str, Any]:
    from .members import split_members

    return dict(split_members(data))


def _json(data: memoryview, _: Mapping[str, Any]) -> dict[str, Any]:
    try:
        value = json.loads(bytes(data))
    except ValueError as error:
        raise FeedError("COPY_DAMAGED", f"a line is not JSON: {error}") from None
    except RecursionError:
        raise FeedError("COPY_DAMAGED", "a line of JSON is nested deeper than Python reads") from None
    if isinstance(value, dict):
        return value
    raise FeedError("COPY_DAMAGED", f"a line is {type(value).__name__}, not an object", "json.loads(sample.data)")


def _csv(data: memoryview, encoding: Mapping[str, Any]) -> dict[str, Any]:
    columns: list[str] = encoding["columns"]
    quotes = encoding.get("quotes")
    if quotes == "text":
        return _fields(columns, _text(data).split(encoding["delimiter"]))
    if quotes == "escape":
        return _fields(columns, _split_escaped(_text(data), encoding["delimiter"]))
    if len(data) > csv.field_size_limit():
        csv.field_size_limit(len(data))  # 128 KiB, for all of the process: more does no harm
    # Lines as the file has them: a field in quotes may go on behind the end of one.
    try:
        lines = _text(data).split("\n")
        records = list(csv.reader([f"{line}\n" for line in lines], delimiter=encoding["delimiter"]))
    except csv.Error as error:
        raise FeedError("COPY_DAMAGED", f"a record is not CSV: {error}") from None
    return _fields(columns, records[0] if len(records) == 1 else [])


def _split_escaped(record: str, delimiter: str) -> list[str]:
    r"""Splits a record whose quotes may be escaped by a backslash.

    `csv` would also drop backslashes that escape nothing, as in `C:\data`.
    """
    quoted = r'"([^"\\]*(?:(?:\\.|"")[^"\\]*)*)"?'
    field = re.compile(f"(?:{quoted})?([^{re.escape(delimiter)}]*)", re.DOTALL)
    fields: list[str] = []
    at = 0
    while at <= len(record):
        match = field.match(record, at)
        assert match is not None  # it also matches nothing
        fields.append(_ESCAPED.sub(lambda pair: pair[0][1], match[1] or "") + match[2])
        at = match.end() + 1
    return fields


def _text(data: memoryview) -> str:
    try:
        return bytes(data).decode()
    except UnicodeDecodeError as error:
        raise FeedError("COPY_DAMAGED", f"a record is not CSV: {error}") from None


def _fields(columns: Sequence[str], fields: Sequence[str]) -> dict[str, Any]:
    if len(fields) == len(columns):
        return dict(zip(columns, fields))
    raise FeedError(
        "COPY_DAMAGED",
        f"a record has {len(fields)} fields, its file's header {len(columns)}",
    )


def _row(data: memoryview, _: Mapping[str, Any]) -> dict[str, Any]:
    from .parquet_rows import read_row

    return read_row(data)


def _mds(data: memoryview, encoding: Mapping[str, Any]) -> dict[str, Any]:
    from .mds_rows import decode_mds

    return _named(decode_mds, data, encoding)


def _litdata(data: memoryview, encoding: Mapping[str, Any]) -> dict[str, Any]:
    from .litdata_rows import decode_litdata

    return _named(decode_litdata, data, encoding)


def _named(decode: _Decoder, data: memoryview, encoding: Mapping[str, Any]) -> dict[str, Any]:
    try:
        return decode(data, encoding)
    except (ValueError, KeyError, IndexError, struct.error) as error:
        raise FeedError("COPY_DAMAGED", f"a row of {encoding['format']} cannot be read: {error}") from None


_DECODERS: dict[str, _Decoder] = {
    "tar": _members,
    "json": _json,
    "csv": _csv,
    "row": _row,
    "mds": _mds,
    "litdata": _litdata,
}
