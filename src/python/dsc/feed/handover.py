"""How workers hand batches to the trainer: in memory that is used again and again.

torch makes new shared memory for every tensor of every batch: each of its pages is cleared, mapped and given back, and
its descriptor goes through a socket of its own.
"""

from __future__ import annotations

import ctypes
import io
import math
import mmap
import os
import pickle
import uuid
import weakref
from multiprocessing.reduction import ForkingPickler
from typing import Any, NamedTuple

import torch

_ALIGN = 64
_FLAGS = mmap.PAGESIZE  # bytes before the tensors: one per tensor, 1 while the trainer has it


_MOST_IN_MESSAGE = 1 << 20  # bytes of a tensor without a room: a copy costs less than a descriptor in the trainer


class _Address(NamedTuple):
    """Memory of a worker, as another process opens it: it has no name, and goes with the last process that maps it."""

    pid: int
    room: int  # among those of its worker
    fd: int
    key: str
    size: int


class _Room:
    """Memory for the tensors of one batch."""

    def __init__(self, index: int, size: int) -> None:
        self._fd = os.memfd_create("dsc-batch", os.MFD_CLOEXEC)
        os.ftruncate(self._fd, size)
        self._memory = mmap.mmap(self._fd, size)
        self._bytes = torch.frombuffer(self._memory, dtype=torch.uint8)
        self._end, self._count = _FLAGS, 0
        self.address = _Address(os.getpid(), index, self._fd, uuid.uuid4().hex, size)

    def is_free(self) -> bool:
        """Whether the trainer has none of the tensors any more."""
        return not any(self._memory[: self._count])

    def clear(self) -> None:
        """Makes room for the next batch."""
        self._end, self._count = _FLAGS, 0

    def put(self, tensor: torch.Tensor) -> tuple[int, int] | None:
        """Copies a tensor. Returns where it begins and the place of its flag, or None where there is no room for it."""
        begin, end = self._end, self._end + tensor.nbytes
        if end > self.address.size or self._count == _FLAGS:
            return None
        self._bytes[begin:end].view(tensor.dtype).view(tensor.shape).copy_(tensor)
        flag = self._count
        self._memory[flag] = 1
        self._end, self._count = _aligned(end), flag + 1
        return begin, flag

    def close(self) -> None:
        """Gives the memory up; the trainer keeps what it has."""
        os.close(self._fd)


class _Pickler(ForkingPickler):
    """Puts tensors into a room. Those without a place there go with the message, and large ones torch's way.

    torch's way takes a descriptor of the trainer for each tensor, for as long as it is kept.
    """

    def __init__(self, out: io.BytesIO, room: _Room | None) -> None:
        super().__init__(out, pickle.HIGHEST_PROTOCOL)
        self._room = room
        self.tensor_bytes = 0

    def reducer_override(self, value: Any) -> Any:
        if not _is_plain(value):
            return NotImplemented
        self.tensor_bytes += _aligned(value.nbytes)
        place = None if self._room is None else self._room.put(value)
        if self._room is not None and place is not None:
            return _borrow, (self._room.address, *place, value.dtype, tuple(value.shape))
        if value.nbytes > _MOST_IN_MESSAGE:
            return NotImplemented
        contents = bytearray(value.nbytes)
        torch.frombuffer(contents, dtype=value.dtype).view(value.shape).copy_(value)
        return _own, (contents, value.dtype, tuple(value.shape))


class Packed:
    """A value that is pickled already: nothing that the worker does afterwards can change it."""

    def __init__(self, payload: bytes) -> None:
        self._payload = payload

    def __reduce__(self) -> tuple[Any, ...]:
        return pickle.loads, (self._payload,)


