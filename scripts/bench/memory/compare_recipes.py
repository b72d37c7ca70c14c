"""What `dsc memory explain --recipes` predicts for public models beside what a step then takes, as Markdown.

Peaks are counted on an accounting device. Steps are timed in processor seconds, each recipe in turn, on one thread, and
the shortest of each recipe counts: programs beside it make a step longer (caches, memory), and never shorter.

Usage: compare_recipes.py [MODEL ...]
"""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path[:0] = [str(ROOT / "src/python"), str(ROOT / "src/python/tests"), str(HERE), str(HERE.parent / "harness")]
from bench_page import section, table  # noqa: E402
from memory_models import MODELS, fresh_case  # noqa: E402
from recipes import Recipe, count_peak  # noqa: E402

from dsc.memory import offload, profile  # noqa: E402

TOLERANCE = 0.05
ROUNDS = 15
SMALLEST = "4KiB"


def run_dsc(*words):
    node = ROOT / "node_modules/.bin/node"
    command = [str(node) if node.exists() else "node", str(ROOT / "bin/dsc.js"), "memory", *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def fresh(name):
    """A model as a trainer has it: a decoder's cache is off, as every trainer turns it off for checkpoints."""
    model, inputs = fresh_case(name)
    if getattr(getattr(model, "config", None), "use_cache", False):
        model.config.use_cache = False
    return model, inputs, MODELS[name].loss


def predict(profiled, folder):
    """The recipes' predictions under a budget halfway between the highest and the lowest peak, and dsc's plan for it."""
    path, plan = Path(folder) / "profile.json", Path(folder) / "plan.json"
    path.write_text(json.dumps(profiled), encoding="utf-8")
    explain = ["explain", "--recipes", "--json", "--profile", str(path)]
    peaks = [row["peakBytes"] for row in json.loads(run_dsc(*explain))["recipes"] if row["recipe"] != "dsc"]
    budget = str((max(peaks) + min(peaks)) // 2)
    found = json.loads(run_dsc(*explain, "--budget", budget))
    blocks = json.loads(run_dsc("ways", str(path), "--budget", "1TiB", "--json"))["blocks"]
    if any(row["recipe"] == "dsc" for row in found["recipes"]):
        run_dsc("plan", str(path), "--budget", budget, "--recompute", "--out", str(plan))
    return found, blocks, str(plan)


class Timed:
    """One model that trains under one recipe."""

    def __init__(self, recipe, name, blocks, plan):
        self.model, self.inputs, self.loss = fresh(name)
        executor = offload(plan, model=self.model) if recipe == "dsc" else None
        self.around = (lambda: executor) if executor else Recipe(recipe, self.model, blocks).around
        self.times = []

    def step(self):
        self.model.zero_grad()
        begin = time.process_time()
        with self.around():
            found = self.loss(self.model(**self.inputs))
        found.backward()
        self.times.append(time.process_time() - begin)


def compare(name):
    """Per recipe: predicted and counted peak; the predicted winner, and the fastest of those that fit, with its step."""
    model, inputs, loss = fresh(name)
    with tempfile.TemporaryDirectory(prefix="dsc-bench-") as folder:
        found, blocks, plan = predict(profile(model, inputs, loss=loss), folder)
        rows = {row["recipe"]: row for row in found["recipes"]}
        timed = {}
        for recipe, row in rows.items():
            executor_of = (lambda model: offload(plan, model=model)) if recipe == "dsc" else None
            row["counted"], _, _ = count_peak(recipe, lambda: fresh(name), blocks, executor_of=executor_of)
            timed[recipe] = Timed(recipe, name, blocks, plan)
        for _ in range(ROUNDS + 1):
            for one in timed.values():
                one.step()
    steps = {recipe: min(one.times[1:]) for recipe, one in timed.items()}
    budget = found["budgetBytes"]
    fitting = [recipe for recipe, row in rows.items() if row["counted"] <= budget]
    fastest = min(fitting, key=steps.get, default=None)
    best = found.get("best")
    is_right = best == fastest or (best in fitting and steps[best] <= (1 + TOLERANCE) * steps[fastest])
    lowest = min(rows, key=lambda recipe: rows[recipe]["peakBytes"])
    is_lowest = rows[lowest]["counted"] <= (1 + TOLERANCE) * min(row["counted"] for row in rows.values())
    return rows, (best, fastest, is_right), (lowest, is_lowest)


def main():
    torch.set_num_threads(1)
    heads = [
        "model",
        "peaks within 5 %",
        "worst",
        "lowest peak",
        "right",
        "best, predicted",
        "fastest that fits",
        "right",
    ]
    lines, right, exact, low = [], 0, 0, 0
    for name in sys.argv[1:] or MODELS:
        rows, (best, fastest, is_right), (lowest, is_lowest) = compare(name)
        errors = {recipe: row["peakBytes"] / row["counted"] - 1 for recipe, row in rows.items()}
        worst = max(errors, key=lambda recipe: abs(errors[recipe]))
        within = sum(abs(error) <= TOLERANCE for error in errors.values())
        right += is_right
        exact += within == len(errors)
        low += is_lowest
        told = f"{worst} {errors[worst]:+.1%}"
        verdicts = ["yes" if one else "no" for one in (is_lowest, is_right)]
        share = f"{within} of {len(errors)}"
        lines.append([name, share, told, lowest, verdicts[0], best or "none", fastest or "none", verdicts[1]])
        print(*lines[-1], file=sys.stderr, flush=True)
    summary = f"{exact} of {len(lines)} models with every peak within 5 %, {low} with the lowest peak named, {right} with the fastest that fits."
    section("public recipes, predicted", summary, "", *table(heads, lines, 1))


if __name__ == "__main__":
    main()
