"""Measures dsc's exchange beside gloo: called by exchange.mjs, which names the words.

Links other than loopback join network namespaces, one per rank, to a switch, shaped by tc; that needs root, and is
skipped without it.
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
from report import report, report_convergence, report_hooks  # noqa: E402

NODE = ROOT / "node_modules/.bin/node"
# tbf lets `burst` bytes through at once: large enough for a 64 KiB segment, small against what is measured.
SHAPES = {"1gbit": "rate 1gbit burst 256kb latency 50ms", "10gbit": "rate 10gbit burst 2560kb latency 50ms"}


def sh(*words):
    subprocess.run([str(word) for word in words], check=True)


@contextmanager
def open_link(name, ranks=2):
    """Yields for each rank: what its command starts with, its address, its interface. All are on one switch."""
    if name == "loopback":
        yield [([], "127.0.0.1", "lo")] * ranks
        return
    tag = f"dsc{os.getpid()}"
    switch, *spaces = [f"{tag}-{at}" for at in ["switch", *range(ranks)]]
    bridge = ["ip", "netns", "exec", switch]
    try:
        for space in [switch, *spaces]:
            sh("ip", "netns", "add", space)
        sh(*bridge, "ip", "link", "add", "bridge", "type", "bridge")
        sh(*bridge, "ip", "link", "set", "bridge", "up")
        sides = []
        for rank, space in enumerate(spaces):
            inside = ["ip", "netns", "exec", space]
            near, far = f"v{os.getpid()}n{rank}", f"v{os.getpid()}f{rank}"
            sh("ip", "link", "add", near, "netns", space, "type", "veth", "peer", "name", far, "netns", switch)
            sh(*bridge, "ip", "link", "set", far, "master", "bridge", "up")
            sh(*inside, "ip", "addr", "add", f"10.213.7.{rank + 1}/24", "dev", near)
            for interface in (near, "lo"):
                sh(*inside, "ip", "link", "set", interface, "up")
            for where, end in ((inside, near), (bridge, far)):  # both directions
                sh(*where, "tc", "qdisc", "add", "dev", end, "root", "tbf", *SHAPES[name].split())
            sides.append((inside, f"10.213.7.{rank + 1}", near))
        yield sides
    finally:
        for space in [switch, *spaces]:
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
    parts, ranks_of_hooks, more = more[0], more[1], more[2:]
    can_shape = os.geteuid() == 0 and shutil.which("tc") and shutil.which("ip")
    for link in [link for link in SHAPES if link in links and not can_shape]:
        leave_out(link, "shaping a link needs root, ip and tc")
    settings = ["--rounds", rounds, "--repeats", repeats, *more]
    tell_version()
    if "hooks" in parts:
        for ranks in map(int, ranks_of_hooks.split(",")):
            for link in [link for link in links if can_shape or link == "loopback"][:1]:
                print(f"{link}: hooks, {ranks} ranks", file=sys.stderr)
                with open_link(link, ranks) as sides:
                    report_hooks(link, run_torch(sides, "hooks", [*settings, "--ranks", ranks])["hooks"])
    if "convergence" in parts:
        print("convergence", file=sys.stderr)
        with open_link("loopback") as sides:
            report_convergence(run_torch(sides, "convergence", settings)["convergence"])
    if "rest" not in parts:
        return
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
    print("shared memory, accuracy", file=sys.stderr)
    with open_link("loopback") as sides:
        results.update(run_torch(sides, "shared,accuracy", settings))
    report(results)


def tell_version():
    words = [sys.executable, "-c", "import torch; print(torch.__version__)"]
    tell(version=f"PyTorch {subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()}")


main()
