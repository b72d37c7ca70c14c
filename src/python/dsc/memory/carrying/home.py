"""One parameter whose home is the host, and what autograd keeps of it."""

from __future__ import annotations

import torch

from ...torch_private import version_of, without_modes
from ..plan.plan_format import Move
from .copies import CopyHandle


class Home:
    """One parameter: on the device (``parameter``) and on the host (``host``), with its gradient's place there."""

    def __init__(
        self,
        name: str,
        parameter: torch.nn.Parameter,
        value_bytes: torch.Tensor,
        gradient_bytes: torch.Tensor,
        *,
        moves: list[Move],
        is_gradient_moved: bool,
    ) -> None:
        self.name, self.parameter = name, parameter
        self.value_bytes, self.gradient_bytes = value_bytes, gradient_bytes
        self._shape, self._stride = tuple(parameter.shape), tuple(parameter.stride())
        with without_modes(), torch.no_grad():
            value = self._view(value_bytes)
            value.copy_(parameter)
            self._gradient = self._view(gradient_bytes)
            self.host = torch.nn.Parameter(value, requires_grad=parameter.requires_grad)
        self.moves = moves  # of its value
        self.is_gradient_moved = is_gradient_moved  # by the plan, while backward runs
        self.is_here = True  # on the device
        self._is_fresh = True  # as the host had it when this step began
        self.arriving: torch.Tensor | None = None
        self.copy_in: CopyHandle = None
        self.copy_out: CopyHandle = None
        self.leaving: torch.Tensor | None = None  # the gradient's bytes while their copy out runs
        self.is_gradient_away = False
        self._earlier: torch.Tensor | None = None  # gradient of earlier backwards, which this one's is added to
        self._seen = version_of(self.host)
        self._untouched = version_of(parameter)
        self._absent = torch.full((1,), float("nan"), dtype=parameter.dtype, device=parameter.device)

    @property
    def is_current(self) -> bool:
        """Whether the device has the value that the host has."""
        return self.is_here and self._is_fresh and self._seen == version_of(self.host)

    def begin_step(self) -> None:
        """Takes note that the host's value may have been updated. Refuses if the device's was."""
        if version_of(self.parameter) != self._untouched:
            raise RuntimeError(
                f"{self.name} was changed on the device, but its home is the host under this plan: "
                "give the optimizer executor.host_parameters()"
            )
        self._is_fresh = self.is_gradient_away = False
        with without_modes():
            self._earlier = None if self.host.grad is None else self.host.grad.clone()

    def end_step(self) -> None:
        """Hands the step's gradient to the parameter on the host."""
        if self.copy_out is None:
            return
        with without_modes():
            if self._earlier is not None:
                self._gradient.add_(self._earlier)
            self.host.grad = self._gradient
        self.copy_out = self._earlier = None

    def take_sparse_gradient(self) -> None:
        """Hands a sparse gradient to the parameter on the host, as sparse as it is."""
        assert self.parameter.grad is not None
        with without_modes():
            gradient = self.parameter.grad.detach().to(self.host.device, copy=True)
            self.host.grad = gradient if self._earlier is None else self._earlier + gradient
        self.parameter.grad = self._earlier = None

    def set_gradient_aside(self) -> None:
        """Keeps the gradient of this step's last backward, for the next one's to be added to."""
        with without_modes():
            self._earlier = self._gradient + (0 if self._earlier is None else self._earlier)
        self.is_gradient_away = False

    def start_arrival(self) -> torch.Tensor:
        """Memory on the device for the value to be copied to."""
        self._seen = version_of(self.host)
        if self.is_here:
            arriving = _bytes_of(self.parameter.data)
        else:
            size, device = self.value_bytes.numel(), self.parameter.device
            arriving = torch.empty(size, dtype=torch.uint8, device=device)
        self.arriving = arriving
        return arriving

    def install(self) -> None:
        """Makes what was copied in the parameter's value."""
        if not self.is_here:
            assert self.arriving is not None
            self.parameter.data = self._view(self.arriving)
        self.is_here = self._is_fresh = True
        self.arriving = self.copy_in = None

    def leave(self) -> None:
        """Gives up the device's memory: the parameter reads as NaN, in its own shape."""
        self.parameter.data = self._absent.expand(self._shape)
        self.is_here = False

    def dense_gradient(self) -> torch.Tensor:
        """The gradient's bytes in the order of the parameter's, for one plain copy."""
        assert self.parameter.grad is not None
        gradient = self.parameter.grad.detach()
        if gradient.layout != torch.strided:
            raise RuntimeError(
                f"{self.name} has a sparse gradient and had a dense one when it was profiled: profile and plan again"
            )
        if tuple(gradient.stride()) != self._stride or gradient.dtype != self.parameter.dtype:
            own = torch.empty_strided(self._shape, self._stride, dtype=self.parameter.dtype, device=gradient.device)
            gradient = own.copy_(gradient)
        return _bytes_of(gradient)

    def _view(self, flat: torch.Tensor) -> torch.Tensor:
        typed = flat.view(self.parameter.dtype)
        return typed.as_strided(self._shape, self._stride, typed.storage_offset())


class ParameterHandle:
    """Stands for a saved parameter in autograd: which one, and how to view it."""

    __slots__ = ("home", "sequence", "dtype", "shape", "stride", "offset", "version")

    def __init__(self, home: Home, tensor: torch.Tensor) -> None:
        self.home = home
        self.sequence = -1
        self.dtype, self.shape, self.stride = tensor.dtype, tuple(tensor.shape), tuple(tensor.stride())
        self.offset = tensor.storage_offset()
        self.version = version_of(home.host)


def _bytes_of(tensor: torch.Tensor) -> torch.Tensor:
    """A dense tensor's bytes, in the order they lie in memory."""
    size = tensor.numel() * tensor.element_size()
    start = tensor.storage_offset() * tensor.element_size()
    flat = torch.empty(0, dtype=torch.uint8, device=tensor.device)
    return flat.set_(tensor.untyped_storage(), start, (size,), (1,))
