"""Fixtures of all tests."""

from feed_support import dataset  # noqa: F401
