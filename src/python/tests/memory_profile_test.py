"""The profiler: what it leaves alone, and that it sees a script's own steps."""

import json
import os
import subprocess
import sys
import time

import pytest

torch = pytest.importorskip("torch")

from memory_networks import fresh, loss_of  # noqa: E402
from memory_tools import ROOT, make_plan, one_thread, run_dsc, under  # noqa: E402, F401

from dsc.memory import profile  # noqa: E402


def test_a_profile_changes_nothing_of_the_model_and_repeats(tmp_path):
    model, inputs = fresh("convnet")
    before = {name: value.clone() for name, value in model.state_dict().items()}
    rng = torch.get_rng_state()
    first, second = profile(model, inputs, loss=loss_of), profile(model, inputs, loss=loss_of)
    assert torch.equal(rng, torch.get_rng_state())
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    assert all(p.grad is None for p in model.parameters())
    for key in ("signature", "model", "tensors", "packLayers", "unpackOrder", "peak"):
        assert first[key] == second[key], key


def test_time_that_other_programs_have_the_processor_is_not_the_layers():
    class Preempted(torch.nn.Linear):
        def forward(self, x):
            time.sleep(0.5)
            return super().forward(x)

    found = profile(torch.nn.Sequential(torch.nn.Linear(8, 8), Preempted(8, 8)), torch.randn(4, 8))
    assert 0 < sum(layer["fwdUs"] for layer in found["layers"]) < 500_000
    assert found["device"]["hookUs"] >= 0  # CPUs only: a GPU hides what hooks take


SCRIPT = """
import sys, torch
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Dropout(0.1), torch.nn.Linear(64, 4))
criterion = torch.nn.CrossEntropyLoss(label_smoothing=0.1)
optimizer = torch.optim.Adam(model.parameters())
scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
executor = None
if len(sys.argv) > 1:
    from dsc.memory import AccountingDevice, offload
    executor = offload(sys.argv[1], report=sys.argv[2])
    device = AccountingDevice()
    device.__enter__()
    device.hold(model)
for _ in range(12):
    x, y = torch.randn(256, 32), torch.randint(0, 4, (256,))
    if executor is None:
        loss = criterion(model(x), y) / 2
    else:
        device.hold(x, y)
        with executor:
            loss = criterion(model(x), y) / 2
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
if executor is not None:
    executor.counts["peakBytes"] = device.peak_bytes
    executor.close()
print("reached the end")
"""


def test_an_unchanged_script_is_profiled_with_its_own_loss_and_trains_under_the_plan(tmp_path):
    script, out, plan, run = (str(tmp_path / name) for name in ("train.py", "auto.json", "plan.json", "run.json"))
    with open(script, "w") as file:
        file.write(SCRIPT)
    done = run_dsc("memory", "profile", "--json", "--out", out, "--", sys.executable, script)
    assert json.loads(done.stdout)["layers"] >= 3
    assert "reached the end" not in done.stderr
    with open(out) as file:
        kinds = {tensor["kind"] for tensor in json.load(file)["tensors"]}
    assert "opt_state" in kinds
    run_dsc("memory", "plan", out, "--budget", "80%", "--smallest", "1KiB", "--out", plan)
    here = {**os.environ, "PYTHONPATH": os.path.join(ROOT, "src", "python")}
    subprocess.run([sys.executable, script, plan, run], env=here, check=True, timeout=300)
    with open(run) as file:
        found = json.load(file)
    assert (found["plannedSteps"], found["planMisses"]) == (12, 0)
    run_dsc("memory", "verify", run, "--plan", plan)


SHORT = """
import torch
model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8))
for _ in range(5):
    model(torch.randn(32, 64)).square().mean().backward()
"""


def test_a_script_that_trains_for_too_few_steps_is_told_how_many_are_needed(tmp_path):
    script, out = tmp_path / "short.py", tmp_path / "short.json"
    script.write_text(SHORT)
    done = run_dsc("memory", "profile", "--out", str(out), "--", sys.executable, str(script), check=False)
    assert done.returncode != 0 and "after 5 of 8 training steps" in done.stderr
    assert not out.exists()


def test_the_profiler_copies_leaves_and_never_the_model(monkeypatch):
    model, inputs = fresh("convnet")
    copied = []
    monkeypatch.setattr(torch.nn.Sequential, "__deepcopy__", lambda self, memo: copied.append(self), raising=False)
    profile(model, inputs, loss=loss_of)
    assert copied == []


def test_what_is_saved_is_known_by_the_line_of_the_models_code(tmp_path):
    model, inputs = fresh("gpt")
    made = profile(model, inputs, loss=loss_of)
    lines = {tensor["line"] for tensor in made["tensors"] if tensor["kind"] == "feature"}
    assert len(lines) > 3 and all("memory_networks.py:" in line for line in lines)
    _, profile_path, plan_path = make_plan(made, tmp_path, "70%")
    said = run_dsc("memory", "explain", plan_path, "--profile", profile_path).stdout
    assert "line of code" in said and all(line in said for line in lines)
