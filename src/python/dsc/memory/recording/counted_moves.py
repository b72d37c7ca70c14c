"""Counts what a step really moves between device and host, whichever tool moves it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ...torch_private import TorchDispatchMode, saved_tensor_hook, tree_leaves


class CountedMoves(TorchDispatchMode):
    """Counts the copies of the steps inside ``with dsc.memory.CountedMoves() as moves:``; ``print(moves)`` says it all.

    An offload that does nothing raises no error. Here it reads "0 bytes moved", and why.

    Attributes:
        out_bytes: copied to the host.
        in_bytes: copied to the device.
        copies: how many copies that took.
        hooks: names of the saved-tensor hooks that were on.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.out_bytes = self.in_bytes = self.copies = 0
        self.hooks: set[str] = set()
        self._devices: set[str] = set()

    def __torch_dispatch__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        hook = saved_tensor_hook()
        if hook is not None:
            self.hooks.add(_name_of(hook))
        result = func(*args, **(kwargs or {}))
        if isinstance(result, torch.Tensor):
            self._devices.add(result.device.type)
        if func in (torch.ops.aten._to_copy.default, torch.ops.aten.copy_.default):
            # The last tensor given is the source: `copy_` is given its target first.
            source = [leaf for leaf in tree_leaves(args) if isinstance(leaf, torch.Tensor)][-1]
            self._count(source.device.type, result)
        return result

    def _count(self, source: str, result: torch.Tensor) -> None:
        target = result.device.type
        if (source == "cpu") == (target == "cpu"):
            return
        self.copies += 1
        if target == "cpu":
            self.out_bytes += result.nbytes
        else:
            self.in_bytes += result.nbytes

    def __str__(self) -> str:
        if self.copies > 0:
            return f"{_size(self.out_bytes)} moved out, {_size(self.in_bytes)} moved in, in {self.copies} copies"
        return f"0 bytes moved: {self._explain()}"

    def _explain(self) -> str:
        if self._devices <= {"cpu"}:
            return "every tensor is on the CPU, which is the host already"
        if not self.hooks:
            return "no saved-tensor hook was on, so no tool was given what autograd saves"
        return f"{', '.join(sorted(self.hooks))} was on, and left every saved tensor on its device"


def _name_of(hook: Callable[..., Any]) -> str:
    qualified = getattr(hook, "__qualname__", type(hook).__name__)
    owner = qualified.partition(".<locals>")[0].removesuffix(".__init__")
    return f"{getattr(hook, '__module__', '')}.{owner}".lstrip(".")


def _size(count: int) -> str:
    for unit, factor in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if count >= factor:
            return f"{count / factor:.2f} {unit}"
    return f"{count} B"
