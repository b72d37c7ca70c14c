"""Errors of a central node."""

from __future__ import annotations


class ParamsError(RuntimeError):
    """The central node refuses for good, or does not answer. ``reason`` is its word for it."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
