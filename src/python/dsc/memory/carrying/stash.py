"""One storage that is away for a while: from its copy out to its last use."""

from __future__ import annotations

import torch

from ...torch_private import storage_key, version_of
from ..plan.plan_format import Move
from .copies import CopyHandle


class Stash:
    """State of one planned move in one step. ``device`` → ``both`` (copy out runs) → ``host`` → ``back``."""

    def __init__(self, move: Move) -> None:
        self.move = move
        self.device_storage: torch.UntypedStorage | None = (
            None  # the original, held until the copy out is done and awaited
        )
        self.device: torch.device | None = None
        self.copy_out: CopyHandle = None
        self.copy_in: CopyHandle = None
        self.reload: torch.Tensor | None = None  # the reloaded bytes, a flat uint8 tensor
        self.in_arena = False
        self.remaining = len(move["unpacks"])
        self.late_us = 0.0
        self.is_host_valid = True
        self._witness: torch.Tensor | None = None  # shares the saved tensor's version, not its memory
        self._version: int | None = None

    @property
    def is_here(self) -> bool:
        """Whether the original is still on the device."""
        return self.device_storage is not None

    def hold(self, tensor: torch.Tensor) -> bool:
        """Takes the original's storage, at the first pack; later packs must bring the same one."""
        storage = tensor.untyped_storage()
        if self.device_storage is None and self.copy_out is None:
            self.device_storage = storage
            self.device = tensor.device
            self._witness = tensor.detach()
            self._witness.data = torch.empty(0, dtype=tensor.dtype, device=tensor.device)
            self._version = version_of(tensor)
            return storage.nbytes() == self.move["bytes"]
        same = self.device_storage is not None and storage_key(self.device_storage) == storage_key(storage)
        return same and version_of(tensor) == self._version

    def check_untouched(self) -> None:
        """Raises if the saved tensor was changed in place since it was saved."""
        assert self._witness is not None and self._version is not None  # held
        check_version(self._witness, self._version)

    def device_bytes(self) -> torch.Tensor:
        """All bytes of the original."""
        assert self.device_storage is not None and self.device is not None
        return flat_bytes(self.device_storage, self.device)

    def forget(self) -> None:
        """Drops the memory and the copies."""
        self.device_storage = self.reload = self.copy_out = self.copy_in = None


class Handle:
    """Stands for a saved tensor that moves in autograd: which stash, and how to view it."""

    __slots__ = ("stash", "sequence", "dtype", "shape", "stride", "offset", "__weakref__")

    def __init__(self, stash: Stash, sequence: int, tensor: torch.Tensor) -> None:
        self.stash = stash
        self.sequence = sequence
        self.dtype = tensor.dtype
        self.shape = tuple(tensor.shape)
        self.stride = tuple(tensor.stride())
        self.offset = tensor.storage_offset()

    def view(self, storage: torch.UntypedStorage, device: torch.device) -> torch.Tensor:
        """The saved tensor again, on the storage it had."""
        return torch.empty(0, dtype=self.dtype, device=device).set_(storage, self.offset, self.shape, self.stride)

    def view_of_bytes(self, flat: torch.Tensor) -> torch.Tensor:
        """The saved tensor again, inside ``flat`` (a slot of an arena, or a storage of its own)."""
        typed = flat.view(self.dtype)
        base = flat.storage_offset() // typed.element_size()
        return typed.as_strided(self.shape, self.stride, base + self.offset)


def is_plain(tensor: torch.Tensor) -> bool:
    """Whether bytes, type, shape and strides describe a tensor completely."""
    is_strided = type(tensor) is torch.Tensor and tensor.layout == torch.strided
    return is_strided and not (tensor.is_conj() or tensor.is_neg() or tensor.is_nested)


def check_version(tensor: torch.Tensor, version: int) -> None:
    """Autograd checks this itself, but not of tensors that hooks replace."""
    if version_of(tensor) != version:
        raise RuntimeError(
            "one of the variables needed for gradient computation has been modified by an inplace operation: it was "
            f"saved at version {version} and is at version {version_of(tensor)}"
        )


def flat_bytes(storage: torch.UntypedStorage, device: torch.device) -> torch.Tensor:
    """All bytes of a storage as one tensor that shares it."""
    return torch.empty(0, dtype=torch.uint8, device=device).set_(storage, 0, (storage.nbytes(),), (1,))
