"""One planned forward and backward: what the saved-tensor hooks do at each tick of the plan."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import Any, TypeAlias

import torch

from ...torch_private import storage_key, version_of
from ..plan.dtypes import short_dtype
from ..plan.runnable_plan import RunnablePlan
from ..reuse.dead_maps import space_of_last
from .copies import Copies
from .cuda_copies import is_captured
from .home import ParameterHandle
from .host_side import HostSide
from .reload_slots import ReloadSlots
from .run_counts import RunCounts
from .stash import Handle, Stash, check_version, is_plain

# A saved tensor of autograd: the tensor with its sequence number and version, or what stands for one that moves.
_Packed: TypeAlias = tuple[int, torch.Tensor, int] | Handle | ParameterHandle | torch.Tensor


class Step:
    """One forward and backward. Its clock ticks with every pack, then with every unpack.

    Args:
        plan: that it is carried out by.
        host: where tensors move to.
        run: counts what happens.
        open_arena: makes the host ready for the device of the first tensor that moves.
    """

    def __init__(
        self, plan: RunnablePlan, host: HostSide, run: RunCounts, open_arena: Callable[[torch.device], None]
    ) -> None:
        self.plan, self.homes = plan, host.homes
        self._host, self._run, self._open_arena = host, run, open_arena
        self.stream: Any = None  # that of the first tensor that moves, once there is one
        self._lock = threading.Lock()  # autograd has a thread per device, and one for what is on the CPU
        self.is_planned = True
        self.is_abandoned = False
        self.has_run_backward = False
        self.sequence = 0
        self.position = 0
        self.stashes: dict[int, Stash] = {}
        self.handles: weakref.WeakSet[Handle] = weakref.WeakSet()
        self.slots = ReloadSlots(plan.reload)
        self.layer: int | None = None
        self._layer_of_thread: dict[int, int | None] = {}
        self.in_pending = list(self.plan.ins)
        self._readers: dict[int, tuple[int, int]] = {}  # storage key → (pack call it was last read for, other holders)
        self._written: set[int] = set()  # pack calls whose map holds a gradient now

    @property
    def copies(self) -> Copies:
        """The queues of the device."""
        return self._host.copies

    def miss(self, why: str) -> None:
        """The step is not what was planned: move nothing more. What is away comes back when it is asked for."""
        if not self.is_planned:
            return
        self.is_planned = False
        self._run.miss(why)

    def abandon(self) -> None:
        """The forward raised: nothing of this step will be asked for again, unless a graph was kept."""
        self.is_abandoned = True
        self.close()

    def close(self) -> None:
        """Waits for copies that run and drops device memory; keeps what a living graph may still ask for."""
        for stash in self.stashes.values():
            for copy in (stash.copy_out, stash.copy_in):  # one in that nobody used writes into memory given up here
                if copy is not None and not self.copies.is_done(copy):
                    self.copies.wait(copy, stream=self.stream)
            if len(self.handles) == 0:
                stash.forget()
        self.slots.drop()

    def pack(self, tensor: torch.Tensor) -> _Packed:
        """Returns the stand-in for a tensor that autograd saves."""
        sequence = self.sequence
        if self._is_of_checkpoint(tensor, sequence):
            return tensor
        self.sequence += 1
        packed: Handle | ParameterHandle | None = self._stash(tensor, sequence) if self.is_planned else None
        if self.homes is not None and packed is None:
            packed = self.homes.pack(tensor)  # also in a step that missed its plan: it must not keep it here
            if packed is not None:
                packed.sequence = sequence
        self._tick(sequence)
        return packed if packed is not None else (sequence, tensor.detach(), version_of(tensor))

    def skip_loss_scale(self) -> None:
        """Counts scalars that a script saves after the forward, such as a GradScaler's factor, as saved: they stay."""
        missing = range(self.sequence, self.plan.pack_count)
        stay = all(self.plan.signatures[at].endswith("||") and at not in self.plan.move_of for at in missing)
        if stay and self.plan.reused.isdisjoint(missing):
            for at in missing:
                self._tick(at)
            self.sequence = self.plan.pack_count
            self.position += len(missing)  # backward begins with them

    def unpack(self, packed: _Packed) -> torch.Tensor:
        """The tensor that autograd saved."""
        if isinstance(packed, torch.Tensor):
            return packed
        with self._lock:
            tensor = self._unpack(packed)
            sequence = packed[0] if isinstance(packed, tuple) else packed.sequence
            if sequence in self.plan.reused and self.is_planned:
                self._readers[storage_key(tensor)] = (sequence, 1 if isinstance(packed, tuple) else 0)
            return tensor

    def space_of(self, saved: torch.Tensor) -> torch.Tensor | None:
        """See `DeadMaps`: where the plan says so, and nobody else has the map."""
        with self._lock:
            sequence, holders = self._readers.pop(storage_key(saved), (-1, 0))
            space = space_of_last(saved, holders) if sequence >= 0 else None
            if space is not None:
                self._written.add(sequence)
                self._run.sums["reusedMaps"] += 1
            return space

    def _is_of_checkpoint(self, tensor: torch.Tensor, sequence: int) -> bool:
        """Whether it is an empty tensor that no plan counts: torch.utils.checkpoint up to 2.11 saves one per block."""
        if tensor.numel() > 0:
            return False
        return sequence >= self.plan.pack_count or _sign(tensor) != self.plan.signatures[sequence]

    def _unpack(self, packed: tuple[int, torch.Tensor, int] | Handle | ParameterHandle) -> torch.Tensor:
        self.has_run_backward = True
        position = self.position
        self.position += 1
        sequence = packed[0] if isinstance(packed, tuple) else packed.sequence
        if sequence in self._written:
            raise RuntimeError(
                f"saved tensor {sequence} is needed again after a gradient was written into it: retain_graph is not "
                "possible under this plan; plan without --reuse"
            )
        layer = self.plan.layers[sequence] if sequence < self.plan.pack_count else None
        if layer != self.layer:
            self.layer = layer
            if self.homes is not None and layer is not None:
                self.homes.reach_backward(layer)
        thread = threading.get_ident()
        if self._layer_of_thread.get(thread) != layer:
            self._layer_of_thread[thread] = layer
            self.slots.release_finished(thread)
        self._tick(self.plan.pack_count + position)
        if isinstance(packed, tuple):
            check_version(packed[1], packed[2])
            return packed[1]
        if isinstance(packed, Handle):
            return self._restore(packed)
        assert self.homes is not None
        return self.homes.unpack(packed)

    def _stash(self, tensor: torch.Tensor, sequence: int) -> Handle | None:
        plan = self.plan
        if sequence >= plan.pack_count:
            self.miss(f"more than the {plan.pack_count} planned tensors are saved")
            return None
        seen = _sign(tensor)
        if seen != plan.signatures[sequence]:
            self.miss(f"saved tensor {sequence} is {seen}, planned {plan.signatures[sequence]}")
            return None
        move = plan.move_of.get(sequence)
        if move is None:
            return None
        why = self._find_obstacle(tensor)
        if why is not None:
            self.miss(f"saved tensor {sequence} {why}")
            return None
        stash = self.stashes.get(move["storage"])
        if stash is None:
            stash = self.stashes[move["storage"]] = Stash(move)
        if not stash.hold(tensor):
            self.miss(f"saved tensor {sequence} does not share the storage it shared in the profile")
            return None
        handle = Handle(stash, sequence, tensor)
        self.handles.add(handle)
        return handle

    def _find_obstacle(self, tensor: torch.Tensor) -> str | None:
        """Why a tensor that looks as planned cannot move here; None where it can."""
        if not is_plain(tensor):
            return "is more than its bytes: a subclass, or conjugated or negated lazily"
        if is_captured(tensor):
            return "is computed while a CUDA graph is captured, whose replays would not move it"
        self._open_arena(tensor.device)
        if tensor.device != self._host.device:
            return f"is on {tensor.device}, others that move are on {self._host.device}"
        stream = self.copies.stream()
        if not self.stashes:
            self.stream = stream
        return None if stream == self.stream else "is computed on a second stream: memory changes hands on one only"

    def _tick(self, tick: int) -> None:
        """Starts copies out, waits for copies out, starts copies in: what the plan says for this instant."""
        for name, storage in self.plan.actions.get(tick, ()):
            stash = self.stashes.get(storage)
            if stash is None:
                continue
            if name == "out" and self.is_planned and stash.copy_out is None and stash.is_here:
                self._start_out(stash)
            elif name == "free":
                self._free(stash)
        if tick < self.plan.pack_count:
            return
        while self.in_pending and self.in_pending[0][0] <= tick:
            _, _, storage = self.in_pending.pop(0)
            stash = self.stashes.get(storage)
            if stash is not None and stash.copy_in is None and not stash.is_here and stash.remaining > 0:
                with self.copies.on(self.stream):
                    self._start_in(stash)

    def _start_out(self, stash: Stash) -> None:
        slot = self._host.slot(stash.move)
        stash.copy_out = self.copies.start_out(slot, stash.device_bytes())
        self._run.sums["movedBytes"] += stash.move["bytes"]
        low, high = stash.move["hostOffset"], stash.move["hostOffset"] + stash.move["bytes"]
        for other in self.stashes.values():
            start = other.move["hostOffset"]
            if other is not stash and other.copy_out is not None and start < high and low < start + other.move["bytes"]:
                other.is_host_valid = False

    def _free(self, stash: Stash) -> None:
        if stash.copy_out is None or not stash.is_here:
            return
        self.copies.wait(stash.copy_out, self._run.stall, self.stream)
        stash.device_storage = None

    def _start_in(self, stash: Stash) -> None:
        if not stash.is_host_valid:
            raise RuntimeError(
                f"storage {stash.move['storage']} is needed again after its host space was given away: "
                "retain_graph is not possible under this plan"
            )
        stash.reload = self.slots.take(stash, self.is_planned)
        stash.copy_in = self.copies.start_in(stash.reload, self._host.slot(stash.move), stash.copy_out)
        self._run.sums["movedBytes"] += stash.move["bytes"]

    def _restore(self, handle: Handle) -> torch.Tensor:
        stash = handle.stash
        stash.check_untouched()
        if stash.device_storage is not None and stash.device is not None:
            tensor = handle.view(stash.device_storage, stash.device)
        else:
            if stash.copy_in is None:  # late, or not planned: on the stream that the memory is taken and given back on
                with self.copies.on(self.stream):
                    self._start_in(stash)
            storage = stash.move["storage"]
            self.copies.wait(stash.copy_in, lambda late_us: self._run.late(storage, late_us))
            assert stash.reload is not None
            tensor = handle.view_of_bytes(stash.reload)
        stash.remaining -= 1
        if stash.remaining <= 0:
            # The view keeps the memory until its node has run; only an arena's slot must be kept from others.
            stash.reload = stash.copy_in = None
            if stash.copy_out is not None and stash.is_here:
                self.copies.wait(stash.copy_out, stream=self.stream)
                stash.device_storage = None  # without a copy nothing has it but us, and a kept graph may ask again
            self.slots.finish(stash)
            if not self.in_pending and all(s.remaining <= 0 for s in self.stashes.values()):
                self.slots.drop()
        return tensor


def _sign(tensor: torch.Tensor) -> str:
    if tensor.layout != torch.strided:
        return f"{short_dtype(tensor.dtype)}|{','.join(map(str, tensor.shape))}|"
    shape, stride = ",".join(map(str, tensor.shape)), ",".join(map(str, tensor.stride()))
    return f"{short_dtype(tensor.dtype)}|{shape}|{stride}"
