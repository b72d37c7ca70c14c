"""Deals with things in the order in which they were announced, whichever thread completes them and when."""

import threading


class InOrder:
    """`deal(item)` is called for the first item that is left, one thread at a time; False keeps it for later.

    All ranks announce alike, so what `deal` starts is started in the same order on all of them.
    """

    def __init__(self, deal):
        self._deal = deal
        self._items = []
        self._at = 0
        self._lock = threading.RLock()  # what `deal` starts may be complete at once and come back here

    def announce(self, item):
        with self._lock:
            self._items.append(item)

    def drain(self):
        """Call it whenever an item may have become ready."""
        with self._lock:
            while self._at < len(self._items) and self._deal(self._items[self._at]):
                self._at += 1
