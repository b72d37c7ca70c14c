"""Copies between a GPU and its host, on a stream each."""

from __future__ import annotations

import mmap
import weakref
from contextlib import AbstractContextManager
from typing import Any

import torch

from ...torch_private import clear_last_error
from ..plan.runnable_plan import PlanError
from .copies import CopyHandle, OnLate


class CudaCopies:
    """Copies on two side streams, ordered by events; nothing here blocks the host.

    Dropping a tensor whose copy is awaited by the stream it was made on is safe: its memory returns to that stream's
    pool, and its next user runs after the copy. So no ``record_stream``, which would free it at an unknown
    time; but until that wait somebody must hold the tensor.
    """

    is_cuda = True

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._out = torch.cuda.Stream(device)
        self._in = torch.cuda.Stream(device)
        self._registered: dict[
            int, weakref.finalize[..., torch.UntypedStorage]
        ] = {}  # address → finalizer of a pinned arena
        self._waits: list[
            tuple[torch.cuda.Event, torch.cuda.Event, OnLate]
        ] = []  # (event when the computation began to wait, copy, on_late), not looked at yet

    def pinned(self, size: int) -> torch.Tensor:
        """See `Copies`."""
        # torch's own pinned allocator rounds up to a power of two (1.3 to 1.7 times): pin an exact buffer instead,
        # of whole pages, because two registered ranges must not share one.
        arena, start, length = whole_pages(size)
        address = arena.data_ptr() + start
        # On this device, whichever is current: there the call would open a context of hundreds of MiB for nothing.
        with torch.cuda.device(self._device):
            status = torch.cuda.cudart().cudaHostRegister(address, length, _PORTABLE)
        if int(status) != 0:
            clear_last_error(self._device)
            raise PlanError(
                f"CUDA cannot pin {length} bytes of host memory (cudaHostRegister: status {int(status)}): raise "
                "`ulimit -l`, give the container more memory, or plan with a larger --budget"
            )
        # Also when nobody closes: memory that is freed while registered stays locked, and its pages unusable.
        # A storage's Python object lives as long as the storage itself, also when only views of it are left.
        finalizer = weakref.finalize(arena.untyped_storage(), _unpin, address, (self._out, self._in))
        finalizer.atexit = False
        self._registered[address] = finalizer
        return arena[start : start + size]

    def release(self, arena: torch.Tensor) -> None:
        """See `Copies`."""
        self._registered.pop(arena.data_ptr())()

    def stream(self) -> torch.cuda.Stream:
        """See `Copies`."""
        return torch.cuda.current_stream(self._device)

    def on(self, stream: Any) -> AbstractContextManager[Any]:
        """See `Copies`."""
        return torch.cuda.stream(stream)

    def start_out(self, host: torch.Tensor, device_bytes: torch.Tensor) -> CopyHandle:
        """See `Copies`."""
        refuse_capture()
        self._out.wait_event(self._now())
        return self._copy(self._out, host, device_bytes)

    def start_in(self, device_bytes: torch.Tensor, host: torch.Tensor, after: CopyHandle = None) -> CopyHandle:
        """See `Copies`."""
        refuse_capture()
        self._in.wait_event(self._now())  # the slot's last reader has been queued before this instant
        if after is not None:
            self._in.wait_event(after)
        return self._copy(self._in, device_bytes, host)

    def wait(self, copy: CopyHandle, on_late: OnLate | None = None, stream: Any = None) -> None:
        """See `Copies`."""
        refuse_capture()
        stream = stream or self.stream()
        if on_late is not None and not copy.query():
            reached = torch.cuda.Event(enable_timing=True)
            reached.record(stream)
            self._waits.append((reached, copy, on_late))
        stream.wait_event(copy)

    def wait_on_host(self, copy: CopyHandle) -> None:
        """See `Copies`."""
        copy.synchronize()

    def read_lateness(self, is_last: bool = False) -> None:
        """See `Copies`."""
        if is_last:
            torch.cuda.synchronize(self._device)
        open_waits = []
        for reached, event, on_late in self._waits:
            if not (reached.query() and event.query()):
                open_waits.append((reached, event, on_late))
            elif (late_ms := reached.elapsed_time(event)) > 0:  # else the copy was done when it was needed
                on_late(1e3 * late_ms)
        self._waits = open_waits

    def is_done(self, copy: CopyHandle) -> bool:
        """See `Copies`."""
        return bool(copy.query())

    def close(self) -> None:
        """Waits for the copies that were begun."""
        self._out.synchronize()
        self._in.synchronize()

    def _now(self) -> torch.cuda.Event:
        event = torch.cuda.Event()
        event.record(self.stream())
        return event

    def _copy(self, stream: torch.cuda.Stream, target: torch.Tensor, source: torch.Tensor) -> torch.cuda.Event:
        with torch.cuda.stream(stream), torch.no_grad():
            target.copy_(source, non_blocking=True)
            event = torch.cuda.Event(enable_timing=True)
            event.record(stream)
        return event


def _unpin(address: int, streams: tuple[torch.cuda.Stream, ...]) -> None:
    """Unlocks memory once no copy of an executor that went in the middle of a step touches it any more."""
    for stream in streams:
        stream.synchronize()
    torch.cuda.cudart().cudaHostUnregister(address)


# Pinned for the contexts of all devices (cudaHostRegisterPortable).
_PORTABLE = 1


def is_captured(tensor: torch.Tensor) -> bool:
    """Whether what is computed with `tensor` now becomes part of a CUDA graph instead of being run."""
    return tensor.is_cuda and torch.cuda.is_current_stream_capturing()


def refuse_capture() -> None:
    """Refuses what may not happen during a capture: to ask an event, or to copy what a replay would copy without plan.

    Raises:
        RuntimeError: a CUDA graph is being captured.
    """
    if torch.cuda.is_current_stream_capturing():
        raise RuntimeError(
            "a CUDA graph is being captured, but memory that was moved before is needed now: "
            "capture whole steps outside of the plan, or train with the plan and without a graph"
        )


def whole_pages(size: int) -> tuple[torch.Tensor, int, int]:
    """A buffer with room for ``size`` bytes in pages of their own: (buffer, offset of the first page, their length)."""
    length = max(1, -(-size // mmap.PAGESIZE)) * mmap.PAGESIZE
    buffer = torch.empty(length + mmap.PAGESIZE, dtype=torch.uint8)
    return buffer, -buffer.data_ptr() % mmap.PAGESIZE, length
