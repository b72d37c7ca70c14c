"""Counts the bytes of every tensor storage that is alive: on CPU it stands in for a GPU's memory."""

import weakref

import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes


class AccountingDevice(TorchDispatchMode):
    """A device whose memory is what tensors hold while this mode is on.

    Inside ``with AccountingDevice() as device:`` every storage that an operation returns is counted until it is
    freed, in forward and backward alike. Storages made earlier (parameters, batches) are counted after
    ``device.hold(model, batch)``. Host arenas are made under ``device.uncounted()`` and cost nothing.
    """

    def __init__(self):
        super().__init__()
        self.live_bytes = 0
        self.peak_bytes = 0
        self.clock = 0  # moves at every birth and death
        self._sizes = {}
        self.on_op = None  # called with (args, kwargs) before each operation's results are counted
        self.on_birth = None  # called with (key, bytes)
        self.on_death = None  # called with (key,)

    @staticmethod
    def uncounted():
        """A context in which tensors are made on the host, not on this device."""
        return _disable_current_modes()

    def hold(self, *things):
        """Counts what exists already: tensors, modules, optimizers, and nests of them."""
        for thing in things:
            if isinstance(thing, torch.nn.Module):
                self.hold(list(thing.parameters()), list(thing.buffers()))
                self.hold([p.grad for p in thing.parameters() if p.grad is not None])
            elif isinstance(thing, torch.optim.Optimizer):
                self.hold(list(thing.state.values()))
            else:
                for leaf in pytree.tree_leaves(thing):
                    if isinstance(leaf, torch.Tensor):
                        self._count(leaf)

    def reset_peak(self):
        """Starts a new peak at what is alive now."""
        self.peak_bytes = self.live_bytes

    def is_alive(self, key):
        return key in self._sizes

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if self.on_op is not None:
            self.on_op(args, kwargs or {})
        result = func(*args, **(kwargs or {}))
        if isinstance(result, torch.Tensor):
            self._count(result)
        elif isinstance(result, (tuple, list)):
            for leaf in pytree.tree_leaves(result):
                if isinstance(leaf, torch.Tensor):
                    self._count(leaf)
        return result

    def _count(self, tensor):
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key in self._sizes:
            return
        size = storage.nbytes()
        self._sizes[key] = size
        self.clock += 1
        self.live_bytes += size
        self.peak_bytes = max(self.peak_bytes, self.live_bytes)
        if self.on_birth is not None:
            self.on_birth(key, size)
        # A storage's Python object lives as long as the storage itself (PyObject preservation).
        weakref.finalize(storage, self._forget, key).atexit = False

    def _forget(self, key):
        size = self._sizes.pop(key, None)
        if size is None:
            return
        self.clock += 1
        self.live_bytes -= size
        if self.on_death is not None:
            self.on_death(key)
