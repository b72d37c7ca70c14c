"""Where a step's copies in land on the device: slots of one arena where the plan has one, else memory of their own."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import torch

from .stash import Stash


class ReloadSlots:
    """Slots of one step. Each is taken from a copy in until the kernel of its last use is queued.

    Args:
        reload: the arena, as planned.
    """

    def __init__(self, reload: Mapping[str, Any]) -> None:
        self._reload = reload
        self._arena: torch.Tensor | None = None
        self.occupied: dict[int, tuple[int, int]] = {}  # storage → (low, high) of slots in use
        self._finished: list[tuple[int, int]] = []  # (storage, thread) of last unpacks whose kernel may not be queued

    def take(self, stash: Stash, is_planned: bool) -> torch.Tensor:
        """Room for the bytes of a stash: its slot, if the step is as planned and nothing else is there."""
        move = stash.move
        if self._reload["mode"] == "arena" and move["reloadOffset"] is not None and is_planned:
            low, high = move["reloadOffset"], move["reloadOffset"] + move["bytes"]
            if not any(start < high and low < end for start, end in self.occupied.values()):
                if self._arena is None:
                    self._arena = torch.empty(self._reload["bytes"], dtype=torch.uint8, device=stash.device)
                self.occupied[move["storage"]] = (low, high)
                stash.in_arena = True
                return self._arena[low:high]
        stash.in_arena = False
        return torch.empty(move["bytes"], dtype=torch.uint8, device=stash.device)

    def finish(self, stash: Stash) -> None:
        """Notes that this thread has unpacked a stash for the last time."""
        if stash.in_arena:
            self._finished.append((stash.move["storage"], threading.get_ident()))

    def release_finished(self, thread: int) -> None:
        """Gives away the slots that a thread's layer before this one used last: its kernels are queued by now.

        Not those of another thread, which may be between its unpack and its kernel.
        """
        for storage, user in self._finished:
            if user == thread:
                self.occupied.pop(storage, None)
        self._finished = [(storage, user) for storage, user in self._finished if user != thread]

    def drop(self) -> None:
        """Lets go of the arena: views that are left keep it."""
        self._arena = None
