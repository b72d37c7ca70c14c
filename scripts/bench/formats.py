"""Compares loaders of the formats that people have, each on its own files. Writes docs/benchmarks/formats.md.

    npm run bench:formats              Parquet, MDS and LitData: about 15 min
    npm run bench:formats -- --short   a quarter of the samples
"""

import argparse
import datetime
import os
import pathlib
import shutil
import tempfile

from feed import DOCS, collect, prepared, section
from feed_data import noise
from feed_parquet import LOADERS as PARQUET_ROWS, SHAPES, make_parquet

SHARD_ROWS = ["mosaicml:0", "mosaicml:2", "litdata:0", "litdata:2", "dsc:mds", "dsc:lit"]
HOW = """Batch 64, data in memory, each loader in a process of its own, one after the other; the best of the epochs after \
the first. The feed's memory is a third of the data. CPU and memory count loader, workers and feed. pyarrow, hf-map, \
lance and dsc shuffle globally; hf-iter has a buffer of 1,000 rows; LitData and MosaicML shuffle in blocks. pyarrow \
decodes a row group for each row, of some 1,500 rows; hf-map is `datasets` after its conversion to Arrow, and lance the \
format of LanceDB, both asked for 64 rows at a time. The first batch includes what each has to convert, index or \
unpack. dsc:groups reads row groups in memory as on a disk without room, in the order `groups-16`."""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--rows", type=lambda text: text.split(","), default=[*PARQUET_ROWS, *SHARD_ROWS])
    parser.add_argument("--only", choices=["text", "images", "shards"], nargs="*", default=["text", "images", "shards"])
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--folder", help="where the data goes, and stays (default: a temporary folder)")
    parser.add_argument("--page", type=pathlib.Path, default=DOCS / "formats.md", help="what is written")
    options = parser.parse_args()
    scale = 4 if options.short else 1
    base = pathlib.Path(options.folder or tempfile.mkdtemp(prefix="dsc-bench-"))
    load = os.getloadavg()[0]
    lines = ["# Formats", "", f"`npm run bench:formats{' -- --short' if options.short else ''}`, {datetime.date.today()}, {os.cpu_count()} cores, load average at the start {load:.1f}.", "", *wrapped(HOW), ""]
    try:
        for shape in [each for each in options.only if each in SHAPES]:
            lines += parquet(base, shape, [row for row in PARQUET_ROWS if row in options.rows], scale, options.epochs)
        rows = [row for row in SHARD_ROWS if row in options.rows]
        if "shards" in options.only and rows:
            lines += shards(base, rows, scale, options.epochs)
    finally:
        if not options.folder:
            shutil.rmtree(base, ignore_errors=True)
    text = "\n".join(lines).rstrip() + "\n"
    options.page.write_text(text)
    print(text)


def parquet(base, shape, rows, scale, epochs):
    """Rows of Parquet files, in Hugging Face's shapes of text and images."""
    count, group = (number // scale for number in SHAPES[shape])
    folder = base / f"{count}-{shape}"
    if not (folder / "done").exists():
        shutil.rmtree(folder, ignore_errors=True)
        make_parquet(folder, shape, count, group)
        (folder / "done").touch()
    data_bytes = sum(path.stat().st_size for path in folder.glob("parquet/data/*.parquet"))
    results = collect(folder, data_bytes, rows, ["rows"], 1, epochs)
    return section(f"Parquet: {count:,} rows of {shape}, 100 row groups", f"formats-{shape}", rows, ["rows"], results)


def shards(base, rows, scale, epochs):
    """MDS and LitData, each by its own library and by dsc."""
    count, size = 100_000 // scale, 4096
    folder = prepared(base / f"{count}-shards", count, noise(size), formats=("mds", "lit"))
    results = collect(folder, count * size, rows, ["bytes"], 1, epochs)
    lines = section(f"MDS and LitData: {count:,} x {size // 1024} KiB", "formats-shards", rows, ["bytes"], results)
    for feed, peer in (("dsc:mds", "mosaicml"), ("dsc:lit", "litdata")):
        peers = {row: results[row, "bytes"]["rate"] for row in rows if row.startswith(peer) and (row, "bytes") in results}
        if peers and (feed, "bytes") in results:
            best = max(peers, key=peers.get)
            lines += [f"{feed}: {results[feed, 'bytes']['rate'] / peers[best]:.2f} x {best} on the same files.", ""]
    return lines


def wrapped(text, width=118):
    lines = [""]
    for word in text.split():
        if len(lines[-1]) + len(word) >= width:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return lines


if __name__ == "__main__":
    main()
