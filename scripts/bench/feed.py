"""Compares loaders on one machine, in turn, each in a process of its own. Writes docs/benchmarks/feed.md.

    npm run bench:feed              8,000 x 100 KiB, 100,000 x 4 KiB and 6,000 JPEGs, two runs of each row: about 25 min
    npm run bench:feed -- --short   a quarter of the samples, one run
"""

import argparse
import contextlib
import datetime
import json
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading

from feed_data import make_set, noise, photo
from feed_report import is_feed, plot, ratios, table

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
DOCS = ROOT / "docs" / "benchmarks"
NODE = str(ROOT / "node_modules" / ".bin" / "node")
DSC = [NODE, str(ROOT / "bin" / "dsc.js")]
PEERS = ["torch:0", "torch:1", "torch:2", "stateful:2", "wds:0", "wds:2", "mosaicml:0", "mosaicml:2", "litdata:0", "litdata:2"]
FEEDS = ["dsc:raw", "dsc:packed", "dsc:remote"]
ALL_ROWS = [*PEERS, *FEEDS]
JPEG_ROWS = ["torch:0", "torch:2", "wds:2", "dsc:raw"]


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
        # In a group of its own: workers that wait for the trainer they have outlived would hold the pipe open.
        process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True)
        timer = threading.Timer(180, os.killpg, (process.pid, signal.SIGKILL))
        timer.start()
        try:
            found = next((line for line in process.stdout if line.startswith("RESULT ")), None)
            return found and json.loads(found[len("RESULT "):])
        finally:
            timer.cancel()
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    finally:
        for scratch in folder.glob("tmp*"):
            shutil.rmtree(scratch, ignore_errors=True)
        for process in storage:
            process.terminate()
            process.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--rows", type=lambda text: text.split(","), default=ALL_ROWS, help="loaders to compare")
    parser.add_argument("--modes", type=lambda text: text.split(","), default=["bytes", "tensor"])
    parser.add_argument("--epochs", type=int, default=4, help="of each run at most; the first does not count (default: 4)")
    parser.add_argument("--folder", help="where the data goes, and stays (default: a temporary folder); below /dev/shm it is in memory for certain")
    options = parser.parse_args()
    plain = [row for row in options.rows if row in PEERS + FEEDS]
    scale, runs = (4, 1) if options.short else (1, 2)
    base = pathlib.Path(options.folder or tempfile.mkdtemp(prefix="dsc-bench-"))
    given = [*(["--short"] if options.short else []),
             *(["--rows", ",".join(options.rows)] if options.rows != ALL_ROWS else []),
             *(["--modes", ",".join(options.modes)] if options.modes != ["bytes", "tensor"] else []),
             *(["--epochs", str(options.epochs)] if options.epochs != 4 else []),
             *(["--folder", options.folder] if options.folder else [])]
    shown = " ".join(["npm run bench:feed", *(["--", *given] if given else [])])
    lines = ["# Feed", "", f"`{shown}`, {datetime.date.today()}, {os.cpu_count()} cores, load average at the start {os.getloadavg()[0]:.1f}. "
             f"Batch 64, data in memory (page cache or tmpfs), each loader in a process of its own, one after the other; the best of the epochs after the first: {options.epochs - 1}, fewer where they are long. "
             f"The feed's memory is a third of the data, so that about a quarter of the samples stays for the next epoch. Mean of {runs} run{'s' if runs > 1 else ''}. CPU and memory count "
             "loader, workers, feed and storage nodes; memory is what came on top of the process before it made the loader, shared memory once. "
             "WebDataset shuffles a buffer of 1,000, LitData and MosaicML in blocks; torch and dsc shuffle globally. "
             "The tensors of dsc are views of the arena where the samples of a batch lie side by side (`Batch.array()`, `ahead="auto"`), and copies elsewhere; samples in `bytes` mode are views.", ""]
    try:
        for count, size in [(8000 // scale, 100 * 1024), (100_000 // scale, 4096)] if plain else []:
            folder = prepared(base / f"{count}-{size}", count, noise(size))
            results = collect(folder, count * size, plain, options.modes, runs, options.epochs)
            lines += section(f"{count:,} x {size // 1024} KiB", f"feed-{size // 1024}kib", plain, options.modes, results)
            lines += stalls(folder, count * size, plain, results)
            if size == 4096 and "dsc:remote" in options.rows:
                lines += one_or_many(folder)
            write(lines)
        rows = [row for row in JPEG_ROWS if row in options.rows]
        if rows:
            count = 6000 // scale
            folder = prepared(base / f"{count}-jpeg", count, photo, formats=("tar",))
            results = collect(folder, count * 20_000, rows, ["jpeg"], runs, options.epochs)
            lines += section(f"{count:,} JPEGs of 256 x 256 pixels, decoded to tensors", "feed-jpeg", rows, ["jpeg"], results)
        lines += laws()
    finally:
        if not options.folder:
            shutil.rmtree(base, ignore_errors=True)
    print(write(lines))


def prepared(folder, count, bytes_of, **options):
    if not (folder / "done").exists():
        shutil.rmtree(folder, ignore_errors=True)
        make_set(folder, count, bytes_of, **options)
        (folder / "done").touch()
    return folder


def feed_memory_mib(data_bytes):
    return max(32, data_bytes * 32 // 100 // 2**20)  # Cache_next holds about a quarter of the samples


def collect(folder, data_bytes, rows, modes, runs, epochs):
    """Row and mode -> the mean of the runs, each loader once per run."""
    collected = {}
    for _ in range(runs):
        for row in rows:
            for mode in modes:
                result = measure(row, folder, mode, feed_memory_mib(data_bytes), rounds=epochs)
                print(folder.name, row, mode, result and f"{result['rate']:,.0f}/s", file=sys.stderr, flush=True)
                if result:
                    collected.setdefault((row, mode), []).append(result)
    return {key: {name: statistics.mean(run[name] for run in found) for name in found[0] if name != "row"} for key, found in collected.items()}


def section(title, plot_name, rows, modes, results):
    lines = [f"## {title}", ""]
    for mode in modes:
        name = f"{plot_name}-{mode}.svg" if len(modes) > 1 else f"{plot_name}.svg"
        if any((row, mode) in results for row in rows):
            (DOCS / name).write_text(plot(f"{title}, {mode}", rows, mode, results))
        lines += [f"### {mode}", "", *table(rows, mode, results), "", *ratios(rows, mode, results), f"![{title}, {mode}]({name})", ""]
    moved = [f"{row} {mode} {result['moved'] / 2**20:,.0f} MiB" for (row, mode), result in results.items() if is_feed(row)]
    return [*lines, f"Bytes moved inside the arena to make room: {', '.join(moved)}.", ""] if moved else lines


def stalls(folder, data_bytes, rows, results):
    """How long a trainer waits that works as long per batch as 80 % of the loader's own peak leave it."""
    lines = []
    for row in ("dsc:raw", "dsc:packed", "dsc:remote", "torch:2"):
        if row not in rows or (row, "tensor") not in results:
            continue
        compute_ms = 1000 * 64 / (0.8 * results[row, "tensor"]["rate"])
        result = measure(row, folder, "tensor", feed_memory_mib(data_bytes), compute_ms=compute_ms, rounds=3)
        if result:
            lines.append(f"{row} {100 * result['stall']:.1f} % ({compute_ms:.1f} ms)")
    return [f"Waiting for data while each batch takes simulated work, at 80 % of the loader's own peak: {', '.join(lines)}.", ""] if lines else []


def one_or_many(folder):
    """What asking for many samples at a time is worth."""
    one = measure("dsc:remote", folder, "bytes", options=("--k", "1", "--no-next"))
    auto = measure("dsc:remote", folder, "bytes", options=("--no-next",))
    if not one or not auto:
        return []
    return [f"One sample per request, remote: {one['rate']:,.0f}/s; k=auto: {auto['rate']:,.0f}/s ({auto['rate'] / one['rate']:.1f}x).", ""]


def write(lines):
    text = "\n".join(lines).rstrip() + "\n"
    (DOCS / "feed.md").write_text(text)
    return text


def laws():
    """Requests, hits and reads as computed and as counted by the feed itself."""
    done = subprocess.run([NODE, str(HERE / "feed-laws.mjs")], capture_output=True, text=True)
    return ["## Laws", "", done.stdout.strip() or done.stderr.strip()]


if __name__ == "__main__":
    main()
