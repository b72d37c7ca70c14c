"""Rows of Parquet files, as pyarrow and datasets write them, beside what pyarrow reads in them."""

import datetime
import decimal
import os
import pathlib
import random
import struct
import sys

import pytest

import dsc
from dsc.feed import moments, parquet_rows
from dsc.feed.order import epoch_order

pyarrow = pytest.importorskip("pyarrow", reason="scripts/parquet-venv.sh has it")
parquet = pytest.importorskip("pyarrow.parquet")

UTC = datetime.timezone.utc
BATCH = 8
CODECS = ["none", "snappy", "gzip", "brotli", "zstd", "lz4"]


def maybe(random, make):
    return None if random.random() < 0.2 else make()


def table(rows, seed):
    """A table with a column of every kind, nulls in all of them."""
    r = random.Random(seed)
    word = ["", "a", "Blüte", "long " * 30]
    struct = pyarrow.struct([("bytes", pyarrow.binary()), ("path", pyarrow.string())])
    listed = pyarrow.list_(pyarrow.struct([("a", pyarrow.int32()), ("b", pyarrow.list_(pyarrow.float32()))]))
    columns = {
        "i8": (pyarrow.int8(), lambda: r.randrange(-128, 128)),
        "u32": (pyarrow.uint32(), lambda: r.randrange(2**32)),
        "i64": (pyarrow.int64(), lambda: r.randrange(-(2**63), 2**63)),
        "u64": (pyarrow.uint64(), lambda: r.randrange(2**64)),
        "f32": (pyarrow.float32(), lambda: r.randrange(999) / 8),
        "f64": (pyarrow.float64(), r.random),
        "flag": (pyarrow.bool_(), lambda: r.random() < 0.5),
        "text": (pyarrow.string(), lambda: r.choice(word)),
        "blob": (pyarrow.binary(), lambda: r.randbytes(r.choice([0, 3, 300, 70_000]))),
        "date": (pyarrow.date32(), lambda: datetime.date(1960, 1, 1) + datetime.timedelta(r.randrange(40_000))),
        "time": (pyarrow.time64("us"), lambda: datetime.time(23, 4, 5, r.randrange(10**6))),
        "utc": (pyarrow.timestamp("us", "UTC"), lambda: datetime.datetime(1950, 1, 1, 1, 2, 3, r.randrange(999), UTC)),
        "naive": (pyarrow.timestamp("ms"), lambda: datetime.datetime(1950 + r.randrange(99), 1, 1, 1, 2, 3, 4000)),
        "price": (pyarrow.decimal128(20, 3), lambda: decimal.Decimal(r.randrange(-(10**18), 10**18)).scaleb(-3)),
        "image": (struct, lambda: {"bytes": maybe(r, lambda: r.randbytes(40)), "path": maybe(r, lambda: "p.png")}),
        "list": (pyarrow.list_(pyarrow.int64()), lambda: [maybe(r, lambda: 5) for _ in range(r.randrange(40))]),
        "listed": (listed, lambda: [maybe(r, lambda: {"a": 1, "b": [0.5]}) for _ in range(r.randrange(3))]),
        "word": (pyarrow.dictionary(pyarrow.int32(), pyarrow.string()), lambda: r.choice(word)),
    }
    made = {name: pyarrow.array([maybe(r, make) for _ in range(rows)], kind) for name, (kind, make) in columns.items()}
    return pyarrow.table(made)


@pytest.fixture
def folder(dataset):
    for old in dataset.iterdir():
        old.unlink()
    (dataset / "data").mkdir()
    return dataset


def path_of(folder, file, files):
    return folder / "data" / f"train-{file:05}-of-{files:05}.parquet"


def what_pyarrow_reads(folder):
    """Name of the sample → row."""
    return {
        f"{path.relative_to(folder)}:{place}": row
        for path in sorted(pathlib.Path(folder).rglob("*.parquet"))
        for place, row in enumerate(parquet.read_table(path).to_pylist())
    }


