"""Cuts a training step into layers: leaf modules and the operations between them, in order of execution."""

import bisect

import torch
from torch.autograd import _get_sequence_nr

ACCUMULATE = 1 << 62  # AccumulateGrad nodes carry the largest sequence number of all


class Segments:
    """Follows one forward pass. Segment 2k+1 is the k-th call of a leaf module, 2k what runs before it."""

    def __init__(self, model, on_segment=None):
        self.names = ["before the first layer"]
        self.starts = [_get_sequence_nr()]
        self.on_segment = on_segment or (lambda index: None)
        self._handles = []
        for name, module in model.named_modules():
            if next(module.children(), None) is None:
                label = name or type(module).__name__
                self._handles.append(module.register_forward_pre_hook(self._enter(label)))
                self._handles.append(module.register_forward_hook(self._leave(label)))

    @property
    def current(self):
        return len(self.names) - 1

    def close(self):
        for handle in self._handles:
            handle.remove()

    def of_node(self, node):
        """Segment whose forward made an autograd node; None for nodes that belong to none."""
        if node is None:
            return None
        number = node._sequence_nr()
        if number >= ACCUMULATE or number < self.starts[0]:
            return None
        return bisect.bisect_right(self.starts, number) - 1

    def _start(self, name):
        if current_node() is not None:
            return  # activation checkpointing runs a forward again inside backward
        self.names.append(name)
        self.starts.append(_get_sequence_nr())
        self.on_segment(self.current)

    def _enter(self, label):
        def hook(module, inputs):
            self._start(label)

        return hook

    def _leave(self, label):
        def hook(module, inputs, output):
            self._start(f"after {label}")

        return hook


def current_node():
    """The autograd node that is running, inside a dispatch mode in backward; None in forward."""
    return torch._C._current_autograd_node()
