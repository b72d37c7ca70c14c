"""Wall time of real training steps on the CPU: fixed recipes beside dsc's plans, as Markdown.

Usage: memory_steps.py [--short]
"""

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent))
from on_device import PERSISTENT, CountedPlace, Planner, Trainer, Way, loss_of, planned  # noqa: E402, I001
from bench_page import section, table  # noqa: E402
from networks import gpt, resnet50  # noqa: E402

from dsc.memory import profile  # noqa: E402

SHARES = (0.7, 0.5, 0.3)
NETWORKS = {
    "GPT, 8 × 256, batch 8 × 128": lambda: gpt(256, 8, 128, 8, 512),
    "ResNet, 16 blocks of 16 to 512 channels, batch 8 × 96²": lambda: resnet50(96, 8, 16),
}
HEADS = ["", "way", "peak", "step, ms", "ratio", "predicted", "again, moved"]


class TimedPlace:
    """The CPU as it is: nothing is counted."""

    name = "cpu"

    def begin(self):
        pass

    def peak_bytes(self):
        return 0

    def now(self):
        return time.perf_counter()


def save_on_host():
    return torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensor.detach().clone(), lambda saved: saved.clone())


def list_ways(planner, model, save_on_host, fixed, activations):
    """Fixed recipes, and a plan per share of the activations."""
    blocks = len(model.blocks)
    ways = [
        Way("keep all"),
        Way("checkpoint() around all blocks", checkpointed=blocks),
        Way("the same, inputs copied away", save_on_host, checkpointed=blocks),
        Way("save_on_cpu", save_on_host),
    ]
    for share in SHARES:
        path = planner.plan(str(int(fixed + share * activations)), "--recompute")
        ways.append(planned(f"dsc, budget {share:.0%}", path, model))
    return ways


def measure(make, rounds, steps):
    """The ways with their counted peaks and times in turn, and the speed of the link that the plans are made for."""
    torch.manual_seed(0)
    model, inputs = make()
    counted, timed = CountedPlace(), TimedPlace()
    with tempfile.TemporaryDirectory(prefix="dsc-bench-") as folder:
        profiled = profile(model, inputs, loss=loss_of)
        sizes = {t["storage"]: t["bytes"] for t in profiled["tensors"] if t["kind"] in PERSISTENT}
        fixed = sum(sizes.values())
        activations = profiled["peak"]["bytes"] - fixed
        ways = list_ways(Planner(profiled, folder, counted), model, counted.save_on_host, fixed, activations)
        for way in ways:
            with counted:
                counted.hold(model, inputs)
                peak, _, norm = Trainer(counted, model, inputs).turn(way, 1)
            way.peaks.append((peak - fixed) / activations)
            way.norms.append(norm)
            way.open = save_on_host if way.open == counted.save_on_host else way.open
        trainer = Trainer(timed, model, inputs)
        for _ in range(rounds):
            for way in ways:
                _, times, norm = trainer.turn(way, steps)
                way.times += times
                way.norms.append(norm)
    if len({norm for way in ways for norm in way.norms}) > 1:
        raise SystemExit("the ways do not have the same gradients")
    return ways, profiled["device"]["d2hGBs"]


def format_rows(network, ways):
    """A row per way."""
    plain = statistics.median(ways[0].times)
    rows = []
    for way in ways:
        step = statistics.median(way.times)
        predicted, done = "", ""
        if way.executor is not None:
            plan, found = way.executor.plan, way.executor.plan["predicted"]
            predicted = f"{found['stepMs'] / (found['baseMs'] - found['recomputeMs']):.2f} ×"
            done = f"{len(plan['recompute'])}, {len(plan['moves'])}"
        name = network if way is ways[0] else ""
        rows.append([name, way.name, f"{way.peaks[0]:.0%}", f"{step:.1f}", f"{step / plain:.2f} ×", predicted, done])
    return rows


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--short", action="store_true")
    rounds, steps = (2, 2) if options.parse_args().short else (7, 2)
    torch.set_num_threads(1)
    found = {network: measure(make, rounds, steps) for network, make in NETWORKS.items()}
    gbs = statistics.median(speed for _, speed in found.values())
    rows = [row for network, (ways, _) in found.items() for row in format_rows(network, ways)]
    how = f"Medians of {rounds * steps} steps; the link of the plans is memory, {gbs:.1f} GB/s as measured."
    section("on the CPU", how, "", *table(HEADS, rows, 2))
    for network, (ways, _) in found.items():
        for way in [way for way in ways if way.executor is not None]:
            misses = way.executor.counts["planMisses"]
            way.executor.close()
            if misses:
                raise SystemExit(f"{network}, {way.name}: {misses} steps missed their plan")


if __name__ == "__main__":
    main()