def rows_of(folder, **options):
    feed = dsc.FeedDataset(
        folder, batch_size=BATCH, seed=7, last="uneven", transform=lambda s: (s.name, s.row()), **options
    )
    return [row for batch in dsc.FeedLoader(feed, collate_fn=list) for row in batch]


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_rows_are_what_pyarrow_reads_whatever_the_codec(folder, version):
    for file, codec in enumerate(CODECS):
        options = {"row_group_size": 11, "use_dictionary": file % 2 == 0, "data_page_size": 500}
        path = path_of(folder, file, len(CODECS))
        parquet.write_table(table(30, file), path, compression=codec, data_page_version=version, **options)
    parquet.write_table(table(0, 0), folder / "data" / "no-rows.parquet")
    expected = what_pyarrow_reads(folder)
    rows = rows_of(folder)
    names = list(expected)
    assert [name for name, _ in rows] == [names[id] for id in epoch_order(len(names), 7, 0)]
    assert dict(rows) == expected


def test_only_chosen_columns_come_in_their_order(folder):
    parquet.write_table(table(40, 1), path_of(folder, 0, 1))
    rows = rows_of(folder, columns=["text", "i8"])
    expected = what_pyarrow_reads(folder)
    assert [list(row) for _, row in rows] == [["text", "i8"]] * 40
    assert dict(rows) == {name: {"text": row["text"], "i8": row["i8"]} for name, row in expected.items()}


def test_rows_are_the_same_without_msgpack(folder, monkeypatch):
    parquet.write_table(table(60, 2), path_of(folder, 0, 1))
    pytest.importorskip("msgpack")
    monkeypatch.setattr(parquet_rows, "_read", None)
    with_msgpack = rows_of(folder)
    assert parquet_rows._read is not parquet_rows.read_plainly
    monkeypatch.setattr(parquet_rows, "_read", parquet_rows.read_plainly)
    assert rows_of(folder) == with_msgpack


def test_a_batch_gives_the_rows_of_its_samples(folder):
    parquet.write_table(table(64, 5), path_of(folder, 0, 1))
    for batch in dsc.FeedDataset(folder, batch_size=BATCH, seed=7):
        assert batch.rows() == [sample.row() for sample in batch]
        assert batch.copy().rows() == batch.rows()


def test_large_bytes_come_as_views_of_the_files_that_stay_valid(folder):
    for file in range(2):
        parquet.write_table(table(64, file), path_of(folder, file, 2))
    feed = dsc.FeedDataset(folder, batch_size=BATCH, seed=7)
    assert len(feed.info["mapped"]["descriptors"]) == 2
    kept = [(batch.rows(views=True), batch.rows()) for batch in feed]
    blobs = [row["blob"] for rows, _ in kept for row in rows if row["blob"] is not None and len(row["blob"]) > 4096]
    assert blobs and all(type(blob) is memoryview and blob.readonly for blob in blobs)
    assert [rows for rows, _ in kept] == [rows for _, rows in kept]


def test_what_goes_through_the_feeds_memory_is_the_same(folder):
    parquet.write_table(table(64, 5), path_of(folder, 0, 1))
    mapped = rows_of(folder)
    feed = dsc.FeedDataset(folder, batch_size=BATCH, seed=7, feed_options=["--no-map"])
    assert "mapped" not in feed.info
    through = [(sample.name, sample.row(views=True)) for batch in feed for sample in batch]
    assert len(through) == 64 and through == mapped


def test_images_of_a_dataset_of_hugging_face_are_bytes_and_path(folder):
    datasets = pytest.importorskip("datasets")
    images = [{"bytes": bytes([i]) * 900, "path": None} for i in range(50)]
    features = datasets.Features({"image": datasets.Image(), "label": datasets.ClassLabel(names=["no", "yes"])})
    made = datasets.Dataset.from_dict({"image": images, "label": [i % 2 for i in range(50)]}, features=features)
    made.to_parquet(path_of(folder, 0, 1))
    assert sorted(row["image"]["bytes"][0] for _, row in rows_of(folder)) == list(range(50))
    assert dict(rows_of(folder)) == what_pyarrow_reads(folder)


