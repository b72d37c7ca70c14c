"""Loaded by any Python that `dsc memory profile -- …` starts: profiles the first module that is trained."""

from __future__ import annotations

import importlib.abc
import importlib.util
import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType


class _AfterTorch(importlib.abc.MetaPathFinder):
    """Starts the profiler right after the script has imported torch."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name != "torch":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec("torch")
        assert spec is not None and spec.loader is not None
        run = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            run(module)
            from dsc.memory.profiling.auto import AutoProfiler

            AutoProfiler(os.environ["DSC_MEMORY_PROFILE"], os.environ.get("DSC_MEMORY_PROFILE_STOP") == "1")

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


if os.environ.get("DSC_MEMORY_PROFILE"):
    sys.meta_path.insert(0, _AfterTorch())
