"""Failures of the feed, named by the codes of dsc."""

from __future__ import annotations

from typing import Any


class FeedError(RuntimeError):
    """A failure that is not a bug: `code` is stable, `hint` says what would help."""

    def __init__(self, code: str, message: str, hint: str | None = None) -> None:
        super().__init__(f"{message}\n  try: {hint}" if hint else message)
        self.code = code
        self.message = message
        self.hint = hint

    def __reduce__(self) -> tuple[Any, ...]:  # so that it survives the way from a worker to the trainer
        return (type(self), (self.code, self.message, self.hint))


class FeedGone(FeedError):
    """The feed is dead or silent. `state` is where the trainer was, as `FeedLoader.state_dict()` gives it.

    `state` is None if no batch was received yet.
    """

    def __init__(self, message: str, hint: str | None = None, state: dict[str, Any] | None = None) -> None:
        super().__init__("FEED_GONE", message, hint)
        self.state = state
        self._reason = message  # without the place: the caller that passes the error on adds its own

    def __reduce__(self) -> tuple[Any, ...]:
        return (FeedGone, (self.message, self.hint, self.state))

    def after(self, state: dict[str, Any]) -> FeedGone:
        """The same failure, of a trainer that has received everything before `state`."""
        gone = FeedGone(
            f"{self._reason}; {state['position']} samples of epoch {state['epoch']} were received",
            "FeedLoader.load_state_dict(error.state) goes on with the next one; it starts the feed again, unless "
            "DSC_FEED_SOCKET is set",
            state,
        )
        gone._reason = self._reason
        return gone


def pass_has_ended() -> FeedError:
    """The failure of a pass that was given up for another one."""
    return FeedError("FEED_GONE", "this pass has ended, because a newer one was begun or a state was loaded")
