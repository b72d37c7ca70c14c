"""One connection to a feed: sockets and mmap only, opened by the process that uses it."""

import collections
import json
import mmap
import os
import socket
import struct

from .batch import Batch
from .errors import FeedError, FeedGone

_HELLO, _WELCOME, _START, _STARTED, _NEXT, _BATCH = 1, 2, 3, 4, 5, 6
_RELEASE, _EPOCH_END, _ERROR, _GET, _IDS, _STATUS, _STOP = 7, 8, 9, 10, 11, 12, 13
_TABLE_HEADER = 128
PROTOCOL = 3


class FeedClient:
    """Speaks the session protocol. Not for more than one thread or process."""

    def __init__(self, socket_path, hello, timeout=300.0):
        self.pid = os.getpid()
        self.lost = []  # ids that the last batch came without
        self._path = socket_path
        self._timeout = timeout
        self._buffer = bytearray()
        self._held = collections.deque()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(timeout)
        try:
            self._socket.connect(socket_path)
        except OSError as error:
            raise FeedGone(f"no feed answers on {socket_path}: {error}", "dsc feed serve <dataset>") from None
        self._send_json(_HELLO, {"proto": PROTOCOL, "pid": os.getpid(), **hello})
        self.info = json.loads(self._expect(_WELCOME, "WELCOME"))
        self._arena, self._arena_view = self._map(self.info["arena"]["path"], self.info["arena"]["bytes"])
        nonce = bytes(self._arena_view[:32]).decode("latin1")
        if nonce != self.info["arena"]["nonce"]:
            raise FeedError("FEED_PROTOCOL", f"{self.info['arena']['path']} is not the arena of the feed on {socket_path}",
                            "run the trainer in the process namespace of the feed")
        self._table, table = self._map(self.info["table"]["path"], self.info["table"]["bytes"])
        self._open_names(table)

    def _map(self, path, size):
        try:
            fd = os.open(path, os.O_RDONLY)
        except OSError as error:
            raise FeedGone(f"the memory of the feed cannot be opened: {error}",
                            "run trainer and feed as one user in one process namespace") from None
        try:
            mapping = mmap.mmap(fd, size, prot=mmap.PROT_READ)
        finally:
            os.close(fd)
        return mapping, memoryview(mapping)

    def _open_names(self, table):
        count, files, name_bytes, _ = struct.unpack_from("<dddd", table, 16)
        count, files, name_bytes = int(count), int(files), int(name_bytes)
        at = _TABLE_HEADER + 8 * count
        self._name_ends = table[at : at + 8 * count].cast("d")
        at += 8 * count + 8 * files + 12 * count
        self._names = table[at : at + name_bytes]

    def name_of(self, id):
        start = int(self._name_ends[id - 1]) if id else 0
        return bytes(self._names[start : int(self._name_ends[id])]).decode()

    def start(self, epoch, step, run):
        """Moves to a place in the sequence; returns (epoch, step) as the feed understands it."""
        self._held.clear()
        self._send_json(_START, {"epoch": epoch, "step": step, "run": run})
        while True:  # batches of the run before may still be in the pipe; the feed has given them up
            type, payload = self._receive("STARTED")
            if type == _STARTED:
                answer = json.loads(bytes(payload))
                return answer["epoch"], answer["step"]

    def request(self, credits):
        self._send(_NEXT, struct.pack("<I", credits))

    def next_batch(self, keep=0):
        """The next batch, or None at the end of the epoch. Gives back the batches before it but for the last `keep`."""
        given = len(self._held) - keep
        if given > 0:
            for _ in range(given):
                seq = self._held.popleft()
            self._socket_send(_frame(_RELEASE, struct.pack("<I", seq)) + _frame(_NEXT, struct.pack("<I", given)))
        type, payload = self._receive("a batch")
        if type == _EPOCH_END:
            return None
        if type != _BATCH:
            raise FeedError("FEED_PROTOCOL", f"the feed sent message type {type} instead of a batch")
        return self._read_batch(payload)

    def get(self, ids):
        """Any samples by id; the batch is valid until the next call."""
        if self._held:
            self._send(_RELEASE, struct.pack("<I", self._held[-1]))
            self._held.clear()
        self._send(_GET, struct.pack(f"<{len(ids)}I", *ids))
        return self._read_batch(self._expect(_BATCH, "samples"))

    def ids(self, epoch, step, count):
        """The ids of `count` batches from `step` on."""
        self._send_json(_IDS, {"epoch": epoch, "step": step, "count": count})
        return memoryview(self._expect(_IDS, "ids")).cast("I").tolist()

    def status(self):
        self._send(_STATUS, b"")
        return bytes(self._expect(_STATUS, "the status")).decode()

    def _read_batch(self, payload):
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
        return Batch(epoch, step, ids, lengths, offsets, flags, self._arena_view, self.name_of)

    def close(self):
        self._socket.close()

    # Frames

    def _send_json(self, type, value):
        self._send(type, json.dumps(value).encode())

    def _send(self, type, payload):
        self._socket_send(_frame(type, payload))

    def _socket_send(self, data):
        try:
            self._socket.sendall(data)
        except OSError as error:
            self._raise_pending(error)

    def _expect(self, wanted, name):
        while True:
            type, payload = self._receive(name)
            if type == wanted:
                return payload

    def _receive(self, name):
        while True:
            if len(self._buffer) >= 4:
                (length,) = struct.unpack_from("<I", self._buffer)
                if len(self._buffer) >= 4 + length:
                    type = self._buffer[4]
                    payload = bytes(memoryview(self._buffer)[5 : 4 + length])
                    del self._buffer[: 4 + length]
                    if type == _ERROR:
                        error = json.loads(payload)
                        raise FeedError(error.get("code"), error.get("message"), error.get("hint"))
                    return type, payload
            try:
                chunk = self._socket.recv(1 << 18)
            except socket.timeout:
                raise FeedGone(f"the feed on {self._path} has not sent {name} within {self._timeout:g} s",
                                "dsc feed status; a longer timeout=") from None
            except OSError as error:
                raise FeedGone(f"the feed on {self._path} is gone: {error}", "start it again") from None
            if not chunk:
                raise FeedGone(f"the feed on {self._path} has ended", "start it again")
            self._buffer += chunk

    def _raise_pending(self, error):
        """The feed hangs up after it has said why: its last words first."""
        self._expect(_ERROR, f"an answer ({error})")


def _frame(type, payload):
    return struct.pack("<IB", 1 + len(payload), type) + payload
