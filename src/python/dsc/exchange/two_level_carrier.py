"""Carries runs on the CPU in two levels: ranks of one host through shared memory, one rank per host over the network.

Every byte crosses a host's network once per host, not once per rank, and only one rank per host converts it.
"""

from __future__ import annotations

import math
import os
import queue
import threading
from collections.abc import Callable
from typing import Any, TypeAlias, cast

import torch
import torch.distributed as dist

from .carrier import Arrived, Carrier
from .errors import ExchangeMismatch, PeerLost
from .host_carrier import HostCarrier
from .run import Run, peaks_of
from .shared_memory import SharedMemory, name_host

OpenCarrier: TypeAlias = Callable[[dist.ProcessGroup | None], Carrier]

# A rank may be slow for reasons of its own (it evaluates, it saves). A dead one is noticed at once.
PATIENCE_SECONDS = 1800.0
# A bucket at a time: ranks wait for one another twice per piece, and sleep while they wait.
PIECE_BYTES = 8 << 20
# The head that the first rank of a host sends the others with the values of a run.
_FINITE, _NOT_FINITE, _FAILED = 0.0, 1.0, -1.0


class _Passage:
    """A run on its way through both levels."""

    def __init__(self, run: Run, arrived: Arrived) -> None:
        self.run = run
        # The values that the network fills. `run` says that it is here only when all ranks of the host can know.
        self.travelling = Run(run.group, run.parameters, run.values, run.sizes, run.wire_type, run.exponents)
        self.arrived = arrived
        self.is_through = threading.Event()  # of the network, or it failed on the way
        self.error: Exception | None = None

    def pass_through(self, error: Exception | None) -> None:
        self.error = self.error or error
        self.is_through.set()


class TwoLevelCarrier(Carrier):
    """A `Carrier`. The hook only hands runs over: two threads do the rest, in the order of the calls on every rank.

    Args:
        process_group: that of DDP; None is the default group.
        open_network: what carries runs between the first ranks of hosts.

    Raises:
        ExchangeMismatch: ranks of one host cannot share memory.
    """

    def __init__(self, process_group: dist.ProcessGroup | None, open_network: OpenCarrier = HostCarrier) -> None:
        hosts = find_hosts(process_group)
        ranks = dist.get_world_size(process_group)
        me = dist.get_rank(process_group)
        own = next(host for host in hosts if me in host)
        self._is_first = own[0] == me
        local = [_open_group(process_group, host) for host in hosts][hosts.index(own)]
        network = _open_group(process_group, [host[0] for host in hosts])
        # Ways up and down work at the same time on different runs: each needs memory of its own.
        self._up, self._down = (
            SharedMemory(local, piece_bytes=PIECE_BYTES, timeout=PATIENCE_SECONDS, is_eager=False) for _ in range(2)
        )
        # Means of hosts with many ranks weigh more.
        self._weight = len(own) * len(hosts) / ranks
        self._network = open_network(network) if self._is_first and len(hosts) > 1 else None
        self._has_network = len(hosts) > 1
        self._ups: queue.SimpleQueue[_Passage] = queue.SimpleQueue()
        self._downs: queue.SimpleQueue[_Passage] = queue.SimpleQueue()
        self._broken: Exception | None = None
        for work, name in ((self._go_up, "up"), (self._go_down, "down")):
            threading.Thread(target=work, daemon=True, name=f"dsc-exchange-{name}").start()

    def send(self, run: Run, arrived: Arrived) -> None:
        """See `Carrier`."""
        passage = _Passage(run, arrived)
        self._downs.put(passage)
        self._ups.put(passage)

    def end_step(self) -> None:
        """See `Carrier`."""
        if self._network is not None:
            self._network.end_step()

    def _go_up(self) -> None:
        """Sums over the host, then gives the sum to the network on the host's first rank."""
        while True:
            passage = self._ups.get()
            try:
                if self._broken is not None:
                    raise self._broken
                run = passage.run
                if not run.is_redone:  # a run that is repeated has its host's mean already
                    self._up.reduce(run.values)
                    if self._is_first and self._weight != 1.0:
                        run.values.mul_(self._weight)
                if self._network is not None:
                    self._network.send(passage.travelling, passage.pass_through)
                    continue
                if not self._has_network:
                    _accept_alone(passage.travelling)
                passage.pass_through(None)
            except Exception as error:
                self._broken = self._broken or error
                passage.pass_through(error)

    def _go_down(self) -> None:
        """Hands on what the network brought to all ranks of the host."""
        while True:
            passage = self._downs.get()
            passage.is_through.wait()
            error = passage.error or self._broken
            try:
                error = self._share(passage, error)
            except Exception as raised:
                error = error or raised
            self._broken = self._broken or error
            passage.arrived(error)

    def _share(self, passage: _Passage, error: Exception | None) -> Exception | None:
        if isinstance(error, PeerLost):
            return error  # a neighbour is gone: nobody to share with
        run, found = passage.run, passage.travelling
        is_here = error is None and not found.has_overflowed
        note = _FAILED if error else _NOT_FINITE if found.amaxes is None else _FINITE
        # The others learn by how much comes whether it fits half precision, and then how large its parts are.
        note = self._down.broadcast(run.values if is_here or not self._is_first else run.values[:0], note)
        if note == _FAILED:
            return error or PeerLost(0, "the exchange of its host's first rank with other hosts failed")
        if note == _FINITE:
            amaxes = torch.tensor(found.amaxes or [0.0] * len(run.sizes), dtype=torch.float32)
            self._down.broadcast(amaxes)
            run.amaxes = amaxes.tolist()
        run.is_here = True
        return None


def find_hosts(process_group: dist.ProcessGroup | None) -> list[list[int]]:
    """Ranks of the group by host, each list ascending, in the order of their first ranks.

    Processes in different network namespaces count as on different hosts: they reach each other by network only.
    """
    own = (*name_host().values(), os.stat("/proc/self/ns/net").st_ino, os.stat("/proc/self/ns/pid").st_ino)
    everyone: list[Any] = [None] * dist.get_world_size(process_group)
    dist.all_gather_object(everyone, own, group=process_group)
    hosts: dict[Any, list[int]] = {}
    for rank, host in enumerate(everyone):
        hosts.setdefault(host, []).append(rank)
    return list(hosts.values())


def open_two_levels(
    device: torch.device, open_network: OpenCarrier = HostCarrier
) -> Callable[[dist.ProcessGroup | None], TwoLevelCarrier]:
    """The carrier, for gradients on the CPU.

    Raises:
        ExchangeMismatch: they are on a GPU, where NCCL has levels of its own.
    """
    if device.type != "cpu":
        raise ExchangeMismatch(f"gradients are on {device.type}: NCCL does both levels by itself, leave levels=2 out")
    return lambda group: TwoLevelCarrier(group, open_network)


def _accept_alone(run: Run) -> None:
    amaxes = peaks_of(run.values, run.sizes).tolist()
    run.amaxes = amaxes if all(map(math.isfinite, amaxes)) else None
    run.wire_type = "fp32"  # nothing was rounded


def _open_group(process_group: dist.ProcessGroup | None, ranks: list[int]) -> dist.ProcessGroup:
    of = dist.group.WORLD if process_group is None else process_group
    named = [dist.get_global_rank(cast(dist.ProcessGroup, of), rank) for rank in ranks]
    return cast(dist.ProcessGroup, dist.new_group(named, backend="gloo", use_local_synchronization=False))
