"""Carries runs on the CPU. With more than two ranks gloo only moves the bytes, and halves are summed here in fp32.

gloo's own sum of halves is rounded at every rank, so its error grows with their number. The same bytes travel as in its
all-reduce, which two ranks use: theirs is one rounding, and over 1 Gb/s it is faster than swapping halves.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import torch
import torch.distributed as dist

from .buffers import Buffers
from .carrier import Arrived, Carrier
from .in_order import InOrder
from .run import BLOCK, Run, peaks_of
from .scale import plan_averaging


class _Gather:
    """A run to sum over the ranks, once this rank's share of it is complete."""

    def __init__(self, run: Run, arrived: Arrived) -> None:
        self.run = run
        self.arrived = arrived
        self.share: torch.Tensor | None = None


class HostCarrier(Carrier):
    """Everything but `send` happens in the back end's threads, while backward goes on."""

    def __init__(self, process_group: dist.ProcessGroup | None) -> None:
        self._ranks = dist.get_world_size(process_group)
        self._shift, self._factor = plan_averaging(self._ranks)
        self._buffers = Buffers()
        # Collectives of one group must start in the same order on all ranks. Runs that overflowed are sent again when
        # all first attempts are there, also before or after calls of DDP itself, such as for unused parameters; gathers
        # start when a sum is complete. So neither shares a group with DDP or with the other.
        self._send_group = open_group(process_group)
        self._gather_group = open_group(process_group) if self._ranks > 2 else None
        self._gathers = InOrder(self._start_gather)

    def send(self, run: Run, arrived: Arrived) -> None:
        """See `Carrier`."""
        if run.wire_type == "fp32" or self._ranks <= 2:
            self._reduce(run, arrived)
        else:
            self._scatter(run, arrived)

    def end_step(self) -> None:
        """See `Carrier`."""
        self._buffers.trim()
        self._gathers = InOrder(self._start_gather)

    def _reduce(self, run: Run, arrived: Arrived) -> None:
        wire = self._encode(run, run.values.numel())
        work = dist.all_reduce(wire, group=self._send_group, async_op=True)

        def accept() -> None:
            self._accept(run, wire, arrived)
            self._buffers.give(wire)

        when_done(work, arrived, accept)

    def _scatter(self, run: Run, arrived: Arrived) -> None:
        """Every rank gets one chunk from all others, sums it, and gives the sum to all."""
        chunk = -(-run.values.numel() // self._ranks)
        own = self._encode(run, chunk * self._ranks)
        shown = self._buffers.take(own.numel(), own.dtype)
        work = dist.all_to_all_single(shown, own, group=self._send_group, async_op=True)
        gather = _Gather(run, arrived)
        self._gathers.announce(gather)

        def add() -> None:
            rows = shown.view(self._ranks, chunk)
            total = self._buffers.take(chunk, torch.float32)
            total.copy_(rows[0])
            for row in rows[1:]:
                total.add_(row)
            gather.share = self._buffers.take(chunk, own.dtype).copy_(total)
            self._buffers.give(own, shown, total)
            self._gathers.drain()

        when_done(work, arrived, add)

    def _start_gather(self, gather: _Gather) -> bool:
        if gather.share is None:
            return False
        run, share, arrived = gather.run, gather.share, gather.arrived
        whole = self._buffers.take(share.numel() * self._ranks, share.dtype)
        work = dist.all_gather_into_tensor(whole, share, group=self._gather_group, async_op=True)

        def accept() -> None:
            self._accept(run, whole[: run.values.numel()], arrived)
            self._buffers.give(share, whole)

        when_done(work, arrived, accept)
        return True

    def _encode(self, run: Run, count: int) -> torch.Tensor:
        values = run.values
        wire = self._buffers.take(count, run.dtype)
        product = self._buffers.take(BLOCK, torch.float32)
        for first, end, exponent in run.spans():
            factor = 2.0 ** (exponent + self._shift)
            for start in range(first, end, BLOCK):
                part = values[start : min(end, start + BLOCK)]
                wire[start : start + part.numel()].copy_(torch.mul(part, factor, out=product[: part.numel()]))
        self._buffers.give(product)
        wire[values.numel() :].zero_()
        return wire

    def _accept(self, run: Run, total: torch.Tensor, arrived: Arrived) -> None:
        run.accept(total, peaks_of(total, run.sizes).tolist(), self._factor)
        arrived(None)


def when_done(work: dist.Work | None, arrived: Arrived, go_on: Callable[[], None]) -> None:
    """Calls `go_on()` in the back end's thread when `work` is done; a failure of either goes to `arrived`."""

    def done(future: torch.futures.Future[Any]) -> None:
        try:
            future.value()
            go_on()
        except Exception as error:  # nobody looks at what a callback of a future raises
            arrived(error)

    assert work is not None  # None is for ranks outside the group
    work.get_future().then(done)


def open_group(process_group: dist.ProcessGroup | None) -> dist.ProcessGroup:
    """A gloo group of the same ranks, for collectives with an order of their own. All of them call it alike."""
    ranks = None if process_group is None else dist.get_process_group_ranks(process_group)
    group = dist.new_group(ranks, backend="gloo", use_local_synchronization=ranks is not None)
    return cast(dist.ProcessGroup, group)  # every rank here is one of it
