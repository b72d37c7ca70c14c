"""Public recipes for memory, as their tools do them, with what they free counted on an accounting device.

No GPU is needed: what a tool would move to the host is made where the device does not count.
"""

import contextlib

import torch
from torch.autograd.graph import saved_tensors_hooks
from torch.utils.checkpoint import checkpoint

from dsc.memory import AccountingDevice

SMALLEST_BYTES = 1024  # both tools' default
STASH_CALLS = 5


class SaveOnCpu(saved_tensors_hooks):
    """``torch.autograd.graph.save_on_cpu``: every call has copies of its own."""

    def __init__(self, uncounted):
        self.moved_bytes = 0

        def pack(tensor):
            self.moved_bytes += tensor.nbytes
            with uncounted():
                return tensor.detach().clone()

        def unpack(saved):
            self.moved_bytes += saved.nbytes
            return saved.clone()

        super().__init__(pack, unpack)


class OffloadActivations(saved_tensors_hooks):
    """What torchtune's and TRL's classes of this name hold on the device, with streams, which is their default.

    Args:
        uncounted: a context in which tensors are made on the host.
        weights: storages of parameters, as TRL looks for them; None for torchtune, which asks for ``nn.Parameter``.
    """

    def __init__(self, uncounted, weights=None):
        super().__init__(self._pack, self._unpack)
        self._uncounted, self._weights = uncounted, weights
        self.moved_bytes = 0
        self._begin()

    def _begin(self):
        self._saved, self._stash, self._tracked, self._keys = {}, {}, {}, {}
        self._count, self._is_backward, self._node, self._back = 0, False, None, {}

    def _pack(self, tensor):
        if self._is_backward:
            self._begin()
        self._count += 1
        number, is_trl = self._count, self._weights is not None
        key = (tensor.untyped_storage().data_ptr() + tensor.storage_offset(), tensor.dtype)
        if is_trl and key in self._tracked:
            self._track(key, number)
        is_parameter = isinstance(tensor, torch.nn.Parameter)
        if is_trl:
            is_parameter = is_parameter or tensor.untyped_storage().data_ptr() in self._weights
        if self._tracked.get(key) == number or tensor.nbytes < SMALLEST_BYTES or is_parameter:
            self._saved[number] = (tensor, False)
            return number
        if is_trl and 0 not in tensor.stride() and (not tensor.is_contiguous() or tensor.storage_offset() != 0):
            tensor = tensor.clone(memory_format=torch.contiguous_format)
        for old in [old for old in self._stash if old <= number - STASH_CALLS]:
            self._forget(old)
        with self._uncounted():
            self._saved[number] = (tensor.detach().clone(), True)
        self.moved_bytes += tensor.nbytes
        self._stash[number] = tensor
        if is_trl:
            self._track(key, number)
        return number

    def _track(self, key, number):
        self._tracked[key] = number
        self._keys[number] = key

    def _forget(self, number):
        self._stash.pop(number, None)
        key = self._keys.pop(number, None)
        if key is not None and self._tracked.get(key) == number:
            del self._tracked[key]

    def _unpack(self, number):
        self._is_backward = True
        tensor, is_moved = self._saved.pop(number)
        if not is_moved:
            return tensor
        node = torch._C._current_autograd_node()
        before = []
        if self._node is not node:
            self._node, before = node, list(self._back)
        if number in self._stash:
            back = self._stash[number]
        else:
            self.moved_bytes += tensor.nbytes
            back = self._back[number] = tensor.clone()

        def let_go(outputs, inputs):  # holds no tensor: it lives as long as the graph
            kept = self._back.get(number)
            if any(o is not None and kept is not None and shares(o, kept) for o in outputs):
                self._back.pop(number, None)
            self._stash.clear()
            for old in before:
                self._back.pop(old, None)

        node.register_hook(let_go)
        return back


def shares(one, other):
    return one.untyped_storage().data_ptr() == other.untyped_storage().data_ptr()


def wrap_blocks(model, names, around=contextlib.nullcontext):
    """Lets the blocks keep only their inputs, within `around`, and run again in backward."""
    for name in names:
        block = model.get_submodule(name)

        def run(*args, forward=block.forward, **kwargs):
            with around():
                return checkpoint(forward, *args, use_reentrant=False, **kwargs)

        block.forward = run


class Recipe:
    """A recipe for one fresh model: `around` is on during its forward."""

    def __init__(self, name, model, blocks, uncounted=contextlib.nullcontext):
        self.saves = []
        self.around = contextlib.nullcontext

        def save():
            self.saves.append(SaveOnCpu(uncounted))
            return self.saves[-1]

        if name == "checkpoint":
            wrap_blocks(model, blocks)
        elif name == "checkpointOffload":
            wrap_blocks(model, blocks, save)
        elif name == "saveOnCpu":
            self.around = save
        elif name in ("torchtune", "trl"):
            weights = {p.untyped_storage().data_ptr() for p in model.parameters()}
            hooks = OffloadActivations(uncounted, weights if name == "trl" else None)
            self.saves.append(hooks)
            self.around = lambda: hooks

    @property
    def moved_bytes(self):
        return sum(save.moved_bytes for save in self.saves)


def count_peak(name, fresh, blocks, steps=2, executor_of=None):
    """The counted peak of a step of a fresh model under a recipe, the bytes moved in it, and its gradients."""
    model, inputs, loss = fresh()
    with AccountingDevice() as device:
        device.hold(model, inputs)
        recipe = Recipe(name, model, blocks, device.uncounted)
        executor = executor_of(model) if executor_of else None
        around = (lambda: executor) if executor else recipe.around
        for step in range(steps):
            model.zero_grad()
            moved = recipe.moved_bytes
            torch.manual_seed(step)
            device.reset_peak()
            with around():
                found = loss(model(**inputs))
            found.backward()
            del found
        peak = device.peak_bytes
        gradients = [None if p.grad is None else p.grad.clone() for p in model.parameters()]
        return peak, recipe.moved_bytes - moved, gradients
