"""Profiles a script that knows nothing of profiles."""

import os

import torch

from .profiler import profile_step, sum_of_first


class AutoProfiler:
    """Profiles an unchanged script: takes over the first training calls of its outermost module."""

    def __init__(self, out, is_stopped_after):
        self.out = out
        self.is_stopped_after = is_stopped_after
        self._is_busy = False
        self._call = torch.nn.Module.__call__
        self._backward = torch.Tensor.backward
        self._last = None
        torch.nn.Module.__call__ = lambda module, *a, **k: self._on_call(module, a, k)
        torch.Tensor.backward = lambda tensor, *a, **k: self._on_backward(tensor, a, k)

    def _on_call(self, module, args, kwargs):
        outermost = not self._is_busy and module.training and torch.is_grad_enabled()
        if not outermost or next(module.parameters(), None) is None:
            return self._call(module, *args, **kwargs)
        self._is_busy = True
        try:
            result = self._call(module, *args, **kwargs)
        finally:
            self._is_busy = False
        self._last = (module, args, kwargs, result)
        return result

    def _on_backward(self, tensor, args, kwargs):
        result = self._backward(tensor, *args, **kwargs)
        if self._last is None:
            return result
        module, inputs, named, _ = self._last
        torch.nn.Module.__call__, torch.Tensor.backward = self._call, self._backward
        profile_step(
            module,
            lambda: sum_of_first(module(*inputs, **named)),
            held=[inputs, named],
            out=self.out,
        )
        if self.is_stopped_after:
            os._exit(0)
        return result
