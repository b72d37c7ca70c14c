"""Runs the forward of planned blocks again in backward, as ``torch.utils.checkpoint`` does it, around the model."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import torch
from torch.utils.checkpoint import checkpoint

from ...torch_private import current_node, tree_flatten, tree_unflatten
from ..plan.plan_format import Recomputation
from ..plan.runnable_plan import PlanError


class RecomputedBlocks:
    """The blocks of one plan in one model. Between ``enter`` and ``leave`` their forward saves only what it is given.

    Args:
        model: whose blocks they are.
        planned: the calls that run again.

    Raises:
        PlanError: the model has no such block.
    """

    def __init__(self, model: torch.nn.Module, planned: Sequence[Recomputation]) -> None:
        self._blocks: dict[str, tuple[torch.nn.Module, dict[int, Recomputation]]] = {}
        modules = dict(model.named_modules())
        for one in planned:
            if one["name"] not in modules:
                raise PlanError(
                    f"the plan recomputes {one['name']}, which {type(model).__name__} does not have: give the model "
                    "that was profiled, not one around it or inside of it"
                )
            self._blocks.setdefault(one["name"], (modules[one["name"]], {}))[1][one["call"]] = one

    def enter(self) -> None:
        """Puts the recomputation around the blocks' forwards."""
        for name, (module, calls) in self._blocks.items():
            module.forward = _Recomputing(name, module, calls)

    def leave(self) -> None:
        """Takes it off again: the model is as it was."""
        for module, _ in self._blocks.values():
            own = module.__dict__["forward"]
            if own.earlier is None:
                del module.__dict__["forward"]
            else:  # somebody else's, for example accelerate's
                module.forward = own.earlier


class _Recomputing:
    """Stands for the forward of one module while its block is recomputed."""

    def __init__(self, name: str, module: torch.nn.Module, calls: dict[int, Recomputation]) -> None:
        self.earlier = module.__dict__.get("forward")
        self._plain = module.forward
        self._name, self._module, self._calls = name, module, calls
        self._count = 0

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy of the model, made in between, runs its own forward."""
        return _itself, (self._plain,)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        planned = self._calls.get(self._count)
        # Inside backward somebody else runs a block around this one again.
        if planned is None or not torch.is_grad_enabled() or current_node() is not None:
            self._count += current_node() is None
            return self._plain(*args, **kwargs)
        self._count += 1
        leaves, spec = tree_flatten((args, kwargs))
        given = [at for at, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
        rest = [None if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
        plain = self._plain

        def run(*tensors: torch.Tensor) -> Any:
            filled = list(rest)
            for at, tensor in zip(given, tensors):
                filled[at] = tensor
            own_args, own_kwargs = tree_unflatten(filled, spec)
            return plain(*own_args, **own_kwargs)

        before = _Before(self._module, [label.removeprefix(f"{self._name}.") for label in planned["buffers"]])
        tensors = [leaves[at] for at in given]
        del leaves, args, kwargs  # what is saved must not be held here, too
        return checkpoint(run, *tensors, use_reentrant=False, context_fn=lambda: (contextlib.nullcontext(), before))


def _itself(of: Any) -> Any:
    return of


_ABSENT = object()


class _Before:
    """The state of a module before a forward changed it: the context of its second run, and of a third.

    Args:
        module: that is called.
        names: of the buffers, of which every run gets copies, and of other attributes.
    """

    def __init__(self, module: torch.nn.Module, names: Sequence[str]) -> None:
        self._buffers: list[tuple[dict[str, Any], str, torch.Tensor]] = []
        self._others: list[tuple[dict[str, Any], str, Any]] = []
        self._present: list[list[Any]] = []  # of each run that is under way
        for name in names:
            owner = module.get_submodule(name.rpartition(".")[0])
            label = name.rpartition(".")[2]
            buffer = owner._buffers.get(label)
            if buffer is not None:
                self._buffers.append((owner._buffers, label, buffer.detach().clone()))
            elif label not in owner._buffers:
                self._others.append((vars(owner), label, vars(owner).get(label, _ABSENT)))

    def __enter__(self) -> None:
        self._present.append([place.get(label, _ABSENT) for place, label, _ in [*self._buffers, *self._others]])
        for place, label, before in self._buffers:
            place[label] = before.clone()
        for place, label, value in self._others:
            _put(place, label, value)

    def __exit__(self, *error: object) -> None:
        for (place, label, _), present in zip([*self._buffers, *self._others], self._present.pop()):
            _put(place, label, present)


def _put(place: dict[str, Any], label: str, value: Any) -> None:
    if value is _ABSENT:
        place.pop(label, None)
    else:
        place[label] = value
