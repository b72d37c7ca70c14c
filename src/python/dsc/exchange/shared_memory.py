"""All-reduce between ranks of one host through shared memory: nothing goes through the kernel's network stack."""

# Without `annotations` from the future: DDP compares those of a hook, and text would be refused.
import mmap
import os
import platform
import socket
import time
from typing import Any

import torch
import torch.distributed as dist

from ..torch_private import GradBucket
from .errors import ExchangeMismatch, PeerLost

_FLAG_BYTES = 64  # one cache line per rank, so that ranks do not slow each other down
_PAGE = 4096
_SPINS = 200
_CHECK_SECONDS = 0.1


class SharedMemory:
    """A same-host all-reduce that takes means of fp32 tensors on the CPU.

    Args:
        process_group: ranks of one host; None is the default group. It is used once, to agree on a file.
        piece_bytes: how much is exchanged at a time. Small pieces stay in the cache.
        timeout: seconds without progress after which a rank that is alive but stuck is given up. A dead one is named
            at once.
        is_eager: whether who waits keeps its core busy for 2 ms before it sleeps.

    Raises:
        ExchangeMismatch: the ranks are not on one host.
        RuntimeError: the processor does not order stores as x86-64 does.
    """

    def __init__(
        self,
        process_group: dist.ProcessGroup | None = None,
        *,
        piece_bytes: int = 4 << 20,
        timeout: float = 30.0,
        is_eager: bool = True,
    ) -> None:
        if platform.machine() not in ("x86_64", "AMD64"):
            # Flags and data are plain stores: on x86 they become visible in order, elsewhere nobody promises it.
            raise RuntimeError(f"SharedMemory works on x86-64 only, this is {platform.machine()}")
        self.rank = dist.get_rank(process_group)
        self.ranks = dist.get_world_size(process_group)
        self.timeout = timeout
        self._patience = 0.002 if is_eager else 0.0
        self._piece = piece_bytes // 4 // (8 * self.ranks) * 8 * self.ranks  # values, a multiple of 8 per rank
        self._turn = 0
        flags = (_FLAG_BYTES * self.ranks + _PAGE - 1) // _PAGE * _PAGE
        size = flags + (self.ranks + 1) * self._piece * 4
        own = {**name_host(), "pid": os.getpid(), "started": _started(os.getpid())}
        everyone: list[Any] = [None] * self.ranks
        dist.all_gather_object(everyone, own, group=process_group)
        for rank, other in enumerate(everyone):
            if (other["host"], other["boot"]) != (own["host"], own["boot"]):
                raise ExchangeMismatch(
                    f"rank {self.rank} runs on {own['host']}, rank {rank} on {other['host']}: no memory to share"
                )
        self._peers = [(other["pid"], other["started"]) for other in everyone]
        self._open(process_group, size)
        self._flags = memoryview(self._map)[: _FLAG_BYTES * self.ranks].cast("q")
        self._notes = memoryview(self._map)[8:24].cast("d")  # beside the first rank's flag: count of values, note
        values = torch.frombuffer(self._map, dtype=torch.float32, offset=flags)
        areas = values.view(self.ranks + 1, self._piece)
        self._slots = [areas[rank] for rank in range(self.ranks)]
        self._result = areas[self.ranks]

    def _open(self, process_group: dist.ProcessGroup | None, size: int) -> None:
        """Maps memory of rank 0 that has no name in any file system: nothing is left behind in any case."""
        place: list[Any] = [None, None]  # path and name, filled by rank 0
        if self.rank == 0:
            name = f"dsc-exchange-{os.urandom(8).hex()}"
            descriptor = os.memfd_create(name)
            os.posix_fallocate(descriptor, 0, size)  # fails here, in words, rather than by SIGBUS later
            place = [f"/proc/{os.getpid()}/fd/{descriptor}", name]
        source = 0 if process_group is None else dist.get_global_rank(process_group, 0)
        dist.broadcast_object_list(place, src=source, group=process_group)
        if self.rank != 0:
            descriptor = self._open_shared(*place)
        self._map = mmap.mmap(descriptor, size)
        dist.barrier(group=process_group)
        os.close(descriptor)

    def _open_shared(self, path: str, name: str) -> int:
        """A descriptor of rank 0's memory. In another container its number may be that of somebody's file."""
        problem = "it is something else"
        try:
            descriptor = os.open(path, os.O_RDWR)
            if os.readlink(f"/proc/self/fd/{descriptor}").startswith(f"/memfd:{name}"):
                return descriptor
            os.close(descriptor)
        except OSError as error:
            problem = str(error)
        raise ExchangeMismatch(
            f"rank {self.rank} cannot open the memory of rank 0 ({problem}); do they run in different containers?"
        )

    def all_reduce(self, tensor: torch.Tensor) -> torch.Tensor:
        """Takes the mean over all ranks, bit-equal on all of them.

        Args:
            tensor: contiguous, fp32, on the CPU, of any shape; the mean is written over it.

        Returns:
            The same tensor.

        Raises:
            PeerLost: a rank is gone or stands still.
            TypeError: another kind of tensor.
        """
        if tensor.dtype != torch.float32 or tensor.is_cuda or not tensor.is_contiguous():
            raise TypeError("SharedMemory exchanges contiguous fp32 tensors on the CPU")
        values = tensor.view(-1)
        for start in range(0, values.numel(), self._piece):
            self._exchange(values[start : start + self._piece])
        return tensor

    def reduce(self, values: torch.Tensor) -> torch.Tensor:
        """Takes the mean over all ranks, for the first rank alone; on the others `values` stay as they are.

        Args:
            values: contiguous, fp32, on the CPU, flat.

        Returns:
            The same tensor.

        Raises:
            PeerLost: a rank is gone or stands still.
        """
        for start in range(0, values.numel(), self._piece):
            piece = values[start : start + self._piece]
            if self.rank == 0:
                piece.mul_(1.0 / self.ranks)
            else:
                torch.mul(piece, 1.0 / self.ranks, out=self._slots[self.rank][: piece.numel()])
            self._barrier()
            if self.rank == 0:
                for slot in self._slots[1:]:
                    piece.add_(slot[: piece.numel()])
            self._barrier()
        return values

    def broadcast(self, values: torch.Tensor, note: float = 0.0) -> float:
        """Gives the first rank's values to all, and a number with them.

        Args:
            values: contiguous, fp32, on the CPU, flat; on other ranks they are written over, as far as the first rank
                gives some.
            note: of the first rank.

        Returns:
            The first rank's note.

        Raises:
            PeerLost: a rank is gone or stands still.
        """
        notes, at, count = self._notes, 0, values.numel()
        while True:
            if self.rank == 0:
                piece = values[at : at + self._piece]
                self._result[: piece.numel()].copy_(piece)
                notes[0], notes[1] = float(count), note
            self._barrier()
            if self.rank != 0:
                count, note = int(notes[0]), notes[1]
                piece = values[at : min(count, at + self._piece)]
                piece.copy_(self._result[: piece.numel()])
            self._barrier()
            at += self._piece
            if at >= count:
                return note

    def _exchange(self, values: torch.Tensor) -> None:
        """Hands every rank its share, sums the own one, and takes the others' sums. Two barriers."""
        count = values.numel()
        share = -(-count // self.ranks)
        begin, end = min(count, self.rank * share), min(count, (self.rank + 1) * share)
        part = 1.0 / self.ranks
        slot = self._slots[self.rank]
        torch.mul(values[:begin], part, out=slot[:begin])
        torch.mul(values[end:], part, out=slot[end:count])
        self._barrier()
        if end > begin:
            own = self._result[begin:end]
            others = [self._slots[rank][begin:end] for rank in range(self.ranks) if rank != self.rank]
            if others:
                torch.add(others[0], values[begin:end], alpha=part, out=own)
            else:
                own.copy_(values[begin:end])
            for other in others[1:]:
                own.add_(other)
        self._barrier()
        values.copy_(self._result[:count])

    def _barrier(self) -> None:
        self._turn += 1
        flags, turn = self._flags, self._turn
        flags[self.rank * (_FLAG_BYTES // 8)] = turn
        for rank in range(self.ranks):
            at = rank * (_FLAG_BYTES // 8)
            spins = 0
            while flags[at] < turn:
                spins += 1
                if spins == _SPINS:
                    self._wait(rank, at, turn)

    def _wait(self, rank: int, at: int, turn: int) -> None:
        """Gives the core away between looks, and looks after the other rank."""
        start = checked = time.monotonic()
        while self._flags[at] < turn:
            os.sched_yield()
            now = time.monotonic()
            if now - start > self._patience:
                # A long wait, for a network or a slow rank, leaves the core to others.
                time.sleep(min(500e-6, max(50e-6, (now - start) / 20)))
            if now - checked > _CHECK_SECONDS:
                checked = now
                pid, started = self._peers[rank]
                if _started(pid) != started:
                    raise PeerLost(rank, f"its process {pid} is gone")
                if now - start > self.timeout:
                    raise PeerLost(rank, f"its process {pid} made no progress for {self.timeout:g} s")


def shared_memory_hook(state: SharedMemory, bucket: GradBucket) -> torch.futures.Future[torch.Tensor]:
    """For `ddp.register_comm_hook(SharedMemory(), shared_memory_hook)`: all ranks on one host, gradients on the CPU.

    Args:
        state: The memory that this rank shares with the others.
        bucket: The gradients that DDP hands over, flat, fp32, on the CPU.

    Returns:
        The mean of all ranks, of the bucket's shape and type, once it is there.
    """
    future: torch.futures.Future[torch.Tensor] = torch.futures.Future()
    future.set_result(state.all_reduce(bucket.buffer()))
    return future


def name_host() -> dict[str, str]:
    """Identifies this rank's host: its name, and its boot."""
    return {"host": socket.gethostname(), "boot": _boot_id()}


def _boot_id() -> str:
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return file.read().strip()


def _started(pid: int) -> str | None:
    """When process `pid` started, in clock ticks; None if it is gone or a zombie. Tells a reused number apart."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in ("Z", "X") else fields[19]
