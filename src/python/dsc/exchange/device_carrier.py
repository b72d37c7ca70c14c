"""Carries runs on a GPU: the back end sums them, and the host looks at the results once per step."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist

from .carrier import Arrived, Carrier
from .errors import ExchangeMismatch
from .run import Run, peaks_of
from .scale import plan_averaging


class DeviceCarrier(Carrier):
    """A `Carrier` on the GPU."""

    def __init__(self, process_group: dist.ProcessGroup | None) -> None:
        self._group = process_group
        self._shift, self._factor = plan_averaging(dist.get_world_size(process_group))
        self._pending: list[tuple[Run, torch.Tensor, torch.futures.Future[Any], Arrived]] = []

    def send(self, run: Run, arrived: Arrived) -> None:
        """See `Carrier`."""
        wire = run.scaled(self._shift)
        work = dist.all_reduce(wire, group=self._group, async_op=True)
        self._pending.append((run, wire, work.get_future(), arrived))

    def flush(self) -> None:
        """Waits for everything sent, also for what arrivals make the caller send again.

        Raises:
            ExchangeMismatch: a CUDA graph is being captured.
        """
        if any(wire.is_cuda for _, wire, _, _ in self._pending) and torch.cuda.is_current_stream_capturing():
            raise ExchangeMismatch(
                "a CUDA graph is being captured, but this hook looks at every step's results on the host, which a "
                "replay would not do: train without a graph, or without this hook"
            )
        while self._pending:
            pending, self._pending = self._pending, []
            for _, _, future, _ in pending:
                future.wait()
            # One transfer to the host, not one per bucket.
            peaks = torch.cat([peaks_of(wire, run.sizes) for run, wire, _, _ in pending]).tolist()
            for run, wire, _, arrived in pending:
                own, peaks = peaks[: len(run.sizes)], peaks[len(run.sizes) :]
                run.accept(wire, own, self._factor)
                arrived(None)
