"""Errors of the exchange between ranks."""

from __future__ import annotations


class PeerLost(RuntimeError):
    """A rank is gone or stands still. `rank` says which."""

    def __init__(self, rank: int, reason: str) -> None:
        super().__init__(f"rank {rank} is lost: {reason}")
        self.rank = rank


class ExchangeMismatch(RuntimeError):
    """Ranks are not doing the same thing. The message says which and what."""
