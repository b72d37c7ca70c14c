"""Memory plans for eager PyTorch: profile iteration 1, run under a plan, count device bytes on CPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import lazy_names

if TYPE_CHECKING:
    from .accounting import AccountingDevice as AccountingDevice
    from .auto import AutoProfiler as AutoProfiler
    from .executor import Offload as Offload
    from .executor import offload as offload
    from .fitted import FittedStep as FittedStep
    from .fitted import fit as fit
    from .profiler import profile as profile
    from .runnable_plan import PlanError as PlanError

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "AccountingDevice": "accounting",
        "AutoProfiler": "auto",
        "FittedStep": "fitted",
        "Offload": "executor",
        "PlanError": "runnable_plan",
        "fit": "fitted",
        "offload": "executor",
        "profile": "profiler",
    },
)
