"""Writes fixtures/parquet: small files as pyarrow and Hugging Face's datasets write them, and what pyarrow reads in them.

    $(scripts/parquet-venv.sh)/bin/python scripts/make-parquet-fixtures.py fixtures/parquet

rows.json has for each file its rows: bytes as {"bytes": hex}, decimals and what has a date or time as {"text": ...},
numbers that JSON cannot hold as {"number": ...}; for a file with the rows of another, that one's name.
"""

import datetime
import decimal
import json
import math
import sys
from pathlib import Path

import datasets
import pyarrow
import pyarrow.parquet

ROWS = 24
UTC = datetime.timezone.utc


def plain(value):
    if isinstance(value, bytes):
        return {"bytes": value.hex()}
    if isinstance(value, dict):
        return {key: plain(member) for key, member in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(member) for member in value]
    if isinstance(value, decimal.Decimal):
        return {"text": str(value)}
    if isinstance(value, datetime.datetime):
        return {"text": value.astimezone(UTC).isoformat() if value.tzinfo else value.isoformat() + "+00:00"}
    if isinstance(value, (datetime.date, datetime.time)):
        return {"text": value.isoformat()}
    if isinstance(value, float) and not math.isfinite(value):
        return {"number": {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(value)]}
    if isinstance(value, int) and abs(value) >= 2**53:
        return {"number": str(value)}
    return value


def numbers(i):
    if i % 7 == 3:
        return {}
    return {
        "flag": i % 2 == 0,
        "i8": i - 12,
        "u32": 2**32 - 1 - i,
        "i64": (-1) ** i * (2**60 + i),
        "u64": 2**64 - 1 - i,
        "f16": i / 4,
        "f32": i / 8,
        "f64": [i / 3, math.inf, math.nan][i % 3] if i % 5 == 0 else i / 3,
        "text": ["", "tulip", "Blüte", "long " * 20][i % 4],
        "blob": bytes(range(i)) * (i % 5),
        "fixed": bytes([i, 255 - i, 0]),
    }


NUMBERS = pyarrow.schema(
    [
        ("flag", pyarrow.bool_()),
        ("i8", pyarrow.int8()),
        ("u32", pyarrow.uint32()),
        ("i64", pyarrow.int64()),
        ("u64", pyarrow.uint64()),
        ("f16", pyarrow.float16()),
        ("f32", pyarrow.float32()),
        ("f64", pyarrow.float64()),
        ("text", pyarrow.string()),
        ("blob", pyarrow.binary()),
        ("fixed", pyarrow.binary(3)),
    ]
)


def nested(i):
    word = ["", "a", "bc"][i % 3]
    return {
        "list": [None, [], [None], [i, None, i + 1]][i % 4],
        "lists": [[["x"], [], None], [], None][i % 3],
        "struct": None if i % 5 == 0 else {"bytes": bytes([i]), "path": None if i % 2 else word},
        "structs": [None, [], [None, {"a": i, "b": [0.5]}, {"a": None, "b": None}]][i % 3],
        "deep": {"x": {"y": i} if i % 2 else None, "z": [{"w": word}]},
        "map": [None, [], [("k", i), ("l", None)]][i % 3],
        "by_number": [(i, {"q": word})] * (i % 2),
    }


NESTED = pyarrow.schema(
    [
        ("list", pyarrow.list_(pyarrow.int64())),
        ("lists", pyarrow.list_(pyarrow.list_(pyarrow.string()))),
        ("struct", pyarrow.struct([("bytes", pyarrow.binary()), ("path", pyarrow.string())])),
        (
            "structs",
            pyarrow.list_(pyarrow.struct([("a", pyarrow.int32()), ("b", pyarrow.list_(pyarrow.float32()))])),
        ),
        (
            "deep",
            pyarrow.struct(
                [
                    ("x", pyarrow.struct([("y", pyarrow.int64())])),
                    ("z", pyarrow.list_(pyarrow.struct([("w", pyarrow.string())]))),
                ]
            ),
        ),
        ("map", pyarrow.map_(pyarrow.string(), pyarrow.int64())),
        ("by_number", pyarrow.map_(pyarrow.int32(), pyarrow.struct([("q", pyarrow.string())]))),
    ]
)


