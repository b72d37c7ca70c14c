"""Deals with things in the order in which they were announced, whichever thread completes them and when."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

Item = TypeVar("Item")


class InOrder(Generic[Item]):
    """`deal(item)` is called for the first item that is left, one thread at a time; False keeps it for later.

    All ranks announce alike, so what `deal` starts is started in the same order on all of them.
    """

    def __init__(self, deal: Callable[[Item], bool]) -> None:
        self._deal = deal
        self._items: list[Item] = []
        self._at = 0
        self._lock = threading.RLock()  # what `deal` starts may be complete at once and come back here

    def announce(self, item: Item) -> None:
        """Adds an item behind those announced before."""
        with self._lock:
            self._items.append(item)

    def drain(self) -> None:
        """Call it whenever an item may have become ready."""
        with self._lock:
            while self._at < len(self._items) and self._deal(self._items[self._at]):
                self._at += 1
