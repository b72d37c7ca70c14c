"""A worker's copy of the parameters in host memory: two halves and a version word, so that reads are never torn."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, cast

import torch

from ..memory.carrying.host_memory import free_host_bytes

HOST_SHARE = 0.5


class MirrorError(RuntimeError):
    """The host cannot hold the mirror; says how much it needs and how much there is."""


class Mirror:
    """``length`` float32 values, twice. A pull writes the half nobody reads, then flips."""

    def __init__(self, length: int, *, pin: bool = False, free_bytes: int | None = None) -> None:
        needed = 8 * length
        limit = int(HOST_SHARE * free_host_bytes()) if free_bytes is None else free_bytes
        if needed > limit:
            raise MirrorError(
                f"the parameter mirror needs {needed} bytes of host memory, {limit} are permitted here: "
                "run fewer workers per host, or a smaller model"
            )
        region = torch.zeros(2 * length)
        if pin and length:
            status = torch.cuda.cudart().cudaHostRegister(region.data_ptr(), 8 * length, 0)
            if int(status) != 0:
                raise MirrorError(f"the host refuses to pin {8 * length} bytes (status {int(status)})")
        self.length = length
        self.word = 0  # odd while a half is being written
        self._halves = (region[:length], region[length:])
        self._versions = [0, 0]
        self._lock = threading.Lock()  # of writers only

    @property
    def version(self) -> int:
        """The version that `read` would see now."""
        return self._versions[(self.word >> 1) & 1]

    def update(self, version: int, fill: Callable[[torch.Tensor], object]) -> None:
        """Shows new parameters; readers see the old ones until then, whole. If ``fill`` raises, nothing changes.

        Args:
            version: Of the parameters to come.
            fill: Is given the half that nobody reads, flat float32, and writes them there.
        """
        with self._lock:
            word = self.word
            inactive = 1 - ((word >> 1) & 1)
            self.word = word + 1
            try:
                fill(self._halves[inactive])
            except BaseException:
                self.word = word
                raise
            self._versions[inactive] = version
            self.word = word + 2

    def read(self, copy: Callable[[torch.Tensor], object]) -> int:
        """Calls ``copy(half)`` until no pull can have disturbed it; returns the version it saw."""
        while True:
            flips = self.word >> 1
            half = flips & 1
            version = self._versions[half]
            copy(self._halves[half])
            if self.word < 2 * flips + 3:
                return version


def half_bytes(half: torch.Tensor) -> memoryview:
    """A writable memoryview of a half, for sockets to receive into."""
    return memoryview(cast(Any, half.numpy())).cast("B")
