"""The table of training steps under a plan: peak and time beside the plain run, save_on_cpu and checkpointing.

All ways train the same model on the same batch, in turn, and must get the same gradients. On a GPU peaks are the
allocator's. With --device cpu an accounting device counts them: that shows the logic, its times mean nothing.
"""

import argparse
import contextlib
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path[:0] = [str(ROOT / "src/python"), str(HERE), str(HERE.parent / "harness")]
from bench_page import leave_out, section  # noqa: E402
from networks import NETWORKS  # noqa: E402
from on_device_report import format_section  # noqa: E402

from dsc.memory import AccountingDevice, Offload, profile  # noqa: E402

PERSISTENT = ("param", "buffer", "opt_state", "param_grad")
INFEASIBLE = 6  # exit code of `dsc memory plan` when no plan fits
SMALLEST = {"cuda": "1MiB", "cpu": "4KiB"}


class CudaPlace:
    """Memory and time as the GPU has them."""

    name = "cuda"

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def hold(self, *things):
        pass

    def begin(self):
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()

    def peak_bytes(self):
        return torch.cuda.max_memory_allocated()

    def now(self):
        torch.cuda.synchronize()
        return time.perf_counter()

    def save_on_host(self):
        return torch.autograd.graph.save_on_cpu(pin_memory=True)


class CountedPlace:
    """Memory as an accounting device counts it, on CPU."""

    name = "cpu"

    def __enter__(self):
        self._device = AccountingDevice()
        self._device.__enter__()
        return self

    def __exit__(self, *error):
        self._device.__exit__(*error)

    def hold(self, *things):
        self._device.hold(*things)

    def begin(self):
        self._device.reset_peak()

    def peak_bytes(self):
        return self._device.peak_bytes

    def now(self):
        return time.perf_counter()

    def save_on_host(self):
        def pack(tensor):
            with self._device.uncounted():
                return tensor.detach().clone()

        return torch.autograd.graph.saved_tensors_hooks(pack, lambda saved: saved.clone())


def loss_of(output):
    return output.float().square().mean()


