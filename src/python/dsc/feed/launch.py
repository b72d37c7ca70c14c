"""Finds the feed of this job on this machine, or starts it."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shlex
import subprocess
import tempfile
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..program import find_program
from .client import FeedClient
from .errors import FeedError, FeedGone
from .options import ServeOptions
from .socket_folder import connect_to_feed, open_own_folder
from .wire import Message, format_frame

_IDLE_EXIT_SECONDS = 10
_PATIENCE_SECONDS = 600  # what is told once it has passed: a dataset that is staged whole before may take hours

_INSTALLING = "pip install dsc-data, npm install -g dsc, or DSC_BIN='node /path/to/bin/dsc.js'"


def runtime_folder() -> str:
    """The user's own folder for sockets of feeds.

    Raises:
        FeedError: another user has made it, or may write in it.
    """
    base = os.environ.get("XDG_RUNTIME_DIR")
    folder = os.path.join(base, "dsc") if base and _is_writable(base) else f"/tmp/dsc-{os.getuid()}"
    os.makedirs(folder, mode=0o700, exist_ok=True)
    with open_own_folder(folder):
        return folder


def _is_writable(folder: str) -> bool:
    """Whether this user can make names there. Slurm and su hand on the name of a folder of elsewhere."""
    while not os.path.exists(folder) and folder != os.path.dirname(folder):
        folder = os.path.dirname(folder)
    return os.access(folder, os.W_OK)


def job_name(world: int) -> str:
    """Identifies a job on this machine: equal in its processes, and different in other jobs."""
    for name in ("DSC_FEED_JOB", "TORCHELASTIC_RUN_ID", "SLURM_JOB_ID", "MASTER_PORT"):
        value = os.environ.get(name)
        if value and value != "none":
            return f"{name}={value}"
    return f"pid={os.getpid() if world == 1 else os.getppid()}"


class JobFeed:
    """The feed of one dataset that the processes of this job on this machine share, found or started when needed.

    Args:
        serving: which data, and how.
        world: ranks of the job.
        timeout: seconds without a word after which a feed is given up.

    Raises:
        TypeError: `timeout` is no number.
        ValueError: `timeout` is not more than 0.
    """

    def __init__(self, serving: ServeOptions, world: int, timeout: float) -> None:
        if isinstance(timeout, bool) or not isinstance(timeout, (int, float)):
            raise TypeError(f"timeout is {timeout!r}, expected seconds")
        if not timeout > 0:
            raise ValueError(f"timeout is {timeout}, expected more than 0 seconds")
        self._serving = serving
        self._timeout = timeout
        # Found out here: a worker's own process says nothing of the job, and may have another environment.
        self._given = os.environ.get("DSC_FEED_SOCKET")
        self.epoch = 0  # that a feed started now is asked for first
        self._path = socket_path(serving.target, serving.arguments, job_name(world))

    @property
    def can_be_started_again(self) -> bool:
        """Whether the feed is this job's own, not one that somebody else has started."""
        return self._given is None

    def path(self) -> str:
        """The socket of the feed, which is started if there is none."""
        return self._given or ensure_feed(
            self._serving.target, self._serving.arguments, self._path, first_epoch=self.epoch
        )

    def connect(self, hello: Mapping[str, Any]) -> FeedClient:
        """Opens a connection.

        Raises:
            FeedGone: no feed answers.
            FeedError: the feed cannot be started, or refuses.
        """
        try:
            return FeedClient(self.path(), hello, self._timeout)
        except FeedGone:  # it was ending when it was asked
            if not self.can_be_started_again:
                raise
            return FeedClient(self.path(), hello, self._timeout)


def socket_path(target: str | None, arguments: Sequence[str], job: str) -> str:
    """Where the feed of a job over this data listens."""
    key = "\0".join([*_identity(target), *arguments, job])
    return os.path.join(runtime_folder(), f"feed-{hashlib.sha256(key.encode()).hexdigest()[:20]}.sock")


def ensure_feed(target: str | None, arguments: Sequence[str], path: str, *, first_epoch: int = 0) -> str:
    """Finds the feed of this job, or starts it, and waits as long as it makes itself ready.

    Args:
        target: a directory or the name of a dataset; None where `arguments` name a mix.
        arguments: options of `dsc feed serve`.
        path: of its socket.
        first_epoch: that is read first; a feed that is there already is told by its readers.

    Returns:
        The same path, on which a feed answers.

    Raises:
        FeedError: the feed cannot be started.
    """
    with _locked(f"{path}.lock"):
        if not _answers(path):
            _start(target, [*arguments, *(["--epoch", str(first_epoch)] if first_epoch else [])], path)
    return path


def _identity(target: str | None) -> list[str]:
    if target is None:
        return []
    return [os.path.abspath(target) if os.path.exists(target) else target]


def _start(target: str | None, arguments: Sequence[str], path: str) -> None:
    name = target or "the mix"
    command = [*dsc_command(), "feed", "serve", *([] if target is None else [target]), "--socket", path, *arguments]
    command += ["--idle-exit", str(_IDLE_EXIT_SECONDS), "--json"]
    with tempfile.TemporaryFile() as log:
        try:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        except OSError as error:
            raise FeedError("FEED_GONE", f"{command[0]} cannot be run: {error.strerror}", _INSTALLING) from None
        began = told = time.monotonic()
        while not (os.path.exists(path) and _answers(path)):
            if process.poll() is not None:
                log.seek(0)
                said = log.read().decode(errors="replace").strip()
                raise _failure(f"the feed of {name} ended with {process.returncode}", said, command)
            now = time.monotonic()
            if now - told > _PATIENCE_SECONDS:
                told = now
                warnings.warn(
                    f"the feed of {name} is not there after {now - began:.0f} s, and is waited for; "
                    "dsc status shows what is staged",
                    stacklevel=2,
                )
            time.sleep(min(0.5, 0.002 + (now - began) / 200))


def _failure(what: str, said: str, command: Sequence[str]) -> FeedError:
    """Why there is no feed, in dsc's own words where it ended with some."""
    for line in reversed(said.split("\n")):
        with contextlib.suppress(ValueError, TypeError, KeyError):
            error = json.loads(line)["error"]
            # Of a defect of dsc, running it by hand shows where.
            return FeedError(error["code"], f"{what}: {error['message']}", error.get("hint") or shlex.join(command))
    return FeedError("FEED_GONE", f"{what}: {said}", shlex.join(command))


def dsc_command() -> list[str]:
    """The words that run dsc here."""
    found = find_program()
    if not found:
        raise FeedError(
            "FEED_GONE",
            "the program dsc is not installed here, so no feed can be started",
            _INSTALLING,
        )
    return found


def _answers(path: str) -> bool:
    """Whether a feed lives there. The socket of one that is being killed takes connections to its last moment."""
    try:
        with connect_to_feed(path, timeout=60) as probe:
            probe.sendall(format_frame(Message.STATUS))
            return probe.recv(1) != b""
    except TimeoutError:
        return True  # it is busy, not dead
    except OSError:
        return False


@contextlib.contextmanager
def _locked(path: str) -> Iterator[None]:
    """Holds a lock on a file that is there as long as somebody holds or awaits it."""
    while True:
        with open(path, "w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            if not _is_at(path, file.fileno()):  # removed by the one who had it: others may hold another one
                continue
            try:
                yield
            finally:
                os.unlink(path)
            return


def _is_at(path: str, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(descriptor))
    except FileNotFoundError:
        return False
