"""What a central node can refuse."""


class ParamsError(RuntimeError):
    """The central node refuses for good, or does not answer. ``reason`` is its word for it."""

    def __init__(self, reason, message):
        super().__init__(message)
        self.reason = reason
