"""Parameters from a central node (`dsc params serve`): push gradients, pull into a mirror, prefetch per layer."""

import sys

from .client import ParameterClient
from .errors import ParamsError
from .mirror import Mirror, MirrorError

params = sys.modules[__name__]  # what `dsc.params` loads lazily

__all__ = ["Mirror", "MirrorError", "ParameterClient", "ParamsError", "connect"]


def connect(model, url, rank, **options):
    """A worker's client for the parameters of ``model``. See ``ParameterClient``."""
    return ParameterClient(model, url, rank, **options)
