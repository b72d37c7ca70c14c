"""Buffers that are used again: fresh memory costs a page fault every 4 KiB."""

from __future__ import annotations

import torch


class Buffers:
    """Free buffers by size and type. Any thread may take and give."""

    def __init__(self) -> None:
        self._free: dict[tuple[int, torch.dtype], list[torch.Tensor]] = {}  # (count, dtype) → buffers
        self._used: set[tuple[int, torch.dtype]] = set()

    def take(self, count: int, dtype: torch.dtype) -> torch.Tensor:
        """A buffer of `count` elements, with undefined contents."""
        self._used.add((count, dtype))
        try:
            return self._free[count, dtype].pop()
        except (KeyError, IndexError):
            return torch.empty(count, dtype=dtype)

    def give(self, *buffers: torch.Tensor) -> None:
        """Gives buffers back, which nobody uses any more."""
        for buffer in buffers:
            self._free.setdefault((buffer.numel(), buffer.dtype), []).append(buffer)

    def trim(self) -> None:
        """Lets go of sizes that nobody took since the last call."""
        self._free = {key: buffers for key, buffers in self._free.items() if key in self._used}
        self._used = set()
