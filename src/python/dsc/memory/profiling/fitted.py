"""``model, step = dsc.memory.fit(model, budget="20GiB")``: profiles in the first step, plans, and goes on."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import tempfile
import warnings
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import torch
from torch.optim.optimizer import register_optimizer_step_pre_hook

from ...program import find_program
from ...torch_private import tree_leaves
from ..carrying.copies import Copies
from ..carrying.executor import Offload
from ..carrying.host_side import HostSide
from ..plan.plan_format import Plan
from ..plan.plannable import refuse_compiled, refuse_parted
from ..plan.runnable_plan import PlanError
from .first_steps import FirstSteps
from .profiler import tensors_in

MOST_PLANS = 16  # each takes a step with everything on the host; models that see more shapes than this should pad


def fit(
    model: torch.nn.Module,
    *,
    budget: int | str,
    smallest: str = "1MiB",
    host_limit_bytes: int | None = None,
    copies: Copies | None = None,
) -> tuple[torch.nn.Module, FittedStep]:
    """Trains a model within a budget of device memory: blocks are recomputed and tensors moved as a plan says.

    On a GPU, `torch.cuda.max_memory_allocated` restarts with the second step of each shape; the log has the old value.

    Args:
        model: on the device that it is trained on; it is returned as it is.
        budget: device bytes (``20 * 2**30``, ``"20GiB"``), or a share of the peak without a plan (``"50%"``).
        smallest: smaller tensors stay where they are.
        host_limit_bytes: most host memory that a plan's arena may take; default: half of what is free.
        copies: what moves the bytes; default: threads on CPU, streams on CUDA.

    Returns:
        The model, and what runs a forward and backward of it: ``loss = step(compute_loss, *batch)``.

    Raises:
        PlanError: the model cannot be planned: it is compiled, or in parts that `fully_shard` does not gather; or
            `dsc` is not installed here.
    """
    refuse_compiled(model)
    refuse_parted(model)
    command = find_program()
    if not command:
        raise PlanError("the program dsc is not installed here: pip install dsc-data, or DSC_BIN='node .../dsc.js'")
    planner = _Planner(command, str(budget), smallest)
    return model, FittedStep(model, planner, {"host_limit_bytes": host_limit_bytes, "copies": copies})


class FittedStep:
    """Runs forwards and backwards of one model under plans of their own, one per shape of batch.

    Args:
        model: that is trained.
        planner: what makes the plans.
        options: of the memory on the host.
    """

    def __init__(self, model: torch.nn.Module, planner: _Planner, options: Mapping[str, Any]) -> None:
        self.model = model
        self._planner = planner
        self._host = HostSide(options.get("host_limit_bytes"), options.get("copies"))
        self._first: dict[str, FirstSteps] = {}
        self._profiles: dict[str, dict[str, Any]] = {}
        self._executors: dict[str, Offload] = {}
        self._optimizers: list[weakref.ref[torch.optim.Optimizer]] = []
        self._state_bytes = 0
        self._is_told = False
        self._replanned: set[str] = set()  # shapes that were profiled once more
        self._unsteady: set[str] = set()  # shapes whose steps differ from one another: they are not planned
        # Bound weakly: the hook is on for as long as the process, the model may go before.
        own = weakref.ref(self)
        self._handle = register_optimizer_step_pre_hook(lambda optimizer, args, kwargs: _notice(own, optimizer))

    @property
    def plans(self) -> list[Plan]:
        """The plans that were made so far, in the order of the batches they were made for."""
        return [executor.plan for executor in self._executors.values()]

    @property
    def executors(self) -> list[Offload]:
        """The executors of the plans, with their counts, in the same order."""
        return list(self._executors.values())

    def __call__(
        self, compute_loss: Callable[..., torch.Tensor] | Mapping[str, Any], *inputs: Any, **named: Any
    ) -> torch.Tensor:
        """Runs a forward and its backward; gradients are added to ``.grad`` as always.

        The first step with new shapes runs with saved tensors on the host and is what the plan is made from, on a GPU
        the first two: slower, and in little memory.

        Args:
            compute_loss: from the inputs to the loss; it calls the model. Or a dict of the model's inputs, where the
                model's output has a ``loss``.
            *inputs: what ``compute_loss`` is given; plans go by the shapes of the tensors in it.
            **named: more of them, by name.

        Returns:
            The loss, without its graph.

        Raises:
            PlanError: no plan fits the budget; the message says how much is needed, and where.
        """
        if isinstance(compute_loss, Mapping):
            batch = dict(compute_loss)
            return self(lambda **given: self.model(**given).loss, **batch)
        chosen = compute_loss

        def run() -> torch.Tensor:
            return chosen(*inputs, **named)

        self._count_state()
        shape = _shape_of(self.model, (inputs, named))
        if self._is_new(shape):
            return self._run_first(shape, run, held=(inputs, named))
        if shape in self._unsteady:
            loss = run()
            torch.autograd.backward(loss)
            return loss.detach()
        executor = self._executor_of(shape)
        with executor:
            loss = run()
        torch.autograd.backward(loss)
        executor.end_step()
        self._is_told = self._is_told or executor.counts["planMisses"] > 0
        return loss.detach()

    def close(self) -> None:
        """Gives all host memory back."""
        self._handle.remove()
        for executor in self._executors.values():
            executor.close()
        self._executors.clear()
        self._host.close()

    def _is_new(self, shape: str) -> bool:
        """Whether a shape's steps are still to be seen, for a plan: once more where the model has changed."""
        executor = self._executors.get(shape)
        if executor is not None and executor.needs_profile:
            self._executors.pop(shape).close()
            self._profiles.pop(shape, None)
            if shape in self._replanned:
                self._give_up(shape, executor.last_miss)
            self._replanned.add(shape)
        is_known = shape in self._profiles or shape in self._unsteady
        return not is_known and len(self._profiles) < MOST_PLANS

    def _give_up(self, shape: str, why: str | None) -> None:
        self._unsteady.add(shape)
        warnings.warn(
            f"steps with batches of one shape differ from one another ({why}): what they save depends on the data. "
            "They run without a plan from here on, and may take more memory than the budget. Pad what varies, or "
            "leave it out of what step() runs.",
            stacklevel=4,
        )

    def _run_first(self, shape: str, run: Callable[[], torch.Tensor], held: Any) -> torch.Tensor:
        first = self._first.pop(shape, None) or FirstSteps(self.model)
        loss = first.run(run, held, self._state_bytes)
        if first.is_complete:
            self._profiles[shape] = first.write()
            self._executor_of(shape)  # a budget that nothing fits is told now
        else:
            self._first[shape] = first
        return loss

    def _executor_of(self, shape: str) -> Offload:
        if shape not in self._profiles:
            return self._executor_of_most()
        if shape not in self._executors:
            plan = self._planner.plan(self._profiles[shape], self._state_bytes)
            self._executors[shape] = Offload(plan, model=self.model, host=self._host)
        executor = self._executors[shape]
        executor.run.is_told = self._is_told
        return executor

    def _executor_of_most(self) -> Offload:
        """For a batch beyond the shapes that are planned: what recomputes most; what it would move stays."""
        if not self._is_told:
            warnings.warn(
                f"batches have had more than {MOST_PLANS} shapes: this one is not planned for, and the blocks are "
                "recomputed that another plan recomputes. Pad batches to a few lengths.",
                stacklevel=3,
            )
            self._is_told = True
        for shape in self._profiles.keys() - self._executors.keys():
            self._executor_of(shape)
        executor = max(self._executors.values(), key=lambda one: one.plan["predicted"]["recomputeMs"])
        executor.run.is_told = True
        return executor

    def _count_state(self) -> None:
        """Plans again when an optimizer has made its state, which it does in its first step."""
        size = self._state_bytes_of([found for found in (own() for own in self._optimizers) if found is not None])
        if size == self._state_bytes:
            return
        self._state_bytes = size
        for executor in self._executors.values():
            executor.close()
        self._executors.clear()

    def _state_bytes_of(self, optimizers: Sequence[torch.optim.Optimizer]) -> int:
        """The state of optimizers on the model's device; some numbers of theirs are always on the host."""
        device = next(self.model.parameters()).device
        found = [tensor for optimizer in optimizers for tensor in tensors_in(list(optimizer.state.values()))]
        return sum({id(tensor): tensor.nbytes for tensor in found if tensor.device == device}.values())

    def _notice(self, optimizer: torch.optim.Optimizer) -> None:
        """Takes down an optimizer of the model before its step. One that was resumed has its state by then."""
        known = [own() for own in self._optimizers]
        parameters = set(self.model.parameters())
        if any(one is optimizer for one in known) or not any(
            parameter in parameters for group in optimizer.param_groups for parameter in group["params"]
        ):
            return
        self._optimizers.append(weakref.ref(optimizer))
        seen = self._state_bytes_of([optimizer])  # as memory that nobody knew of, in the profiles made so far
        for profile in self._profiles.values():
            profile["nonTorchBytes"] = max(0, profile["nonTorchBytes"] - seen)


