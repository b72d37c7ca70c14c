"""The connections of one dataset to the feed of its job."""

from __future__ import annotations

import copy
import os
import uuid
from typing import Any

from .client import FeedClient
from .launch import JobFeed
from .options import ReadOptions
from .torch_data import get_worker_info
from .waits import count_as_start


class Connections:
    """The connections of a dataset: one that batches come over, and one that only keeps the feed from ending.

    Each belongs to the process that opened it. A copy, and the object in another process, has none yet.

    Args:
        feed: found or started when the first connection is opened.
        reading: what the dataset asks for.
    """

    def __init__(self, feed: JobFeed, reading: ReadOptions) -> None:
        self.feed = feed
        # Batches that stay valid although later ones were asked for, or 'auto'; FeedLoader(ahead=...) sets it.
        self.keep: int | str = 0
        self._reading = reading
        self._reader = uuid.uuid4().hex  # tells a dataset's place from those of others of the same rank
        self._client: FeedClient | None = None  # of the batches
        self._holder: FeedClient | None = None
        self._info: dict[str, Any] | None = None

    def connect(self, worker: int = 0, workers: int = 1) -> FeedClient:
        """Opens another connection, as one of a rank's workers."""
        hello = self._reading.hello(reader=self._reader, worker=worker, workers=workers, keep=self.keep)
        with count_as_start():
            return self.feed.connect(hello)

    @property
    def info(self) -> dict[str, Any]:
        """The feed's description of the dataset."""
        if self._info is None:
            self.hold()
        assert self._info is not None
        return self._info

    def hold(self) -> None:
        """Starts the feed if need be, and keeps it from ending for want of readers as long as this object is used."""
        if self._holder is not None and self._holder.pid == os.getpid() and self._holder.is_alive():
            return
        self._holder = self.connect()
        self._info = self._holder.info

    def open_client(self) -> FeedClient:
        """The connection that this process's batches come over; a forked copy of another process's is left alone."""
        worker = get_worker_info()
        if self._client is None or self._client.pid != os.getpid():
            self._client = self.connect(worker.id, worker.num_workers) if worker else self.connect()
            self._info = self._client.info
        return self._client

    def reopen_client(self) -> FeedClient:
        """The connection that this process's batches come over, to a feed that has taken the place of another."""
        self._client = None
        return self.open_client()

    def find_own(self) -> FeedClient | None:
        """A connection of this process, if it has one."""
        clients = [client for client in (self._holder, self._client) if client is not None]
        return next((client for client in clients if client.pid == os.getpid()), None)

    def become_another_reader(self) -> None:
        """Reads from now on at a place of its own, which the feed keeps apart."""
        self._reader = uuid.uuid4().hex

    def close(self) -> None:
        """Ends the connections. Used again, they find the feed again, or start it."""
        for client in (self._client, self._holder):
            if client is not None and client.pid == os.getpid():
                client.close()
        self._client = self._holder = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "feed": copy.copy(self.feed), "_client": None, "_holder": None}
