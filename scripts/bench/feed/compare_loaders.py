"""Compares loaders on one machine, in turn, each in a process of its own: called by feed.mjs, which names the words."""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import threading

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path[:0] = [str(HERE), str(HERE.parent / "harness")]
from bench_page import picture, section, table  # noqa: E402
from make_data import make_set, noise, photo  # noqa: E402

DSC = [str(ROOT / "node_modules" / ".bin" / "node"), str(ROOT / "bin" / "dsc.js")]
JPEG_ROWS = ["torch:0", "torch:2", "wds:2", "dsc:raw"]
SIZES = {"100kib": (8000, 100 * 1024), "4kib": (100_000, 4096)}
COLUMNS = {
    "samples/s": lambda result: f"{result['rate']:,.0f}",
    "CPU s": lambda result: f"{result['cpu']:.2f}",
    "first batch s": lambda result: f"{result['first']:.2f}",
    "epoch gap ms": lambda result: f"{1000 * result['gap']:.1f}",
    "memory MiB": lambda result: f"{result['memory']:,.0f}",
}


def measure(row, folder, mode, memory=None, rounds=2, compute_ms=0.0, options=(), nodes=2):
    job = f"bench-{os.getpid()}-{row}-{mode}-{compute_ms}-{options}"
    environment = {**os.environ, "DSC_BIN": " ".join(DSC), "DSC_FEED_JOB": job}
    storage, options = [], [*options, *([] if memory is None else ["--memory", f"{memory}MiB"])]
    try:
        if row == "dsc:remote":
            for i in range(nodes):
                words = [*DSC, "feed", "storage", str(folder / "raw"), "--stripe", f"{i}/{nodes}", "--json"]
                storage.append(subprocess.Popen(words, stdout=subprocess.PIPE, text=True))
            addresses = [f"127.0.0.1:{json.loads(process.stdout.readline())['port']}" for process in storage]
            options += ["--from", ",".join(addresses), "--layout", "striped"]
            environment["BENCH_STORAGE_PIDS"] = ",".join(str(process.pid) for process in storage)
        environment["BENCH_FEED_OPTIONS"] = json.dumps(options)
        command = [sys.executable, str(HERE / "rows.py"), row, str(folder), mode, str(rounds), str(compute_ms)]
        # In a group of its own: workers that wait for the trainer they have outlived would hold the pipe open.
        process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True)
        timer = threading.Timer(180, os.killpg, (process.pid, signal.SIGKILL))
        timer.start()
        try:
            found = next((line for line in process.stdout if line.startswith("RESULT ")), None)
            return found and json.loads(found.removeprefix("RESULT "))
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
    part, runs, epochs = map(int, sys.argv[1:4])
    rows, modes, sets = (words.split(",") for words in sys.argv[4:7])
    base = pathlib.Path(sys.argv[7])
    for name in [name for name in SIZES if name in sets]:
        count, size = SIZES[name][0] // part, SIZES[name][1]
        folder = prepared(base / f"{count}-{size}", count, noise(size))
        results = collect(folder, count * size, rows, modes, runs, epochs)
        lines = tables(f"{count:,} x {size // 1024} KiB", f"feed-{name}", rows, modes, results)
        lines += stalls(folder, count * size, rows, results)
        if name == "4kib" and "dsc:remote" in rows:
            lines += one_or_many(folder)
        section(name, *lines)
    rows = [row for row in JPEG_ROWS if row in rows]
    if rows and "jpeg" in sets:
        count = 6000 // part
        folder = prepared(base / f"{count}-jpeg", count, photo, formats=("tar",))
        results = collect(folder, count * 20_000, rows, ["jpeg"], runs, epochs)
        section("jpeg", *tables(f"{count:,} JPEGs, decoded to tensors", "feed-jpeg", rows, ["jpeg"], results))


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
    means = {}
    for key, found in collected.items():
        means[key] = {name: statistics.mean(run[name] for run in found) for name in found[0] if name != "row"}
    return means


def tables(title, plot_name, rows, modes, results):
    lines = []
    for mode in modes:
        name = f"{plot_name}-{mode}.svg" if len(modes) > 1 else f"{plot_name}.svg"
        found = {row: results[row, mode] for row in rows if (row, mode) in results}
        failed = ["failed", *[""] * (len(COLUMNS) - 1)]
        cells = [[row, *([show(found[row]) for show in COLUMNS.values()] if row in found else failed)] for row in rows]
        lines += [f"### {mode}", "", *table(["loader", *COLUMNS], cells), *ratios(mode, found)]
        bars = [
            (row, result["rate"], f"{result['rate']:,.0f}", "#2266aa" if row.startswith("dsc:") else "#999999")
            for row, result in found.items()
        ]
        if bars:
            picture(name, (f"{title}, {mode}, samples per second", bars))
        lines += [f"![{title}, {mode}]({name})", ""]
    moved = {key: result["moved"] / 2**20 for key, result in results.items() if key[0].startswith("dsc:")}
    if moved:
        each = ", ".join(f"{row} {mode} {mib:,.0f} MiB" for (row, mode), mib in moved.items())
        lines += [f"Bytes moved inside the arena to make room: {each}.", ""]
    return lines


def ratios(mode, found):
    """How the feeds compare with the best peer that uses workers."""
    peers = [row for row in found if not row.startswith("dsc:") and not row.endswith(":0")]
    if not peers:
        return []
    best = max(peers, key=lambda row: found[row]["rate"])
    rate = found[best]["rate"]
    feeds = [f"{row} {found[row]['rate'] / rate:.2f}x" for row in found if row.startswith("dsc:")]
    return [f"{mode}: best peer with workers is {best} ({rate:,.0f}/s); {', '.join(feeds)}.", ""]


def stalls(folder, data_bytes, rows, results):
    """How long a trainer waits that works as long per batch as 80 % of the loader's own peak leave it."""
    found = []
    for row in ("dsc:raw", "dsc:packed", "dsc:remote", "torch:2"):
        if row not in rows or (row, "tensor") not in results:
            continue
        compute_ms = 1000 * 64 / (0.8 * results[row, "tensor"]["rate"])
        result = measure(row, folder, "tensor", feed_memory_mib(data_bytes), compute_ms=compute_ms, rounds=3)
        if result:
            found.append(f"{row} {100 * result['stall']:.1f} % ({compute_ms:.1f} ms)")
    what = "Waiting for data while each batch takes simulated work, at 80 % of the loader's own peak"
    return [f"{what}: {', '.join(found)}.", ""] if found else []


def one_or_many(folder):
    """What asking for many samples at a time is worth."""
    one = measure("dsc:remote", folder, "bytes", options=("--k", "1", "--no-next"))
    auto = measure("dsc:remote", folder, "bytes", options=("--no-next",))
    if not one or not auto:
        return []
    times = f"k=auto: {auto['rate']:,.0f}/s ({auto['rate'] / one['rate']:.1f}x)"
    return [f"One sample per request, remote: {one['rate']:,.0f}/s; {times}.", ""]


if __name__ == "__main__":
    main()
