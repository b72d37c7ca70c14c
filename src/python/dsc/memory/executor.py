"""``with dsc.memory.offload(plan): loss = model(x)``: carries a memory plan out by saved-tensor hooks."""

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
from .profiler import short_dtype
from .stash import Handle, Stash

HOST_SHARE = 0.5  # of the free host memory that an arena may take


class PlanError(RuntimeError):
    """A plan that cannot be carried out here; says what was needed and what there is."""


def offload(plan, report=None, device=None, host_limit_bytes=None, copies=None):
    """The executor of a plan (a path or the plan itself). One executor, and one host arena, per plan.

    report: path that ``close()`` (or the end of the process) writes what happened to, for ``dsc memory verify``.
    host_limit_bytes: most host memory the arena may take; default: half of what is free.
    """
    key = os.path.realpath(plan) if isinstance(plan, (str, os.PathLike)) else id(plan)
    executor = _EXECUTORS.get(key)
    if executor is None or executor.is_closed:
        executor = Offload(plan, report, device, host_limit_bytes, copies)
        _EXECUTORS[key] = executor
    return executor


_EXECUTORS = {}


class Offload:
    """Carries out one plan, step after step. Enter it around the forward; call backward after it."""

    def __init__(self, plan, report=None, device=None, host_limit_bytes=None, copies=None):
        if isinstance(plan, (str, os.PathLike)):
            with open(plan, encoding="utf-8") as file:
                plan = json.load(file)
        if plan.get("kind") != "dsc.mem.plan" or plan.get("v") != 1:
            raise PlanError("not a memory plan of version 1: make one with `dsc memory plan`")
        stuck = [move for move in plan["moves"] if move["kind"] != "feature" or move["ticks"] is None]
        if stuck:
            raise PlanError(
                f"{len(stuck)} of {len(plan['moves'])} moves are not of saved feature maps (first: storage "
                f"{stuck[0]['storage']}, {stuck[0]['kind']}): plan without --move, from a profile of a real run"
            )
        self.plan = plan
        self.report_path = report
        self.is_closed = False
        self.pack_count = len(plan["packSignatures"])
        self._signatures = plan["packSignatures"]
        self._layers = plan["packLayers"]
        self._move_of = {seq: move for move in plan["moves"] for seq in move["packs"]}
        self._actions = {}
        for move in plan["moves"]:
            for name in ("out", "free"):
                self._actions.setdefault(move["ticks"][name], []).append((name, move["storage"]))
        self._device = torch.device(device) if device is not None else None
        self._host_limit = host_limit_bytes
        self._copies = copies
        self._arena = None
        self._step = None
        self._hooks = None
        self.counts = {
            "steps": 0, "plannedSteps": 0, "planMisses": 0, "missesInARow": 0,
            "movedBytes": 0, "leftReferences": 0, "stallUs": 0.0, "peakBytes": 0,
        }
        self.last_miss = None
        self.late_us = {}
        self.step_ms = []
        self._entered_at = None
        self._live_graphs = []  # handles of earlier steps that autograd may still ask for

    @property
    def needs_profile(self):
        """Whether the last three steps did not match: profile and plan again."""
        return self.counts["missesInARow"] >= 3

    def __enter__(self):
        if self.is_closed:
            raise PlanError("this executor is closed")
        self._prepare()
        self._end_step()
        now = time.perf_counter()
        if self._entered_at is not None:
            self.step_ms.append(1e3 * (now - self._entered_at))
        self._entered_at = now
        self._step = _Step(self)
        self.counts["steps"] += 1
        self._live_graphs = [handles for handles in self._live_graphs if len(handles) > 0]
        if self._live_graphs:
            self._step.miss("the graph of an earlier forward is still alive")
        if not self.plan["moves"]:  # a plan that declined costs nothing
            self._step.sequence = self.pack_count
            self._hooks = contextlib.nullcontext()
        else:
            self._hooks = torch.autograd.graph.saved_tensors_hooks(self._step.pack, self._step.unpack)
        self._hooks.__enter__()
        return self

    def __exit__(self, kind, error, trace):
        self._hooks.__exit__(kind, error, trace)
        self._hooks = None
        step = self._step
        if kind is not None:
            step.abandon()
            return False
        if step.sequence != self.pack_count and step.is_planned:
            step.miss(f"{step.sequence} tensors were saved, the plan expects {self.pack_count}")
        if step.is_planned:
            self.counts["plannedSteps"] += 1
            self.counts["missesInARow"] = 0
        return False

    def end_step(self):
        """Ends the step now (else the next ``with`` does): every count must be 0 and nothing may be held."""
        self._end_step()

    def close(self):
        """Frees the host arena and writes the report."""
        if self.is_closed:
            return
        self._end_step()
        self.is_closed = True
        if self._copies is not None:
            self._copies.close()
            if self._arena is not None and self._copies.is_cuda:
                self._copies.release(self._arena)
        self._arena = None
        if self.report_path:
            with open(self.report_path, "w", encoding="utf-8") as file:
                json.dump(self.report(), file, indent=2)

    def report(self, peak_bytes=None):
        """What happened so far, in the format of `dsc memory verify`."""
        self._end_step()
        counts = self.counts
        if peak_bytes is None:
            is_cuda = self._copies is not None and self._copies.is_cuda
            peak_bytes = torch.cuda.max_memory_allocated(self._device) if is_cuda else counts["peakBytes"]
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
            "hostBytes": self.plan["arenas"]["host"]["bytes"],
            "leftReferences": counts["leftReferences"],
            "device": str(self._device or "cpu"),
            "lateness": [{"storage": s, "lateUs": round(us, 3)} for s, us in sorted(self.late_us.items())],
        }

    def _prepare(self):
        if self._arena is not None or not self.plan["moves"]:
            return
        needed = self.plan["arenas"]["host"]["bytes"]
        limit = self._host_limit if self._host_limit is not None else int(HOST_SHARE * free_host_bytes())
        if needed > limit:
            raise PlanError(
                f"the plan needs {needed} bytes of host memory, {limit} are permitted here "
                f"({'given' if self._host_limit is not None else 'half of what is free'}): "
                "plan with a larger --budget, or free host memory"
            )
        if self._device is None:
            self._device = torch.device("cuda") if torch.cuda.is_available() else torch.device("cpu")
        if self._copies is None:
            self._copies = CudaCopies(self._device) if self._device.type == "cuda" else CpuCopies()
        with _disable_current_modes():
            self._arena = self._copies.pinned(needed)

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


