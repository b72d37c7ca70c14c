"""Cuts a training step into layers: leaf modules and the operations between them, in order of execution."""

from __future__ import annotations

import bisect
from collections.abc import Callable
from typing import Any, Protocol

import torch

from ...torch_private import current_node, next_sequence_number, sequence_number_of


class BlockWatch(Protocol):
    """Is told when a forward enters and leaves a module that has modules inside."""

    def enter(self, name: str, module: torch.nn.Module, args: Any, kwargs: Any) -> None:
        """The call begins; the segment that it begins with is the current one."""

    def leave(self, name: str, args: Any, kwargs: Any) -> None:
        """The call is over, and what it was given as it left it; the segment after it is not yet begun."""


class Segments:
    """Follows one forward pass: a segment per call of a leaf module, and one per stretch between two boundaries.

    Boundaries are the beginnings and ends of the calls of all modules but the outermost.

    Args:
        model: whose forward is followed.
        on_segment: told the number of each segment that begins.
        watch: told of the modules that have modules inside.
    """

    def __init__(
        self,
        model: torch.nn.Module,
        on_segment: Callable[[int], None] | None = None,
        watch: BlockWatch | None = None,
    ) -> None:
        self.names = ["before the first layer"]
        self.starts = [next_sequence_number()]
        self.leaf_calls: dict[int, int] = {}  # segment → number of the call of a leaf that it is
        self.on_segment = on_segment or (lambda index: None)
        self._watch = watch
        self._handles: list[Any] = []
        for name, module in model.named_modules():
            if next(module.children(), None) is None:
                label = name or type(module).__name__
                enter, leave = only_of(module, self._enter(label)), only_of(module, self._leave(label))
                self._handles.append(module.register_forward_pre_hook(enter))
                self._handles.append(module.register_forward_hook(leave))
            elif name:
                enter, leave = only_of(module, self._enter_block(name)), only_of(module, self._leave_block(name))
                self._handles.append(module.register_forward_pre_hook(enter, with_kwargs=True))
                self._handles.append(module.register_forward_hook(leave, with_kwargs=True))

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
            if current_node() is None:
                self.leaf_calls[len(self.names)] = len(self.leaf_calls)
            self._start(label)

        return hook

    def _leave(self, label: str) -> Callable[..., None]:
        def hook(module: torch.nn.Module, inputs: Any, output: Any) -> None:
            self._start(f"after {label}")

        return hook

    def _enter_block(self, name: str) -> Callable[..., None]:
        def hook(module: torch.nn.Module, args: Any, kwargs: Any) -> None:
            self._start(f"before {name}")
            if self._watch is not None and current_node() is None:
                self._watch.enter(name, module, args, kwargs)

        return hook

    def _leave_block(self, name: str) -> Callable[..., None]:
        def hook(module: torch.nn.Module, args: Any, kwargs: Any, output: Any) -> None:
            if self._watch is not None and current_node() is None:
                self._watch.leave(name, args, kwargs)
            self._start(f"after {name}")

        return hook


def only_of(own: torch.nn.Module, hook: Callable[..., None]) -> Callable[..., None]:
    """A hook that is silent in copies of a module: copying a model in its forward copies its hooks, too."""

    def call(module: torch.nn.Module, *seen: Any) -> None:
        if module is own:
            hook(module, *seen)

    return call
