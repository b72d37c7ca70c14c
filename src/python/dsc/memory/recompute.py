"""Runs the forward of planned blocks again in backward, as ``torch.utils.checkpoint`` does it, around the model."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch.utils.checkpoint import checkpoint

from ..torch_private import current_node, tree_flatten, tree_unflatten
from .plan_format import Recomputation
from .runnable_plan import PlanError


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
            module.forward = _recomputed(name, module, calls)

    def leave(self) -> None:
        """Takes it off again: the model is as it was."""
        for module, _ in self._blocks.values():
            own = module.__dict__["forward"]
            if own.earlier is None:
                del module.__dict__["forward"]
            else:  # somebody else's, for example accelerate's
                module.forward = own.earlier


def _recomputed(name: str, module: torch.nn.Module, calls: dict[int, Recomputation]) -> Callable[..., Any]:
    earlier = module.__dict__.get("forward")
    plain = module.forward
    count = 0

    def forward(*args: Any, **kwargs: Any) -> Any:
        nonlocal count
        planned = calls.get(count)
        # Inside backward somebody else runs a block around this one again.
        if planned is None or not torch.is_grad_enabled() or current_node() is not None:
            count += current_node() is None
            return plain(*args, **kwargs)
        count += 1
        leaves, spec = tree_flatten((args, kwargs))
        given = [at for at, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
        rest = [None if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]

        def run(*tensors: torch.Tensor) -> Any:
            filled = list(rest)
            for at, tensor in zip(given, tensors):
                filled[at] = tensor
            own_args, own_kwargs = tree_unflatten(filled, spec)
            return plain(*own_args, **own_kwargs)

        buffers = _Buffers(module, [label.removeprefix(f"{name}.") for label in planned["buffers"]])
        tensors = [leaves[at] for at in given]
        del leaves, args, kwargs  # what is saved must not be held here, too
        return checkpoint(
            run,
            *tensors,
            use_reentrant=False,
            context_fn=lambda: (contextlib.nullcontext(), buffers.as_before()),
        )

    forward.earlier = earlier  # type: ignore[attr-defined]
    return forward


class _Buffers:
    """Buffers that a forward changes, as they were before it: its second run starts from them and changes copies."""

    def __init__(self, module: torch.nn.Module, names: Sequence[str]) -> None:
        self._places: list[tuple[torch.nn.Module, str, torch.Tensor]] = []
        for name in names:
            owner = module.get_submodule(name.rpartition(".")[0])
            label = name.rpartition(".")[2]
            buffer = owner._buffers.get(label)
            if buffer is not None:
                self._places.append((owner, label, buffer.detach().clone()))

    @contextlib.contextmanager
    def as_before(self) -> Iterator[None]:
        """While a forward runs again."""
        present = [(owner, label, owner._buffers[label]) for owner, label, _ in self._places]
        for owner, label, before in self._places:
            owner._buffers[label] = before.clone()
        try:
            yield
        finally:
            for owner, label, buffer in present:
                owner._buffers[label] = buffer
