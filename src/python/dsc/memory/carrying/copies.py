"""Copies between device and host: what every kind of them does, and deferred ones on threads of the CPU."""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Protocol

import torch

CopyHandle = Any  # a copy that was begun: only the `Copies` that began it knows what it is
OnLate = Callable[[float], None]  # told the microseconds that computation waited


class Copies(Protocol):
    """Copies between device and host, each direction in its own order."""

    is_cuda: bool

    def pinned(self, size: int) -> torch.Tensor:
        """Host memory for copies: uint8 [size]."""

    def release(self, arena: torch.Tensor) -> None:
        """Takes back what `pinned` gave."""

    def stream(self) -> Any:
        """The queue that computation is put on now."""

    def on(self, stream: Any) -> AbstractContextManager[Any]:
        """A context in which memory is taken for that queue, and copies in follow what is on it."""

    def start_out(self, host: torch.Tensor, device_bytes: torch.Tensor) -> CopyHandle:
        """Begins to copy `device_bytes` to `host`, after what computation was given so far."""

    def start_in(self, device_bytes: torch.Tensor, host: torch.Tensor, after: CopyHandle = None) -> CopyHandle:
        """Begins to copy `host` to `device_bytes`, after the copy `after` where there is one."""

    def wait(self, copy: CopyHandle, on_late: OnLate | None = None, stream: Any = None) -> None:
        """Makes the computation (of `stream`) wait for a copy; `on_late(microseconds)` is told if that cost time."""

    def wait_on_host(self, copy: CopyHandle) -> None:
        """Waits until a copy is done; call it before reading or changing the host's side."""

    def read_lateness(self, is_last: bool = False) -> None:
        """Reports how long the finished waits took; all of them, if `is_last`."""

    def is_done(self, copy: CopyHandle) -> bool:
        """Whether a copy has ended."""

    def close(self) -> None:
        """Ends the queues, after the copies that were begun."""


class CpuCopies:
    """Deferred copies on one thread per direction; the accounting device's stand-in for copy engines."""

    is_cuda = False

    def __init__(self, delay: Callable[[str], None] | None = None) -> None:
        self._delay = delay  # for tests: called with ("out" | "in") before each copy
        self._queues: dict[str, queue.SimpleQueue[_Copy | None]] = {
            "out": queue.SimpleQueue(),
            "in": queue.SimpleQueue(),
        }
        self._threads: dict[str, threading.Thread] = {}

    def pinned(self, size: int) -> torch.Tensor:
        """See `Copies`."""
        return torch.empty(size, dtype=torch.uint8)

    def stream(self) -> None:
        """See `Copies`; there is one queue here."""

    def on(self, stream: Any) -> AbstractContextManager[Any]:
        """See `Copies`."""
        return contextlib.nullcontext()

    def start_out(self, host: torch.Tensor, device_bytes: torch.Tensor) -> CopyHandle:
        """See `Copies`."""
        return self._submit("out", host, device_bytes)

    def start_in(self, device_bytes: torch.Tensor, host: torch.Tensor, after: CopyHandle = None) -> CopyHandle:
        """See `Copies`."""
        return self._submit("in", device_bytes, host, after)

    def wait(self, copy: CopyHandle, on_late: OnLate | None = None, stream: Any = None) -> None:
        """See `Copies`."""
        if on_late is None or copy.is_done():
            copy.wait()
            return
        start = time.perf_counter()
        copy.wait()
        on_late(1e6 * (time.perf_counter() - start))

    def wait_on_host(self, copy: CopyHandle) -> None:
        """See `Copies`."""
        copy.wait()

    def read_lateness(self, is_last: bool = False) -> None:
        """See `Copies`; here `wait` has told already."""
        pass

    def is_done(self, copy: CopyHandle) -> bool:
        """See `Copies`."""
        return bool(copy.is_done())

    def release(self, arena: torch.Tensor) -> None:
        """See `Copies`."""
        pass

    def close(self) -> None:
        """Ends the threads, after the copies that were begun."""
        for direction in list(self._threads):
            self._queues[direction].put(None)
            self._threads.pop(direction).join()

    def _submit(self, direction: str, target: torch.Tensor, source: torch.Tensor, after: CopyHandle = None) -> _Copy:
        if direction not in self._threads:
            thread = threading.Thread(target=self._work, args=(direction,), daemon=True, name=f"dsc-{direction}")
            self._threads[direction] = thread
            thread.start()
        copy = _Copy(target, source, after)
        self._queues[direction].put(copy)
        return copy

    def _work(self, direction: str) -> None:
        while (copy := self._queues[direction].get()) is not None:
            if self._delay is not None:
                self._delay(direction)
            copy.run()
            del copy  # else this thread would keep the device's memory until the next copy


class _Copy:
    """One copy; drops both tensors as soon as it is done."""

    def __init__(self, target: torch.Tensor, source: torch.Tensor, after: _Copy | None) -> None:
        self._work: tuple[torch.Tensor, torch.Tensor, _Copy | None] | None = (target, source, after)
        self._done = threading.Event()
        self._error: BaseException | None = None

    def run(self) -> None:
        try:
            assert self._work is not None
            target, source, after = self._work
            if after is not None:
                after.wait()
            with torch.no_grad():
                target.copy_(source)
            del target, source
        except BaseException as error:  # raised where the copy is awaited
            self._error = error
        self._work = None
        self._done.set()

    def is_done(self) -> bool:
        return self._done.is_set()

    def wait(self) -> None:
        self._done.wait()
        if self._error is not None:
            raise self._error
