"""Parameters from a central node (`dsc params serve`): push gradients, pull into a mirror, prefetch per layer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import lazy_names

if TYPE_CHECKING:
    from .client import ParameterClient as ParameterClient
    from .client import connect as connect
    from .errors import ParamsError as ParamsError
    from .mirror import Mirror as Mirror
    from .mirror import MirrorError as MirrorError

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "Mirror": "mirror",
        "MirrorError": "mirror",
        "ParameterClient": "client",
        "ParamsError": "errors",
        "connect": "client",
    },
)
