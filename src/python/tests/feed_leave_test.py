"""A client that leaves lets its feed read its last words, also while the feed writes to it."""

import contextlib
import os
import select
import socket
import struct
import subprocess
import sys
import threading
import time

import pytest
from feed_support import ROOT, in_a_fork

from dsc.feed.client import FeedClient
from dsc.feed.wire import Message, format_frame, take_frame

LAST_WORDS = {"rank": 3, "madeMs": 40}
NONCE = b"n" * 32


class StandIn(threading.Thread):
    """A feed of one client. It writes to it without pause, and reads the next word only when the client hangs up."""

    def __init__(self, folder, is_frozen=False):
        super().__init__()
        self.path = str(folder / "feed.sock")
        self.heard = []
        self.is_let_go = threading.Event()
        self._is_frozen = is_frozen
        self._server = socket.socket(socket.AF_UNIX)
        self._server.bind(self.path)
        os.chmod(self.path, 0o600)
        self._server.listen()
        sizes = struct.pack("<16x4d32x4d16x", 0, 0, 0, 0, 0, 0, 2, 4)
        files = {"arena": NONCE, "table": sizes + b"[]"}
        for name, contents in files.items():
            (folder / name).write_bytes(contents)
        about = {"nonce": NONCE.decode()}  # of the arena; a table has none
        where = {name: {"path": str(folder / name), "bytes": len(each), **about} for name, each in files.items()}
        self._welcome = format_frame(Message.WELCOME, where)

    def run(self):
        connection, _ = self._server.accept()
        with self._server, connection, contextlib.suppress(OSError):  # a broken connection is read no more
            connection.recv(1 << 16)
            connection.sendall(self._welcome)
            if self._is_frozen:
                self.is_let_go.wait()
                return
            poll = select.poll()
            poll.register(connection, select.POLLRDHUP)
            while not poll.poll(0):
                connection.sendall(format_frame(Message.NOTE, {"message": "n" * 1000}))
            received = bytearray()
            while chunk := connection.recv(1 << 16):
                received += chunk
            while frame := take_frame(received):
                self.heard.append(frame.fields)


@pytest.fixture
def feed(tmp_path):
    stand_in = StandIn(tmp_path)
    stand_in.start()
    return stand_in


def connect(feed):
    return FeedClient(feed.path, {}, 20)


def close(clients):
    clients[0].close()


@pytest.mark.parametrize("leave", [close, list.clear])
def test_a_feed_that_writes_to_its_client_hears_the_last_words_of_it(feed, leave):
    clients = [connect(feed)]
    clients[0].tell(Message.MADE, LAST_WORDS)
    leave(clients)
    feed.join()
    assert feed.heard == [LAST_WORDS]


_TRAINER = """
import atexit, sys, threading, time
from feed_leave_test import FeedClient, LAST_WORDS, Message

client = FeedClient(sys.argv[1], {}, 20)
atexit.register(client.tell, Message.MADE, LAST_WORDS)
threading.Thread(target=lambda _: time.sleep(99), args=[client], daemon=True).start()  # nothing frees the client
"""


def test_it_hears_what_is_said_when_the_interpreter_exits(feed):
    path = os.pathsep.join([str(ROOT / "src/python"), os.path.dirname(__file__)])
    words = [sys.executable, "-c", _TRAINER, feed.path]
    ended = subprocess.run(words, env={**os.environ, "PYTHONPATH": path}, stderr=subprocess.PIPE, check=False)
    feed.join()
    assert (ended.returncode, ended.stderr, feed.heard) == (0, b"", [LAST_WORDS])


def test_a_forked_copy_leaves_the_connection_to_its_parent(feed):
    client = connect(feed)
    assert in_a_fork(client.close) == "None"
    client.tell(Message.MADE, LAST_WORDS)
    client.close()
    feed.join()
    assert feed.heard == [LAST_WORDS]


def test_a_feed_that_never_hangs_up_does_not_keep_its_client(tmp_path):
    feed = StandIn(tmp_path, is_frozen=True)
    feed.start()
    client = connect(feed)
    began = time.monotonic()
    client.close()
    feed.is_let_go.set()
    feed.join()
    assert 0.9 < time.monotonic() - began < 10
