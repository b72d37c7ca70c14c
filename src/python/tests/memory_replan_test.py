"""Plans that are made again while a job runs: earlier where copies came late, the same gradients throughout."""

import itertools
import os
import time
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")

from memory_networks import fresh, loss_of  # noqa: E402
from memory_tools import make_plan  # noqa: E402
from memory_training import gradients  # noqa: E402

from dsc.memory import Offload, profile  # noqa: E402
from dsc.memory.carrying.copies import CpuCopies  # noqa: E402
from dsc.memory.carrying.replanner import Replanner  # noqa: E402


def step(executor, number):
    model, inputs = fresh("convnet")
    torch.manual_seed(number)
    return gradients(model, inputs, executor)


class LateCopies(CpuCopies):
    """Copies for which all who wait do so for 4 ms, by their own account: how long it really takes is the machine's."""

    def wait(self, copy, on_late=None, stream=None):
        super().wait(copy)
        if on_late is not None:
            on_late(4000.0)


def offload(folder, copies, every=4):
    plan, profile_path, _ = make_plan(profile(*fresh("convnet"), loss=loss_of), folder, "60%")
    return plan, Offload(plan, copies=copies, profile=profile_path, replan_every=every)


def run_until(executor, is_reached, seconds=120):
    deadline = time.monotonic() + seconds
    for number in itertools.count():
        assert time.monotonic() < deadline, f"not reached in {number} steps: {executor.counts}"
        assert all(map(torch.equal, step(None, number), step(executor, number)))
        if is_reached():
            return


def test_copies_that_come_late_start_earlier_in_a_later_plan(tmp_path):
    first, executor = offload(tmp_path, LateCopies())
    starts = {move["storage"]: move["inAt"] for move in first["moves"]}

    def is_earlier():  # mostly in the next plan; which maps move may change there, too
        return any(move["inAt"] < starts.get(move["storage"], 0) for move in executor.plan["moves"])

    run_until(executor, is_earlier)
    assert 1 <= executor.counts["replans"] <= 2
    assert executor.plan["budgetBytes"] == first["budgetBytes"]
    executor.close()


def test_copies_in_time_and_windows_that_are_not_over_change_nothing(tmp_path):
    first, executor = offload(tmp_path, CpuCopies(), every=50)
    for number in range(12):
        step(executor, number)
    assert executor.plan is first and executor.counts["replans"] == 0
    executor.close()


def test_a_planner_that_fails_is_named_and_the_job_goes_on(tmp_path, monkeypatch):
    _, executor = offload(tmp_path, LateCopies())
    os.unlink(tmp_path / "profile.json")
    run_until(executor, lambda: executor._replanner.last_error is not None)
    assert "profile.json" in executor._replanner.last_error
    before = executor.counts["plannedSteps"]
    run_until(executor, lambda: executor.counts["plannedSteps"] >= before + 10)
    assert executor.counts["replans"] == 0 and executor.counts["planMisses"] == 0
    executor.close()


def test_a_plan_that_stalls_longer_than_the_one_before_is_given_back_for_good():
    replanner = Replanner("profile.json", every=2)
    replanner._previous = ("the one before", 10.0)
    executor = SimpleNamespace(counts={"plannedSteps": 2, "stallUs": 21.0}, late_us={3: 5.0}, plan="this one")
    assert replanner.next_plan(executor) == "the one before"
    executor.counts["plannedSteps"] = 100
    assert replanner.next_plan(executor) is None
    replanner.close()
