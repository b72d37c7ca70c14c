"""Where Lightning means a pass to begin, in the three cases in which it says so to no loader.

It gives states back when it sets up its data, and `estimated_stepping_batches` sets them up before the states are
there; it goes on after an epoch cut short by `limit_train_batches` with the state of its middle; and it overfits by
reading the first batches of each epoch, which are others in every epoch of a feed.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, Protocol

_MODULES = ("lightning.pytorch.loops.fit_loop", "pytorch_lightning.loops.fit_loop")


class Placed(Protocol):
    """A loader with a place in its sequence."""

    @property
    def place(self) -> tuple[int, int]:
        """Epoch and step that it is at."""

    def go_to(self, epoch: int, step: int) -> None:
        """Begins its next pass there."""

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Goes to where the state was taken."""


def find_fit_loop() -> Any:
    """Lightning's loop over epochs that is running in this thread, if one is."""
    if not any(name in sys.modules for name in _MODULES):
        return None
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_globals.get("__name__") in _MODULES:
            return frame.f_locals.get("self")
        frame = frame.f_back  # type: ignore[assignment]
    return None


def moves_elsewhere(loader: Placed, *, is_given_back: bool) -> bool:
    """Whether Lightning wants the pass that is beginning elsewhere; the loader has gone there then.

    Args:
        loader: whose first batch is being asked for.
        is_given_back: Lightning has loaded its state for this pass.
    """
    loop = find_fit_loop()
    if loop is None:
        return False
    state = _take_forgotten_state(loop, loader)
    if state is not None:
        loader.load_state_dict(dict(state))
        is_given_back = True
    epoch, step = loader.place
    if loop.trainer.overfit_batches > 0:
        wanted = (0, 0 if not is_given_back else step)
    elif is_given_back and step > 0 and loop.epoch_loop.batch_progress.current.ready == 0:
        wanted = (epoch + 1, 0)
    else:
        wanted = (epoch, step)
    if wanted != (epoch, step):
        loader.go_to(*wanted)
    return state is not None or wanted != (epoch, step)


def _take_forgotten_state(loop: Any, loader: Placed) -> Mapping[str, Any] | None:
    states = getattr(loop, "_combined_loader_states_to_load", [])
    loaders = [] if loop._combined_loader is None else loop._combined_loader.flattened
    for at, (state, each) in enumerate(zip(states, loaders)):
        if each is loader and state:
            states[at] = {}
            found: Mapping[str, Any] = state
            return found
    return None
