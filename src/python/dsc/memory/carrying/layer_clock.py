"""Tells which layer of a profile a forward has reached."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from ...torch_private import current_node


class LayerClock:
    """Calls ``on_layer(index)`` as a forward passes the layers of a profile, by the names it gave them."""

    def __init__(self, model: torch.nn.Module, names: Sequence[str], on_layer: Callable[[int], None]) -> None:
        self._names = names
        self._on_layer = on_layer
        self._at = 0
        self._is_running = False
        self._hooks = []
        for name, module in model.named_modules():
            is_leaf = next(module.children(), None) is None
            label = name or type(module).__name__
            if is_leaf or name:  # the boundaries of `Segments`
                begins = label if is_leaf else f"before {name}"
                self._hooks.append(module.register_forward_pre_hook(self._passing(begins)))
                self._hooks.append(module.register_forward_hook(self._passing(f"after {label}")))

    def begin(self) -> None:
        """A forward begins."""
        self._at = 0
        self._is_running = True

    def end(self) -> None:
        """The forward is over."""
        self._is_running = False

    def close(self) -> None:
        """Takes the hooks off the model."""
        for hook in self._hooks:
            hook.remove()

    def _passing(self, label: str) -> Callable[..., None]:
        def hook(*_: Any) -> None:
            following = self._at + 1
            # A layer in which nothing ran has no place in the profile; a forward inside backward is a checkpoint's.
            is_next = self._is_running and following < len(self._names) and self._names[following] == label
            if is_next and current_node() is None:
                self._at = following
                self._on_layer(following)

        return hook
