"""Memory plans for eager PyTorch: profile iteration 1, run under a plan, count device bytes on CPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import lazy_names

if TYPE_CHECKING:
    from .accounting import AccountingDevice as AccountingDevice
    from .auto import AutoProfiler as AutoProfiler
    from .executor import Offload as Offload
    from .executor import offload as offload
    from .profiler import profile as profile
    from .runnable_plan import PlanError as PlanError

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "AccountingDevice": "accounting",
        "AutoProfiler": "auto",
        "Offload": "executor",
        "PlanError": "runnable_plan",
        "offload": "executor",
        "profile": "profiler",
    },
)
