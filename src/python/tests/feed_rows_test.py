"""Rows of text formats: what a feed gives of lines and records, and what is made of them."""

import csv
import json
import pickle

import pytest

import dsc
from dsc.feed.errors import FeedError
from dsc.feed.rows import decode_row

VALUES = ["plain", "a, b", 'say "hi"', "two\nlines", "two\r\nlines", "", "ünï", "x" * 200_000]


def read_rows(folder, **options):
    """Name → row of all samples, each delivered once."""
    found = {}
    for batch in dsc.FeedDataset(
        str(folder), batch_size=7, last="uneven", transform=lambda s: (s.name, s.row()), **options
    ):
        found.update(batch)
    return found


def test_lines_of_json_come_as_dicts(dataset):
    folder = dataset.parent / "lines"
    folder.mkdir()
    rows = [{"id": i, "text": "ü" * i} for i in range(50)]
    (folder / "a.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    assert read_rows(folder) == {f"a.jsonl:{i}": row for i, row in enumerate(rows)}


@pytest.mark.parametrize("dialect, name", [("excel", "a.csv"), ("excel-tab", "a.tsv"), ("unix", "a.csv")])
def test_what_pythons_csv_wrote_comes_back(dataset, dialect, name):
    folder = dataset.parent / "records"
    folder.mkdir()
    rows = [{"id": str(i), "some text": value} for i, value in enumerate(VALUES)]
    with open(folder / name, "w", newline="") as file:
        writer = csv.DictWriter(file, ["id", "some text"], dialect=dialect)
        writer.writeheader()
        writer.writerows(rows)
    assert read_rows(folder) == {f"{name}:{i}": row for i, row in enumerate(rows)}


def test_a_mix_of_formats_gives_each_sample_by_its_own(dataset):
    for name, text in {"lines/a.jsonl": '{"a": 1}\n{"a": 2}\n', "records/a.csv": "a,b\n3,4\n"}.items():
        (dataset.parent / name).parent.mkdir(exist_ok=True)
        (dataset.parent / name).write_text(text)
    mix = {str(dataset.parent / "lines"): 1, str(dataset.parent / "records"): 1}
    loader = dsc.FeedDataset(mix=mix, batch_size=1, transform=lambda s: (s.name, s.row()))
    found = dict(pair for batch in loader for pair in batch)
    assert found == {"lines/a.jsonl:0": {"a": 1}, "lines/a.jsonl:1": {"a": 2}, "records/a.csv:0": {"a": "3", "b": "4"}}


def test_views_of_rows_are_the_rows_whatever_they_begin_with():
    from dsc.feed.parquet_views import RowViewer

    def row(before, payload, after):
        head = b"\x83\xa1a" + bytes([before]) + b"\xa1b"
        size = len(payload).to_bytes(2, "big") if len(payload) < 2**16 else len(payload).to_bytes(4, "big")
        return memoryview(head + (b"\xc5" if len(size) == 2 else b"\xc6") + size + payload + b"\xa1c" + after)

    read = RowViewer()
    large = b"\xc5" + bytes(5000)
    for before, payload, after in [
        (1, bytes(50_000), b"\xc0"),  # learned
        (1, bytes(70_000), b"\x05"),
        (2, large, b"\x05"),  # begins otherwise
        (2, large * 3, b"\xc5\x13\x88" + bytes(5000)),  # a second one that is large
        (2, bytes(300), b"\xc5\x13\x88" + bytes(5000)),  # the first one is not
        (2, bytes(4096), b"\xc0"),
    ]:
        found = read(row(before, payload, after))
        assert found == {"a": before, "b": payload, "c": parquet_value(after)}
        assert [type(value) is memoryview for value in found.values()] == [
            type(value) is bytes and len(value) >= 4096 for value in (before, payload, parquet_value(after))
        ]


def parquet_value(data):
    from dsc.feed.parquet_rows import read_plainly

    return read_plainly(memoryview(data))


def test_a_sample_keeps_its_row_on_the_way_to_another_process(dataset):
    folder = dataset.parent / "lines"
    folder.mkdir()
    (folder / "a.jsonl").write_text('{"a": 1}\n')
    (batch,) = dsc.FeedDataset(str(folder), batch_size=1)
    for sample in (*pickle.loads(pickle.dumps(batch)), pickle.loads(pickle.dumps(batch[0]))):
        assert (sample.name, sample.row()) == ("a.jsonl:0", {"a": 1})


@pytest.mark.parametrize(
    "data, encoding, message",
    [
        (b"{", {"format": "json"}, "not JSON"),
        (b"[1]", {"format": "json"}, "list, not an object"),
        (b"1,2,3", {"format": "csv", "delimiter": ",", "columns": ["a", "b"]}, "3 fields"),
        (b"x", {"format": "file"}, "whole files"),
    ],
)
def test_what_is_no_row_is_said(data, encoding, message):
    with pytest.raises(FeedError, match=message):
        decode_row(memoryview(data), encoding, lambda: "a:0")


def test_a_batch_of_rows_names_the_one_that_is_none(dataset):
    folder = dataset.parent / "lines"
    folder.mkdir()
    (folder / "a.jsonl").write_text('{"a": 1}\n[2]\n')
    (batch,) = dsc.FeedDataset(str(folder), batch_size=2)
    with pytest.raises(FeedError, match="^a.jsonl:1: a line is list, not an object"):
        batch.rows()
    with pytest.raises(FeedError, match="a.jsonl:0 is not of a tar shard.*\n.*sample.row"):
        batch[0].fields()


@pytest.mark.parametrize("record", [b"1,caf\xe9", b"1,a\rb"])
def test_a_record_that_is_no_csv_is_named(record):
    with pytest.raises(FeedError, match="^a.csv:7: a record is not CSV: ") as caught:
        decode_row(memoryview(record), {"format": "csv", "delimiter": ",", "columns": ["a", "b"]}, lambda: "a.csv:7")
    assert caught.value.code == "COPY_DAMAGED"


DIALECTS = {
    "common-voice.tsv": b'id\tsentence\tage\n1\t"a\t20\n2\tplain\t30\n3\tb"\t40\n4\tx\t50\n',
    "semicolons.csv": b"a;b\n1,5;2,5\n3;4\n",
    "twice.csv": b"a,a,b\n1,2,3\n4,5,6\n",
    "headless.csv": b"1,2.5\n2,3.5\n3,4.5\n",
    "remarks.csv": b"# from us\na,b\n1,2\n3,4\n",
    "quoted.csv": b'a,b\n"x, ""y""",1\n"two\nlines",2\n',
    "marked.csv": b"\xef\xbb\xbfa,b\n1,2\n",
    "escaped.csv": b'a,b\n1,"he said \\"hi, you\\"\ntwice"\n2,"C:\\\\"\n3,plain\\\\text\n',
}


def test_dialects_of_csv_are_those_that_duckdb_finds(dataset):
    folder = dataset.parent / "tables"
    folder.mkdir()
    for name, data in DIALECTS.items():
        (folder / name.replace(".tsv", ".csv")).write_bytes(data)
    feed = dsc.FeedDataset(folder, batch_size=1, order="sequential")
    found = {}
    for batch in feed:
        for sample in batch:
            found.setdefault(sample.name.partition(":")[0], []).append(sample.row())
    assert found["common-voice.csv"][0] == {"id": "1", "sentence": '"a', "age": "20"}
    assert found["twice.csv"][0] == {"a": "1", "a_1": "2", "b": "3"}
    assert found["headless.csv"][0] == {"column0": "1", "column1": "2.5"}
    assert found["escaped.csv"][0] == {"a": "1", "b": 'he said "hi, you"\ntwice'}
    duckdb = pytest.importorskip("duckdb")
    found.pop("common-voice.csv")  # of which it makes two records, where every line is one
    for name, rows in found.items():
        table = duckdb.read_csv(str(folder / name), all_varchar=True)
        assert rows == [dict(zip(table.columns, row)) for row in table.fetchall()], name


def test_a_dialect_can_be_told(dataset):
    folder = dataset.parent / "tables"
    folder.mkdir()
    (folder / "a.txt").write_bytes(b'1;"x\n2;y\n')
    told = {"csv": {"delimiter": ";", "quote": "none", "header": False}}
    feed = dsc.FeedDataset(folder, batch_size=2, order="sequential", as_=told)
    assert [row for batch in feed for row in batch.rows()] == [
        {"column0": "1", "column1": '"x'},
        {"column0": "2", "column1": "y"},
    ]
    for wrong in ({"csv": {"quotes": "none"}}, {"parquet": {}}, {"csv": {"quote": "'"}}):
        with pytest.raises(ValueError, match="expected"):
            dsc.FeedDataset(folder, batch_size=2, as_=wrong)


def test_lines_that_cannot_be_read_are_left_out_on_request(dataset):
    folder = dataset.parent / "lines"
    folder.mkdir()
    (folder / "a.jsonl").write_bytes(b'{"i":1}\n{"i":\n{"i":3}\n')
    feed = dsc.FeedDataset(folder, batch_size=1, order="sequential", on_error="skip")
    with pytest.warns(UserWarning, match="a.jsonl \\(1 record at byte 8: a line that is no JSON\\)"):
        assert [row["i"] for batch in feed for row in batch.rows()] == [1, 3]
    with pytest.raises(dsc.FeedError, match="at byte 8: a line that is no JSON"):
        next(iter(dsc.FeedDataset(folder, batch_size=1)))


def test_a_partitions_column_has_one_type(dataset):
    folder = dataset.parent / "partitions"
    names = ("zip=10001/year=2024/n=0", "zip=02139/year=-5/n=-0", f"zip=x%20y/year={'__HIVE_DEFAULT_PARTITION__'}/n=1")
    for name in names:
        (folder / name).mkdir(parents=True)
        (folder / name / "a.jsonl").write_bytes(b'{"i":1}\n')
    feed = dsc.FeedDataset(folder, batch_size=1, order="sequential")
    expected = [
        {"i": 1, "zip": "02139", "year": -5, "n": "-0"},
        {"i": 1, "zip": "10001", "year": 2024, "n": "0"},
        {"i": 1, "zip": "x y", "year": None, "n": "1"},
    ]
    assert [row for batch in feed for row in batch.rows()] == expected
    assert [pickle.loads(pickle.dumps(sample)).row() for batch in feed for sample in batch] == expected
