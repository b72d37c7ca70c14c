"""Makes the next items in a thread while the caller works on the last one."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from typing import Any, Generic, TypeVar, cast

from .errors import pass_has_ended

_ITEM, _END, _ERROR = range(3)

Item = TypeVar("Item")


class Ahead(Generic[Item]):
    """An iterator over `items`, of which up to `ahead` are made before they are asked for.

    `items` is used by one thread at a time: by the thread that this starts, until `stop` returns.
    """

    def __init__(self, items: Iterator[Item], ahead: int) -> None:
        self._items = items
        self._is_stopped = False
        self._made: queue.SimpleQueue[tuple[int, Any]] = queue.SimpleQueue()
        self._permits: queue.SimpleQueue[bool] = queue.SimpleQueue()
        for _ in range(ahead):
            self._permits.put(True)
        self._thread = threading.Thread(target=self._run, name="dsc-feed-ahead", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            while self._permits.get() and not self._is_stopped:
                self._made.put((_ITEM, next(self._items)))
        except StopIteration:
            self._made.put((_END, None))
        except BaseException as error:  # any error: it is raised where the items are used
            self._made.put((_ERROR, error))

    def __iter__(self) -> Ahead[Item]:
        return self

    def __next__(self) -> Item:
        # The caller is done with the item before: only now may another one be begun beyond those ahead.
        self._permits.put(True)
        kind, value = self._made.get()
        if kind == _ITEM:
            return cast(Item, value)
        self._made.put((kind, value))  # asked again, it says the same
        if kind == _ERROR:
            raise value
        raise StopIteration

    def stop(self) -> None:
        """Ends the thread; waits for the item that it is making."""
        self._is_stopped = True
        self._permits.put(True)
        self._thread.join()
        self._made.put((_ERROR, pass_has_ended()))
