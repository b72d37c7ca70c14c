"""Public models in small sizes under plans at shares of their activations: a table of counted peaks, in Markdown.

Usage: public_models.py [MODEL...]      with the environment of scripts/trainers-venv.sh; called by memory-models.mjs.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import warnings
from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.abspath(os.path.join(HERE, "..", "..", ".."))
sys.path[:0] = [os.path.join(ROOT, "src", "python"), os.path.join(ROOT, "src", "python", "tests"), os.path.join(HERE, "..", "harness")]
warnings.simplefilter("ignore")

import torch  # noqa: E402
from bench_page import section, table  # noqa: E402
from memory_models import MODELS, fresh_case  # noqa: E402
from memory_training import train_model  # noqa: E402

from dsc.memory import offload  # noqa: E402
from dsc.memory.profiling.first_steps import FirstSteps  # noqa: E402

SHARES = (0.7, 0.5, 0.3)
STEPS = 2


# GB/s of the link that plans are made for: as measured between memory and memory, or so slow that recomputing pays.
LINKS = {"memory": None, "slow link": 0.02}


def main() -> None:
    """Tells a table for each link, and how many cells are as planned."""
    torch.set_num_threads(1)
    names = sys.argv[1:] or list(MODELS)
    for title, gigabytes in LINKS.items():
        rows, cells = [], []
        for name in names:
            activations, found = _measure(name, gigabytes)
            rows.append([name, f"{activations / 1e6:.1f} MB", *(text for _, text in found)])
            cells.append([kind for kind, _ in found])
        kinds = [kind for row in cells for kind in row]
        whole = sum(all(kind == "as planned" for kind in row) for row in cells)
        counts = f"{kinds.count('as planned')} as planned, {kinds.count('no plan')} without a plan"
        found = f"{len(kinds)} cells: {counts}, {kinds.count('NOT as planned')} not as planned; {whole} models are as planned at every share."
        section(title, *table(["model", "activations", *(f"{share:.0%}" for share in SHARES)], rows), found)


def _measure(name: str, gigabytes: float | None) -> tuple[int, list[tuple[str, str]]]:
    model, inputs = fresh_case(name)
    first = FirstSteps(model)
    first.run(lambda: MODELS[name].loss(model(**inputs)), inputs)
    profile = first.write()
    if gigabytes is not None:
        profile["device"].update(d2hGBs=gigabytes, h2dGBs=gigabytes, bothGBs=gigabytes)
    plain, peak, _ = _train(name, None)
    fixed = sum({t["storage"]: t["bytes"] for t in profile["tensors"] if t["kind"] in PERSISTENT}.values())
    activations = peak - fixed
    return activations, [_run(name, profile, plain, fixed, share, activations) for share in SHARES]


PERSISTENT = ("param", "param_grad", "buffer")


def _run(
    name: str, profile: dict[str, Any], plain: list[Any], fixed: int, share: float, activations: int
) -> tuple[str, str]:
    budget = int(fixed + share * activations)
    with tempfile.TemporaryDirectory() as folder:
        made = _plan(profile, budget, folder)
        if isinstance(made, int):
            return "no plan", f"needs {(made - fixed) / activations:.0%}"
        found, peak, executor = _train(name, made)
        executor.close()
    predicted = executor.plan["predicted"]["peakBytes"]
    equal = all(
        a is b or (a is not None and b is not None and torch.equal(a, b))
        for before, after in zip(plain, found)
        for a, b in zip(before, after)
    )
    is_right = equal and executor.counts["planMisses"] == 0 and abs(peak / predicted - 1) <= 0.05
    is_within = peak <= 1.05 * budget
    text = f"{(peak - fixed) / activations:.0%}"
    again, moved = len(executor.plan["recompute"]), len(executor.plan["moves"])
    kind = "as planned" if is_right and is_within else "NOT as planned"
    return kind, f"{text} ({again} again, {moved} move)" + ("" if kind == "as planned" else f": {kind}")


def _plan(profile: dict[str, Any], budget: int, folder: str) -> str | int:
    """The path of a plan; or the least budget, where none fits."""
    source, out = os.path.join(folder, "profile.json"), os.path.join(folder, "plan.json")
    with open(source, "w", encoding="utf-8") as file:
        json.dump(profile, file)
    node, program = os.path.join(ROOT, "node_modules", ".bin", "node"), os.path.join(ROOT, "bin", "dsc.js")
    words = ["memory", "plan", source, "--budget", str(budget), "--smallest", "512", "--recompute", "--json"]
    done = subprocess.run([node, program, *words, "--out", out], capture_output=True, text=True)
    if "PLAN_INFEASIBLE" in done.stderr:
        return int(re.search(r"needs (\d+)", done.stderr)[1])  # type: ignore[index]
    done.check_returncode()
    return out


def _train(name: str, plan: str | None) -> tuple[list[Any], int, Any]:
    model, inputs = fresh_case(name)
    executor = plan and offload(plan, model=model)
    gradients, _, peak = train_model(
        model, inputs, lambda: MODELS[name].loss(model(**inputs)), STEPS, executor=executor
    )
    return gradients, peak, executor


if __name__ == "__main__":
    main()
