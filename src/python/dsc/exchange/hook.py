"""A communication hook for DistributedDataParallel: scaled half precision that never loses a step."""

import json
import math
import zlib
from dataclasses import asdict

import torch
import torch.distributed as dist

from . import scale as scales
from .errors import ExchangeMismatch

STATE_FORMAT = "dsc.exchange.scaled-half/1"
# Values scaled at a time on a CPU: what is between two passes stays in the cache and no memory is allocated (2 times faster).
_BLOCK = 1 << 16
_TYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}


class _Run:
    """Neighbouring values of a bucket that travel in one call: the whole bucket, except in the step after a resume."""

    def __init__(self, group, values, wire_type, exponent):
        self.group = group
        self.values = values
        self.wire_type = wire_type
        self.exponent = exponent
        self.wire = None
        self.future = None
        self.amax = None  # of the mean; None if not finite


class ScaledHalf:
    """State of `scaled_half_hook`: one scale per bucket, and what is under way in this backward pass.

    parameters: those of the model, always in the same order (`model.parameters()`).
    process_group: that of DDP; None is the default group.
    agree_every: every so many steps all ranks compare their scales; 0 is never.
    """

    def __init__(self, parameters, process_group=None, agree_every=256):
        self.process_group = process_group
        self.agree_every = agree_every
        self.step = 0
        self.redone = 0  # buckets repeated in fp32 so far
        self._groups = {}  # indices of a bucket's parameters → Scale
        self._has_resumed = False
        self.bind(parameters)

    def bind(self, parameters):
        """Names the parameters again: after unpickling, or for a new model of the same shape."""
        parameters = list(parameters)
        self._index = {id(parameter): index for index, parameter in enumerate(parameters)}
        self._sizes = [parameter.numel() for parameter in parameters]
        self._reset()

    def _reset(self):
        self._runs = []
        self._results = []
        self._steps_seen = 0
        self._spare = {}  # (count, dtype) → buffers that are free

    def state_dict(self):
        """What a checkpoint needs. The same on all ranks."""
        groups = [{"parameters": list(key), "scale": asdict(value)} for key, value in self._groups.items()]
        return {"format": STATE_FORMAT, "step": self.step, "redone": self.redone, "groups": groups}

    def load_state_dict(self, state):
        """Goes on from `state_dict()`: the first step already travels with the saved scales."""
        if state.get("format") != STATE_FORMAT:
            raise ValueError(f"expected a state of format {STATE_FORMAT}, found {state.get('format')}")
        self.step = state["step"]
        self.redone = state["redone"]
        self._groups = {tuple(group["parameters"]): scales.Scale(**group["scale"]) for group in state["groups"]}
        self._has_resumed = bool(self._groups)
        self._reset()

    def __getstate__(self):
        return {"state": self.state_dict(), "agree_every": self.agree_every}

    def __setstate__(self, pickled):
        self.process_group = None
        self.agree_every = pickled["agree_every"]
        self._index, self._sizes = {}, []
        self.load_state_dict(pickled["state"])

    def exchange(self, bucket):
        """Sends one bucket on its way; with the last one, waits for all and repeats in fp32 what overflowed."""
        values = bucket.buffer()
        runs = self._plan_runs(bucket, values)
        shift, factor = scales.plan_averaging(self._ranks())
        for run in runs:
            self._send(run, shift, factor)
        result = torch.futures.Future(devices=[values.device] if values.is_cuda else [])
        self._runs += runs
        self._results.append((result, values))
        if bucket.is_last():
            try:
                self._finish(shift, factor)
            finally:
                self._runs, self._results = [], []
        return result

    def _ranks(self):
        return dist.get_world_size(self.process_group)

    def _plan_runs(self, bucket, values):
        parameters = bucket.parameters()
        try:
            indices = tuple(self._index[id(parameter)] for parameter in parameters)
        except KeyError:
            raise ExchangeMismatch("DDP exchanges a parameter that ScaledHalf was not given; call bind()") from None
        known = self._groups.get(indices)
        if known is None and self._has_resumed and self._steps_seen == 0:
            return self._plan_resumed_runs(indices, parameters, values)
        wire_type, exponent = scales.plan_wire(known or scales.Scale(), values.numel(), len(indices))
        return [_Run(indices, values, wire_type, exponent)]

    def _plan_resumed_runs(self, indices, parameters, values):
        """DDP's first buckets differ from those it builds after one step, which the saved scales belong to."""
        home = {index: key for key in self._groups for index in key}
        sizes = {key: sum(self._sizes[index] for index in key) for key in self._groups}
        runs, start = [], 0
        pieces = []
        for index, parameter in zip(indices, parameters):
            key = home.get(index, (index,))
            if pieces and pieces[-1][0] == key:
                pieces[-1][2] += parameter.numel()
            else:
                pieces.append([key, start, parameter.numel()])
            start += parameter.numel()
        for key, begin, count in pieces:
            known = self._groups.get(key, scales.Scale())
            wire_type, exponent = scales.plan_wire(known, sizes.get(key, count), len(key))
            runs.append(_Run(key, values[begin : begin + count], wire_type, exponent))
        return runs

    def _send(self, run, shift, factor):
        run.wire = self._encode(run.values, _TYPES[run.wire_type], 2.0 ** (run.exponent + shift))
        work = dist.all_reduce(run.wire, group=self.process_group, async_op=True)
        run.future = work.get_future()
        if not run.values.is_cuda:
            # On a CPU this happens in the back end's thread while backward goes on. On a GPU it would make the host wait.
            run.future = run.future.then(lambda done, run=run: (done.value(), self._receive(run, factor)))

    def _encode(self, values, dtype, factor):
        if values.is_cuda:
            return (values * factor).to(dtype)
        wire = self._take_buffer(values.numel(), dtype)
        if dtype == values.dtype:
            return torch.mul(values, factor, out=wire)
        product = self._take_buffer(_BLOCK, torch.float32)
        for start in range(0, values.numel(), _BLOCK):
            part = values[start : start + _BLOCK]
            wire[start : start + _BLOCK].copy_(torch.mul(part, factor, out=product[: part.numel()]))
        self._spare.setdefault((_BLOCK, torch.float32), []).append(product)
        return wire

    def _take_buffer(self, count, dtype):
        """Buffers of the step before are used again: fresh memory costs a page fault every 4 KiB."""
        spare = self._spare.get((count, dtype))
        return spare.pop() if spare else torch.empty(count, dtype=dtype)

    def _receive(self, run, factor):
        low, high = torch.aminmax(run.wire)
        self._accept(run, max(-float(low), float(high)) if not math.isnan(low) else math.nan, factor)

    def _accept(self, run, peak, factor):
        """Writes the mean over the local values, unless half precision overflowed: then they are still needed."""
        unscale = 2.0**-run.exponent * factor
        if math.isfinite(peak):
            run.amax = peak * unscale
        if math.isfinite(peak) or run.wire_type == "fp32":
            step = run.values.numel() if run.values.is_cuda else _BLOCK
            for start in range(0, run.values.numel(), step):
                run.values[start : start + step].copy_(run.wire[start : start + step]).mul_(unscale)

    def _finish(self, shift, factor):
        for run in self._runs:
            run.future.wait()
        if self._runs[0].values.is_cuda:
            bounds = torch.stack([torch.stack(torch.aminmax(run.wire)).float() for run in self._runs]).tolist()
            for run, (low, high) in zip(self._runs, bounds):
                self._accept(run, math.nan if math.isnan(low) else max(-low, high), factor)
        groups = {}
        for run in self._runs:
            groups.setdefault(run.group, []).append(run)
        for group, runs in groups.items():
            kind = "clean"
            if any(run.amax is None for run in runs):
                kind = self._redo(runs, shift, factor)
            self._advance(group, kind, max((run.amax or 0.0) for run in runs))
        self.step += 1
        self._steps_seen += 1
        blocks = self._spare.pop((_BLOCK, torch.float32), [])
        self._spare = {(_BLOCK, torch.float32): blocks}  # sizes that this step had no use for are let go
        for run in self._runs:
            if not run.values.is_cuda:
                self._spare.setdefault((run.wire.numel(), run.wire.dtype), []).append(run.wire)
        for result, values in self._results:
            result.set_result(values)
        if self.agree_every and self.step % self.agree_every == 0:
            self._check_agreement()

    def _redo(self, runs, shift, factor):
        """Repeats in fp32, in the same order on all ranks: all saw the same bytes. A true inf or NaN stays one."""
        if all(run.wire_type == "fp32" for run in runs):
            return "not finite"
        self.redone += 1
        for run in runs:
            if run.wire_type != "fp32" and run.amax is None:
                wire = run.values.float() * 2.0**shift
                dist.all_reduce(wire, group=self.process_group)
                run.values.copy_(wire.mul_(factor))
                peak = run.values.abs().max().item()
                run.amax = peak if math.isfinite(peak) else None
        return "redone" if all(run.amax is not None for run in runs) else "not finite"

    def _advance(self, group, kind, amax):
        # Step 0 is not remembered: DDP builds its final buckets after it.
        if group in self._groups:
            self._groups[group] = scales.advance(self._groups[group], kind, amax)
        elif self._steps_seen > 0:
            members = set(group)
            self._groups = {key: value for key, value in self._groups.items() if members.isdisjoint(key)}
            self._groups[group] = scales.advance(scales.Scale(), kind, amax)

    def _check_agreement(self):
        own = zlib.crc32(json.dumps(self.state_dict(), sort_keys=True).encode())
        device = self._results[0][1].device
        mine = torch.tensor([own], dtype=torch.int64, device=device)
        everyone = [torch.empty_like(mine) for _ in range(self._ranks())]
        dist.all_gather(everyone, mine, group=self.process_group)
        found = [int(value) for value in everyone]
        odd = [rank for rank, value in enumerate(found) if value != found[0]]
        if odd:
            raise ExchangeMismatch(f"at step {self.step} the scales of ranks {odd} differ from those of rank 0")


def scaled_half_hook(state, bucket):
    """For `ddp.register_comm_hook(ScaledHalf(model.parameters()), scaled_half_hook)`."""
    return state.exchange(bucket)
