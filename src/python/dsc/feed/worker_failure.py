"""Failures of DataLoader workers, and what to do about them: torch tells the failure only."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from typing import Any

from .errors import FeedError, FeedGone

_SHARED = "/dev/shm"


def explain_worker_failure(error: RuntimeError, workers: Sequence[Any], state: dict[str, Any]) -> FeedError | None:
    """The failure of a pass whose worker was killed, or found no shared memory; None: it is another one.

    Args:
        error: as torch raised it.
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
    dead = next((worker for worker in workers if worker.exitcode not in (None, 0)), None)
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
