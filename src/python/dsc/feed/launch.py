"""Finds the feed of this job on this machine, or starts it."""

import contextlib
import fcntl
import hashlib
import os
import shlex
import shutil
import socket
import subprocess
import tempfile
import time

from .errors import FeedError

_IDLE_EXIT_SECONDS = 10
_STATUS_REQUEST = b"\1\0\0\0\x0c"


def runtime_folder():
    base = os.environ.get("XDG_RUNTIME_DIR")
    folder = os.path.join(base, "dsc") if base else f"/tmp/dsc-{os.getuid()}"
    os.makedirs(folder, mode=0o700, exist_ok=True)
    return folder


def job_name(world):
    """What the processes of one job on one machine have in common, and other jobs have not."""
    for name in ("DSC_FEED_JOB", "TORCHELASTIC_RUN_ID", "SLURM_JOB_ID", "MASTER_PORT"):
        value = os.environ.get(name)
        if value and value != "none":
            return f"{name}={value}"
    return f"pid={os.getpid() if world == 1 else os.getppid()}"


def ensure_feed(target, arguments, world, start_timeout=600.0):
    """The socket of a running feed over `target`; `arguments` are options of `dsc feed serve`."""
    given = os.environ.get("DSC_FEED_SOCKET")
    if given:
        return given
    key = "\0".join([*_identity(target), *arguments, job_name(world)])
    name = hashlib.sha256(key.encode()).hexdigest()[:20]
    path = os.path.join(runtime_folder(), f"feed-{name}.sock")
    with _locked(f"{path}.lock"):
        if not _answers(path):
            _start(target, arguments, path, start_timeout)
    return path


def _identity(target):
    if target is None:
        return []
    return [os.path.abspath(target) if os.path.exists(target) else target]


def _start(target, arguments, path, timeout):
    command = [*_dsc_command(), "feed", "serve", *([] if target is None else [target]), "--socket", path, *arguments]
    command += ["--idle-exit", str(_IDLE_EXIT_SECONDS), "--quiet"]
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        deadline = time.monotonic() + timeout
        while not _answers(path):
            if process.poll() is not None or time.monotonic() > deadline:
                log.seek(0)
                said = log.read().decode(errors="replace").strip()
                reason = f"ended with {process.returncode}" if process.returncode is not None else f"took more than {timeout:g} s"
                process.kill()
                raise FeedError("FEED_GONE", f"the feed of {target or 'the mix'} {reason}: {said}", shlex.join(command))
            time.sleep(0.02)


def _dsc_command():
    given = os.environ.get("DSC_BIN")
    if given:
        return shlex.split(given)
    found = shutil.which("dsc")
    if not found:
        raise FeedError("FEED_GONE", "the program dsc is not on PATH, so no feed can be started",
                        "npm install -g dsc, or DSC_BIN='node /path/to/bin/dsc.js'")
    return [found]


def _answers(path):
    """Whether a feed lives there. The socket of one that is being killed takes connections to its last moment."""
    with contextlib.closing(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)) as probe:
        probe.settimeout(60)
        try:
            probe.connect(path)
            probe.sendall(_STATUS_REQUEST)
            return probe.recv(1) != b""
        except socket.timeout:
            return True  # it is busy, not dead
        except OSError:
            return False


@contextlib.contextmanager
def _locked(path):
    with open(path, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
