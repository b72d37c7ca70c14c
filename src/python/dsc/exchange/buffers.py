"""Buffers that are used again: fresh memory costs a page fault every 4 KiB."""

import torch


class Buffers:
    """Free buffers by size and type. Any thread may take and give."""

    def __init__(self):
        self._free = {}  # (count, dtype) → buffers
        self._used = set()

    def take(self, count, dtype):
        self._used.add((count, dtype))
        try:
            return self._free[count, dtype].pop()
        except (KeyError, IndexError):
            return torch.empty(count, dtype=dtype)

    def give(self, *buffers):
        for buffer in buffers:
            self._free.setdefault((buffer.numel(), buffer.dtype), []).append(buffer)

    def trim(self):
        """Lets go of sizes that nobody took since the last call."""
        self._free = {key: buffers for key, buffers in self._free.items() if key in self._used}
        self._used = set()
