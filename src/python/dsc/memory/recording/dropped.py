"""Saved tensors whose bytes are on the host until backward asks for them: for steps that are recorded, not planned."""

from __future__ import annotations

import weakref
from collections.abc import Container

import torch

from ...torch_private import storage_key, version_of, without_modes
from ..carrying.host_memory import free_host_bytes
from ..carrying.stash import check_version, flat_bytes, is_plain


class Dropped:
    """One saved tensor: the host's copy of its storage, and how to view it."""

    __slots__ = ("host", "device", "dtype", "shape", "stride", "offset", "witness", "version")

    def __init__(self, host: torch.Tensor, tensor: torch.Tensor) -> None:
        self.host = host
        self.device, self.dtype = tensor.device, tensor.dtype
        self.shape, self.stride, self.offset = tuple(tensor.shape), tuple(tensor.stride()), tensor.storage_offset()
        self.witness = tensor.detach()  # shares the tensor's version, not its memory
        self.witness.data = torch.empty(0, dtype=tensor.dtype, device=tensor.device)
        self.version = version_of(tensor)

    def bring_back(self) -> torch.Tensor:
        """The tensor again, in memory of its own, which is counted where memory is."""
        check_version(self.witness, self.version)
        flat = torch.empty(self.host.nbytes, dtype=torch.uint8, device=self.device)
        with without_modes():
            flat.copy_(self.host)
            empty = torch.empty(0, dtype=self.dtype, device=self.device)
            return empty.set_(flat.untyped_storage(), self.offset, self.shape, self.stride)


class DroppedTensors:
    """Copies storages to the host, each once, for as long as autograd may ask for one of their tensors.

    Where the host has too little room, the copies are on the device: they count as gone, though they are not.

    Args:
        keep: keys of the storages that stay where they are.
    """

    def __init__(self, keep: Container[int]) -> None:
        self._keep = keep
        self._room = free_host_bytes() // 2
        self._device_bytes = 0
        self.most_device_bytes = 0  # of copies that the host had no room for
        self._copies: weakref.WeakValueDictionary[tuple[int, int], torch.Tensor] = weakref.WeakValueDictionary()
        self._alive: weakref.WeakValueDictionary[int, torch.UntypedStorage] = weakref.WeakValueDictionary()

    def drop(self, tensor: torch.Tensor) -> Dropped | None:
        """The stand-in for a tensor; None for one that stays."""
        if not is_plain(tensor) or storage_key(tensor) in self._keep:
            return None
        with without_modes():
            return Dropped(self._copy_of(tensor), tensor)

    def _copy_of(self, tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        key = (storage_key(storage), version_of(tensor))
        known = self._copies.get(key)
        if known is not None and self._alive.get(key[0]) is storage:  # else another storage has its number now
            return known
        self._alive[key[0]] = storage
        source = flat_bytes(storage, tensor.device)
        if tensor.device.type == "cpu" or source.nbytes > self._room:
            copy = source.clone()
            self._take_device(copy.nbytes)
            weakref.finalize(copy, self._take_device, -copy.nbytes).atexit = False
        else:
            copy = source.cpu()
            self._room -= copy.nbytes
            weakref.finalize(copy, self._give_room, copy.nbytes).atexit = False
        self._copies[key] = copy
        return copy

    def _take_device(self, size: int) -> None:
        self._device_bytes += size
        self.most_device_bytes = max(self.most_device_bytes, self._device_bytes)

    def _give_room(self, size: int) -> None:
        self._room += size
