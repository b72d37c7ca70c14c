"""Memory plans for eager PyTorch: profile iteration 1, run under a plan, count device bytes on CPU."""

import importlib
import sys

_LAZY = {
    "profile": "dsc.memory.profiler",
    "AutoProfiler": "dsc.memory.auto",
    "offload": "dsc.memory.executor",
    "Offload": "dsc.memory.executor",
    "AccountingDevice": "dsc.memory.accounting",
    "PlanError": "dsc.memory.executor",
}

__all__ = list(_LAZY)
memory = sys.modules[__name__]  # what `dsc.memory` loads lazily


def __getattr__(name):
    if name not in _LAZY:
        raise AttributeError(f"module 'dsc.memory' has no attribute {name!r}")
    return getattr(importlib.import_module(_LAZY[name]), name)
