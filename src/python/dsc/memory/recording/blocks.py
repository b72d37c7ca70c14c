"""The blocks of a recorded step: calls of modules whose forward could run again in backward instead of saving."""

from __future__ import annotations

from collections.abc import Sized
from typing import TYPE_CHECKING, Any, Protocol

import torch

from ...torch_private import tree_leaves, version_of, without_modes
from ..carrying.stash import is_plain
from ..plan.dtypes import short_dtype
from ..plan.plannable import sharded_units
from .changes import Changes

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from .segments import Segments

_UNCHANGING = (type(None), bool, int, float, complex, str, bytes, torch.dtype, torch.device, torch.Size, slice)


def block_inputs(args: Any, kwargs: Any) -> list[torch.Tensor]:
    """The tensors that a call is given, in the order in which they are saved for its second run."""
    return [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]


class BlockCall:
    """One call of a module with modules inside, from its first segment to its last.

    Args:
        name: of the module in the model.
        call: how many calls of this module were before it in the step.
        segment: that it begins with.
        packs: how many tensors were saved before it.
    """

    def __init__(self, name: str, call: int, segment: int, packs: int) -> None:
        self.name, self.call = name, call
        self.segments = (segment, segment)
        self.packs = (packs, packs)
        self.inputs: list[dict[str, Any]] = []  # storage, dtype, shape, stride, offset of each tensor it is given
        self.buffers: list[str] = []  # and other attributes of the model, changed by the call
        self.obstacle: str | None = None  # why it cannot run again
        self.witnesses: list[tuple[torch.Tensor, int]] = []  # share the inputs' versions, not their memory
        self.versions: dict[str, int] = {}
        self.changes: Changes | None = None  # while it runs


class RecordedStep(Protocol):
    """The part of a step's record that a `BlockRecorder` uses."""

    @property
    def segments(self) -> Segments:
        """The segments of the forward so far."""

    @property
    def saved(self) -> Sized:
        """The tensors that were saved so far."""

    def identify(self, tensor: torch.Tensor) -> int:
        """The id of a tensor's storage."""

    def untimed(self) -> AbstractContextManager[None]:
        """Counts what is done within to no segment."""


class BlockRecorder:
    """Records the calls of one forward.

    Args:
        record: of the step; its segments call ``enter`` and ``leave``.
    """

    def __init__(self, record: RecordedStep) -> None:
        self._record = record
        self._open: list[tuple[BlockCall, torch.nn.Module]] = []
        self._counts: dict[str, int] = {}
        self.calls: list[BlockCall] = []

    def enter(self, name: str, module: torch.nn.Module, args: Any, kwargs: Any) -> None:
        """See `BlockWatch`."""
        number = self._counts.get(name, 0)
        self._counts[name] = number + 1
        call = BlockCall(name, number, self._record.segments.current, len(self._record.saved))
        call.obstacle = _find_obstacle(args, kwargs)
        if not torch.is_grad_enabled():
            call.obstacle = "runs without gradients"
        elif any(unit is not module for unit in sharded_units(module)):
            call.obstacle = "has sharded parts inside, which other ranks would have to gather again, too"
        for tensor in block_inputs(args, kwargs):
            call.inputs.append(
                {
                    "storage": self._record.identify(tensor),
                    "dtype": short_dtype(tensor.dtype),
                    "shape": list(tensor.shape),
                    "stride": list(tensor.stride()) if is_plain(tensor) else [],
                    "offset": int(tensor.storage_offset()) if is_plain(tensor) else 0,
                }
            )
            with without_modes():
                witness = tensor.detach()
                witness.data = torch.empty(0, dtype=tensor.dtype, device=tensor.device)
            call.witnesses.append((witness, version_of(tensor)))
        call.versions = {label: version_of(buffer) for label, buffer in module.named_buffers()}
        with self._record.untimed(), without_modes():
            call.changes = Changes(module, (args, kwargs))
        self._open.append((call, module))
        self.calls.append(call)

    def leave(self, name: str, args: Any, kwargs: Any) -> None:
        """See `BlockWatch`."""
        while self._open:  # those inside that raised, and whose error was caught, are not left
            call, module = self._open.pop()
            if call.name == name:
                break
            call.obstacle, call.changes = "raised an error", None
        else:
            return
        call.segments = (call.segments[0], self._record.segments.current)
        call.packs = (call.packs[0], len(self._record.saved))
        # Kernels update running statistics without counting it; the module counts its batches.
        changed = {
            label.rpartition(".")[0]
            for label, buffer in module.named_buffers()
            if version_of(buffer) != call.versions.get(label)
        }
        call.buffers = [f"{name}.{label}" for label, _ in module.named_buffers() if label.rpartition(".")[0] in changed]
        changes, call.changes = call.changes, None
        assert changes is not None  # since it was entered
        with self._record.untimed(), without_modes():
            call.obstacle = call.obstacle or changes.find_obstacle(module, (args, kwargs))
            reassigned = changes.list_reassigned(module)
        call.buffers += [".".join(filter(None, (name, *at))) for at in reassigned]

    def end_forward(self) -> None:
        """The forward is over: whose input was changed in it, cannot run again."""
        for call in self.calls:
            if any(version_of(witness) != version for witness, version in call.witnesses):
                call.obstacle = call.obstacle or "its input is changed in place"
            call.witnesses.clear()
        for call, _ in self._open:
            call.obstacle, call.changes = "raised an error", None


def _find_obstacle(args: Any, kwargs: Any) -> str | None:
    for leaf in tree_leaves((args, kwargs)):
        if isinstance(leaf, torch.Tensor):
            if not is_plain(leaf):
                return "is given a tensor that is more than its bytes"
        elif not isinstance(leaf, _UNCHANGING) and not callable(leaf):
            return f"is given a {type(leaf).__name__}, which it may change"
    return None
