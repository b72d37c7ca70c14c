"""Compares loaders of the formats that people have, each on its own files. Writes docs/benchmarks/formats.md.

    npm run bench:formats              Parquet, MDS and LitData: about 15 min
    npm run bench:formats -- --short   a quarter of the samples
"""

import argparse
import datetime
import json
import os
import pathlib
import shutil
import subprocess
import tempfile

from feed import DOCS, NODE, ROOT, collect, prepared, section
from feed_data import noise
from feed_parquet import LOADERS as PARQUET_ROWS, SHAPES, make_parquet

SHARD_ROWS = ["mosaicml:0", "mosaicml:2", "litdata:0", "litdata:2", "dsc:mds", "dsc:lit"]
PARTS = ["text", "images", "shards", "index"]
HOW = """Batch 64, data in memory, each loader in a process of its own, one after the other; the best of the epochs after \
the first. The feed's memory is a third of the data. CPU and memory count loader, workers and feed. pyarrow, hf-map, \
lance and dsc shuffle globally; hf-iter has a buffer of 1,000 rows; LitData and MosaicML shuffle in blocks. pyarrow \
decodes a row group for each row, of some 1,500 rows; hf-map is `datasets` after its conversion to Arrow, and lance the \
format of LanceDB, both asked for 64 rows at a time. The first batch includes what each has to convert, index or \
unpack. dsc:views is dsc:rows with `rows(views=True)`: large bytes are views, not copies. dsc:groups reads row groups in \
memory as on a disk without room, in the order `groups-16`. Files cannot be written to (as in a copy), so that dsc maps \
them. Every loader gives rows as dicts; of each, first and last byte and the label are looked at."""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--rows", type=lambda text: text.split(","), default=[*PARQUET_ROWS, *SHARD_ROWS])
    parser.add_argument("--only", choices=PARTS, nargs="*", default=PARTS)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--folder", help="where the data goes, and stays, with the results of earlier parts (default: a temporary folder)")
    parser.add_argument("--prepare", action="store_true", help="write the files and measure nothing")
    parser.add_argument("--index-rows", type=int, default=100_000_000, help="rows of the list that is made")
    parser.add_argument("--page", type=pathlib.Path, default=DOCS / "formats.md", help="what is written")
    options = parser.parse_args()
    scale = 4 if options.short else 1
    base = pathlib.Path(options.folder or tempfile.mkdtemp(prefix="dsc-bench-"))
    sections = Sections(base / "sections.json", options)
    try:
        for part in options.only:
            if part in SHAPES:
                found = parquet(base, part, [row for row in PARQUET_ROWS if row in options.rows], scale, options)
            elif part == "shards":
                found = shards(base, [row for row in SHARD_ROWS if row in options.rows], scale, options)
            else:
                found = index_rows(options)
            for lines in found:
                sections.add(part, lines)
    finally:
        if not options.folder:
            shutil.rmtree(base, ignore_errors=True)
    if not options.prepare:
        print(sections.write(options.page))


class Sections:
    """The sections of the page; those of earlier calls stay beside the data."""

    def __init__(self, path, options):
        self.path = path
        self.found = json.loads(path.read_text()) if path.exists() else {}
        self.how = f"{datetime.date.today()}, {os.cpu_count()} cores, load average at the start {os.getloadavg()[0]:.1f}"
        self.given = "".join([" --short" if options.short else "", f" --epochs {options.epochs}"])

    def add(self, part, lines):
        if not lines:
            return
        command = f"`npm run bench:formats --{self.given} --only {part}`, {self.how}."
        self.found[part] = [lines[0], "", command, *lines[1:]]
        if self.path.parent.exists():
            self.path.write_text(json.dumps(self.found))

    def write(self, page):
        lines = ["# Formats", "", *wrapped(HOW), ""]
        for part in PARTS:
            lines += self.found.get(part, [])
        text = "\n".join(lines).rstrip() + "\n"
        page.write_text(text)
        return text


def index_rows(options):
    """How long the list of many rows takes to make, and how much memory."""
    if options.prepare:
        return
    command = [NODE, str(ROOT / "scripts" / "bench" / "index-rows.mjs"), str(options.index_rows)]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    yield ["## The list of many rows", "", f"`node scripts/bench/index-rows.mjs {options.index_rows}`: {said}.", ""]


def parquet(base, shape, rows, scale, options):
    """Rows of Parquet files, in Hugging Face's shapes of text and images."""
    count, group = (number // scale for number in SHAPES[shape])
    folder = base / f"{count}-{shape}"
    if not (folder / "done").exists():
        shutil.rmtree(folder, ignore_errors=True)
        make_parquet(folder, shape, count, group)
        (folder / "done").touch()
    if options.prepare:
        return
    data_bytes = sum(path.stat().st_size for path in folder.glob("parquet/data/*.parquet"))
    for results in row_by_row(folder, data_bytes, rows, "rows", options):
        yield parquet_lines(shape, count, rows, results)


def row_by_row(folder, data_bytes, rows, mode, options):
    """The results so far after each loader, so that what was measured stays where a later one takes too long."""
    results = {}
    for row in sorted(rows, key=lambda row: row.startswith("hf-iter")):  # a buffer of rows takes longest
        results.update(collect(folder, data_bytes, [row], [mode], 1, options.epochs))
        yield results


def parquet_lines(shape, count, rows, results):
    lines = section(f"Parquet: {count:,} rows of {shape}, 100 row groups", f"formats-{shape}", rows, ["rows"], results)
    rates = {row: results[row, "rows"]["rate"] for row in rows if (row, "rows") in results}
    for peers in (["hf-map:0", "hf-map:2"], ["lance:0", "lance:2"]):
        best = max((row for row in peers if row in rates), key=lambda row: rates[row], default=None)
        feeds = [f"{row} {rates[row] / rates[best]:.2f}x" for row in ("dsc:rows", "dsc:views") if best and row in rates]
        if feeds:
            lines += [f"Beside {best} ({rates[best]:,.0f}/s): {', '.join(feeds)}.", ""]
    return lines


def shards(base, rows, scale, options):
    """MDS and LitData, each by its own library and by dsc."""
    count, size = 100_000 // scale, 4096
    folder = prepared(base / f"{count}-shards", count, noise(size), formats=("mds", "lit"))
    for path in [*folder.glob("mds/*.mds"), *folder.glob("lit/*.bin")]:
        path.chmod(0o444)
    if options.prepare:
        return
    for results in row_by_row(folder, count * size, rows, "bytes", options):
        yield shard_lines(f"{count:,} x {size // 1024} KiB", rows, results)


def shard_lines(shape, rows, results):
    lines = section(f"MDS and LitData: {shape}", "formats-shards", rows, ["bytes"], results)
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
