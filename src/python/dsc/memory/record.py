"""One recorded training step: what is alive at the fullest instant of every event, and how saved tensors move."""

import torch
from torch.utils import _pytree as pytree

from .accounting import AccountingDevice
from .segments import Segments, current_node
from .stash import is_plain


class Event:
    """A forward or backward of one segment: its peak and when (on the device's clock) that was."""

    __slots__ = ("segment", "is_backward", "start_clock", "peak_bytes", "peak_clock", "ops")

    def __init__(self, segment, is_backward):
        self.segment = segment
        self.is_backward = is_backward
        self.start_clock = 0
        self.peak_bytes = 0
        self.peak_clock = 0
        self.ops = 0


class MemoryRecord:
    """Records one step under an accounting device. ``is_offloading`` also drops every saved feature map."""

    def __init__(self, model, held, is_offloading=False):
        self.device = AccountingDevice()
        self.model = model
        self.keep_keys = set()  # storages of parameters, buffers and the like: never dropped
        self.is_offloading = is_offloading
        self.held = held  # {kind: tensors alive before the step}
        self.kinds = {}  # id → kind
        self.names = {}  # id → name, of parameters that may move and of gradients
        self.events = []
        self.births = {}  # id → (clock, bytes, event index)
        self.deaths = {}  # id → clock
        self.ids = {}  # storage key → id of its present owner
        self.saved = []  # per pack call: dict
        self.unpacked = []  # pack sequence number per unpack call
        self.touches = {}  # id → indices of the events that read or write it
        self.reloads = {}  # id of a dropped storage → ids of its reloaded copies

    def run(self, step):
        """Runs ``step()`` (forward, then backward of what it returns) and keeps what happened."""
        device = self.device
        device.on_birth, device.on_death, device.on_op = self._born, self._died, self._moved
        self.segments = Segments(self.model, self._enter)
        hooks = torch.autograd.graph.saved_tensors_hooks(self._pack, self._unpack)
        self._begin(Event(0, False))
        try:
            with device:
                self._hold()
                with hooks:
                    loss = step()
                self._backward_from = self.segments.current
                self._begin(Event(self.segments.current, True))
                loss.backward()
                del loss
                while self.events[-1].segment > 0:
                    self._begin(Event(self.events[-1].segment - 1, True))
                for name, parameter in self.model.named_parameters():
                    if parameter.grad is not None:
                        identity = self.ids[parameter.grad.untyped_storage()._cdata]
                        self.kinds[identity] = "param_grad"
                        self.names[identity] = name
        finally:
            self.segments.close()
            device.on_birth = device.on_death = device.on_op = None
        self._name_parameters()
        return self

    def _name_parameters(self):
        """Names the parameters that may leave the device: all of their storage, and used by their own layers only."""
        owners = {}
        for label, module in self.model.named_modules():
            if next(module.children(), None) is None:
                for parameter in module.parameters():
                    owners.setdefault(parameter, set()).add(label or type(module).__name__)
        for name, parameter in self.model.named_parameters():
            storage = parameter.untyped_storage()
            identity = self.ids[storage._cdata]
            users = {
                self.segments.names[self.events[at].segment]
                for at in self.touches.get(identity, ())
                if not self.events[at].is_backward
            }
            is_whole = storage.nbytes() == parameter.numel() * parameter.element_size()
            if is_whole and users <= owners.get(parameter, set()):
                self.names[identity] = name
            else:
                self.kinds[identity] = "buffer"

    def event_of_death(self, identity):
        """Index of the event in which a storage died; the number of events for one that lives on."""
        death = self.deaths.get(identity)
        if death is None:
            return len(self.events)
        return max((i for i, e in enumerate(self.events) if e.start_clock < death), default=0)

    def _hold(self):
        for kind, tensors in self.held.items():
            for tensor in tensors:
                key = tensor.untyped_storage()._cdata
                self.device.hold(tensor)
                self.kinds.setdefault(self.ids[key], kind)
                self.keep_keys.add(key)

    def _enter(self, segment):
        self._begin(Event(segment, False))

    def _begin(self, event):
        event.peak_bytes = self.device.live_bytes
        event.start_clock = event.peak_clock = self.device.clock
        self.events.append(event)

    def _moved(self, args, kwargs):
        event = self.events[-1]
        if event.is_backward:
            segment = self.segments.of_node(current_node())
            while segment is not None and segment < self.events[-1].segment:
                self._begin(Event(self.events[-1].segment - 1, True))
            event = self.events[-1]
        event.ops += 1
        for leaf in pytree.tree_leaves((args, kwargs)):
            if isinstance(leaf, torch.Tensor) and leaf.layout == torch.strided:
                identity = self.ids.get(leaf.untyped_storage()._cdata)
                if identity is not None:
                    self.touches.setdefault(identity, set()).add(len(self.events) - 1)

    def _born(self, key, size):
        identity = len(self.births)
        self.ids[key] = identity
        event = self.events[-1]
        self.births[identity] = (self.device.clock, size, len(self.events) - 1)
        if self.device.live_bytes > event.peak_bytes:
            event.peak_bytes = self.device.live_bytes
            event.peak_clock = self.device.clock

    def _died(self, key):
        self.deaths[self.ids.pop(key)] = self.device.clock

    def _pack(self, tensor):
        storage = tensor.untyped_storage()
        identity = self.ids.get(storage._cdata)
        if identity is None:  # made outside, for example by a data loader
            self.device._count(tensor)
            identity = self.ids[storage._cdata]
        sequence = len(self.saved)
        self.saved.append(
            {
                "id": identity,
                "segment": self.segments.current,
                "dtype": tensor.dtype,
                "shape": tuple(tensor.shape),
                "stride": tuple(tensor.stride()) if tensor.layout == torch.strided else (),
                "offset": tensor.storage_offset() if tensor.layout == torch.strided else 0,
                "nbytes": storage.nbytes(),
            }
        )
        if not self.is_offloading or storage._cdata in self.keep_keys or not is_plain(tensor):
            return sequence, tensor.detach(), None
        with self.device.uncounted():
            copy = tensor.detach().clone(memory_format=torch.preserve_format)
        return sequence, None, copy

    def _unpack(self, packed):
        sequence, tensor, copy = packed
        self.unpacked.append(sequence)
        if tensor is not None:
            return tensor
        back = torch.empty_strided(copy.shape, copy.stride(), dtype=copy.dtype, device=copy.device)
        back.copy_(copy)
        self.reloads.setdefault(self.saved[sequence]["id"], []).append(
            self.ids[back.untyped_storage()._cdata]
        )
        return back
