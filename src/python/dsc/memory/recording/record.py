"""One recorded training step: what is alive at the fullest instant of every event, and how saved tensors move."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypedDict

import torch

from ...torch_private import current_node, storage_key, storages_of, tree_leaves, version_of
from ..carrying.stash import check_version
from ..plan.plannable import is_sharded, sharded_units
from ..reuse.dead_maps import space_of_last
from ..reuse.split_gradients import SplitGradients
from .accounting import AccountingDevice
from .blocks import BlockRecorder
from .calling_line import calling_line
from .dropped import Dropped, DroppedTensors
from .segments import Segments
from .timing import StepClock, StepTimes


class Event:
    """A forward or backward of one segment: its peak and when (on the device's clock) that was."""

    __slots__ = ("segment", "is_backward", "start_clock", "peak_bytes", "peak_clock", "ops")

    def __init__(self, segment: int, is_backward: bool) -> None:
        self.segment = segment
        self.is_backward = is_backward
        self.start_clock = 0
        self.peak_bytes = 0
        self.peak_clock = 0
        self.ops = 0


class Saved(TypedDict):
    """One tensor that autograd saved: a view of storage `id`, in elements."""

    id: int
    segment: int
    dtype: torch.dtype
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int
    nbytes: int
    line: str  # of the model's code


_Packed = tuple[int, torch.Tensor | Dropped, int]  # sequence number, the tensor or what stands for it, its version


class MemoryRecord:
    """Records one step under an accounting device.

    Args:
        model: whose layers the step runs.
        list_held: the tensors that are alive before the step, by kind; asked when it begins.
        is_offloading: whether every saved feature map is dropped, and made again when it is asked for.
        is_reusing: whether feature gradients are written into maps that nobody reads any more.
        clock: takes the times of the step; what dropping costs is not in them.
    """

    def __init__(
        self,
        model: torch.nn.Module,
        list_held: Callable[[], Mapping[str, Sequence[torch.Tensor]]],
        *,
        is_offloading: bool = False,
        is_reusing: bool = False,
        clock: StepClock | None = None,
    ) -> None:
        self.device = AccountingDevice()
        self.times: StepTimes = {}
        self._clock = clock
        self.model = model
        self.keep_keys: set[int] = set()  # storages of parameters, buffers and the like: never dropped
        self._dropped = DroppedTensors(self.keep_keys) if is_offloading else None
        self.is_reusing = is_reusing
        self.reused: list[int] = []  # sequence numbers of the saved maps that a gradient was written into
        self._unpacked_last: dict[int, int] = {}  # storage key → sequence number of its last unpack call
        self._list_held = list_held
        self.kinds: dict[int, str] = {}  # id → kind
        self.names: dict[int, str] = {}  # id → name, of parameters that may move and of gradients
        self.events: list[Event] = []
        self.births: dict[int, tuple[int, int, int]] = {}  # id → (clock, bytes, event index)
        self.deaths: dict[int, int] = {}  # id → clock
        self.ids: dict[int, int] = {}  # storage key → id of its present owner
        self.saved: list[Saved] = []  # per pack call: dict
        self.unpacked: list[int] = []  # pack sequence number per unpack call
        self.asked_by: list[int] = []  # per unpack call: the segment whose backward asks
        self.gathered: set[int] = set()  # ids of parameters that FSDP has gathered, as long as it keeps them
        self._sparse: set[str] = set()  # names of the parameters whose gradients are sparse
        self.touches: dict[int, set[int]] = {}  # id → indices of the events that read or write it
        self._whole = contextlib.ExitStack()  # what is on for the step, and for its forward
        self._forward = contextlib.ExitStack()
        self.has_inner_backward = False  # whether the forward runs a backward of its own
        self.reloads: dict[int, list[int]] = {}  # id of a dropped storage → ids of its reloaded copies

    def begin(self) -> None:
        """See `Observer`."""
        device = self.device
        device.on_birth, device.on_death, device.on_op = self._born, self._died, self._moved
        self.blocks = BlockRecorder(self)
        self.segments = Segments(self.model, self._enter, self.blocks)
        for unit in sharded_units(self.model):
            handle = unit.register_forward_pre_hook(self._see_gathered)
            self._whole.callback(handle.remove)
        self._begin(Event(0, False))
        self._whole.callback(self._let_go)
        self._whole.enter_context(device)
        self._hold()
        self._mark(self.events[-1])
        self._forward.enter_context(torch.autograd.graph.saved_tensors_hooks(self._pack, self._unpack))
        if self.is_reusing:
            self._forward.enter_context(SplitGradients(self))

    def turn(self) -> None:
        """See `Observer`."""
        self._forward.close()
        self.blocks.end_forward()
        self._begin(Event(self.segments.current, True))

    def end(self) -> None:
        """See `Observer`."""
        with self._whole, self._forward:
            while self.events[-1].segment > 0:
                self._begin(Event(self.events[-1].segment - 1, True))
            for name, parameter in self.model.named_parameters():
                if parameter.grad is not None:
                    self._name_gradient(name, parameter.grad)
        self._name_parameters()
        if self._clock is not None:
            self._clock.mark(("end", ""))
            self.times = self._clock.sums()

    def _let_go(self) -> None:
        self.segments.close()
        self.device.on_birth = self.device.on_death = self.device.on_op = None

    def _see_gathered(self, unit: torch.nn.Module, inputs: Any) -> None:
        """FSDP has gathered the parameters of a unit, and frees them itself: they neither move nor count as saved."""
        for parameter in unit.parameters():
            if not is_sharded(parameter):
                self.keep_keys.add(storage_key(parameter))
                self.gathered.add(self.identify(parameter))

    def space_of(self, saved: torch.Tensor) -> torch.Tensor | None:
        """See `DeadMaps`: wherever only autograd has the map, and asks for it the last time."""
        sequence = self._unpacked_last.get(storage_key(saved))
        if sequence is None or storage_key(saved) in self.keep_keys:
            return None
        space = space_of_last(saved, holders=1)  # what `_pack` returned
        if space is not None:
            self.reused.append(sequence)
        return space

    def _name_gradient(self, name: str, gradient: torch.Tensor) -> None:
        if gradient.layout != torch.strided:
            self._sparse.add(name)  # of another size in every step: it stays where it is
            return
        identity = self.ids[storage_key(gradient)]
        if identity not in self.kinds:
            self.kinds[identity] = "param_grad"
            self.names[identity] = name

    def _name_parameters(self) -> None:
        """Names the parameters that may leave the device: all of their storage, and used by their own layers only."""
        owners: dict[torch.nn.Parameter, set[str]] = {}
        for label, module in self.model.named_modules():
            if next(module.children(), None) is None:
                for parameter in module.parameters():
                    owners.setdefault(parameter, set()).add(label or type(module).__name__)
        for name, parameter in self.model.named_parameters():
            storage = storages_of(parameter)[0]
            identity = self.ids[storage_key(storage)]
            users = {
                self.segments.names[self.events[at].segment]
                for at in self.touches.get(identity, ())
                if not self.events[at].is_backward
            }
            is_whole = not is_sharded(parameter) and storage.nbytes() == parameter.numel() * parameter.element_size()
            if is_whole and name not in self._sparse and users <= owners.get(parameter, set()):
                self.names[identity] = name
            else:
                self.kinds[identity] = "buffer"

    def event_of_death(self, identity: int) -> int:
        """Index of the event in which a storage died; the number of events for one that lives on."""
        death = self.deaths.get(identity)
        if death is None:
            return len(self.events)
        return max((i for i, e in enumerate(self.events) if e.start_clock < death), default=0)

    def _hold(self) -> None:
        for kind, tensors in self._list_held().items():
            for tensor in tensors:
                self.device.hold(tensor)
                for key in map(storage_key, storages_of(tensor)):
                    self.kinds.setdefault(self.ids[key], kind)
                    self.keep_keys.add(key)

    def _enter(self, segment: int) -> None:
        self._begin(Event(segment, False))

    def _begin(self, event: Event) -> None:
        event.peak_bytes = self.device.live_bytes
        event.start_clock = event.peak_clock = self.device.clock
        self.events.append(event)
        self._mark(event)

    def _mark(self, event: Event) -> None:
        if self._clock is not None:
            self._clock.mark((event.segment, "bwd" if event.is_backward else "fwd"))

    @contextlib.contextmanager
    def untimed(self) -> Iterator[None]:
        """A context for what the step would not do without a record."""
        if self._clock is not None:
            self._clock.mark(("copy", ""))
        yield
        self._mark(self.events[-1])

    def _moved(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        event = self.events[-1]
        if event.is_backward:
            segment = self.segments.of_node(current_node())
            while segment is not None and segment < self.events[-1].segment:
                self._begin(Event(self.events[-1].segment - 1, True))
            event = self.events[-1]
        event.ops += 1
        for leaf in tree_leaves((args, kwargs)):
            if not isinstance(leaf, torch.Tensor):
                continue
            for storage in storages_of(leaf):
                identity = self.ids.get(storage_key(storage))
                if identity is not None:
                    self.touches.setdefault(identity, set()).add(len(self.events) - 1)

    def _born(self, key: int, size: int) -> None:
        identity = len(self.births)
        self.ids[key] = identity
        event = self.events[-1]
        self.births[identity] = (self.device.clock, size, len(self.events) - 1)
        if self.device.live_bytes > event.peak_bytes:
            event.peak_bytes = self.device.live_bytes
            event.peak_clock = self.device.clock

    def _died(self, key: int) -> None:
        self.deaths[self.ids.pop(key)] = self.device.clock

    def identify(self, tensor: torch.Tensor) -> int:
        """The number of a tensor's storage."""
        key = storage_key(storages_of(tensor)[0])
        if key not in self.ids:  # made outside, for example by a data loader
            self.device.hold(tensor)
        return self.ids[key]

    def _pack(self, tensor: torch.Tensor) -> _Packed:
        storage = storages_of(tensor)[0]
        identity = self.identify(tensor)
        if tensor.layout != torch.strided:  # its parts do not describe it completely
            for part in storages_of(tensor):
                self.kinds.setdefault(self.ids[storage_key(part)], "buffer")
        sequence = len(self.saved)
        self.saved.append(
            {
                "id": identity,
                "segment": self.segments.current,
                "dtype": tensor.dtype,
                "shape": tuple(tensor.shape),
                "stride": tuple(tensor.stride()) if tensor.layout == torch.strided else (),
                "offset": int(tensor.storage_offset()) if tensor.layout == torch.strided else 0,
                "nbytes": storage.nbytes(),
                "line": calling_line(),
            }
        )
        with self.untimed():
            dropped = self._dropped.drop(tensor) if self._dropped is not None else None
        return sequence, tensor.detach() if dropped is None else dropped, version_of(tensor)

    def _unpack(self, packed: _Packed) -> torch.Tensor:
        sequence, kept, version = packed
        self.has_inner_backward = self.has_inner_backward or not self.events[-1].is_backward
        self.unpacked.append(sequence)
        # A checkpoint asks for what it is given when the backward of its last layer begins.
        own, asking = self.saved[sequence]["segment"], self.segments.of_node(current_node())
        self.asked_by.append(own if asking is None else max(own, asking))
        if isinstance(kept, torch.Tensor):
            check_version(kept, version)
            self._unpacked_last[storage_key(kept)] = sequence
            return kept
        with self.untimed():
            back = kept.bring_back()
        self.reloads.setdefault(self.saved[sequence]["id"], []).append(self.ids[storage_key(back)])
        return back