class _Planner:
    """Makes plans by the program `dsc`."""

    def __init__(self, command: list[str], budget: str, smallest: str) -> None:
        self._command, self._budget, self._smallest = command, budget, smallest

    def plan(self, profile: dict[str, Any], held_bytes: int) -> Plan:
        """A plan for a profiled step beside `held_bytes` that the profile does not know of."""
        known = {**profile, "nonTorchBytes": profile["nonTorchBytes"] + held_bytes}
        with tempfile.TemporaryDirectory(prefix="dsc-fit-") as folder:
            path, out = os.path.join(folder, "step.profile.json"), os.path.join(folder, "step.plan.json")
            with open(path, "w", encoding="utf-8") as file:
                json.dump(known, file, separators=(",", ":"))
            words = ["memory", "plan", path, "--budget", self._budget, "--smallest", self._smallest, "--recompute"]
            done = subprocess.run([*self._command, *words, "--out", out], capture_output=True, text=True)
            if done.returncode != 0:
                raise PlanError(done.stderr.strip().removeprefix("dsc: ").replace(path, "this step"))
            with open(out, encoding="utf-8") as file:
                return cast(Plan, json.load(file))


def _notice(own: weakref.ref[FittedStep], optimizer: torch.optim.Optimizer) -> None:
    step = own()
    if step is not None:
        step._notice(optimizer)


def _has_grads(model: torch.nn.Module) -> bool:
    return any(parameter.grad is not None for parameter in model.parameters())


def _shape_of(model: torch.nn.Module, inputs: Any) -> str:
    """Identifies the inputs that the saved tensors of a step depend on.

    Texts and numbers, such as captions, file names or a step's number, are new in every batch; a model whose steps do
    depend on one is found by its saved tensors. Flags and what is absent count, as they choose a way through a model.
    """
    leaves = [
        (str(leaf.dtype), tuple(leaf.shape), leaf.requires_grad)
        if isinstance(leaf, torch.Tensor)
        else leaf
        if isinstance(leaf, (bool, type(None)))
        else type(leaf).__name__
        for leaf in tree_leaves(inputs)
    ]
    device = next(model.parameters()).device.type
    autocast = (torch.is_autocast_enabled(device), str(torch.get_autocast_dtype(device)))
    frozen = [name for name, parameter in model.named_parameters() if not parameter.requires_grad]
    words = repr((leaves, autocast, model.training, _has_grads(model), frozen))
    return hashlib.sha256(words.encode()).hexdigest()
