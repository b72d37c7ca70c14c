"""The folder of a feed's socket, held open, so that what was checked is what is used."""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import struct
from collections.abc import Iterator
from typing import Any

from .errors import FeedError

_LONGEST_SECONDS = 10.0**9  # more than 30 years: the system takes no more, and nobody waits for it
_CREDENTIALS = struct.Struct("3i")  # of the kernel: process, user and group of the other end


def connect_to_feed(path: str, timeout: float) -> socket.socket:
    """Connects to the feed that listens at `path`, if folder, socket and listener are this user's.

    Args:
        path: of the socket.
        timeout: seconds that each call on the connection may take.

    Raises:
        OSError: nobody answers there.
        FeedError: another user may, or does.
    """
    with open_own_folder(os.path.dirname(os.path.abspath(path))) as folder:
        address = os.path.join(folder, os.path.basename(path))
        _require_own_socket(path, os.lstat(address))
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.settimeout(timeout if timeout < _LONGEST_SECONDS else None)
            connection.connect(address)
            _require_own_listener(path, connection)
        except BaseException:
            connection.close()
            raise
        return connection


@contextlib.contextmanager
def open_own_folder(folder: str) -> Iterator[str]:
    """Holds a folder open that nobody else may write in; yields the name under which it is reached while it is open.

    Raises:
        OSError: there is no such folder.
        FeedError: another user may answer there in the feed's place.
    """
    descriptor = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _require_own_folder(folder, os.fstat(descriptor))
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)


def _require_own_folder(folder: str, found: os.stat_result) -> None:
    user = os.getuid()
    # In a folder like /tmp anybody may make names, but none may take another's away: there the socket is what counts.
    if found.st_mode & stat.S_ISVTX and found.st_uid in (0, user):
        return
    if found.st_uid != user:
        raise _refusal(folder, f"belongs to user {found.st_uid}")
    is_default = os.path.basename(folder) == f"dsc-{user}"
    if found.st_mode & (0o077 if is_default else 0o022):
        raise _refusal(folder, f"has mode {_mode(found)}")


def _require_own_socket(path: str, found: os.stat_result) -> None:
    if not stat.S_ISSOCK(found.st_mode):
        raise _refusal(path, "is no socket")
    if found.st_uid != os.getuid():
        raise _refusal(path, f"belongs to user {found.st_uid}")
    if found.st_mode & 0o077:
        raise _refusal(path, f"has mode {_mode(found)}")


def _require_own_listener(path: str, connection: socket.socket) -> None:
    raw: Any = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    _, user, _ = _CREDENTIALS.unpack(raw)
    if user != os.getuid():
        raise _refusal(path, f"is answered by user {user}")


def _mode(found: os.stat_result) -> str:
    return f"{found.st_mode & 0o7777:04o}"


def _refusal(path: str, what: str) -> FeedError:
    return FeedError(
        "FEED_PROTOCOL",
        f"{path} {what}, so another user may answer in the feed's place",
        "XDG_RUNTIME_DIR, or DSC_FEED_SOCKET in a folder of your own with mode 0700",
    )
