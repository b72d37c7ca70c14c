"""Finds what a forward changes beside its output: its second run would not find it as it was."""

from __future__ import annotations

import random
import sys
import weakref
from typing import Any

import torch

from ...torch_private import storage_key, tree_flatten, tree_leaves, version_of

_VALUES = (type(None), bool, int, float, complex, str, bytes)
_TORCHS = frozenset(vars(torch.nn.Module())) | {"forward"}  # attributes that a module has from torch itself


class Changes:
    """Compares what a call of a module may read, before it and after it.

    Args:
        module: that is called.
        given: its arguments.
    """

    def __init__(self, module: torch.nn.Module, given: Any) -> None:
        self._given = _Contents(given)
        self._attributes = {at: (_Leaf(value), _Contents(value)) for at, value in _list_attributes(module)}
        self._draws = _random_states()

    def find_obstacle(self, module: torch.nn.Module, given: Any) -> str | None:
        """Why the call cannot run again, after it; None where nothing stands in the way."""
        if not self._given.are_in(given):
            return "changes a list or dict that it is given"
        for at, value in _list_attributes(module):
            known = self._attributes.get(at)
            if known is not None and known[0].is_same(value) and not known[1].are_unchanged_in(value):
                return f"changes what {'.'.join(filter(None, at))} holds"
        drawn = [name for name, state in _random_states().items() if self._draws.get(name) != state]
        return f"draws random numbers from {drawn[0]}, which torch does not draw again" if drawn else None

    def list_reassigned(self, module: torch.nn.Module) -> list[tuple[str, str]]:
        """Attributes that the call has set to something else: the module they belong to, and their names."""
        now = dict(_list_attributes(module))
        gone = [at for at in self._attributes if at not in now]
        known = self._attributes
        return gone + [at for at, value in now.items() if at not in known or not known[at][0].is_same(value)]


class _Leaf:
    """One object as it is now. Tensors are not kept alive."""

    def __init__(self, value: Any) -> None:
        is_tensor = isinstance(value, torch.Tensor)
        self._reference: Any = weakref.ref(value) if is_tensor else lambda: value
        self._place = (storage_key(value), value.shape) if is_tensor else None
        self._state = _state_of(value)

    def is_same(self, value: Any) -> bool:
        """Whether it is the same object, or an equal number or text."""
        known = self._reference()
        return known is value or (isinstance(value, _VALUES) and type(known) is type(value) and bool(known == value))

    def is_view_of(self, value: Any) -> bool:
        """Whether it is a tensor of the same place: a module with backward hooks is given others than its hooks see."""
        return isinstance(value, torch.Tensor) and self._place == (storage_key(value), value.shape)

    def is_unchanged(self, value: Any) -> bool:
        """Whether the same object is as it was."""
        return bool(self._state == _state_of(value))


class _Contents:
    """Nested lists, tuples and dicts as they are now."""

    def __init__(self, nest: Any) -> None:
        leaves, self._spec = tree_flatten(nest)
        self._leaves = [_Leaf(leaf) for leaf in leaves]

    def are_in(self, nest: Any) -> bool:
        """Whether it has the same leaves in the same places."""
        leaves, spec = tree_flatten(nest)
        return bool(spec == self._spec) and all(
            known.is_same(leaf) or known.is_view_of(leaf) for known, leaf in zip(self._leaves, leaves)
        )

    def are_unchanged_in(self, nest: Any) -> bool:
        """Whether the leaves are as they were, too."""
        return self.are_in(nest) and all(
            known.is_unchanged(leaf) for known, leaf in zip(self._leaves, tree_leaves(nest))
        )


def _list_attributes(module: torch.nn.Module) -> list[tuple[tuple[str, str], Any]]:
    """Those of a module and of the modules inside, apart from parameters, buffers and modules."""
    return [
        ((owner_name, name), value)
        for owner_name, owner in module.named_modules()
        for name, value in vars(owner).items()
        if name not in _TORCHS
    ]


def _state_of(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return version_of(value)
    if isinstance(value, torch.Generator):
        return bytes(value.get_state().tolist())
    return None


def _random_states() -> dict[str, Any]:
    states: dict[str, Any] = {"Python's random": random.getstate()}
    numpy = sys.modules.get("numpy.random")
    if numpy is not None:
        kind, keys, *rest = numpy.get_state()
        states["numpy.random"] = (kind, keys.tobytes(), rest)
    return states
