"""One parameter whose home is the host, and what autograd keeps of it."""

import torch
from torch.utils._python_dispatch import _disable_current_modes


class Home:
    """One parameter: on the device (``parameter``) and on the host (``host``), with its gradient's place there."""

    def __init__(self, name, parameter, value_bytes, gradient_bytes):
        self.name, self.parameter = name, parameter
        self.value_bytes, self.gradient_bytes = value_bytes, gradient_bytes
        self._shape, self._stride = tuple(parameter.shape), tuple(parameter.stride())
        with _disable_current_modes(), torch.no_grad():
            value = self._view(value_bytes)
            value.copy_(parameter)
            self._gradient = self._view(gradient_bytes)
            self.host = torch.nn.Parameter(value, requires_grad=parameter.requires_grad)
        self.is_here = True  # on the device
        self._is_fresh = True  # as the host had it when this step began
        self.arriving = self.copy_in = self.copy_out = None
        self.leaving = None  # the gradient's bytes while their copy out runs
        self.is_gradient_away = False
        self._earlier = None  # gradient of earlier backwards, which this one's is added to
        self._seen = self.host._version
        self._untouched = parameter._version
        self._absent = torch.full((1,), float("nan"), dtype=parameter.dtype, device=parameter.device)

    @property
    def is_current(self):
        return self.is_here and self._is_fresh and self._seen == self.host._version

    def begin_step(self):
        if self.parameter._version != self._untouched:
            raise RuntimeError(
                f"{self.name} was changed on the device, but its home is the host under this plan: "
                "give the optimizer executor.host_parameters()"
            )
        self._is_fresh = self.is_gradient_away = False
        with _disable_current_modes():
            self._earlier = None if self.host.grad is None else self.host.grad.clone()

    def end_step(self):
        if self.copy_out is None:
            return
        with _disable_current_modes():
            if self._earlier is not None:
                self._gradient.add_(self._earlier)
            self.host.grad = self._gradient
        self.copy_out = self._earlier = None

    def set_gradient_aside(self):
        with _disable_current_modes():
            self._earlier = self._gradient + (0 if self._earlier is None else self._earlier)
        self.is_gradient_away = False

    def start_arrival(self):
        self._seen = self.host._version
        if self.is_here:
            self.arriving = _bytes_of(self.parameter.data)
        else:
            size, device = self.value_bytes.numel(), self.parameter.device
            self.arriving = torch.empty(size, dtype=torch.uint8, device=device)

    def install(self):
        if not self.is_here:
            self.parameter.data = self._view(self.arriving)
        self.is_here = self._is_fresh = True
        self.arriving = self.copy_in = None

    def leave(self):
        self.parameter.data = self._absent.expand(self._shape)
        self.is_here = False

    def dense_gradient(self):
        """The gradient's bytes in the order of the parameter's, for one plain copy."""
        gradient = self.parameter.grad.detach()
        if tuple(gradient.stride()) != self._stride or gradient.dtype != self.parameter.dtype:
            own = torch.empty_strided(
                self._shape, self._stride, dtype=self.parameter.dtype, device=gradient.device
            )
            gradient = own.copy_(gradient)
        return _bytes_of(gradient)

    def _view(self, flat):
        typed = flat.view(self.parameter.dtype)
        return typed.as_strided(self._shape, self._stride, typed.storage_offset())


class ParameterHandle:
    """What autograd keeps in place of a saved parameter: which one, and how to view it."""

    __slots__ = ("home", "sequence", "dtype", "shape", "stride", "offset", "version")

    def __init__(self, home, tensor):
        self.home = home
        self.sequence = -1
        self.dtype, self.shape, self.stride = tensor.dtype, tuple(tensor.shape), tuple(tensor.stride())
        self.offset = tensor.storage_offset()
        self.version = home.host._version


def _bytes_of(tensor):
    """A dense tensor's bytes, in the order they lie in memory."""
    size = tensor.numel() * tensor.element_size()
    start = tensor.storage_offset() * tensor.element_size()
    flat = torch.empty(0, dtype=torch.uint8, device=tensor.device)
    return flat.set_(tensor.untyped_storage(), start, (size,), (1,))