class Planner:
    """Plans for one profile, by the planner of this checkout."""

    def __init__(self, profiled, folder, place):
        self._profiled, self._folder, self._place = profiled, folder, place
        self._count = 0
        self._profile_path = os.path.join(folder, "profile.json")
        Path(self._profile_path).write_text(json.dumps(profiled), encoding="utf-8")

    def plan(self, budget, *flags):
        """The path of a plan for a budget, or for the least one that there is a plan for."""
        self._count += 1
        path = os.path.join(self._folder, f"plan-{self._count}.json")
        words = ["memory", "plan", self._profile_path, "--budget", budget, "--smallest", SMALLEST[self._place.name]]
        node = ROOT / "node_modules/.bin/node"
        command = [str(node) if node.exists() else "node", str(ROOT / "bin/dsc.js"), *words, *flags, "--out", path]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode == INFEASIBLE:
            return self.plan(re.search(r" needs (\d+) ", done.stderr)[1], *flags)
        if done.returncode != 0:
            raise RuntimeError(f"dsc memory plan ended with {done.returncode}: {done.stderr}")
        return path

    def plan_half(self):
        """A plan for half of the activations. Everything else (parameters, gradients, buffers) stays as it is."""
        natural = read(self.plan("100%"))["predicted"]["unplannedPeakBytes"]
        sizes = {t["storage"]: t["bytes"] for t in self._profiled["tensors"] if t["kind"] in PERSISTENT}
        fixed = sum(sizes.values()) + self._profiled["nonTorchBytes"]
        return self.plan(str(fixed + (natural - fixed) // 2))


def read(path):
    return json.loads(Path(path).read_text(encoding="utf-8"))


class Trainer:
    """One model, trained in several ways. The learning rate is 0, so that every step can be compared with every other."""

    def __init__(self, place, model, inputs):
        self.is_checked = False
        self.place, self.model, self.inputs = place, model, inputs
        self._optimizer = torch.optim.SGD(model.parameters(), lr=0.0, foreach=False)

    def step(self, context):
        with context:
            loss = loss_of(self.model(self.inputs))
        loss.backward()
        self._optimizer.step()
        norm = sum(float(p.grad.double().square().sum()) for p in self.model.parameters()) if self.is_checked else None
        self._optimizer.zero_grad()
        return norm

    def turn(self, way, steps):
        """Runs one way for some steps, after one that does not count: (peak bytes, step times in ms, gradients' norm)."""
        self.model.checkpointed = way.checkpointed
        self.is_checked = True
        norm = self.step(way.open())
        self.is_checked = False
        self.place.begin()
        times = []
        for _ in range(steps):
            start = self.place.now()
            self.step(way.open())
            times.append(1e3 * (self.place.now() - start))
        peak = self.place.peak_bytes()
        way.end()
        return peak, times, norm


class Way:
    """A way to train: a context for the forward, and how many blocks are checkpointed."""

    def __init__(self, name, open_context=contextlib.nullcontext, checkpointed=0, end=lambda: None):
        self.name, self.open, self.checkpointed, self.end = name, open_context, checkpointed, end
        self.executor = None
        self.peaks, self.times, self.norms = [], [], []


def find_checkpointing(trainer, most_bytes):
    """The fewest checkpointed blocks whose peak is no higher than ``most_bytes``; all of them where none suffice."""
    blocks = len(trainer.model.blocks)
    for count in range(1, blocks + 1):
        if count == blocks or trainer.turn(Way("search", checkpointed=count), 1)[0] <= most_bytes:
            return count


def planned(name, path, model=None):
    executor = Offload(path, model=model)
    way = Way(name, lambda: executor, end=executor.end_step)
    way.executor = executor
    return way


def measure(place, make, rounds, steps):
    """The ways to train, measured in turn: plain; half a plan and what checkpointing needs for the same peak;
    save_on_cpu and a plan for the same peak, or as near as a plan gets."""
    torch.manual_seed(0)
    model, inputs = make()
    model, inputs = model.to(place.name), inputs.to(place.name)
    with tempfile.TemporaryDirectory(prefix="dsc-bench-") as folder:
        planner = Planner(profile(model, inputs, loss=loss_of), folder, place)
        half = planned("plan for half", planner.plan_half())
        with place:
            place.hold(model, inputs)
            trainer = Trainer(place, model, inputs)
            count = find_checkpointing(trainer, trainer.turn(half, 1)[0])
            recomputed = Way(f"checkpointing of {count} of {len(model.blocks)} blocks", checkpointed=count)
            moved = Way("save_on_cpu(pin_memory=True)", place.save_on_host)
            lean = planned("plan for save_on_cpu's peak", planner.plan(str(trainer.turn(moved, 1)[0])))
            ways = {"plain": Way("plain"), "half": half, "checkpointing": recomputed, "saveOnCpu": moved, "lean": lean}
            for _ in range(rounds):
                for way in ways.values():
                    peak, times, norm = trainer.turn(way, steps)
                    way.peaks.append(peak)
                    way.times += times
                    way.norms.append(norm)
        return {key: report(way) for key, way in ways.items()}


def report(way):
    row = {"way": way.name, "peakBytes": max(way.peaks), "stepMs": statistics.median(way.times), "norms": way.norms}
    if way.executor is not None:
        row.update(predicted=way.executor.plan["predicted"], counts=dict(way.executor.counts))
        row["moves"] = len(way.executor.plan["moves"])
        way.executor.close()
    return row


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--device", choices=["cuda", "cpu"], default="cuda" if torch.cuda.is_available() else None)
    options.add_argument("--short", action="store_true")
    options = options.parse_args()
    if options.device is None:
        leave_out("on a GPU", "torch.cuda.is_available() is false")
        return
    name = torch.cuda.get_device_name() if options.device == "cuda" else "an accounting device on CPU"
    results = {}
    for network, make in NETWORKS[options.device].items():
        place = CudaPlace() if options.device == "cuda" else CountedPlace()
        results[network] = measure(place, make, rounds=3 if options.short else 7, steps=3 if options.short else 5)
    section("on a GPU", *format_section(name, results))


if __name__ == "__main__":
    main()
