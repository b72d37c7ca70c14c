"""Loaded by any Python that `dsc memory profile -- …` starts: profiles the first module that is trained."""

import importlib.abc
import importlib.util
import os
import sys


class _AfterTorch(importlib.abc.MetaPathFinder):
    """Starts the profiler right after the script has imported torch."""

    def find_spec(self, name, path, target=None):
        if name != "torch":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec("torch")
        run = spec.loader.exec_module

        def exec_module(module):
            run(module)
            from dsc.memory.auto import AutoProfiler

            AutoProfiler(os.environ["DSC_MEMORY_PROFILE"], os.environ.get("DSC_MEMORY_PROFILE_STOP") == "1")

        spec.loader.exec_module = exec_module
        return spec


if os.environ.get("DSC_MEMORY_PROFILE"):
    sys.meta_path.insert(0, _AfterTorch())
