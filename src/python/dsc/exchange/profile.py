"""Measures what `dsc exchange plan --profile` needs, in the first iterations of a real run."""

from __future__ import annotations

import json
import os
import statistics
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

PROFILE_FORMAT = "dsc.exchange.profile/1"


class Profiler:
    """Watches backward passes of `model` and writes a profile.

        profiler = Profiler(model, "exchange.profile.json")
        ...                                # train; after `skip + iterations` backward passes the file is there
        profiler.done                      # True from then on; the hooks are gone

    Args:
        model: the bare module; it may be wrapped in DDP afterwards. Under DDP the times are those of a backward pass
            that shares the machine with the exchange, as the plan's will.
        path: where rank 0 writes; None writes nothing, `result` holds the profile. With `{rank}` in it every rank
            writes its own: for `dsc exchange plan --profile` with one of each kind, where ranks are unlike.
        iterations: backward passes that count.
        skip: backward passes before those, which do not (allocation, tuning; DDP's first buckets).
        name: of the model in the profile; default: its class.
    """

    def __init__(
        self,
        model: torch.nn.Module,
        path: str | os.PathLike[str] | None = None,
        *,
        iterations: int = 5,
        skip: int = 2,
        name: str | None = None,
    ) -> None:
        self.path = path
        self.result: dict[str, Any] | None = None
        self.done = False
        self._name = name or type(model).__name__
        self._left = iterations
        self._skip = skip
        self._parameters = [(key, value) for key, value in model.named_parameters() if value.requires_grad]
        self._clock = _CudaClock() if any(p.is_cuda for _, p in self._parameters) else _HostClock()
        self._start: Any = None
        self._marks: dict[str, Any] = {}
        self._passes: list[dict[str, float]] = []
        self._handles = [model.register_forward_hook(self._after_forward)]
        for key, parameter in self._parameters:
            self._handles.append(parameter.register_post_accumulate_grad_hook(lambda _, key=key: self._ready(key)))

    def _after_forward(self, module: torch.nn.Module, inputs: Any, output: Any) -> None:
        # The gradient of the output is the first thing that backward makes: its clock starts there.
        self._close_pass()
        tensors = [value for value in _tensors(output) if value.requires_grad]
        if tensors and not self.done:
            tensors[0].register_hook(self._begin)

    def _begin(self, _: torch.Tensor) -> None:
        if self._start is None:
            self._start = self._clock.mark()

    def _ready(self, key: str) -> None:
        if self._start is not None:
            self._marks[key] = self._clock.mark()

    def _close_pass(self) -> None:
        """A pass is complete when the next forward begins, since several backward calls may belong to one step."""
        start, marks = self._start, self._marks
        self._start, self._marks = None, {}
        if start is None or not marks or self.done:
            return
        if self._skip > 0:
            self._skip -= 1
            return
        self._passes.append({key: self._clock.milliseconds(start, mark) for key, mark in marks.items()})
        self._left -= 1
        if self._left == 0:
            self.finish()

    def finish(self) -> dict[str, Any]:
        """Ends the measurement with the passes seen so far, and writes the file.

        Returns:
            The profile; times in milliseconds.

        Raises:
            RuntimeError: no backward pass was seen.
        """
        if self.result is not None:
            return self.result
        if self._start is not None and self._passes == [] and self._skip <= 0:
            self._left = 2
            self._close_pass()
        self.done = True
        for handle in self._handles:
            handle.remove()
        if not self._passes:
            raise RuntimeError("no backward pass was seen: call finish() after training steps, or use fewer")
        medians = {
            key: statistics.median([seen[key] for seen in self._passes if key in seen])
            for key in {key for seen in self._passes for key in seen}
        }
        layers: dict[str, int] = {}
        gradients: list[dict[str, Any]] = []
        sizes = dict(self._parameters)
        for key in sorted(medians, key=lambda key: (medians[key], key)):
            layer = layers.setdefault(key.rpartition(".")[0], len(layers))
            gradients.append(
                {"name": key, "elements": sizes[key].numel(), "layer": layer, "readyMs": round(medians[key], 4)}
            )
        self.result = {
            "format": PROFILE_FORMAT,
            "model": self._name,
            "backwardMs": max(medians.values()),
            "gradientBytes": max(parameter.element_size() for parameter in sizes.values()),
            "gradients": gradients,
        }
        if self.path is not None and (_rank() == 0 or "{rank}" in str(self.path)):
            with open(str(self.path).replace("{rank}", str(_rank())), "w", encoding="utf-8") as file:
                json.dump(self.result, file, indent=1)
                file.write("\n")
        return self.result


class _HostClock:
    """The host's own clock."""

    def mark(self) -> float:
        return time.perf_counter()

    def milliseconds(self, start: float, end: float) -> float:
        return (end - start) * 1000


class _CudaClock:
    """Events on the stream: the host runs ahead of a GPU, so its own clock says nothing."""

    def mark(self) -> torch.cuda.Event:
        import torch

        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def milliseconds(self, start: torch.cuda.Event, end: torch.cuda.Event) -> float:
        end.synchronize()
        return max(0.0, float(start.elapsed_time(end)))


def _tensors(value: Any) -> list[torch.Tensor]:
    import torch

    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [tensor for part in value for tensor in _tensors(part)]
    return _tensors(list(vars(value).values())) if hasattr(value, "__dict__") else []


def _rank() -> int:
    import torch.distributed as dist

    return dist.get_rank() if dist.is_available() and dist.is_initialized() else 0
