"""Profiles a script that knows nothing of profiles."""

from __future__ import annotations

import atexit
import json
import os
from collections.abc import Callable
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

from ..plan.runnable_plan import PlanError
from .observer import Observer
from .profiler import Profiling, tensors_in


class AutoProfiler:
    """Profiles an unchanged script, which runs the steps itself: its own loss, its own backward.

    A step lasts from a training call of the script's outermost module to the end of the next backward.

    Args:
        out: the path of the profile.
        is_stopped_after: whether the script ends once the profile is written.
    """

    def __init__(self, out: str, is_stopped_after: bool) -> None:
        self._out = out
        self._is_stopped_after = is_stopped_after
        self._module: torch.nn.Module | None = None
        self._profiling: Profiling | None = None
        self._observer: Observer | None = None
        self._inputs: Any = ()
        self._seen = 0  # steps
        self._depth = 0  # of calls of modules within one another
        self._optimizers: list[torch.optim.Optimizer] = []
        self._call: Callable[..., Any] = torch.nn.Module.__call__
        self._backwards: tuple[Callable[..., Any], ...] = (torch.Tensor.backward, torch.autograd.backward)
        self._handle = register_optimizer_step_post_hook(self._on_optimizer)
        on_tensor, on_tensors = map(self._watch, self._backwards)
        _patch(lambda module, *a, **k: self._on_call(module, a, k), on_tensor, on_tensors)
        atexit.register(self._tell_short)

    def _on_call(self, module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self._depth == 0 and self._observer is None and module.training and torch.is_grad_enabled():
            self._begin(module, (args, kwargs))
        self._depth += 1
        try:
            return self._call(module, *args, **kwargs)
        except BaseException:
            if self._depth == 1:
                self._give_up()
            raise
        finally:
            self._depth -= 1

    def _begin(self, module: torch.nn.Module, inputs: Any) -> None:
        if self._module is None and next(module.parameters(), None) is not None:
            self._module = module
            device = next(module.parameters()).device
            try:
                self._profiling = Profiling(module, device, self._list_held)
            except PlanError as error:
                self._refuse(error)
        if self._profiling is None or module is not self._module:
            return
        self._inputs = inputs
        self._observer = self._profiling.next_observer()
        if self._observer is not None:
            self._observer.begin()

    def _on_backward(self, backward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        observer, profiling = self._observer, self._profiling
        if observer is None or profiling is None:
            return backward(*args, **kwargs)
        self._observer = None  # `Tensor.backward` calls `torch.autograd.backward`
        observer.turn()
        try:
            result = backward(*args, **kwargs)
        finally:
            observer.end()
            self._inputs = ()
        self._seen += 1
        if profiling.is_complete:
            self._finish(profiling)
        return result

    def _watch(self, backward: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *args, **kwargs: self._on_backward(backward, args, kwargs)

    def _finish(self, profiling: Profiling) -> None:
        try:
            profiling.write(self._out)
        except PlanError as error:
            self._refuse(error)
            return
        self._leave()

    def _refuse(self, error: PlanError) -> None:
        """Leaves the reason where the profile would be, for `dsc memory profile` to say."""
        self._tell(str(error))
        self._leave()

    def _tell(self, why: str) -> None:
        with open(self._out, "w", encoding="utf-8") as file:
            json.dump({"v": 1, "kind": "dsc.mem.refusal", "why": why}, file)

    def _tell_short(self) -> None:
        if self._seen > 0 and self._profiling is not None:
            needed = self._seen + self._profiling.steps_left
            self._tell(f"the script ended after {self._seen} of {needed} training steps: let it train for longer")

    def _leave(self) -> None:
        atexit.unregister(self._tell_short)
        _patch(self._call, *self._backwards)
        self._handle.remove()
        if self._is_stopped_after:
            os._exit(0)

    def _give_up(self) -> None:
        """The script's forward failed, which it may live with: what was seen of the step is worth nothing."""
        if self._observer is not None:
            self._observer.end()
        self._module = self._profiling = self._observer = None

    def _list_held(self) -> dict[str, list[torch.Tensor]]:
        state = [optimizer.state_dict() for optimizer in self._optimizers]
        return {"opt_state": tensors_in(state), "buffer": tensors_in(self._inputs)}

    def _on_optimizer(self, optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        if optimizer not in self._optimizers:
            self._optimizers.append(optimizer)


def _patch(call: Callable[..., Any], on_tensor: Callable[..., Any], on_tensors: Callable[..., Any]) -> None:
    setattr(torch.nn.Module, "__call__", call)  # noqa: B010 (types forbid to assign methods)
    setattr(torch.Tensor, "backward", on_tensor)  # noqa: B010
    setattr(torch.autograd, "backward", on_tensors)  # noqa: B010
