"""Where the next pass over a dataset begins, shared by the process that made it and its DataLoader workers."""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import json
import os
import struct
import uuid
import weakref
from collections.abc import Iterator
from typing import Any, NamedTuple

from .errors import pass_has_ended
from .launch import runtime_folder
from .torch_data import get_worker_info

_PREFIX = "place-"
# Taken on another kind of lock than passes are: kept as long as a process has its descriptor, forked ones, too.
_FIRST_BYTE = struct.pack("hhqqi", fcntl.F_WRLCK, os.SEEK_SET, 0, 1, 0)


class Begun(NamedTuple):
    """A pass that has begun: where, and the name by which the feed knows it."""

    epoch: int
    step: int
    run: str


@dataclasses.dataclass
class Place:
    """Where a pass began, and how many batches this process has given since; of a worker: of its own."""

    epoch: int
    step: int
    given: int


class Position:
    """The place of one dataset object in the sequence, in a file that goes when the object does, or after its process.

    torch forks or spawns new workers in every pass and tells them nothing of the passes before, so what they must
    agree on lies outside of all of them.
    """

    def __init__(self, epoch: int = 0, step: int = 0) -> None:
        folder = runtime_folder()
        _remove_left(folder)
        self._path, kept = _make(folder)
        weakref.finalize(self, _remove, self._path, os.getpid(), kept)
        self.set(epoch, step)

    def set(self, epoch: int, step: int, number: int = 0) -> None:
        """Makes the next pass begin there: of persistent workers, the one that is the `number`-th of each."""
        with self._locked() as file:
            _write(file, {"next": [epoch, step], "number": number})

    def set_epoch(self, epoch: int) -> None:
        """Makes the next pass that epoch's; a place inside of it that a state was loaded for stays."""
        with self._locked() as file:
            state = _read(file)
            if state["next"][0] != epoch:
                _write(file, {"next": [epoch, 0]})

    def next(self) -> tuple[int, int]:
        """Epoch and step that the next pass begins at."""
        with self._locked() as file:
            epoch, step = _read(file)["next"]
            return int(epoch), int(step)

    def begin_pass(self, number: int, *, appointed: Begun | None, at: tuple[int, int] | None) -> Begun:
        """Begins this process's next pass; in a worker of a loader, together with the other workers.

        Args:
            number: of the pass among those of this process.
            appointed: a pass that was begun for this process already, or for the first one of a worker.
            at: where a pass begins that goes on from a state.
        """
        worker = get_worker_info()
        if worker is None:
            return appointed or self.begin(uuid.uuid4().hex, at=at)
        if appointed is not None and number == 1:
            return appointed
        return self.begin(f"{worker.seed - worker.id}:{number}", worker.id, number=number, at=at)

    def begin(self, token: str, worker: int = 0, *, number: int = 1, at: tuple[int, int] | None = None) -> Begun:
        """Begins a pass, or joins the one that other workers have begun.

        Args:
            token: the same for all workers of a pass.
            worker: a worker that joins a second time begins the next pass, with any token.
            number: of the pass among those of this process.
            at: where a pass begins that goes on from a state.

        Returns:
            The same for all workers of the pass.

        Raises:
            FeedError: a later pass has begun.
        """
        with self._locked() as file:
            state = _read(file)
            if number < state.get("number", 0):
                raise pass_has_ended()
            begun = state.get("pass")
            if begun is None or begun["token"] != token or worker in begun["workers"]:
                epoch, step = at or state["next"]
                begun = {"token": token, "workers": [], "begun": [epoch, step, uuid.uuid4().hex]}
            begun["workers"].append(worker)
            _write(file, {**state, "next": [begun["begun"][0] + 1, 0], "pass": begun})
            return Begun(*begun["begun"])

    @contextlib.contextmanager
    def _locked(self) -> Iterator[int]:
        file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield file
        finally:
            os.close(file)


def _read(file: int) -> dict[str, Any]:
    text = os.pread(file, 1 << 20, 0)
    state: dict[str, Any] = json.loads(text) if text else {"next": [0, 0]}
    return state


def _write(file: int, state: dict[str, Any]) -> None:
    # Spaces cover what was longer: ext4 writes a file to the disk at once that was emptied and closed, for 0.3 ms.
    os.pwrite(file, json.dumps(state).encode().ljust(os.fstat(file).st_size), 0)


def _make(folder: str) -> tuple[str, int]:
    """Makes a file that is this process's, and the descriptor that says so."""
    while True:
        path = os.path.join(folder, f"{_PREFIX}{uuid.uuid4().hex}")
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            is_own = _take(file)
        except OSError:  # a file system that has no such locks, on which no file is taken for a left one either
            return path, file
        if is_own and os.fstat(file).st_nlink > 0:  # not removed by another process just before
            return path, file
        os.close(file)


def _remove_left(folder: str) -> None:
    """Removes the files of processes that were killed."""
    for name in os.listdir(folder):
        if not name.startswith(_PREFIX):
            continue
        path = os.path.join(folder, name)
        with contextlib.suppress(OSError):
            file = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
            try:
                if _take(file):
                    os.unlink(path)
            finally:
                os.close(file)


def _take(file: int) -> bool:
    """Whether no process has taken this file, which is then this one's until the descriptor is closed."""
    try:
        fcntl.fcntl(file, fcntl.F_OFD_SETLK, _FIRST_BYTE)
    except BlockingIOError:
        return False
    return True


def _remove(path: str, owner: int, kept: int) -> None:
    if os.getpid() == owner:  # a forked copy leaves it to the process that made it
        with contextlib.suppress(OSError):
            os.unlink(path)
        os.close(kept)
