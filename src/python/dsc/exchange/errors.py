"""What can go wrong between ranks."""


class PeerLost(RuntimeError):
    """A rank is gone or stands still. `rank` says which."""

    def __init__(self, rank, reason):
        super().__init__(f"rank {rank} is lost: {reason}")
        self.rank = rank


class ExchangeMismatch(RuntimeError):
    """Ranks are not doing the same thing. The message says which and what."""
