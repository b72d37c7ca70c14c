"""One connection to a feed: sockets and mmap only, opened by the process that uses it."""

from __future__ import annotations

import atexit
import collections
import contextlib
import os
import select
import socket
import struct
import threading
import time
import warnings
import weakref
from collections.abc import Mapping, Sequence
from typing import Any

from ..frames import FrameError
from .batch import Batch
from .errors import FeedError, FeedGone
from .mapped import MappedBatch, MappedFiles, map_file
from .options import refuse_order_of_one_machine
from .socket_folder import connect_to_feed
from .table import SampleTable
from .wire import Frame, Message, format_frame, take_frame

_LEAVE_SECONDS = 1.0  # that a client waits until the feed has read its last message


class _Waited(threading.local):
    """How long this thread has waited for feeds, in seconds."""

    seconds = 0.0  # for words of theirs
    starting = 0.0  # until they were found, or started
    is_counted = False  # something around what this thread does counts the waiting already


WAITED = _Waited()


class FeedClient:
    """Speaks the session protocol. Not for more than one thread or process."""

    def __init__(self, socket_path: str, hello: Mapping[str, Any], timeout: float = 300.0) -> None:
        self.pid = os.getpid()
        self.lost: list[int] = []  # ids that the last batch came without
        self._path = socket_path
        self._timeout = timeout
        self._buffer = bytearray()
        self._held: collections.deque[int] = collections.deque()
        try:
            self._socket = connect_to_feed(socket_path, timeout)
        except OSError as error:
            raise FeedGone(f"no feed answers on {socket_path}: {error}", "dsc feed serve <dataset>") from None
        _open.add(self)
        self._send(Message.HELLO, {"pid": os.getpid(), **hello})
        self.info: dict[str, Any] = self._expect(Message.WELCOME, "WELCOME").fields
        refuse_order_of_one_machine(hello, self.info)
        self._arena_view = map_file(self.info["arena"]["path"], self.info["arena"]["bytes"])
        nonce = bytes(self._arena_view[:32]).decode("latin1")
        if nonce != self.info["arena"]["nonce"]:
            raise FeedError(
                "FEED_PROTOCOL",
                f"{self.info['arena']['path']} is not the arena of the feed on {socket_path}",
                "run the trainer in the process namespace of the feed",
            )
        self._catalog = SampleTable(map_file(self.info["table"]["path"], self.info["table"]["bytes"]))
        mapped = self.info.get("mapped")
        self._files = MappedFiles(mapped) if mapped else None

    def is_alive(self) -> bool:
        """Whether the feed has not hung up."""
        readable, _, _ = select.select([self._socket], [], [], 0)
        return not readable  # nothing was asked for, so there can only be the end

    def check_process(self) -> None:
        """Refuses a forked copy of this connection: its messages would be missing in the other process."""
        if os.getpid() != self.pid:
            raise FeedError(
                "USAGE",
                f"this pass was begun by process {self.pid}, of which process {os.getpid()} is a forked copy",
                "begin a pass in the process that reads: iter(loader)",
            )

    def start(self, epoch: int, step: int, run: str) -> None:
        """Moves to a place in the sequence, and lets the feed send what this client may hold.

        Args:
            epoch: of the place.
            step: of the place.
            run: names the pass, which a rank's workers share.
        """
        self._held.clear()
        place = format_frame(Message.START, {"epoch": epoch, "step": step, "run": run})
        self._socket_send(place + format_frame(Message.NEXT, {"count": self.info["depth"]}))
        while True:  # batches and the end of the run before may still be in the pipe; the feed has given it up
            try:
                frame = self._receive("STARTED")
            except FeedError as error:
                if isinstance(error, FeedGone) or error.code != "FEED_GONE":
                    raise
                continue
            if frame.kind == Message.STARTED:
                return

    def next_batch(self, keep: int = 0) -> Batch | None:
        """The next batch, or None at the end of the epoch. Gives back the batches before it but for the last `keep`."""
        given = len(self._held) - keep
        if given > 0:
            for _ in range(given):
                seq = self._held.popleft()
            self._socket_send(
                format_frame(Message.RELEASE, {"seq": seq}) + format_frame(Message.NEXT, {"count": given})
            )
        frame = self._receive("a batch")
        if frame.kind == Message.EPOCH_END:
            return None
        if frame.kind != Message.BATCH:
            raise FeedError("FEED_PROTOCOL", f"the feed sent message {frame.kind} instead of a batch")
        return self._read_batch(frame.payload)

    def get(self, ids: Sequence[int]) -> Batch:
        """Any samples by id; the batch is valid until the next call."""
        if self._held:
            self._send(Message.RELEASE, {"seq": self._held[-1]})
            self._held.clear()
        self._send(Message.GET, payload=struct.pack(f"<{len(ids)}I", *ids))
        return self._read_batch(self._expect(Message.BATCH, "samples").payload)

    def ids(self, epoch: int, step: int, count: int) -> list[int]:
        """The ids of `count` batches from `step` on."""
        self._send(Message.IDS, {"epoch": epoch, "step": step, "count": count})
        return memoryview(self._expect(Message.IDS, "ids").payload).cast("I").tolist()

    def tell(self, kind: Message, fields: Mapping[str, Any], payload: bytes = b"") -> None:
        """Says something that has no answer, and that a feed which is gone need not hear."""
        with contextlib.suppress(OSError):
            self._socket.sendall(format_frame(kind, fields, payload))

    def status(self) -> str:
        """The status of the feed, as JSON text."""
        self._send(Message.STATUS)
        return self._expect(Message.STATUS, "the status").payload.decode()

    def _read_batch(self, payload: bytes) -> Batch:
        seq, epoch, step, count = struct.unpack_from("<IIII", payload)
        view = memoryview(payload)
        at = 16
        offsets = view[at : at + 8 * count].cast("Q").tolist()
        at += 8 * count
        lengths = view[at : at + 4 * count].cast("I").tolist()
        at += 4 * count
        ids = view[at : at + 4 * count].cast("I").tolist()
        flags = bytes(view[at + 4 * count : at + 5 * count])
        self.lost = view[at + 5 * count :].cast("I").tolist()
        self._held.append(seq)
        if self._files is not None:
            return MappedBatch(epoch, step, ids, lengths, offsets, flags, self._files, self._catalog)
        return Batch(epoch, step, ids, lengths, offsets, flags, self._arena_view, self._catalog)

    def close(self) -> None:
        """Hangs up, once the feed has read everything that was sent.

        The feed may be writing: to a socket that is closed at once it could not, and would lose what it had not read
        yet, such as the times of the last steps.
        """
        if os.getpid() == self.pid:  # a forked copy must not end what its parent reads
            deadline = time.monotonic() + _LEAVE_SECONDS
            with contextlib.suppress(OSError):  # the feed is gone or does not answer, or this is closed already
                self._socket.shutdown(socket.SHUT_WR)
                while (left := deadline - time.monotonic()) > 0:
                    self._socket.settimeout(left)
                    if not self._socket.recv(1 << 18):
                        break
        self._socket.close()

    def __del__(self) -> None:
        if hasattr(self, "_socket"):  # it had found its feed
            self.close()

    # Frames

    def _send(self, kind: Message, fields: Mapping[str, Any] | None = None, payload: bytes = b"") -> None:
        self._socket_send(format_frame(kind, fields, payload))

    def _socket_send(self, data: bytes) -> None:
        try:
            self._socket.sendall(data)
        except OSError as error:
            self._raise_pending(error)

    def _expect(self, kind: Message, name: str) -> Frame:
        while True:
            frame = self._receive(name)
            if frame.kind == kind:
                return frame

    def _receive(self, name: str) -> Frame:
        while True:
            frame = self._take_frame()
            if frame is not None:
                if frame.kind == Message.ERROR:
                    error = frame.fields
                    raise FeedError(error["code"], error["message"], error.get("hint"))
                if frame.kind == Message.NOTE:
                    warnings.warn(frame.fields["message"], stacklevel=2)
                    continue
                return frame
            began = time.monotonic()
            try:
                chunk = self._socket.recv(1 << 18)
            except TimeoutError:
                raise FeedGone(
                    f"the feed on {self._path} has not sent {name} within {self._timeout:g} s",
                    "dsc feed status; a longer timeout=",
                ) from None
            except OSError as error:
                raise FeedGone(f"the feed on {self._path} is gone: {error}", "start it again") from None
            finally:
                WAITED.seconds += time.monotonic() - began
            if not chunk:
                raise FeedGone(f"the feed on {self._path} has ended", "start it again")
            self._buffer += chunk

    def _take_frame(self) -> Frame | None:
        try:
            return take_frame(self._buffer)
        except FrameError as error:
            raise FeedError(
                "FEED_PROTOCOL",
                f"the feed on {self._path} {error}",
                "install the dsc that belongs to this Python package",
            ) from None

    def _raise_pending(self, error: OSError) -> None:
        """The feed hangs up after it has said why: its last words first."""
        self._expect(Message.ERROR, f"an answer ({error})")


_open: weakref.WeakSet[FeedClient] = weakref.WeakSet()


@atexit.register  # before, and so called after, everything that tells a feed something when the interpreter exits
def _close_all() -> None:
    for client in list(_open):
        client.close()
