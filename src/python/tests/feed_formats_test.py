"""Rows of MDS and LitData: what a feed gives is what the formats' own libraries were given."""

import importlib.util
import struct
import sys

import numpy
import pytest
from feed_rows_test import read_rows
from feed_support import ROOT

from dsc.feed.litdata_nested import read_nested

FIXTURES = ROOT / "fixtures" / "formats"


def maker():
    """scripts/make-format-fixtures.py, without the libraries that it writes with."""
    path = ROOT / "scripts" / "make-format-fixtures.py"
    source = path.read_text().replace("import litdata\n", "").replace("from streaming import MDSWriter\n", "")
    spec = importlib.util.spec_from_loader("make_format_fixtures", loader=None)
    module = importlib.util.module_from_spec(spec)
    module.__file__ = str(path)
    exec(compile(source, str(path), "exec"), module.__dict__)
    return module


def same(found, expected):
    if isinstance(expected, dict):
        return set(found) == set(expected) and all(same(found[key], value) for key, value in expected.items())
    if hasattr(expected, "shape"):
        return type(found) is type(expected) and found.dtype == expected.dtype and numpy.array_equal(found, expected)
    return type(found) is type(expected) and found == expected


@pytest.mark.parametrize("name, by", [("mds", "mds_row"), ("litdata", "litdata_row")])
def test_every_value_comes_back(dataset, name, by):
    rows = read_rows(FIXTURES / name)
    expected = [getattr(maker(), by)(i) for i in range(20)]
    found = sorted(rows.values(), key=lambda row: row["id"])
    assert len(found) == 20
    for row, want in zip(found, expected):
        assert same(row, want), (row, want)
    assert "streaming" not in sys.modules and "litdata" not in sys.modules


@pytest.mark.parametrize("compression", [None, "zstd", "br"])
def test_what_streaming_writes_now_comes_back(dataset, compression):
    streaming = pytest.importorskip("streaming")
    make = maker()
    folder = dataset.parent / "mds"
    columns = make.MDS_COLUMNS
    with streaming.MDSWriter(out=str(folder), columns=columns, size_limit=2000, compression=compression) as writer:
        for i in range(50):
            writer.write(make.mds_row(i))
    rows = sorted(read_rows(folder, as_="mds").values(), key=lambda row: row["id"])
    assert len(rows) == 50 and all(same(row, make.mds_row(i)) for i, row in enumerate(rows))


def test_what_webdataset_writes_is_fed_as_rows_too(dataset):
    webdataset = pytest.importorskip("webdataset")
    folder = dataset.parent / "wds"
    folder.mkdir()
    with webdataset.ShardWriter(str(folder / "%05d.tar"), maxcount=8, verbose=0) as writer:
        for i in range(20):
            writer.write({"__key__": f"{i:03}", "txt": f"text {i}", "cls": i})
    rows = read_rows(folder, copy=True)
    assert {name: bytes(row["txt"]) for name, row in rows.items()} == {f"{i:03}": b"text %d" % i for i in range(20)}


NESTED = [
    [1, 2, 3],
    [],
    [0.5, -1.0],
    [True, False],
    ["a", "Blüte"],
    [1, "mixed", None],
    {"a": [1], "b": {"c": None, "d": 2.5, "e": True}},
    [{"role": "user", "n": 1, "x": None, "f": 0.5, "b": False}, {"role": "bot", "n": 2, "x": "y", "f": 1.5, "b": True}],
    [2**70],
]


def test_lists_and_dicts_of_litdata_are_values():
    serializers = pytest.importorskip("litdata.streaming.serializers")
    for value in NESTED:
        data = serializers._nested_dumps(value)
        assert read_nested(bytes(data)) == value
        for end in range(1, len(data)):
            with pytest.raises((ValueError, struct.error, IndexError)):
                read_nested(bytes(data[:end]))
    assert read_nested(b"[1, 2]") == [1, 2]


def test_numbers_of_tokens_come_back_without_litdata():
    data = bytes([2]) + struct.pack("<I3q", 3, 5, -6, 7)
    assert read_nested(data) == [5, -6, 7]
