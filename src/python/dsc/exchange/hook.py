"""A communication hook for DistributedDataParallel: scaled half precision that never loses a step."""

# Without `annotations` from the future: DDP compares those of a hook, and text would be refused.
import json
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

import torch
import torch.distributed as dist

from ..torch_private import GradBucket
from . import scale as scales
from .carrier import Carrier
from .device_carrier import DeviceCarrier
from .errors import ExchangeMismatch
from .host_carrier import HostCarrier
from .run import Run
from .step import Step

STATE_FORMAT = "dsc.exchange.scaled-half/2"


class ScaledHalf:
    """State of `scaled_half_hook`: a scale per parameter, and what is under way in this backward pass.

    Args:
        parameters: those of the model, always in the same order (`model.parameters()`).
        process_group: that of DDP; None is the default group.
        agree_every: every so many steps all ranks compare their scales; 0 is never.
        levels: 2: ranks of one host take their mean through shared memory first, and one of them per host exchanges it
            over the network. For gradients on the CPU of jobs with several ranks on each of several hosts.
    """

    def __init__(
        self,
        parameters: Iterable[torch.nn.Parameter],
        process_group: dist.ProcessGroup | None = None,
        *,
        agree_every: int = 256,
        levels: int = 1,
    ) -> None:
        if levels not in (1, 2):
            raise ValueError(f"levels is {levels}, expected 1 or 2")
        self.process_group = process_group
        self.agree_every = agree_every
        self.levels = levels
        self.step = 0
        self.redone = 0  # buckets repeated in fp32 so far
        self._groups: dict[tuple[int, ...], scales.Scale] = {}  # indices of a bucket's parameters → Scale
        self._has_resumed = False
        self.bind(parameters)

    def bind(self, parameters: Iterable[torch.nn.Parameter]) -> None:
        """Names the parameters again: after unpickling, or for a new model of the same shape."""
        parameters = list(parameters)
        self._index = {id(parameter): index for index, parameter in enumerate(parameters)}
        self._sizes = [parameter.numel() for parameter in parameters]
        self._reset()

    def _reset(self) -> None:
        self._steps_seen = 0
        self._carrier: Carrier | None = None
        self._under_way: Step | None = None

    def state_dict(self) -> dict[str, Any]:
        """State for a checkpoint. The same on all ranks."""
        groups = [{"parameters": list(key), "scale": asdict(value)} for key, value in self._groups.items()]
        return {"format": STATE_FORMAT, "step": self.step, "redone": self.redone, "groups": groups}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Goes on from `state_dict()`: the first step already travels with the saved scales."""
        if state.get("format") != STATE_FORMAT:
            raise ValueError(f"expected a state of format {STATE_FORMAT}, found {state.get('format')}")
        self.step = state["step"]
        self.redone = state["redone"]
        self._groups = {tuple(group["parameters"]): _read_scale(group["scale"]) for group in state["groups"]}
        self._has_resumed = bool(self._groups)
        self._reset()

    def __getstate__(self) -> dict[str, Any]:
        return {"state": self.state_dict(), "agree_every": self.agree_every, "levels": self.levels}

    def __setstate__(self, pickled: dict[str, Any]) -> None:
        self.process_group = None
        self.agree_every = pickled["agree_every"]
        self.levels = pickled.get("levels", 1)
        self._index, self._sizes = {}, []
        self.load_state_dict(pickled["state"])

    def exchange(self, bucket: GradBucket) -> torch.futures.Future[torch.Tensor]:
        """Sends one bucket on its way.

        Args:
            bucket: gradients of one bucket of DDP, flat.

        Returns:
            A future that ends when its mean is there, the last bucket's when the step is over.
        """
        values = bucket.buffer()
        if values.layout != torch.strided:
            raise ExchangeMismatch(self._name_sparse(bucket.parameters()[0]))
        carrier, step = self._begin_step(values) if bucket.index() == 0 else self._present()
        result = step.send(values, self._plan_runs(bucket, values), bucket.is_last())
        if bucket.is_last():
            carrier.flush()
        return result

    def _name_sparse(self, parameter: torch.Tensor) -> str:
        shape = " x ".join(map(str, parameter.shape))
        return (
            f"the gradient of parameter {self._index.get(id(parameter), '?')} ({shape}) is sparse, and halves of "
            "sparse gradients are not exchanged: make the layer with sparse=False, or train it without this hook"
        )

    def _present(self) -> tuple[Carrier, Step]:
        assert self._carrier is not None and self._under_way is not None  # DDP hands over bucket 0 first
        return self._carrier, self._under_way

    def _begin_step(self, values: torch.Tensor) -> tuple[Carrier, Step]:
        if self._carrier is None:
            self._carrier = self._open_carrier(values.device)
        if self.agree_every and self._steps_seen > 0 and self.step % self.agree_every == 0:
            self._check_agreement(values.device)
        self._under_way = Step(self._carrier, self._end_step)
        return self._present()

    def _open_carrier(self, device: torch.device) -> Carrier:
        if self.levels == 2:
            from .two_level_carrier import open_two_levels

            return open_two_levels(device)(self.process_group)
        return (DeviceCarrier if device.type == "cuda" else HostCarrier)(self.process_group)

    def _end_step(self, runs: list[Run]) -> None:
        """Every rank gets here with the same results, so all go on with the same scales."""
        groups: dict[tuple[int, ...], list[Run]] = {}
        for run in runs:
            groups.setdefault(run.group, []).append(run)
        for group, members in groups.items():
            is_redone = any(run.is_redone for run in members)
            self.redone += is_redone
            kind = "redone" if is_redone else "clean"
            if any(run.amaxes is None for run in members):
                kind = "not finite"
            self._advance(group, kind, members)
        self.step += 1
        self._steps_seen += 1

    def _plan_runs(self, bucket: GradBucket, values: torch.Tensor) -> list[Run]:
        parameters = bucket.parameters()
        try:
            indices = tuple(self._index[id(parameter)] for parameter in parameters)
        except KeyError:
            raise ExchangeMismatch("DDP exchanges a parameter that ScaledHalf was not given; call bind()") from None
        known = self._groups.get(indices)
        if known is None and self._has_resumed and self._steps_seen == 0:
            return self._plan_resumed_runs(indices, parameters, values)
        wire_type, exponents = scales.plan_wire(known or scales.Scale(), values.numel(), len(indices))
        sizes = [parameter.numel() for parameter in parameters]
        return [Run(indices, indices, values, sizes, wire_type, exponents)]

    def _plan_resumed_runs(
        self, indices: tuple[int, ...], parameters: Sequence[torch.Tensor], values: torch.Tensor
    ) -> list[Run]:
        """DDP's first buckets differ from those it builds after one step, which the saved scales belong to."""
        home = {index: key for key in self._groups for index in key}
        sizes = {key: sum(self._sizes[index] for index in key) for key in self._groups}
        pieces: list[tuple[tuple[int, ...], list[int]]] = []  # group, its parameters that are neighbours here
        for index in indices:
            key = home.get(index, (index,))
            if pieces and pieces[-1][0] == key:
                pieces[-1][1].append(index)
            else:
                pieces.append((key, [index]))
        runs, start = [], 0
        for key, members in pieces:
            counts = [self._sizes[index] for index in members]
            known = self._groups.get(key, scales.Scale())
            wire_type, exponents = scales.plan_wire(known, sizes.get(key, sum(counts)), len(key))
            own = [exponents[key.index(index)] for index in members] if exponents else ()
            runs.append(Run(key, members, values[start : start + sum(counts)], counts, wire_type, own))
            start += sum(counts)
        return runs

    def _advance(self, group: tuple[int, ...], kind: str, members: list[Run]) -> None:
        # Step 0 is not remembered: DDP builds its final buckets after it.
        if group not in self._groups and self._steps_seen == 0:
            return
        known = self._groups.get(group, scales.Scale())
        found = {index: amax for run in members for index, amax in zip(run.parameters, run.amaxes or ())}
        amaxes = [found.get(index, 0.0) for index in group]  # of none, where one is not finite
        if group not in self._groups:
            own = set(group)
            self._groups = {key: value for key, value in self._groups.items() if own.isdisjoint(key)}
        self._groups[group] = scales.advance(known, kind, members[0].wire_type, amaxes)

    def _check_agreement(self, device: torch.device) -> None:
        own = zlib.crc32(json.dumps(self.state_dict(), sort_keys=True).encode())
        mine = torch.tensor([own], dtype=torch.int64, device=device)
        everyone = [torch.empty_like(mine) for _ in range(dist.get_world_size(self.process_group))]
        dist.all_gather(everyone, mine, group=self.process_group)
        found = [int(value) for value in everyone]
        odd = [rank for rank, value in enumerate(found) if value != found[0]]
        if odd:
            raise ExchangeMismatch(f"after step {self.step} the scales of ranks {odd} differ from those of rank 0")


def _read_scale(saved: dict[str, Any]) -> scales.Scale:
    return scales.Scale(**{**saved, "exponents": tuple(saved["exponents"])})


def scaled_half_hook(state: ScaledHalf, bucket: GradBucket) -> torch.futures.Future[torch.Tensor]:
    """For `ddp.register_comm_hook(ScaledHalf(model.parameters()), scaled_half_hook)`.

    Args:
        state: What this rank keeps from one bucket to the next.
        bucket: The gradients that DDP hands over, flat.

    Returns:
        The mean of all ranks, of the bucket's shape and type, once it is there.
    """
    return state.exchange(bucket)
