"""``with dsc.memory.offload(plan): loss = model(x)``: carries a memory plan out by saved-tensor hooks."""

import atexit
import contextlib
import json
import os
import statistics
import time
import weakref

import torch
from torch.utils._python_dispatch import _disable_current_modes

from .copies import CpuCopies, CudaCopies
from .host_memory import free_host_bytes
from .host_parameters import HostParameters
from .replanner import Replanner
from .runnable_plan import PlanError, RunnablePlan
from .step import Step

HOST_SHARE = 0.5  # of the free host memory that an arena may take


def offload(plan, report=None, host_limit_bytes=None, copies=None, model=None, profile=None):
    """The executor of a plan (a path or the plan itself). One executor, and one host arena, per plan.

    model: needed where the plan moves parameters or gradients; ``host_parameters()`` is what the optimizer gets then.
    report: path that ``close()`` (or the end of the process) writes what happened to, for ``dsc memory verify``.
    profile: the path of what the plan was made from: it is made again, beside the training and at most every 50 steps,
        when copies come late, so that they start earlier. Not for plans that move parameters.
    host_limit_bytes: most host memory the arena may take; default: half of what is free.
    """
    is_path = isinstance(plan, (str, os.PathLike))
    key = (os.path.realpath(plan), os.stat(plan).st_mtime_ns) if is_path else id(plan)  # a new plan is a new executor
    executor, _ = _EXECUTORS.get(key, (None, None))
    if executor is None or executor.is_closed:
        executor = Offload(plan, report, host_limit_bytes, copies, model, profile)
        _EXECUTORS[key] = (executor, plan)  # the plan too: no other may get its id
    return executor


_EXECUTORS = {}


