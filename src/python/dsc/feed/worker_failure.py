"""Failures of DataLoader workers, and what to do about them: torch tells the failure only."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Sequence
from multiprocessing.connection import wait
from typing import Any

from .errors import FeedError, FeedGone
from .handover import WorkerEnded

_SHARED = "/dev/shm"
_MOST_DYING_SECONDS = 5.0  # from a worker's closing of its files until its parent hears of its end


def explain_worker_failure(error: Exception, workers: Sequence[Any], state: dict[str, Any]) -> FeedError | None:
    """The failure of a pass whose worker was killed, or found no shared memory; None: it is another one.

    Args:
        error: as torch raised it. What a dying worker sent cannot be opened any more (ours: WorkerEnded; torch's:
            OSError, EOFError), which may be noticed before its end is.
        workers: the pass's processes.
        state: where the trainer is.
    """
    if "shared memory" in str(error) and "No space left" in str(error):
        room = os.statvfs(_SHARED)
        total, free = (blocks * room.f_frsize // 2**20 for blocks in (room.f_blocks, room.f_bavail))
        return FeedError(
            "DISK_FULL",
            f"a DataLoader worker finds no room for a batch in {_SHARED}, which has {total} MiB, {free} MiB of them "
            "free: batches of the workers and the memory of the feed lie there",
            "docker run --shm-size 2g, fewer workers, or memory='16MiB'",
        )
    dead = _find_dead(workers)
    if dead is None and _may_be_of_a_dying_worker(error):
        _await_one(workers)
        dead = _find_dead(workers)
    if dead is None:
        return None
    code = dead.exitcode
    how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with {code}"
    return FeedGone(
        f"DataLoader worker (pid {dead.pid}) {how}, and its batches are lost; "
        f"{state['position']} samples of epoch {state['epoch']} were received",
        "more memory or fewer workers if the system killed it (dmesg says so); "
        "FeedLoader.load_state_dict(error.state) goes on with the next batch",
        state,
    )


def _find_dead(workers: Sequence[Any]) -> Any | None:
    return next((worker for worker in workers if worker.exitcode not in (None, 0)), None)


def _await_one(workers: Sequence[Any]) -> None:
    running = {worker.sentinel: worker for worker in workers if worker.exitcode is None}
    with contextlib.suppress(RuntimeError):  # torch's handler of SIGCHLD raises it: one has ended
        for sentinel in wait(list(running), _MOST_DYING_SECONDS) if running else ():
            running[sentinel].join()  # its files were closed; the exit code comes a little later


def _may_be_of_a_dying_worker(error: Exception) -> bool:
    """Whether opening what a worker sent failed. A failure of the transform has torch's words around it."""
    return isinstance(error, (WorkerEnded, OSError, EOFError)) and "Caught " not in str(error)
