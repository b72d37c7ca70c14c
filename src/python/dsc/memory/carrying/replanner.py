"""Plans again while a job runs, from how late its copies were."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from typing import TYPE_CHECKING, Any, Protocol

from ...program import find_program

if TYPE_CHECKING:
    from ..plan.plan_format import Plan
    from ..plan.runnable_plan import PlanSource
    from .run_counts import Counts, RunCounts


class CarriedPlan(Protocol):
    """The plan that is being carried out, and what happened under it: see `Offload`."""

    run: RunCounts

    @property
    def plan(self) -> Plan:
        """The plan."""

    @property
    def counts(self) -> Counts:
        """Sums over all steps so far."""

    def report(self) -> dict[str, Any]:
        """The counts so far, in the format of `dsc memory verify`."""


class Replanner:
    """Every ``every`` steps in which copies came late, a new plan in which they start that much earlier.

    `dsc memory plan` runs beside the training, which takes the result when there is one. A plan that stalls longer
    than the one before it is given back, and no further one is made.
    """

    def __init__(self, profile: str | os.PathLike[str], every: int = 50) -> None:
        command = find_program()
        if not command:
            raise FileNotFoundError(
                "the program dsc is not installed here: pip install dsc-data, or DSC_BIN='node .../dsc.js'"
            )
        self._command = command
        self._profile, self._every = os.fspath(profile), every
        self._folder = tempfile.TemporaryDirectory(prefix="dsc-replan-")
        self._late_us: dict[int, float] = {}  # storage → all lateness that plans were made for so far
        self._process: subprocess.Popen[str] | None = None
        self._begun = 0  # planned steps before this window
        self._begun_stall = 0.0
        self._previous: tuple[Plan, float] | None = (
            None  # (plan, microseconds it stalled per step), while the present one is on trial
        )
        self._is_over = False
        self.last_error: str | None = None

    def next_plan(self, carried: CarriedPlan) -> PlanSource | None:
        """The path of a plan, or a plan, to go on with; None to go on as before. Never waits."""
        if self._process is not None:
            return self._collect(carried, self._process)
        steps = carried.counts["plannedSteps"] - self._begun
        if self._is_over or steps < self._every:
            return None
        stall_us = (carried.counts["stallUs"] - self._begun_stall) / steps
        previous, self._previous = self._previous, None
        if previous is not None and stall_us > previous[1]:
            self._is_over = True
            return previous[0]
        late = dict(carried.run.late_us)
        self._open_window(carried)
        if late:
            for storage, late_us in late.items():
                self._late_us[storage] = self._late_us.get(storage, 0.0) + late_us
            self._previous = (carried.plan, stall_us)
            self._start(carried)
        return None

    def close(self) -> None:
        """Ends a planner that runs, and deletes its files."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._folder.cleanup()

    def _open_window(self, carried: CarriedPlan) -> None:
        carried.run.late_us.clear()
        self._begun, self._begun_stall = carried.counts["plannedSteps"], carried.counts["stallUs"]

    def _start(self, carried: CarriedPlan) -> None:
        plan, run = carried.plan, os.path.join(self._folder.name, "run.json")
        lateness = [{"storage": s, "lateUs": us} for s, us in sorted(self._late_us.items())]
        with open(run, "w", encoding="utf-8") as file:
            json.dump({**carried.report(), "lateness": lateness}, file)
        self._path = os.path.join(self._folder.name, f"plan-{self._begun}.json")
        options = ["--budget", str(plan["budgetBytes"]), "--smallest", str(plan["options"]["smallestBytes"])]
        options += ["--reuse"] if plan["options"]["reuse"] else []
        options += ["--recompute"] if plan["recompute"] else []
        options += ["--reload", plan["arenas"]["reload"]["mode"], "--feedback", run, "--out", self._path]
        self._process = subprocess.Popen(
            [*self._command, "memory", "plan", self._profile, *options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )

    def _collect(self, carried: CarriedPlan, process: subprocess.Popen[str]) -> str | None:
        if process.poll() is None:
            return None
        self._process = None
        said = process.communicate()[1].strip()
        self._open_window(carried)
        if process.returncode != 0:
            self.last_error = f"dsc memory plan ended with {process.returncode}: {said}"
            self._previous, self._is_over = None, True
            return None
        return self._path
