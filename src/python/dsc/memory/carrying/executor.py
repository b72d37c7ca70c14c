"""Carries a memory plan out by saved-tensor hooks, step after step."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import weakref
from types import TracebackType
from typing import Any

import torch

from ..peaks import begin_peak
from ..plan.plan_format import Plan
from ..plan.plannable import refuse_parted, refuse_sharded
from ..plan.runnable_plan import PlanError, PlanSource, RunnablePlan
from ..reuse.split_gradients import SplitGradients
from .copies import Copies
from .cuda_copies import refuse_capture
from .host_side import HostSide
from .recompute import RecomputedBlocks
from .replanner import Replanner
from .run_counts import Counts, RunCounts
from .stash import Handle
from .step import Step


class Offload:
    """Carries out one plan, step after step. Enter it around the forward; call backward after it.

    Args:
        plan: see ``offload``, like the arguments after it.
        report: path of the report. On a GPU `torch.cuda.max_memory_allocated` restarts for it.
        host_limit_bytes: most host memory the arena may take.
        copies: what moves the bytes.
        model: whose parameters the plan moves.
        profile: what the plan was made from, to make it again.
        replan_every: steps between two plans.
        host: what executors of one model take turns with; by default its own.

    Raises:
        PlanError: the plan cannot be carried out here.
    """

    def __init__(
        self,
        plan: PlanSource,
        *,
        report: str | os.PathLike[str] | None = None,
        host_limit_bytes: int | None = None,
        copies: Copies | None = None,
        model: torch.nn.Module | None = None,
        profile: str | os.PathLike[str] | None = None,
        replan_every: int = 50,
        host: HostSide | None = None,
    ) -> None:
        self.runnable = RunnablePlan(plan, has_model=model is not None)
        if model is not None:
            (refuse_sharded if self.runnable.moves_parameters else refuse_parted)(model)
        self.host = host or HostSide(host_limit_bytes, copies)
        self._is_host_own = host is None
        self.run = RunCounts()
        self.is_closed = False
        self.model = model
        self._blocks = self._find_blocks()
        self._replanner: Replanner | None = None
        if profile is not None and not self.runnable.moves_parameters:
            self._replanner = Replanner(profile, replan_every)
        self._report_path = report
        if report:
            atexit.register(_close, weakref.ref(self))
        self._step: Step | None = None
        self._hooks: contextlib.ExitStack | None = None
        self._live_graphs: list[weakref.WeakSet[Handle]] = []  # of earlier steps that autograd may still ask for

    @property
    def plan(self) -> Plan:
        """The plan that is being carried out."""
        return self.runnable.raw

    @property
    def counts(self) -> Counts:
        """Sums over all steps so far."""
        return self.run.sums

    @property
    def last_miss(self) -> str | None:
        """Why the last step that was not as planned was not."""
        return self.run.last_miss

    @property
    def needs_profile(self) -> bool:
        """Whether the last three steps did not match: profile and plan again."""
        return self.counts["missesInARow"] >= 3

    def host_parameters(self) -> list[torch.nn.Parameter]:
        """The model's parameters on the host, for an optimizer there. Their ``.grad`` is set by ``end_step()``.

        Returns:
            One parameter per parameter of the model, in its order and of its shapes.

        Raises:
            PlanError: there is no model, or it is on several devices, or the host has too little memory.
        """
        if self.model is None:
            raise PlanError("parameters on the host need the model: offload(plan, model=model)")
        return self.host.open_homes(self.model, self.runnable).parameters

    def __enter__(self) -> Offload:
        if self.host.is_cuda:
            refuse_capture()
        self._check_ready()
        self._end_step()
        self._live_graphs = [handles for handles in self._live_graphs if len(handles) > 0]
        if self._replanner is not None and not self._live_graphs:
            self._replan(self._replanner)
        self.run.begin_step()
        self._step = step = Step(self.runnable, self.host, self.run, self.open_arena)
        if self._live_graphs:
            step.miss("the graph of an earlier forward is still alive")
        with contextlib.ExitStack() as hooks:  # gives them back if the parameters are not as they should be
            if self.plan["moves"] or self.runnable.reused:
                hooks.enter_context(torch.autograd.graph.saved_tensors_hooks(step.pack, step.unpack))
            else:  # a plan that declined costs nothing
                step.sequence = self.runnable.pack_count
            if self.runnable.reused:
                hooks.enter_context(SplitGradients(step))
            if self.host.homes is not None:
                self.host.homes.begin_step(lambda: step.is_planned)
            if self._blocks is not None:
                self._blocks.enter()
                hooks.callback(self._blocks.leave)
            self._hooks = hooks.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        hooks, step = self._hooks, self._step
        assert hooks is not None and step is not None
        hooks.__exit__(kind, error, trace)
        self._hooks = None
        if self.host.homes is not None:
            self.host.homes.end_forward()
        if kind is not None:
            step.abandon()
            return
        if step.is_planned:
            step.skip_loss_scale()
        if step.sequence != self.runnable.pack_count and step.is_planned:
            step.miss(f"{step.sequence} tensors were saved, the plan expects {self.runnable.pack_count}")
        if step.is_planned:
            self.run.end_planned_forward()

    def bring_back(self) -> None:
        """Copies every parameter to the device, as the host has it: before evaluating or saving the model."""
        if self.host.homes is not None:
            self.host.homes.bring_back()

    def end_step(self) -> None:
        """Ends the step now (else the next ``with`` does): every count must be 0 and nothing may be held.

        With ``host_parameters()`` it must be called between backward and the optimizer: it brings the gradients.
        """
        if self.host.homes is not None:
            self.host.homes.end_step()
        self._end_step()

    def close(self) -> None:
        """Frees the host arena and writes the report."""
        if self.is_closed:
            return
        self._end_step()
        written = self.report() if self._report_path else None
        self.is_closed = True
        if self._replanner is not None:
            self._replanner.close()
        if self._is_host_own:
            self.host.close()
        if self._report_path:
            with open(self._report_path, "w", encoding="utf-8") as file:
                json.dump(written, file, indent=2)

    def report(self, peak_bytes: int | None = None) -> dict[str, Any]:
        """The counts so far, in the format of `dsc memory verify`.

        Args:
            peak_bytes: the device's peak; default: as CUDA counted it, or ``counts["peakBytes"]``.

        Returns:
            A dict of JSON values.
        """
        self._end_step()
        self.host.read_lateness(is_last=True)
        if peak_bytes is None and self.host.is_cuda:
            peak_bytes = torch.cuda.max_memory_allocated(self.host.device)
        homes = self.host.homes
        return self.run.report(
            plan=self.plan["profile"],
            peak_bytes=self.counts["peakBytes"] if peak_bytes is None else peak_bytes,
            host_bytes=self.runnable.host_bytes + (homes.host_bytes if homes is not None else 0),
            device=str(self.host.device or "cpu"),
        )

    def open_arena(self, device: torch.device) -> None:
        """Prepares for the first tensor that moves: queues on its device, and the host arena."""
        if self.host.open_arena(device, self.runnable.host_bytes) and self.host.is_cuda and self._report_path:
            begin_peak(device)  # the report is of the steps under the plan

    def _check_ready(self) -> None:
        if self.is_closed:
            raise PlanError("this executor is closed")
        if self._hooks is not None:
            raise PlanError("this executor is in a forward already: one per thread, each with a plan of its own")
        homes = self.host.homes
        if homes is None and self.runnable.moves_parameters:
            raise PlanError("the plan moves parameters to the host: give the optimizer executor.host_parameters()")
        if self.runnable.moves:
            self.host.check_arena(self.runnable.host_bytes)
            if self.model is not None:  # else the first tensor that moves says where it is
                self.open_arena(next(self.model.parameters()).device)
        if homes is not None and homes.has_gradients:
            raise PlanError("the last step's gradients were not taken: call end_step() after backward")

    def _replan(self, replanner: Replanner) -> None:
        """Goes on with another plan if there is one; nothing of the present one is in use."""
        plan = replanner.next_plan(self)
        if plan is None:
            return
        made = RunnablePlan(plan, has_model=self.model is not None)
        if made.host_bytes > self.runnable.host_bytes:
            self.host.check(made.host_bytes)
        self.host.drop_arena()
        self.runnable = made
        self._blocks = self._find_blocks()
        self.counts["replans"] += 1

    def _find_blocks(self) -> RecomputedBlocks | None:
        planned = self.plan["recompute"]
        return RecomputedBlocks(self.model, planned) if planned and self.model is not None else None

    def _end_step(self) -> None:
        step, self._step = self._step, None
        if step is None:
            return
        if not step.is_abandoned and step.has_run_backward and step.is_planned:
            self.counts["leftReferences"] += sum(s.remaining for s in step.stashes.values())
        self._live_graphs.append(step.handles)
        step.close()
        self.host.read_lateness()
        if self.host.homes is not None:
            self.counts["movedBytes"] += self.host.homes.take_moved_bytes()


def _close(executor: weakref.ref[Offload]) -> None:
    if (alive := executor()) is not None:
        alive.close()