def test_batches_of_rows_travel_to_workers(folder):
    parquet.write_table(table(64, 3), path_of(folder, 0, 1))
    feed = dsc.FeedDataset(folder, batch_size=BATCH, seed=7, transform=lambda s: (s.name, s.row()))
    loader = dsc.FeedLoader(feed, num_workers=2, collate_fn=list)
    assert dict(row for batch in loader for row in batch) == what_pyarrow_reads(folder)


def test_what_is_no_row_is_refused_by_name(dataset, monkeypatch):
    feed = dsc.FeedDataset(dataset, batch_size=BATCH)
    sample = next(iter(next(iter(feed))))
    with pytest.raises(dsc.FeedError, match="whole files"):
        sample.row()
    for data in [b"", b"\x05", b"\x81", b"\x81\xa1", b"\x91\x01", b"\xc1", b"\x80\x80", b"\x81\xa1a\xc4\x05ab"]:
        for read in (parquet_rows.read_plainly, None):
            monkeypatch.setattr(parquet_rows, "_read", read)
            with pytest.raises(dsc.FeedError, match="row of a Parquet file"):
                parquet_rows.read_row(memoryview(data))


@pytest.mark.parametrize("columns", ["text", [], ["a,b"], [" "]])
def test_columns_that_are_no_list_of_names_are_refused(columns):
    with pytest.raises((TypeError, ValueError), match="columns is"):
        dsc.FeedDataset("flowers", batch_size=1, columns=columns)


def test_a_damaged_file_is_named(folder):
    path = path_of(folder, 0, 1)
    parquet.write_table(table(30, 4), path)
    os.truncate(path, path.stat().st_size - 20)
    with pytest.raises(dsc.FeedError, match="train-00000-of-00001.parquet is no Parquet file that can be read"):
        rows_of(folder)


DISTANT = [
    datetime.datetime(9999, 12, 31, 23, 59, 59, 999_999),
    datetime.datetime(1, 1, 1),
    datetime.datetime(2262, 4, 12),
    datetime.datetime(1677, 9, 21, 0, 12, 43),
    datetime.datetime(2020, 1, 1, 1, 2, 3, 4),
    None,
]


def written_rows(folder, table, **options):
    """Rows of a table that pyarrow writes, in their order, by a feed."""
    parquet.write_table(table, folder / "a.parquet", **options)
    feed = dsc.FeedDataset(folder, batch_size=BATCH, order="sequential", last="uneven")
    return [row for batch in feed for row in batch.rows()]


