"""Where a trainer is in the sequence: what it needs to go on with the very next batch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from .errors import FeedError

if TYPE_CHECKING:
    from .options import ReadOptions, ServeOptions

FIXED = ("n", "order", "seed", "last", "mix")
"""Facts that a sequence of samples depends on, beside the samples themselves."""


class ReadDataset(Protocol):
    """The dataset that a state is of: see `FeedDataset`."""

    reading: ReadOptions
    serving: ServeOptions

    @property
    def info(self) -> dict[str, Any]:
        """The facts of the feed about the dataset."""

    def expect_epoch(self, epoch: int) -> None:
        """Says where the next pass will begin."""


def choose_identity(state: Mapping[str, Any], info: Mapping[str, Any]) -> str:
    """By what samples are told apart: their fingerprint, or their listing where one was taken while they arrived."""
    return "fingerprint" if state["fingerprint"] and info["fingerprint"] else "listing"


def require_same_sequence(dataset: ReadDataset, state: Mapping[str, Any], names: Iterable[str]) -> None:
    """Checks that a state is of these samples, and that it agrees in `names`, of `FIXED`.

    Raises:
        FeedError: it does not; the message says what differs.
    """
    current = {**dataset.info, "last": dataset.reading.last}
    for name in (choose_identity(state, current), *names):
        if state.get(name) != current.get(name):
            raise FeedError(
                "FEED_STATE_MISMATCH",
                f"the state has {name} {state.get(name)!r}, this feed has {current.get(name)!r}",
                "load_state_dict(state, override=True) if that is meant",
            )


def make_state(dataset: ReadDataset, epoch: int, step: int, skipped: Iterable[list[int]]) -> dict[str, Any]:
    """The state of a trainer that has received the steps before `step`; the end of an epoch is the start of the next.

    Args:
        dataset: that it reads.
        epoch: that it is in.
        step: the next one of the epoch.
        skipped: [epoch, id] of samples that were left out.

    Returns:
        About 200 bytes of JSON values; `position` counts the samples of all ranks.
    """
    info = dataset.info
    if step >= info["stepsPerEpoch"]:
        epoch, step = epoch + 1, 0
    return {
        "v": 1,
        "dataset": dataset.serving.name,
        "fingerprint": info["fingerprint"],
        "listing": info.get("listing"),
        "n": info["n"],
        "order": info["order"],
        "seed": info["seed"],
        "epoch": epoch,
        "position": step * info["globalBatch"],
        "B": info["globalBatch"],
        "last": dataset.reading.last,
        "mix": info.get("mix"),
        "skipped": [list(pair) for pair in sorted({(pair[0], pair[1]) for pair in skipped})],
    }


def find_place(dataset: ReadDataset, state: dict[str, Any], *, override: bool = False) -> tuple[int, int]:
    """Epoch and step that a state stands for in this dataset.

    Args:
        dataset: that goes on.
        state: of `make_state`.
        override: takes a state of other data, another order or seed, too.

    Returns:
        The epoch, and the step in it.

    Raises:
        FeedError: the state does not fit; the message says what differs.
    """
    dataset.expect_epoch(int(state.get("epoch") or 0))
    info = dataset.info
    if not override:
        require_same_sequence(dataset, state, FIXED)
    batch, position = info["globalBatch"], state["position"]
    if position % batch != 0:
        raise FeedError(
            "FEED_STATE_MISMATCH",
            f"position {position} is no multiple of the global batch of {batch} samples",
            f"resume with a global batch that divides {position}, such as {state['B']}",
        )
    epoch, step = state["epoch"], position // batch
    return (epoch + 1, 0) if step >= info["stepsPerEpoch"] else (epoch, step)
