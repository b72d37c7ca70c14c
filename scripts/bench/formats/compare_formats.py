"""Compares loaders of the formats that people have, each on its own files: called by formats.mjs, which names the words."""

import pathlib
import shutil
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "feed"), str(HERE.parent / "harness")]
import compare_loaders as feed  # noqa: E402
from bench_page import section  # noqa: E402
from make_data import noise  # noqa: E402
from parquet_rows import LOADERS, SHAPES, make_parquet  # noqa: E402


def main():
    part, epochs = map(int, sys.argv[1:3])
    rows, parts = (words.split(",") for words in sys.argv[3:5])
    base = pathlib.Path(sys.argv[5])
    for name in parts:
        measure = parquet if name in SHAPES else shards
        measure(base, name, rows, part, epochs)


def parquet(base, shape, rows, part, epochs):
    """Rows of Parquet files, in Hugging Face's shapes of text and images."""
    rows = [row for row in LOADERS if row in rows]
    count, group = (max(number // part, 4) for number in SHAPES[shape])
    folder = base / f"{count}-{shape}"
    if not (folder / "done").exists():
        shutil.rmtree(folder, ignore_errors=True)
        make_parquet(folder, shape, count, group)
        (folder / "done").touch()
    data_bytes = sum(path.stat().st_size for path in folder.glob("parquet/data/*.parquet"))
    for results in row_by_row(folder, data_bytes, rows, "rows", epochs):
        lines = [f"{count:,} rows of {shape}, {count // group} row groups.", ""]
        lines += feed.tables(f"Parquet: {count:,} rows of {shape}", f"formats-{shape}", rows, ["rows"], results)
        for peer in ("hf-map", "lance"):
            lines += beside(results, "rows", peer, ("dsc:rows", "dsc:views"))
        section(shape, *lines)


def row_by_row(folder, data_bytes, rows, mode, epochs):
    """The results so far after each loader, so that what was measured stays where a later one takes too long."""
    results = {}
    for row in sorted(rows, key=lambda row: row.startswith("hf-iter")):  # a buffer of rows takes longest
        results.update(feed.collect(folder, data_bytes, [row], [mode], 1, epochs))
        yield results


def beside(results, mode, peer, feeds):
    """How the feeds compare with the best rows of one other loader."""
    rates = {row: result["rate"] for (row, of), result in results.items() if of == mode}
    best = max((row for row in rates if row.startswith(peer)), key=rates.get, default=None)
    times = [f"{row} {rates[row] / rates[best]:.2f}x" for row in feeds if best and row in rates]
    return [f"Beside {best} ({rates[best]:,.0f}/s): {', '.join(times)}.", ""] if times else []


def shards(base, name, rows, part, epochs):
    """MDS and LitData, each by its own library and by dsc."""
    rows = [row for row in rows if row not in LOADERS]
    count, size = 100_000 // part, 4096
    folder = feed.prepared(base / f"{count}-shards", count, noise(size), formats=("mds", "lit"))
    for path in [*folder.glob("mds/*.mds"), *folder.glob("lit/*.bin")]:
        path.chmod(0o444)
    for results in row_by_row(folder, count * size, rows, "bytes", epochs):
        lines = [f"{count:,} x {size // 1024} KiB.", ""]
        lines += feed.tables(f"MDS and LitData: {count:,} x {size // 1024} KiB", "formats-shards", rows, ["bytes"], results)
        lines += beside(results, "bytes", "mosaicml", ["dsc:mds"]) + beside(results, "bytes", "litdata", ["dsc:lit"])
        section(name, *lines)


if __name__ == "__main__":
    main()
