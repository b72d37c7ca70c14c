"""Memory plans for eager PyTorch: profile iteration 1, run under a plan, count device bytes on CPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import lazy_names

if TYPE_CHECKING:
    from .carrying.executor import Offload as Offload
    from .carrying.executors import offload as offload
    from .plan.runnable_plan import PlanError as PlanError
    from .profiling.auto import AutoProfiler as AutoProfiler
    from .profiling.fitted import FittedStep as FittedStep
    from .profiling.fitted import fit as fit
    from .profiling.profiler import profile as profile
    from .recording.accounting import AccountingDevice as AccountingDevice
    from .recording.counted_moves import CountedMoves as CountedMoves

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "AccountingDevice": "recording.accounting",
        "CountedMoves": "recording.counted_moves",
        "AutoProfiler": "profiling.auto",
        "FittedStep": "profiling.fitted",
        "Offload": "carrying.executor",
        "PlanError": "plan.runnable_plan",
        "fit": "profiling.fitted",
        "offload": "carrying.executors",
        "profile": "profiling.profiler",
    },
)
