"""One backward pass of the hook."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import torch

from .carrier import Carrier
from .in_order import InOrder
from .run import Run

# A run; with the last one of a bucket its gate, its values, and whether the bucket is the step's last.
_Bucket: TypeAlias = tuple["torch.futures.Future[torch.Tensor]", torch.Tensor, bool]
_Entry: TypeAlias = tuple[Run, _Bucket | None]


class Step:
    """Runs of one backward pass, settled in the order in which they were sent.

    A bucket's future ends as soon as its runs are settled, so that DDP unpacks it while others are still on their way.
    end: called with all runs when the last is settled, before the last future ends.
    """

    def __init__(self, carrier: Carrier, end: Callable[[list[Run]], None]) -> None:
        self._carrier = carrier
        self._end = end
        self._runs: list[Run] = []
        self._are_all_sent = False
        self._error: Exception | None = None
        self._gates: list[tuple[torch.futures.Future[torch.Tensor], torch.Tensor]] = []
        self._order: InOrder[_Entry] = InOrder(self._settle)

    def send(self, values: torch.Tensor, runs: list[Run], is_last: bool) -> torch.futures.Future[torch.Tensor]:
        """Sends a bucket's runs. Returns the future of `values` with the mean in them."""
        gate: torch.futures.Future[torch.Tensor] = torch.futures.Future(
            devices=[values.device] if values.is_cuda else []
        )
        result = gate.then(self._open)
        self._gates.append((gate, values))
        self._runs += runs
        for run in runs:
            self._order.announce((run, (gate, values, is_last) if run is runs[-1] else None))
        for run in runs:
            self._send(run)
        if is_last:
            self._are_all_sent = True
            self._order.drain()
        return result

    def _send(self, run: Run) -> None:
        self._carrier.send(run, self._arrive)

    def _arrive(self, error: Exception | None) -> None:
        if error is None:
            try:
                self._order.drain()
            except Exception as raised:
                error = raised
        if error is not None:
            self._fail(error)

    def _settle(self, entry: _Entry) -> bool:
        run, ended = entry
        if not run.is_here:
            return False
        if run.has_overflowed:
            # All ranks saw the same bytes and repeat it without a word, after all first attempts: so their calls start
            # in the same order on all of them. A true inf or NaN stays one.
            if self._are_all_sent:
                run.restart()
                self._send(run)
            return False
        if ended:
            gate, values, is_last = ended
            if is_last:
                self._carrier.end_step()
                self._end(self._runs)
            if not gate.done():
                gate.set_result(values)
        return True

    def _fail(self, error: Exception) -> None:
        self._error = self._error or error
        for gate, values in self._gates:
            if not gate.done():
                gate.set_result(values)

    def _open(self, gate: torch.futures.Future[torch.Tensor]) -> torch.Tensor:
        # A future that another one follows hands on what is raised here, also to DDP, which is not Python.
        if self._error is not None:
            raise self._error
        return gate.value()
