"""Parameters from a central node (`dsc params serve`): push gradients, pull into a mirror, prefetch per layer."""

from .client import ParameterClient, ParamsError
from .mirror import Mirror, MirrorError

__all__ = ["Mirror", "MirrorError", "ParameterClient", "ParamsError", "connect"]


def connect(model, url, rank, **options):
    """A worker's client for the parameters of ``model``. See ``ParameterClient``."""
    return ParameterClient(model, url, rank, **options)
