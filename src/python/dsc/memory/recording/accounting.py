"""Counts the bytes of every tensor storage that is alive: on CPU it stands in for a GPU's memory."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import torch

from ...torch_private import TorchDispatchMode, storage_key, storages_of, tree_leaves, watched_resizes, without_modes


class AccountingDevice(TorchDispatchMode):
    """A device whose memory is what tensors hold while this mode is on.

    Inside ``with AccountingDevice() as device:`` every storage that an operation returns is counted until it is
    freed, in forward and backward alike. Storages made earlier (parameters, batches) are counted after
    ``device.hold(model, batch)``. Host arenas are made under ``device.uncounted()`` and cost nothing.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.live_bytes = 0
        self.peak_bytes = 0
        self.clock = 0  # moves at every birth and death
        self._sizes: dict[int, int] = {}
        self.on_op: Callable[[tuple[Any, ...], dict[str, Any]], None] | None = (
            None  # called with (args, kwargs) before each operation's results are counted
        )
        self.on_birth: Callable[[int, int], None] | None = None  # called with (key, bytes)
        self.on_death: Callable[[int], None] | None = None  # called with (key,)

    def __enter__(self) -> AccountingDevice:
        self._resizes = watched_resizes(self._resized)
        self._resizes.__enter__()
        return super().__enter__()  # type: ignore[no-any-return, no-untyped-call]

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)  # type: ignore[no-untyped-call]
        self._resizes.__exit__(*error)

    @staticmethod
    def uncounted() -> AbstractContextManager[Any]:
        """A context in which tensors are made on the host, not on this device."""
        return without_modes()

    def hold(self, *things: Any) -> None:
        """Counts what exists already: tensors, modules, optimizers, and nests of them."""
        for thing in things:
            if isinstance(thing, torch.nn.Module):
                self.hold(list(thing.parameters()), list(thing.buffers()))
                self.hold([p.grad for p in thing.parameters() if p.grad is not None])
            elif isinstance(thing, torch.optim.Optimizer):
                self.hold(list(thing.state.values()))
            else:
                for leaf in tree_leaves(thing):
                    if isinstance(leaf, torch.Tensor):
                        self._count(leaf)

    def reset_peak(self) -> None:
        """Starts a new peak at what is alive now."""
        self.peak_bytes = self.live_bytes

    def is_alive(self, key: int) -> bool:
        """Whether the storage with this key (see `storage_key`) is counted."""
        return key in self._sizes

    def __torch_dispatch__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if self.on_op is not None:
            self.on_op(args, kwargs or {})
        result = func(*args, **(kwargs or {}))
        if isinstance(result, torch.Tensor):
            self._count(result)
        elif isinstance(result, (tuple, list)):
            for leaf in tree_leaves(result):
                if isinstance(leaf, torch.Tensor):
                    self._count(leaf)
        return result

    def _count(self, tensor: torch.Tensor) -> None:
        for storage in storages_of(tensor):
            self._count_storage(storage)

    def _count_storage(self, storage: torch.UntypedStorage) -> None:
        key = storage_key(storage)
        if key in self._sizes:
            return
        size = storage.nbytes()
        self._sizes[key] = size
        self.clock += 1
        self.live_bytes += size
        self.peak_bytes = max(self.peak_bytes, self.live_bytes)
        if self.on_birth is not None:
            self.on_birth(key, size)
        # A storage's Python object lives as long as the storage itself (PyObject preservation).
        weakref.finalize(storage, self._forget, key).atexit = False

    def _resized(self, storage: torch.UntypedStorage) -> None:
        """Memory of another size is other memory: the one ends, and one of the new size begins."""
        self._forget(storage_key(storage))
        if storage.nbytes() > 0:
            self._count_storage(storage)

    def _forget(self, key: int) -> None:
        size = self._sizes.pop(key, None)
        if size is None:
            return
        self.clock += 1
        self.live_bytes -= size
        if self.on_death is not None:
            self.on_death(key)
