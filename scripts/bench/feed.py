"""Compares loaders on one machine, in turn, each in a process of its own. Writes docs/benchmarks/feed.md.

    npm run bench:feed              8,000 x 100 KiB and 100,000 x 4 KiB, three runs of each row
    npm run bench:feed -- --short   a quarter of the samples, one run
"""

import argparse
import datetime
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tarfile
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
NODE = str(ROOT / "node_modules" / ".bin" / "node")
DSC = [NODE, str(ROOT / "bin" / "dsc.js")]
PEERS = ["torch:0", "torch:1", "torch:2", "stateful:2", "wds:0", "wds:2", "mosaicml:0", "mosaicml:2", "litdata:0", "litdata:2"]
FEEDS = ["dsc:raw", "dsc:packed", "dsc:remote"]


def make_set(folder, count, size):
    """The same samples as files, as tar shards, as MDS and as LitData chunks."""
    raw = folder / "raw"
    for i in range(count):
        path = raw / f"{i % 100:03}" / f"{i:06}.bin"
        if i < 100:
            path.parent.mkdir(parents=True)
        path.write_bytes(i.to_bytes(4, "little") + os.urandom(size - 4))
    files = sorted(raw.glob("*/*.bin"))
    (folder / "tar").mkdir()
    per_shard = max(1, 50 * 2**20 // size)
    for shard, at in enumerate(range(0, count, per_shard)):
        with tarfile.open(folder / "tar" / f"{shard:04}.tar", "w") as tar:
            for path in files[at : at + per_shard]:
                tar.add(path, arcname=path.name)
    code = f"""
import glob, os
files = sorted(glob.glob({str(raw)!r} + '/*/*.bin'))
from streaming import MDSWriter
with MDSWriter(out={str(folder / 'mds')!r}, columns={{'x': 'bytes'}}) as out:
    for path in files: out.write({{'x': open(path, 'rb').read()}})
"""
    run_quietly(code, "mosaicml")
    # A file of its own, because litdata's writers pickle the function.
    script = folder / "write_lit.py"
    script.write_text(f"""
import glob
from litdata import optimize
def read(path): return open(path, 'rb').read()
if __name__ == '__main__':
    optimize(read, sorted(glob.glob({str(raw)!r} + '/*/*.bin')), {str(folder / 'lit')!r}, chunk_bytes='64MB', num_workers=1)
""")
    run_quietly(script.read_text(), "litdata", script)


def run_quietly(code, name, script=None):
    command = [sys.executable, str(script)] if script else [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        print(f"{name}: its data could not be written: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)


def measure(row, folder, mode, memory=None, rounds=2, compute_ms=0.0, options=(), nodes=2):
    storage, environment = [], {**os.environ, "PYTHONPATH": str(ROOT / "src" / "python"), "DSC_BIN": " ".join(DSC),
                               "DSC_FEED_JOB": f"bench-{os.getpid()}-{row}-{mode}-{compute_ms}-{options}"}
    options = [*options, *([] if memory is None else ["--memory", f"{memory}MiB"])]
    try:
        if row == "dsc:remote":
            addresses = []
            for i in range(nodes):
                process = subprocess.Popen([*DSC, "feed", "storage", str(folder / "raw"), "--stripe", f"{i}/{nodes}", "--json"], stdout=subprocess.PIPE, text=True)
                storage.append(process)
                addresses.append(f"127.0.0.1:{json.loads(process.stdout.readline())['port']}")
            options += ["--from", ",".join(addresses), "--layout", "striped"]
            environment["BENCH_STORAGE_PIDS"] = ",".join(str(process.pid) for process in storage)
        environment["BENCH_FEED_OPTIONS"] = json.dumps(options)
        command = [sys.executable, str(HERE / "feed_rows.py"), row, str(folder), mode, str(rounds), str(compute_ms)]
        try:
            done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=180)
        except subprocess.TimeoutExpired:
            print(f"{row}: not done after 180 s", file=sys.stderr)
            return None
        for line in done.stdout.splitlines():
            if line.startswith("RESULT "):
                return json.loads(line[7:])
        print(f"{row}: {done.stderr.strip().splitlines()[-3:]}", file=sys.stderr)
        return None
    finally:
        for process in storage:
            process.terminate()
            process.wait()


def table(rows, modes, results):
    lines = ["| loader | " + " | ".join(f"{mode}: samples/s | CPU s | first batch s | epoch gap ms" for mode in modes) + " |",
             "|---|" + "--:|--:|--:|--:|" * len(modes)]
    for row in rows:
        cells = []
        for mode in modes:
            result = results.get((row, mode))
            cells.append(f"{result['rate']:,.0f} | {result['cpu']:.2f} | {result['first']:.2f} | {1000 * result['gap']:.1f}" if result else "failed | | |")
        lines.append(f"| {row} | " + " | ".join(cells) + " |")
    return lines


def median_of(runs):
    runs = [run for run in runs if run]
    if not runs:
        return None
    return {key: statistics.median(run[key] for run in runs) for key in runs[0] if key != "row"}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--rows", type=lambda text: text.split(","), default=PEERS + FEEDS, help="loaders to compare")
    parser.add_argument("--modes", type=lambda text: text.split(","), default=["bytes", "tensor"])
    parser.add_argument("--folder", help="where the data goes (default: a temporary folder)")
    options = parser.parse_args()
    scale, runs = (4, 1) if options.short else (1, 3)
    sets = [("8,000 x 100 KiB", 8000 // scale, 100 * 1024), ("100,000 x 4 KiB", 100_000 // scale, 4096)]
    base = pathlib.Path(options.folder or tempfile.mkdtemp(prefix="dsc-bench-"))
    lines = ["# Feed", "", f"`npm run bench:feed{' -- --short' if options.short else ''}`, {datetime.date.today()}, {os.cpu_count()} cores, load average at the start {os.getloadavg()[0]:.1f}. "
             "Batch 64, data in the page cache, each loader in a process of its own, one after the other; the better of the epochs after the first. "
             f"The feed's memory is a third of the data, so that about a quarter of the samples stays for the next epoch. Median of {runs} run{'s' if runs > 1 else ''}. CPU counts loader, workers, feed and storage nodes. "
             "WebDataset shuffles a buffer of 1,000, LitData and MosaicML in blocks; torch and dsc shuffle globally.", ""]
    try:
        for title, count, size in sets:
            folder = base / f"{count}-{size}"
            if not (folder / "done").exists():
                shutil.rmtree(folder, ignore_errors=True)
                make_set(folder, count, size)
                (folder / "done").touch()
            memory = count * size * 32 // 100 // 2**20  # Cache_next holds about a quarter of the samples
            modes = options.modes
            rows = options.rows
            collected = {}
            for _ in range(runs):
                for row in rows:
                    for mode in modes:
                        result = measure(row, folder, mode, memory)
                        print(title, row, mode, result and f"{result['rate']:,.0f}/s", file=sys.stderr, flush=True)
                        collected.setdefault((row, mode), []).append(result)
            results = {key: median for key, values in collected.items() if (median := median_of(values))}
            lines += [f"## {count:,} x {size // 1024} KiB", "", *table(rows, modes, results), ""]
            for mode in modes:
                peers = {row: results[row, mode]["rate"] for row in PEERS if not row.endswith(":0") and (row, mode) in results}
                if not peers:
                    continue
                best = max(peers, key=peers.get)
                ratios = [f"{row} {results[row, mode]['rate'] / peers[best]:.2f}x" for row in FEEDS if (row, mode) in results]
                lines += [f"{mode}: best peer with workers is {best} ({peers[best]:,.0f}/s); {', '.join(ratios)}.", ""]
            peak = results.get(("dsc:raw", "tensor"))
            if peak:
                compute = 1000 * 64 / (0.8 * peak["rate"])
                stalls = [f"{row} {100 * result['stall']:.1f} %" for row in ["dsc:raw", "torch:2"] if (result := measure(row, folder, "tensor", memory, compute_ms=compute))]
                lines += [f"Waiting for data while each batch takes {compute:.1f} ms of simulated work (80 % of the peak of dsc:raw): {', '.join(stalls)}.", ""]
            if size == 4096:
                one = measure("dsc:remote", folder, "bytes", options=("--k", "1", "--no-next"))
                auto = measure("dsc:remote", folder, "bytes", options=("--no-next",))
                if one and auto:
                    lines += [f"One sample per request, remote: {one['rate']:,.0f}/s; k=auto: {auto['rate']:,.0f}/s ({auto['rate'] / one['rate']:.1f}x).", ""]
            write(lines)
        lines += laws()
    finally:
        if not options.folder:
            shutil.rmtree(base, ignore_errors=True)
    print(write(lines))


def write(lines):
    text = "\n".join(lines).rstrip() + "\n"
    (ROOT / "docs" / "benchmarks" / "feed.md").write_text(text)
    return text


def laws():
    """Requests, hits and reads as computed and as counted by the feed itself."""
    done = subprocess.run([NODE, str(HERE / "feed-laws.mjs")], capture_output=True, text=True)
    return ["## Laws", "", done.stdout.strip() or done.stderr.strip()]


if __name__ == "__main__":
    main()