class Sender:
    """The sending end of a worker.

    Args:
        rooms: batches that may be on their way or in use; tensors of further ones are copied.
    """

    def __init__(self, rooms: int) -> None:
        self._limit = rooms
        self._rooms: list[_Room] = []
        self._most_bytes = 0  # that the tensors of a batch have taken

    def pack(self, value: Any) -> Packed:
        """The value in a form that the trainer's process receives as the value itself."""
        out = io.BytesIO()
        pickler = _Pickler(out, self._find_room())
        pickler.dump(value)
        self._most_bytes = max(self._most_bytes, pickler.tensor_bytes)
        return Packed(out.getvalue())

    def _find_room(self) -> _Room | None:
        """A free room for the largest batch so far; None before the first one, and where the trainer has all rooms."""
        needed = _FLAGS + self._most_bytes
        if self._most_bytes == 0:
            return None
        free = [room for room in self._rooms if room.is_free()]
        room = next((room for room in free if room.address.size >= needed), None)
        if room is None and (free or len(self._rooms) < self._limit):
            index = free[0].address.room if free else len(self._rooms)
            room = _Room(index, _pages(needed + needed // 8))
            if free:
                free[0].close()
            self._rooms[index : index + 1] = [room]
        if room is not None:
            room.clear()
        return room


class _Memory(NamedTuple):
    key: str
    mapping: mmap.mmap


class WorkerEnded(RuntimeError):
    """A worker ended between sending a batch and the trainer's opening of its memory."""


_memories: dict[tuple[int, int], _Memory] = {}  # of workers, by their process and the index of the room


def forget_workers() -> None:
    """Gives up the memory of workers that have ended; tensors in it keep it as long as they are used."""
    for pid, index in list(_memories):
        if not os.path.exists(f"/proc/{pid}"):
            _memories.pop((pid, index), None)


def _map(address: _Address) -> mmap.mmap:
    place = address.pid, address.room
    memory = _memories.get(place)
    if memory is None or memory.key != address.key:
        forget_workers()
        try:
            fd = os.open(f"/proc/{address.pid}/fd/{address.fd}", os.O_RDWR | os.O_CLOEXEC)
        except OSError as error:  # a zombie's folder is root's: EACCES
            raise WorkerEnded(
                f"cannot open the batch that DataLoader worker (pid {address.pid}) sent: {error.strerror}; "
                "most likely the worker has ended"
            ) from error
        try:
            memory = _memories[place] = _Memory(address.key, mmap.mmap(fd, address.size))
        finally:
            os.close(fd)
    return memory.mapping


def _borrow(address: _Address, begin: int, flag: int, dtype: torch.dtype, shape: tuple[int, ...]) -> torch.Tensor:
    """A tensor in the memory of a worker, which is told when nobody has the tensor any more."""
    mapping = _map(address)
    buffer = (ctypes.c_char * (math.prod(shape) * dtype.itemsize)).from_buffer(mapping, begin)
    weakref.finalize(buffer, _give_back, mapping, flag, os.getpid()).atexit = False
    return torch.frombuffer(buffer, dtype=dtype).view(shape)


def _own(contents: bytearray, dtype: torch.dtype, shape: tuple[int, ...]) -> torch.Tensor:
    return torch.frombuffer(contents, dtype=dtype).view(shape)


def _give_back(mapping: mmap.mmap, flag: int, owner: int) -> None:
    if os.getpid() == owner:  # a forked copy gives nothing back that the trainer has
        mapping[flag] = 0


def _is_plain(value: Any) -> bool:
    """Whether a value is a tensor that its bytes, type and shape make up. Parts of a tensor are left to torch."""
    return (
        type(value) is torch.Tensor
        and value.device.type == "cpu"
        and value.layout == torch.strided
        and value.is_contiguous()
        and value.nbytes > 0
        and value.untyped_storage().nbytes() == value.nbytes  # parts may share bytes, which torch keeps so
        and not (value.requires_grad or value.is_quantized or value.is_conj() or value.is_neg())
    )


def _aligned(size: int) -> int:
    return -(-size // _ALIGN) * _ALIGN


def _pages(size: int) -> int:
    return -(-size // mmap.PAGESIZE) * mmap.PAGESIZE
