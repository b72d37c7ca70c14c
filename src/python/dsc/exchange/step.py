"""One backward pass of the hook."""

import torch

from .in_order import InOrder


class Step:
    """Runs of one backward pass, settled in the order in which they were sent.

    A bucket's future ends as soon as its runs are settled, so that DDP unpacks it while others are still on their way.
    end: called with all runs when the last is settled, before the last future ends.
    """

    def __init__(self, carrier, end):
        self._carrier = carrier
        self._end = end
        self._runs = []
        self._are_all_sent = False
        self._error = None
        self._gates = []
        self._order = InOrder(self._settle)

    def send(self, values, runs, is_last):
        """Sends a bucket's runs. Returns the future of `values` with the mean in them."""
        gate = torch.futures.Future(devices=[values.device] if values.is_cuda else [])
        result = gate.then(self._open)
        self._gates.append((gate, values))
        self._runs += runs
        for run in runs:
            self._order.announce((run, run is runs[-1] and (gate, values, is_last)))
        for run in runs:
            self._send(run)
        if is_last:
            self._are_all_sent = True
            self._order.drain()
        return result

    def _send(self, run):
        self._carrier.send(run, self._arrive)

    def _arrive(self, error):
        if error is None:
            try:
                self._order.drain()
            except Exception as raised:
                error = raised
        if error is not None:
            self._fail(error)

    def _settle(self, entry):
        run, ended = entry
        if not run.is_here:
            return False
        if run.amax is None and run.wire_type != "fp32":
            # All ranks saw the same bytes and repeat it without a word, after all first attempts: so their calls start in
            # the same order on all of them. A true inf or NaN stays one.
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

    def _fail(self, error):
        self._error = self._error or error
        for gate, values in self._gates:
            if not gate.done():
                gate.set_result(values)

    def _open(self, gate):
        # A future that another one follows hands on what is raised here, also to DDP, which is not Python.
        if self._error is not None:
            raise self._error
        return gate.value()