def test_every_type_of_pyarrow_is_the_value_that_pyarrow_gives(folder):
    """Edges of each type's range beside pyarrow's own reading."""
    t = pyarrow
    nanoseconds = 1_700_000_000_123_456_789
    columns = {
        "int96-distant": t.array(DISTANT, t.timestamp("us")),
        "ns": t.array([nanoseconds, -1, 0, -(2**63) + 1, 2**63 - 1, None], t.int64()).cast(t.timestamp("ns")),
        "ns-utc": t.array([nanoseconds, -1, 0, 1000, -1001, None], t.int64()).cast(t.timestamp("ns", "UTC")),
        "us": t.array(DISTANT, t.timestamp("us")),
        "ms": t.array([-62_135_596_800_000, 253_402_300_799_999, 0, -1, 1, None]).cast(t.timestamp("ms")),
        "s": t.array([0, -1, 1, 10**9, -(10**9), None]).cast(t.timestamp("s")),
        "date32": t.array([datetime.date.min, datetime.date.max, datetime.date(1970, 1, 1)] * 2, t.date32()),
        "date64": t.array([datetime.date.min, datetime.date.max, datetime.date(1969, 12, 31)] * 2, t.date64()),
        "time32": t.array([datetime.time(23, 59, 59), datetime.time()] * 3, t.time32("s")),
        "time64": t.array([datetime.time(23, 59, 59, 999_999), datetime.time()] * 3, t.time64("us")),
        "f16": t.array([1.5, -0.0, float("inf"), 65504.0, 2**-24, None], t.float16()),
        "d256": t.array([decimal.Decimal("1e-20"), decimal.Decimal(-(10**55))] * 3, t.decimal256(76, 20)),
        "small-decimal": t.array([decimal.Decimal("123.40"), None] * 3, t.decimal32(5, 2)),
        "fixed": t.array([b"abc", b"\0\0\0"] * 3, t.binary(3)),
        "large": t.array(["", "Blüte"] * 3, t.large_string()),
        "fixed-list": t.array([[1, 2], [None, 3]] * 3, t.list_(t.int8(), 2)),
        "nothing": t.nulls(6),
        "hostile": t.array([{"__proto__": 1, "constructor": None, "toString": "x"}, None] * 3),
        "__proto__": t.array([1, None] * 3),
    }
    table = t.table(columns)
    found = written_rows(folder, table)
    expected = parquet.read_table(folder / "a.parquet").to_pylist()
    for name in columns:
        assert [row[name] for row in found] == [row[name] for row in expected], name
    assert found[0]["ns"].nanosecond == 789


def test_moments_of_int96_are_right_in_any_year(folder):
    table = pyarrow.table({"t": pyarrow.array(DISTANT, pyarrow.timestamp("us"))})
    assert [row["t"] for row in written_rows(folder, table, use_deprecated_int96_timestamps=True)] == DISTANT


def test_dates_beyond_pythons_are_text_and_the_rest_of_the_row_is_there(folder):
    days = pyarrow.array([2**31 - 1, -(2**31), -719_163, 2_932_897, 0], pyarrow.int32())
    moments = pyarrow.array([2**63 - 1, -(2**63) + 1, -62_135_596_800_000_001, 253_402_300_800_000_000, 0])
    table = pyarrow.table(
        {"d": days.cast(pyarrow.date32()), "t": moments.cast(pyarrow.timestamp("us", "UTC")), "x": list("abcde")}
    )
    rows = written_rows(folder, table)
    assert [row["x"] for row in rows] == list("abcde")
    assert [row["d"] for row in rows] == [
        "+5881580-07-11",
        "-5877641-06-23",
        "0000-12-31",
        "+010000-01-01",
        datetime.date(1970, 1, 1),
    ]
    assert [row["t"] for row in rows] == [
        "+294247-01-10T04:00:54.775807Z",
        "-290308-12-21T19:59:05.224193Z",
        "0000-12-31T23:59:59.999999Z",
        "+010000-01-01T00:00:00Z",
        datetime.datetime(1970, 1, 1, tzinfo=UTC),
    ]


def test_encrypted_footers_are_named_and_no_damage_is_claimed(folder):
    parquet.write_table(pyarrow.table({"x": [1]}), folder / "a.parquet")
    path = folder / "a.parquet"
    path.write_bytes(b"PARE" + path.read_bytes()[4:-4] + b"PARE")
    with pytest.raises(dsc.FeedError, match="its footer is encrypted") as refusal:
        next(iter(dsc.FeedDataset(folder, batch_size=1)))
    assert refusal.value.code == "USAGE"


def test_nanoseconds_are_kept_without_pandas(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    value = moments.read_moment(moments.TIMESTAMP, struct.pack(">Bq", 2 | 4, -1))
    assert value == datetime.datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC) and value.nanosecond == 999
    time = moments.read_moment(moments.TIME, struct.pack(">Bq", 2, 1_001))
    assert time == datetime.time(microsecond=1) and time.nanosecond == 1