class _Step:
    """One forward and backward. Its clock ticks with every pack, then with every unpack."""

    def __init__(self, executor):
        self.executor = executor
        self.copies = executor._copies
        self.is_planned = True
        self.is_abandoned = False
        self.has_run_backward = False
        self.sequence = 0
        self.position = 0
        self.stashes = {}
        self.handles = weakref.WeakSet()
        self.reload_arena = None
        self.occupied = {}  # storage → (low, high) of reload slots in use
        self.finished = []  # storages whose last unpack was in the layer that runs now
        self.layer = None
        self.in_pending = sorted(
            (move["ticks"]["in"], move["useAt"], move["storage"]) for move in executor.plan["moves"]
        )

    def miss(self, why):
        """The step is not what was planned: move nothing more. What is away comes back when it is asked for."""
        if not self.is_planned:
            return
        self.is_planned = False
        self.executor.counts["planMisses"] += 1
        self.executor.counts["missesInARow"] += 1
        self.executor.last_miss = why

    def abandon(self):
        """The forward raised: nothing of this step will be asked for again, unless a graph was kept."""
        self.is_abandoned = True
        self.close()

    def close(self):
        """Waits for copies that run and drops device memory; keeps what a living graph may still ask for."""
        for stash in self.stashes.values():
            if stash.copy_out is not None and not self.copies.is_done(stash.copy_out):
                self.copies.wait_out(stash.copy_out)
            if len(self.handles) == 0:
                stash.forget()
        self.reload_arena = None

    def pack(self, tensor):
        sequence = self.sequence
        self.sequence += 1
        packed = self._stash(tensor, sequence) if self.is_planned else None
        self._tick(sequence)
        return packed if packed is not None else (sequence, tensor.detach())

    def unpack(self, packed):
        self.has_run_backward = True
        position = self.position
        self.position += 1
        is_moved = isinstance(packed, Handle)
        sequence = packed.sequence if is_moved else packed[0]
        layer = self.executor._layers[sequence] if sequence < self.executor.pack_count else None
        if layer != self.layer:
            self.layer = layer
            self._release_finished()
        self._tick(self.executor.pack_count + position)
        return self._restore(packed) if is_moved else packed[1]

    def _stash(self, tensor, sequence):
        executor = self.executor
        if sequence >= executor.pack_count:
            return self.miss(f"more than the {executor.pack_count} planned tensors are saved")
        seen = _sign(tensor)
        if seen != executor._signatures[sequence]:
            return self.miss(f"saved tensor {sequence} is {seen}, planned {executor._signatures[sequence]}")
        move = executor._move_of.get(sequence)
        if move is None:
            return None
        stash = self.stashes.get(move["storage"])
        if stash is None:
            stash = self.stashes[move["storage"]] = Stash(move)
        if not stash.hold(tensor):
            return self.miss(f"saved tensor {sequence} does not share the storage it shared in the profile")
        handle = Handle(stash, sequence, tensor)
        self.handles.add(handle)
        return handle

    def _tick(self, tick):
        """Starts copies out, waits for copies out, starts copies in: what the plan says for this instant."""
        for name, storage in self.executor._actions.get(tick, ()):
            stash = self.stashes.get(storage)
            if stash is None:
                continue
            if name == "out" and self.is_planned and stash.copy_out is None and stash.is_here:
                self._start_out(stash)
            elif name == "free":
                self._free(stash)
        if tick < self.executor.pack_count:
            return
        while self.in_pending and self.in_pending[0][0] <= tick:
            _, _, storage = self.in_pending.pop(0)
            stash = self.stashes.get(storage)
            if stash is not None and stash.copy_in is None and not stash.is_here and stash.remaining > 0:
                self._start_in(stash)

    def _start_out(self, stash):
        slot = self.executor.host_slot(stash.move)
        stash.copy_out = self.copies.start_out(slot, stash.device_bytes())
        self.executor.counts["movedBytes"] += stash.move["bytes"]
        low, high = stash.move["hostOffset"], stash.move["hostOffset"] + stash.move["bytes"]
        for other in self.stashes.values():
            start = other.move["hostOffset"]
            if other is not stash and other.copy_out is not None and start < high and low < start + other.move["bytes"]:
                other.is_host_valid = False

    def _free(self, stash):
        if stash.copy_out is None or not stash.is_here:
            return
        start = time.perf_counter()
        self.copies.wait_out(stash.copy_out)
        self.executor.counts["stallUs"] += 1e6 * (time.perf_counter() - start)
        stash.device_storage = None

    def _start_in(self, stash):
        if not stash.is_host_valid:
            raise RuntimeError(
                f"storage {stash.move['storage']} is needed again after its host space was given away: "
                "retain_graph is not possible under this plan"
            )
        stash.reload = self._take_slot(stash)
        stash.copy_in = self.copies.start_in(stash.reload, self.executor.host_slot(stash.move), stash.copy_out)
        self.executor.counts["movedBytes"] += stash.move["bytes"]

    def _take_slot(self, stash):
        move, reload = stash.move, self.executor.plan["arenas"]["reload"]
        if reload["mode"] == "arena" and move["reloadOffset"] is not None and self.is_planned:
            low, high = move["reloadOffset"], move["reloadOffset"] + move["bytes"]
            if not any(start < high and low < end for start, end in self.occupied.values()):
                if self.reload_arena is None:
                    self.reload_arena = torch.empty(reload["bytes"], dtype=torch.uint8, device=stash.device)
                self.occupied[move["storage"]] = (low, high)
                stash.in_arena = True
                return self.reload_arena[low:high]
        stash.in_arena = False
        return torch.empty(move["bytes"], dtype=torch.uint8, device=stash.device)

    def _restore(self, handle):
        stash = handle.stash
        if stash.is_here:
            tensor = handle.view(stash.device_storage, stash.device)
        else:
            if stash.copy_in is None:
                self._start_in(stash)
            start = time.perf_counter()
            is_late = not self.copies.is_done(stash.copy_in)
            self.copies.wait_in(stash.copy_in)
            if is_late:
                late = 1e6 * (time.perf_counter() - start)
                self.executor.counts["stallUs"] += late
                storage = stash.move["storage"]
                self.executor.late_us[storage] = max(late, self.executor.late_us.get(storage, 0.0))
            tensor = handle.view_of_bytes(stash.reload)
        stash.remaining -= 1
        if stash.remaining <= 0:
            # The view keeps the memory until its node has run; only an arena's slot must be kept from others.
            stash.reload = stash.copy_in = None
            if stash.copy_out is not None:
                stash.device_storage = None  # else nothing has it but us, and a kept graph may ask again
            if stash.in_arena:
                self.finished.append(stash.move["storage"])
            if not self.in_pending and all(s.remaining <= 0 for s in self.stashes.values()):
                self.reload_arena = None
        return tensor

    def _release_finished(self):
        """Gives away the slots that the layer before this one used last: its kernels are queued by now."""
        for storage in self.finished:
            self.occupied.pop(storage, None)
        self.finished.clear()


def _sign(tensor):
    if tensor.layout != torch.strided:
        return f"{short_dtype(tensor.dtype)}|{','.join(map(str, tensor.shape))}|"
    shape, stride = ",".join(map(str, tensor.shape)), ",".join(map(str, tensor.stride()))
    return f"{short_dtype(tensor.dtype)}|{shape}|{stride}"