def times(i):
    moment = datetime.datetime(1969 + i, 3, 4, 5, 6, 7, 123000)
    return {
        "date": moment.date(),
        "time_ms": moment.time(),
        "time_us": moment.time().replace(microsecond=i),
        "naive_ms": moment,
        "utc_us": moment.replace(tzinfo=UTC, microsecond=i),
        "small": decimal.Decimal(i - 5).scaleb(-2),
        "wide": -decimal.Decimal(10**25 + i).scaleb(-10),
        "nothing": None,
    }


TIMES = pyarrow.schema(
    [
        ("date", pyarrow.date32()),
        ("time_ms", pyarrow.time32("ms")),
        ("time_us", pyarrow.time64("us")),
        ("naive_ms", pyarrow.timestamp("ms")),
        ("utc_us", pyarrow.timestamp("us", tz="UTC")),
        ("small", pyarrow.decimal128(9, 2)),
        ("wide", pyarrow.decimal128(38, 10)),
        ("nothing", pyarrow.null()),
    ]
)


def write(path, rows, schema, **options):
    columns = {field.name: pyarrow.array([row.get(field.name) for row in rows], field.type) for field in schema}
    pyarrow.parquet.write_table(pyarrow.table(columns, schema), path, **options)


def main(folder):
    folder.mkdir(parents=True, exist_ok=True)
    few = [numbers(i) for i in range(ROWS)]
    for codec in ["none", "snappy", "gzip", "brotli", "zstd", "lz4"]:
        write(folder / f"{codec}.parquet", few, NUMBERS, compression=codec)
    plainly = {"use_dictionary": False, "data_page_version": "2.0"}
    write(folder / "v2.parquet", few, NUMBERS, data_page_size=64, write_batch_size=5, **plainly)
    write(folder / "groups.parquet", few, NUMBERS, row_group_size=5, write_page_index=True)
    delta = {"i64": "DELTA_BINARY_PACKED", "text": "DELTA_BYTE_ARRAY", "f32": "BYTE_STREAM_SPLIT"}
    write(folder / "delta.parquet", few, NUMBERS, use_dictionary=False, column_encoding=delta)
    write(folder / "nested.parquet", [nested(i) for i in range(ROWS)], NESTED, row_group_size=10)
    write(folder / "nested-v2.parquet", [nested(i) for i in range(ROWS)], NESTED, **plainly)
    write(folder / "times.parquet", [times(i) for i in range(ROWS)], TIMES)
    write(folder / "int96.parquet", [times(i) for i in range(9)], TIMES, use_deprecated_int96_timestamps=True)
    write(folder / "no-rows.parquet", [], NUMBERS)
    images = datasets.Dataset.from_dict(
        {"image": [{"bytes": bytes([i] * i), "path": None} for i in range(1, ROWS)], "label": [i % 2 for i in range(1, ROWS)]},
        features=datasets.Features({"image": datasets.Image(), "label": datasets.ClassLabel(names=["no", "yes"])}),
    )
    images.to_parquet(folder / "hugging-face.parquet")
    rows = {path.name: plain(pyarrow.parquet.read_table(path).to_pylist()) for path in sorted(folder.glob("*.parquet"))}
    texts = {name: json.dumps(rows[name]) for name in rows}
    first = {}
    for name, text in texts.items():
        texts[name] = json.dumps(first[text]) if text in first else text
        first.setdefault(text, name)
    lines = [f"  {json.dumps(name)}: {text}" for name, text in texts.items()]
    (folder / "rows.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


main(Path(sys.argv[1]))
