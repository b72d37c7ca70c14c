"""Failures of the feed, named by the codes of dsc."""


class FeedError(RuntimeError):
    """A failure that is not a bug: `code` is stable, `hint` says what would help."""

    def __init__(self, code, message, hint=None):
        super().__init__(f"{message}\n  try: {hint}" if hint else message)
        self.code = code
        self.hint = hint
        self._parts = (code, message, hint)

    def __reduce__(self):  # so that it survives the way from a worker to the trainer
        return (FeedError, self._parts)


def pass_has_ended():
    return FeedError("FEED_GONE", "this pass has ended, because a newer one was begun or a state was loaded")
