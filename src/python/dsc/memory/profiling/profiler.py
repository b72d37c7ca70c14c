"""``dsc.memory.profile``: writes what the planner needs to know about one training step."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from typing import Any

import torch

from ...torch_private import tree_leaves
from ..plan.plannable import refuse_sharded
from ..recording.record import MemoryRecord
from ..recording.timing import TimedGradients, TimedStep
from .build_profile import build_profile
from .measured import Measured
from .observer import Idle, Observer, PeakMemory, run_observed


def profile(
    model: torch.nn.Module,
    inputs: Any,
    *,
    out: str | os.PathLike[str] | None = None,
    loss: Callable[[Any], torch.Tensor] | None = None,
    optimizer: torch.optim.Optimizer | None = None,
    device: torch.device | None = None,
) -> dict[str, Any]:
    """Profiles training steps of ``model`` on ``inputs`` and returns the profile (a dict of JSON values).

    On a GPU, `torch.cuda.max_memory_allocated` restarts for one of them; the log has the old value.

    Args:
        model: on the device that it will be trained on. Its gradients, buffers and random numbers are as before.
        inputs: one tensor, a tuple of positional or a dict of keyword arguments of the model.
        out: a path to write the profile to.
        loss: from the model's output to a scalar; default: the sum of the first tensor in it.
        optimizer: whose state is counted.
        device: default: that of the first parameter.

    Returns:
        Times in microseconds, sizes in bytes, per layer and per tensor.

    Raises:
        PlanError: the model cannot be planned: it is sharded, calls no layers, or saves other tensors in every
            iteration.
    """
    loss = loss or sum_of_first
    device = device or next(model.parameters()).device

    def step() -> torch.Tensor:
        if isinstance(inputs, dict):
            return loss(model(**inputs))
        return loss(model(*(inputs if isinstance(inputs, (tuple, list)) else (inputs,))))

    return profile_step(model, step, held=[inputs], optimizer=optimizer, device=device, out=out)


def profile_step(
    model: torch.nn.Module,
    step: Callable[[], torch.Tensor],
    *,
    held: Sequence[Any] = (),
    optimizer: torch.optim.Optimizer | None = None,
    device: torch.device | None = None,
    out: str | os.PathLike[str] | None = None,
    is_accumulating: bool = False,
) -> dict[str, Any]:
    """Like ``profile``, for any way to a loss.

    Args:
        model: whose layers are measured.
        step: runs a forward and returns the loss.
        held: the tensors that the step is given.
        optimizer: whose state is counted.
        device: default: that of the first parameter.
        out: a path to write the profile to.
        is_accumulating: whether the step adds to the gradients that there are.

    Returns:
        See ``profile``.
    """
    device = device or next(model.parameters()).device
    grads = {name: p.grad for name, p in model.named_parameters()}
    buffers = {name: b.detach().clone() for name, b in model.named_buffers()}
    rng = torch.get_rng_state()
    cuda_rng = torch.cuda.get_rng_state(device) if device.type == "cuda" else None

    def fresh() -> None:
        for name, parameter in model.named_parameters():
            earlier = grads[name] if is_accumulating else None
            parameter.grad = None if earlier is None else earlier.clone()
        with torch.no_grad():
            for name, b in model.named_buffers():
                b.copy_(buffers[name])
        torch.set_rng_state(rng)
        if cuda_rng is not None:
            torch.cuda.set_rng_state(cuda_rng, device)

    state = optimizer.state_dict() if optimizer else ()
    profiling = Profiling(model, device, lambda: {"opt_state": tensors_in(state), "buffer": tensors_in(held)})
    try:
        while (observer := profiling.next_observer()) is not None:
            fresh()
            with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
                run_observed(observer, step)
    finally:
        fresh()
        for name, parameter in model.named_parameters():
            parameter.grad = grads[name]
    return profiling.write(out)


class Profiling:
    """Observes the steps that a profile is made from, one observer after the other.

    Args:
        model: whose layers are measured.
        device: that runs it.
        list_held: what is alive before a step besides the model, by kind.

    Raises:
        PlanError: the model is sharded.
    """

    def __init__(
        self, model: torch.nn.Module, device: torch.device, list_held: Callable[[], dict[str, list[torch.Tensor]]]
    ) -> None:
        refuse_sharded(model)
        self._model, self._device, self._list_held = model, device, list_held
        self._times = [TimedStep(model, device) for _ in range(3)]
        self._gradients = TimedGradients(model, device)
        self._plain = MemoryRecord(model, self._held)
        self._moved = MemoryRecord(model, self._held, is_offloading=True)
        self._reusing = MemoryRecord(model, self._held, is_reusing=True)
        self._peak = PeakMemory(device)
        self._left: list[Observer] = [Idle(), *self._times, self._gradients, self._plain, self._moved, self._reusing]
        if device.type == "cuda":
            self._left.append(self._peak)

    @property
    def is_complete(self) -> bool:
        """Whether every observer has been asked for."""
        return not self._left

    @property
    def steps_left(self) -> int:
        """How many steps are still to be observed."""
        return len(self._left)

    def next_observer(self) -> Observer | None:
        """The observer of the next step; None after the last."""
        return self._left.pop(0) if self._left else None

    def write(self, out: str | os.PathLike[str] | None) -> dict[str, Any]:
        """The profile, once every observer has seen its step; written to ``out`` where that is a path."""
        plain, reusing = self._plain, self._reusing
        is_alike = _packs(reusing) == _packs(plain) and reusing.unpacked == plain.unpacked
        measured = Measured(
            [step.times for step in self._times],
            self._gradients.shares,
            plain,
            self._moved,
            reusing if is_alike and reusing.reused else None,
            max(0, self._peak.bytes - plain.device.peak_bytes) if self._device.type == "cuda" else 0,
        )
        built = build_profile(self._model, self._device, measured)
        if out is not None:
            with open(out, "w", encoding="utf-8") as file:
                json.dump(built, file, separators=(",", ":"))
        return built

    def _held(self) -> dict[str, list[torch.Tensor]]:
        held = self._list_held()
        # A batch is not the planner's to move either, nor a gradient that earlier backwards left.
        left = [p.grad for p in self._model.parameters() if p.grad is not None]
        return {
            "param": list(self._model.parameters()),
            "opt_state": held["opt_state"],
            "buffer": [*self._model.buffers(), *held["buffer"], *left],
        }


def _packs(record: MemoryRecord) -> list[Any]:
    return [(s["segment"], s["dtype"], s["shape"], s["stride"]) for s in record.saved]


def tensors_in(nest: Any) -> list[torch.Tensor]:
    """The tensors in nested lists, tuples and dicts."""
    return [leaf for leaf in tree_leaves(nest) if isinstance(leaf, torch.Tensor)]


def sum_of_first(output: Any) -> torch.Tensor:
    """A loss from any output of a model: its own, or the sum of the first tensor in it."""
    if isinstance(output, torch.Tensor):
        return output.float().sum() if not output.is_floating_point() else output.sum()
    if isinstance(output, dict):
        return output["loss"] if "loss" in output else sum_of_first(next(iter(output.values())))
    return output.loss if hasattr(output, "loss") and output.loss is not None else sum_of_first(output[0])
