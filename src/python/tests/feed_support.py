"""What the feed's tests share: a dataset on disk, and dsc from this checkout."""

import contextlib
import os
import pathlib
import secrets
import signal
import socket
import time
import uuid

import pytest

from dsc.feed.wire import Message, format_frame

ROOT = pathlib.Path(__file__).resolve().parents[3]
COUNT = 203


def sample_bytes(id, length):
    return bytes((id * 131 + i * 7 + (i >> 8)) & 0xFF for i in range(length))


def length_of(id):
    return 400 + (id * 37) % 300


@pytest.fixture
def dataset(tmp_path, monkeypatch):
    """A folder of COUNT samples, with feeds of this test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    runtime = f"/tmp/dsc-test-{uuid.uuid4().hex[:8]}"
    monkeypatch.setenv("XDG_RUNTIME_DIR", runtime)
    monkeypatch.setenv("DSC_FEED_JOB", tmp_path.name)
    for name in ("RANK", "WORLD_SIZE", "DSC_FEED_SOCKET"):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "samples"
    folder.mkdir()
    for id in range(COUNT):
        (folder / f"{id:06}.bin").write_bytes(sample_bytes(id, length_of(id)))
    yield folder
    _stop_feeds(pathlib.Path(runtime) / "dsc")


def feeds(dataset):
    """Process ids of the feeds of this test."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                words = pathlib.Path(f"/proc/{entry}/cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if b"serve" in words and any(str(dataset).encode() in word for word in words):
                found.append(int(entry))
    return found


def kill_feeds(dataset):
    """Sends SIGKILL to the feeds of this test. Returns the process ids of those that were still running."""
    killed = []
    for feed in feeds(dataset):
        with contextlib.suppress(ProcessLookupError):
            os.kill(feed, signal.SIGKILL)
            killed.append(feed)
    return killed


def wait_until(is_so, seconds=120):
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)


_claims = []


def free_port():
    """A port that no other program gets while this process runs, as src/testing/free-port.ts says."""
    while True:
        port = 20_000 + secrets.randbelow(10_000)
        claim = socket.socket(socket.AF_UNIX)
        try:
            claim.bind(f"\0dsc-test-port-{port}")
            socket.create_server(("127.0.0.1", port)).close()
        except OSError:
            claim.close()
            continue
        _claims.append(claim)
        return port


def in_a_fork(work):
    """What `work` returns, or the error that it raises, in a forked copy of this process."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(write_end, repr(work()).encode())
        except BaseException as error:
            os.write(write_end, repr(error).encode())
        finally:
            os._exit(0)
    os.close(write_end)
    said = os.read(read_end, 1000).decode()
    os.waitpid(child, 0)
    os.close(read_end)
    return said


def _stop_feeds(folder):
    import shutil

    for path in folder.glob("*.sock"):
        with socket.socket(socket.AF_UNIX) as client:
            try:
                client.connect(str(path))
                client.sendall(format_frame(Message.STOP))
                client.recv(1)
            except OSError:
                pass
    shutil.rmtree(folder.parent, ignore_errors=True)
