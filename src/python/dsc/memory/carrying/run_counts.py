"""Counts of what a plan did so far, for `dsc memory verify` and for planning again."""

from __future__ import annotations

import statistics
import time
import warnings
from typing import Any, TypedDict


class Counts(TypedDict):
    """Sums over all steps so far; bytes and microseconds where the name says so."""

    steps: int
    plannedSteps: int
    planMisses: int
    missesInARow: int
    movedBytes: int
    leftReferences: int
    stallUs: float
    peakBytes: int
    replans: int
    reusedMaps: int


class RunCounts:
    """Counts what an executor does.

    Attributes:
        sums: counters since the first step.
        late_us: storage → microseconds that its copies came late, at worst.
        is_told: whether a miss was told, or another executor of the model told one.
        last_miss: why the last step that was not as planned was not; None if all were.
    """

    def __init__(self) -> None:
        self.sums: Counts = {
            "steps": 0,
            "plannedSteps": 0,
            "planMisses": 0,
            "missesInARow": 0,
            "movedBytes": 0,
            "leftReferences": 0,
            "stallUs": 0.0,
            "peakBytes": 0,
            "replans": 0,
            "reusedMaps": 0,
        }
        self.late_us: dict[int, float] = {}
        self.last_miss: str | None = None
        self.is_told = False
        self._step_ms: list[float] = []
        self._entered_at: float | None = None

    def begin_step(self) -> None:
        """Counts a step, and how long ago the one before it began."""
        now = time.perf_counter()
        if self._entered_at is not None:
            self._step_ms.append(1e3 * (now - self._entered_at))
        self._entered_at = now
        self.sums["steps"] += 1

    def end_planned_forward(self) -> None:
        """Counts a forward that saved what the plan expects."""
        self.sums["plannedSteps"] += 1
        self.sums["missesInARow"] = 0

    def miss(self, why: str) -> None:
        """Counts a step that is not what was planned; the first one is told."""
        if not self.is_told:
            self.is_told = True
            warnings.warn(
                f"this step is not the one that was planned: {why}. Such steps run as without a plan. If all "
                "do, profile the step that runs, loss included (`dsc memory profile -- python train.py`, or `loss=` of "
                "dsc.memory.profile), and plan again; executor.counts has both kinds.",
                stacklevel=2,
            )
        self.sums["planMisses"] += 1
        self.sums["missesInARow"] += 1
        self.last_miss = why

    def stall(self, late_us: float) -> None:
        """Counts microseconds in which computation waited."""
        self.sums["stallUs"] += late_us

    def late(self, storage: int, late_us: float) -> None:
        """Counts microseconds in which computation waited for a storage to come back."""
        self.stall(late_us)
        self.late_us[storage] = max(late_us, self.late_us.get(storage, 0.0))

    def report(self, *, plan: str, peak_bytes: int, host_bytes: int, device: str) -> dict[str, Any]:
        """The counts in the format of `dsc memory verify`."""
        sums = self.sums
        return {
            "v": 1,
            "kind": "dsc.mem.run",
            "plan": plan,
            "steps": sums["steps"],
            "plannedSteps": sums["plannedSteps"],
            "planMisses": sums["planMisses"],
            "peakBytes": peak_bytes,
            "stepMs": round(statistics.median(self._step_ms), 3) if self._step_ms else None,
            "stallMs": round(sums["stallUs"] / 1e3, 3),
            "movedBytes": sums["movedBytes"],
            "hostBytes": host_bytes,
            "leftReferences": sums["leftReferences"],
            "device": device,
            "lateness": [{"storage": s, "lateUs": round(us, 3)} for s, us in sorted(self.late_us.items())],
        }
