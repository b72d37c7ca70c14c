"""Measures dsc's exchange beside gloo, writes docs/benchmarks/exchange.md and exchange.svg.

Links other than loopback are a veth pair between two network namespaces, shaped by tc; that needs root, and is skipped
without it.
"""

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(Path(__file__).resolve().parent))
from exchange_report import write_report

NODE = ROOT / "node_modules/.bin/node"
# tbf lets `burst` bytes through at once: large enough for a 64 KiB segment, small against what is measured.
SHAPES = {"1gbit": "rate 1gbit burst 256kb latency 50ms", "10gbit": "rate 10gbit burst 2560kb latency 50ms"}


def sh(*words):
    subprocess.run([str(word) for word in words], check=True)


@contextmanager
def open_link(name):
    """Yields for each of two ranks: what its command starts with, its address, its interface."""
    if name == "loopback":
        yield [([], "127.0.0.1", "lo"), ([], "127.0.0.1", "lo")]
        return
    tag = f"dsc{os.getpid()}"
    spaces = [f"{tag}-{rank}" for rank in range(2)]
    cables = [f"v{os.getpid()}{side}" for side in "ab"]
    try:
        for space in spaces:
            sh("ip", "netns", "add", space)
        sh("ip", "link", "add", cables[0], "type", "veth", "peer", "name", cables[1])
        sides = []
        for rank, (space, cable) in enumerate(zip(spaces, cables)):
            inside = ["ip", "netns", "exec", space]
            sh("ip", "link", "set", cable, "netns", space)
            sh(*inside, "ip", "addr", "add", f"10.213.7.{rank + 1}/24", "dev", cable)
            sh(*inside, "ip", "link", "set", cable, "up")
            sh(*inside, "ip", "link", "set", "lo", "up")
            sh(*inside, "tc", "qdisc", "add", "dev", cable, "root", "tbf", *SHAPES[name].split())
            sides.append((inside, f"10.213.7.{rank + 1}", cable))
        yield sides
    finally:
        for space in spaces:
            subprocess.run(["ip", "netns", "del", space], stderr=subprocess.DEVNULL, check=False)


def run_both(sides, words):
    """Runs a command per rank (`words(rank)`), gives back what rank 0 printed last as JSON."""
    processes = [
        subprocess.Popen([*map(str, side[0] + words(rank))], stdout=subprocess.PIPE, text=True)
        for rank, side in enumerate(sides)
    ]
    outputs = [process.communicate()[0] for process in processes]
    for process in processes:
        if process.returncode != 0:
            raise SystemExit(f"{process.args} ended with {process.returncode}")
    return json.loads(outputs[0].strip().splitlines()[-1])


def run_torch(sides, parts, settings):
    with tempfile.TemporaryDirectory() as folder:
        master = f"{sides[0][1]}:{29500 + os.getpid() % 1000}"
        return run_both(
            sides,
            lambda rank: [
                sys.executable, ROOT / "scripts/bench/exchange_rank.py", "--rank", rank, "--master", master,
                "--interface", sides[rank][2], "--folder", folder, "--parts", parts, *settings,
            ],
        )


def run_ring(sides, wire, mode, repeats, levels=1):
    """dsc's own ring between Node processes, one per side."""
    with tempfile.TemporaryDirectory() as folder:
        token = Path(folder) / "token"
        token.write_text("bench")
        serve = [*sides[0][0], str(NODE), "bin/dsc.js", "exchange", "serve", "--listen", f"{sides[0][1]}:0"]
        server = subprocess.Popen([*serve, "--token-file", str(token), "--json"], stdout=subprocess.PIPE, text=True, cwd=ROOT)
        try:
            at = json.loads(server.stdout.readline())
            return run_both(
                sides,
                lambda rank: [
                    NODE, ROOT / "bin/dsc.js", "exchange", "bench", "--json", "--ranks", len(sides), "--rank", rank,
                    "--rendezvous", f"{at['host']}:{at['port']}", "--listen-host", sides[rank][1],
                    "--token-file", token, "--mib", "4,25", "--wire", wire, "--mode", mode, "--repeats", repeats,
                    "--levels", levels,
                ],
            )["rows"]
        finally:
            server.terminate()
            server.wait()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="fewer rounds; the report says so")
    parser.add_argument("--links", default="1gbit,10gbit,loopback")
    parser.add_argument("--out", default=str(ROOT / "docs/benchmarks"))
    arguments = parser.parse_args()
    can_shape = os.geteuid() == 0 and shutil.which("tc") and shutil.which("ip")
    links = [link for link in arguments.links.split(",") if can_shape or link == "loopback"]
    if not can_shape:
        print("without root, ip and tc only loopback is measured", file=sys.stderr)
    rounds, repeats = (5, 7) if arguments.quick else (15, 15)
    settings = ["--rounds", rounds, "--repeats", repeats]
    started, load = time.time(), [os.getloadavg()[0]]
    results = {"links": {}}
    for link in links:
        print(f"{link}: PyTorch", file=sys.stderr)
        with open_link(link) as sides:
            found = run_torch(sides, "plain,steps", settings)
            print(f"{link}: dsc's ring", file=sys.stderr)
            found["ring"] = {
                f"{mode} {wire}": run_ring(sides, wire, mode, repeats)
                for mode, wire in (("ring", "fp16"), ("ring", "fp32"), ("direct", "fp16"))
            }
            four = [side for side in sides for _ in range(2)]
            found["levels"] = run_torch(four, "levels", [*settings, "--ranks", 4])["levels"]
            found["ringLevels"] = {levels: run_ring(four, "fp16", "ring", repeats, levels) for levels in (1, 2)}
        results["links"][link] = found
        load.append(os.getloadavg()[0])
    print("shared memory, accuracy, convergence", file=sys.stderr)
    with open_link("loopback") as sides:
        results.update(run_torch(sides, "shared,accuracy,convergence", settings))
    load.append(os.getloadavg()[0])
    results["machine"] = {
        "processor": _processor(), "cores": os.cpu_count(), "system": ".".join(platform.release().split(".")[:2]),
        "load": [min(load), max(load)], "minutes": (time.time() - started) / 60,
        "command": "npm run bench:exchange" + (" -- --quick" if arguments.quick else ""), "rounds": rounds, "repeats": repeats,
        "torch": subprocess.run(
            [sys.executable, "-c", "import torch; print(torch.__version__)"], capture_output=True, text=True, check=True
        ).stdout.strip(),
        "node": subprocess.run([NODE, "--version"], capture_output=True, text=True, check=True).stdout.strip(),
    }
    out = Path(arguments.out)
    out.mkdir(parents=True, exist_ok=True)
    write_report(results, out)
    print(f"wrote {out}/exchange.md", file=sys.stderr)


def _processor():
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor()


main()