class Offload:
    """Carries out one plan, step after step. Enter it around the forward; call backward after it."""

    def __init__(
        self, plan, report=None, host_limit_bytes=None, copies=None, model=None, profile=None, replan_every=50,
    ):
        self._plan = RunnablePlan(plan, model is not None)
        self._replanner = None
        if profile is not None and not self._plan.moves_parameters:
            self._replanner = Replanner(profile, replan_every)
        self.report_path = report
        self.is_closed = False
        self.device = None  # that of the first tensor that moves
        self._host_limit = host_limit_bytes
        self._copies = copies
        self._arena = None
        self._model = model
        self._homes = None
        self._step = None
        self._hooks = None
        self.counts = {
            "steps": 0, "plannedSteps": 0, "planMisses": 0, "missesInARow": 0,
            "movedBytes": 0, "leftReferences": 0, "stallUs": 0.0, "peakBytes": 0, "replans": 0,
        }
        self.last_miss = None
        self.late_us = {}
        self.step_ms = []
        self._entered_at = None
        if report:
            atexit.register(_close, weakref.ref(self))
        self._live_graphs = []  # handles of earlier steps that autograd may still ask for

    @property
    def plan(self):
        """The plan that is being carried out."""
        return self._plan.raw

    @property
    def needs_profile(self):
        """Whether the last three steps did not match: profile and plan again."""
        return self.counts["missesInARow"] >= 3

    def host_parameters(self):
        """The model's parameters on the host, for an optimizer there. Their ``.grad`` is set by ``end_step()``."""
        if self._model is None:
            raise PlanError("parameters on the host need the model: offload(plan, model=model)")
        self._open_homes()
        return self._homes.parameters

    def __enter__(self):
        if self.is_closed:
            raise PlanError("this executor is closed")
        if self._hooks is not None:
            raise PlanError("this executor is in a forward already: one per thread, each with a plan of its own")
        if self._homes is None and self._plan.moves_parameters:
            raise PlanError("the plan moves parameters to the host: give the optimizer executor.host_parameters()")
        if self._arena is None and self._plan.moves:
            self._check_host(self._plan.host_bytes)
        if self._homes is not None and self._homes.has_gradients:
            raise PlanError("the last step's gradients were not taken: call end_step() after backward")
        self._end_step()
        self._live_graphs = [handles for handles in self._live_graphs if len(handles) > 0]
        if self._replanner is not None and not self._live_graphs:
            self._replan()
        now = time.perf_counter()
        if self._entered_at is not None:
            self.step_ms.append(1e3 * (now - self._entered_at))
        self._entered_at = now
        self._step = Step(self)
        self.counts["steps"] += 1
        if self._live_graphs:
            self._step.miss("the graph of an earlier forward is still alive")
        if not self.plan["moves"]:  # a plan that declined costs nothing
            self._step.sequence = self._plan.pack_count
            self._hooks = contextlib.nullcontext()
        else:
            self._hooks = torch.autograd.graph.saved_tensors_hooks(self._step.pack, self._step.unpack)
        self._hooks.__enter__()
        if self._homes is not None:
            step = self._step
            self._homes.begin_step(lambda: step.is_planned)
        return self

    def __exit__(self, kind, error, trace):
        self._hooks.__exit__(kind, error, trace)
        self._hooks = None
        if self._homes is not None:
            self._homes.end_forward()
        step = self._step
        if kind is not None:
            step.abandon()
            return False
        if step.sequence != self._plan.pack_count and step.is_planned:
            step.miss(f"{step.sequence} tensors were saved, the plan expects {self._plan.pack_count}")
        if step.is_planned:
            self.counts["plannedSteps"] += 1
            self.counts["missesInARow"] = 0
        return False

    def bring_back(self):
        """Copies every parameter to the device, as the host has it: before evaluating or saving the model."""
        if self._homes is not None:
            self._homes.bring_back()

    def end_step(self):
        """Ends the step now (else the next ``with`` does): every count must be 0 and nothing may be held.

        With ``host_parameters()`` it must be called between backward and the optimizer: it brings the gradients.
        """
        if self._homes is not None:
            self._homes.end_step()
        self._end_step()

    def close(self):
        """Frees the host arena and writes the report."""
        if self.is_closed:
            return
        self._end_step()
        written = self.report() if self.report_path else None
        self.is_closed = True
        arenas = [] if self._arena is None else [self._arena]
        if self._homes is not None:
            arenas += self._homes.close()
        if self._replanner is not None:
            self._replanner.close()
        if self._copies is not None:
            self._copies.close()
            for arena in arenas:
                self._copies.release(arena)
        self._arena = self._homes = None
        if self.report_path:
            with open(self.report_path, "w", encoding="utf-8") as file:
                json.dump(written, file, indent=2)

    def report(self, peak_bytes=None):
        """What happened so far, in the format of `dsc memory verify`."""
        self._end_step()
        if self._copies is not None:
            self._copies.read_lateness(is_last=True)
        counts = self.counts
        if peak_bytes is None:
            is_cuda = self._copies is not None and self._copies.is_cuda
            peak_bytes = torch.cuda.max_memory_allocated(self.device) if is_cuda else counts["peakBytes"]
        return {
            "v": 1,
            "kind": "dsc.mem.run",
            "plan": self.plan["profile"],
            "steps": counts["steps"],
            "plannedSteps": counts["plannedSteps"],
            "planMisses": counts["planMisses"],
            "peakBytes": peak_bytes,
            "stepMs": round(statistics.median(self.step_ms), 3) if self.step_ms else None,
            "stallMs": round(counts["stallUs"] / 1e3, 3),
            "movedBytes": counts["movedBytes"],
            "hostBytes": self._plan.host_bytes + (self._homes.host_bytes if self._homes else 0),
            "leftReferences": counts["leftReferences"],
            "device": str(self.device or "cpu"),
            "lateness": [{"storage": s, "lateUs": round(us, 3)} for s, us in sorted(self.late_us.items())],
        }

    def open_arena(self, device):
        """What the first tensor that moves needs: queues on its device, and the host arena."""
        if self._arena is not None:
            return
        self._open_copies(device)
        with _disable_current_modes():
            self._arena = self._copies.pinned(self._plan.host_bytes)
        if self._copies.is_cuda and self.report_path:
            torch.cuda.reset_peak_memory_stats(self.device)  # the report is of the steps under the plan

    def _open_homes(self):
        if self._homes is None:
            devices = {parameter.device for parameter in self._model.parameters()}
            if len(devices) != 1:
                raise PlanError(f"parameters on the host are for a model on one device, not on {sorted(map(str, devices))}")
            self._open_copies(devices.pop())
            arena = 0 if self._arena is not None else self._plan.host_bytes
            self._check_host(arena + HostParameters.count_bytes(self._model))
            self._homes = HostParameters(self._model, self.plan, self._copies)

    @property
    def copies(self):
        return self._copies

    def _open_copies(self, device):
        if self.device is None:
            self.device = device
        if self._copies is None:
            self._copies = CudaCopies(device) if device.type == "cuda" else CpuCopies()

    def _check_host(self, needed):
        limit = self._host_limit if self._host_limit is not None else int(HOST_SHARE * free_host_bytes())
        if needed > limit:
            raise PlanError(
                f"the plan needs {needed} bytes of host memory, {limit} are permitted here "
                f"({'given' if self._host_limit is not None else 'half of what is free'}): "
                "plan with a larger --budget, or free host memory"
            )

    def count_stall(self, late_us):
        self.counts["stallUs"] += late_us

    def count_late(self, storage, late_us):
        self.count_stall(late_us)
        self.late_us[storage] = max(late_us, self.late_us.get(storage, 0.0))

    def _replan(self):
        """Goes on with another plan if there is one; nothing of the present one is in use."""
        plan = self._replanner.next_plan(self)
        if plan is None:
            return
        made = RunnablePlan(plan, self._model is not None)
        if made.host_bytes > self._plan.host_bytes:
            self._check_host(made.host_bytes)
        if self._arena is not None:
            self._copies.release(self._arena)
            self._arena = None
        self._plan = made
        self.counts["replans"] += 1

    def host_slot(self, move):
        with _disable_current_modes():  # not an accounting device's memory
            return self._arena[move["hostOffset"] : move["hostOffset"] + move["bytes"]]

    def _end_step(self):
        step, self._step = self._step, None
        if step is None:
            return
        if not step.is_abandoned and step.has_run_backward and step.is_planned:
            self.counts["leftReferences"] += sum(s.remaining for s in step.stashes.values())
        self._live_graphs.append(step.handles)
        step.close()
        if self._copies is not None:
            self._copies.read_lateness()
        if self._homes is not None:
            self.counts["movedBytes"] += self._homes.take_moved_bytes()


def _close(executor):
    if executor() is not None:
        executor().close()
