"""Cuts a training step into layers: leaf modules and the operations between them, in order of execution."""

from __future__ import annotations

import bisect
from collections.abc import Callable
from typing import Any

import torch

from ..torch_private import current_node, next_sequence_number, sequence_number_of


class Segments:
    """Follows one forward pass. Segment 2k+1 is the k-th call of a leaf module, 2k what runs before it."""

    def __init__(self, model: torch.nn.Module, on_segment: Callable[[int], None] | None = None) -> None:
        self.names = ["before the first layer"]
        self.starts = [next_sequence_number()]
        self.on_segment = on_segment or (lambda index: None)
        self._handles = []
        for name, module in model.named_modules():
            if next(module.children(), None) is None:
                label = name or type(module).__name__
                self._handles.append(module.register_forward_pre_hook(self._enter(label)))
                self._handles.append(module.register_forward_hook(self._leave(label)))

    @property
    def current(self) -> int:
        """The segment that runs now."""
        return len(self.names) - 1

    def close(self) -> None:
        """Takes the hooks off the model."""
        for handle in self._handles:
            handle.remove()

    def of_node(self, node: torch.autograd.graph.Node | None) -> int | None:
        """Segment whose forward made an autograd node; None for nodes that belong to none."""
        if node is None:
            return None
        number = sequence_number_of(node)
        if number is None or number < self.starts[0]:
            return None
        return bisect.bisect_right(self.starts, number) - 1

    def _start(self, name: str) -> None:
        if current_node() is not None:
            return  # activation checkpointing runs a forward again inside backward
        self.names.append(name)
        self.starts.append(next_sequence_number())
        self.on_segment(self.current)

    def _enter(self, label: str) -> Callable[..., None]:
        def hook(module: torch.nn.Module, inputs: Any) -> None:
            self._start(label)

        return hook

    def _leave(self, label: str) -> Callable[..., None]:
        def hook(module: torch.nn.Module, inputs: Any, output: Any) -> None:
            self._start(f"after {label}")

        return hook
