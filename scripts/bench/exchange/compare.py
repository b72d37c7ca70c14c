"""Measures dsc's exchange beside gloo: called by exchange.mjs, which names the words.

Links other than loopback are a veth pair between two network namespaces, shaped by tc; that needs root, and is skipped
without it.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path.insert(0, str(HERE.parent / "harness"))
from bench_page import leave_out, tell  # noqa: E402
from report import report  # noqa: E402

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
                sys.executable, HERE / "rank.py", "--rank", rank, "--master", master,
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
    links, rounds, repeats = sys.argv[1].split(","), *map(int, sys.argv[2:4])
    more = sys.argv[4:]  # of rank.py: a smaller model
    can_shape = os.geteuid() == 0 and shutil.which("tc") and shutil.which("ip")
    for link in [link for link in SHAPES if link in links and not can_shape]:
        leave_out(link, "shaping a link needs root, ip and tc")
    settings = ["--rounds", rounds, "--repeats", repeats, *more]
    results = {"links": {}}
    for link in [link for link in links if can_shape or link == "loopback"]:
        print(f"{link}: PyTorch", file=sys.stderr)
        with open_link(link) as sides:
            found = run_torch(sides, "plain,steps", settings)
            print(f"{link}: dsc's ring", file=sys.stderr)
            found["ring"] = {
                f"{mode} {wire}": run_ring(sides, wire, mode, repeats)
                for mode, wire in (("ring", "fp16"), ("ring", "fp32"), ("direct", "fp16"))
            }
            if results["links"]:
                results["links"][link] = found
                continue
            four = [side for side in sides for _ in range(2)]  # on the first link
            found["levels"] = run_torch(four, "levels", [*settings, "--ranks", 4])["levels"]
            found["ringLevels"] = {levels: run_ring(four, "fp16", "ring", repeats, levels) for levels in (1, 2)}
        results["links"][link] = found
    print("shared memory, accuracy, convergence", file=sys.stderr)
    with open_link("loopback") as sides:
        results.update(run_torch(sides, "shared,accuracy,convergence", settings))
    words = [sys.executable, "-c", "import torch; print(torch.__version__)"]
    tell(version=f"PyTorch {subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()}")
    report(results)


main()
