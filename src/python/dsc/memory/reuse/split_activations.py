"""Activations whose kernels write the feature gradient where they are told: see ``SplitGradients``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

from .dead_maps import DeadMaps, space_now

_aten = torch.ops.aten


def _activation(
    forward: Callable[..., torch.Tensor], backward: Callable[..., Any], *, saves_result: bool = False
) -> Callable[..., Any]:
    """A function of each element on its own, whose kernel writes its gradient where it is told.

    Args:
        forward: the function, of a tensor and constants.
        backward: from the gradient, the saved tensor and the constants to the feature gradient (``grad_input=``).
        saves_result: whether it is the result that is saved, not the input.
    """

    class Activation(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, maps: DeadMaps, x: torch.Tensor, inplace: bool, constants: tuple[Any, ...]) -> Any:
            ctx.maps, ctx.constants = maps, constants
            if inplace:
                ctx.mark_dirty(x)
                result = torch.relu_(x)
            else:
                result = forward(x, *constants)
            ctx.save_for_backward(result if saves_result else x)
            return result

        @staticmethod
        def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
            (saved,) = ctx.saved_tensors
            is_alike = gradient.stride() == saved.stride() and gradient.dtype == saved.dtype
            space = space_now(ctx.maps, saved) if is_alike else None
            if space is None:
                return None, backward(gradient, saved, *ctx.constants), None, None
            return None, backward(gradient, saved, *ctx.constants, grad_input=space), None, None

    def apply(maps: DeadMaps, x: torch.Tensor, constants: tuple[Any, ...] = (), inplace: bool = False) -> Any:
        if not x.requires_grad or (inplace and (x.is_leaf or x._is_view() or forward is not torch.relu)):
            return NotImplemented
        return Activation.apply(maps, x, inplace, constants)

    return apply


def _relu_backward(gradient: torch.Tensor, result: torch.Tensor, **out: Any) -> Any:
    return _aten.threshold_backward(gradient, result, 0, **out)


def _gelu_backward(gradient: torch.Tensor, x: torch.Tensor, approximate: str, **out: Any) -> Any:
    return _aten.gelu_backward(gradient, x, approximate=approximate, **out)


def _silu_backward(gradient: torch.Tensor, x: torch.Tensor, **out: Any) -> Any:
    if torch.is_grad_enabled():  # this kernel has no derivative
        sigmoid = torch.sigmoid(x)
        return gradient * sigmoid * (1 + x * (1 - sigmoid))
    return _aten.silu_backward(gradient, x, **out)


def _leaky_backward(gradient: torch.Tensor, x: torch.Tensor, slope: float, **out: Any) -> Any:
    return _aten.leaky_relu_backward(gradient, x, slope, False, **out)


_relu_split = _activation(torch.relu, _relu_backward, saves_result=True)
_sigmoid_split = _activation(torch.sigmoid, _aten.sigmoid_backward, saves_result=True)
_tanh_split = _activation(torch.tanh, _aten.tanh_backward, saves_result=True)
_silu_split = _activation(_aten.silu, _silu_backward)
_gelu_split = _activation(lambda x, approximate: F.gelu(x, approximate=approximate), _gelu_backward)
_leaky_split = _activation(F.leaky_relu, _leaky_backward)
_hardtanh_split = _activation(_aten.hardtanh, _aten.hardtanh_backward)


def _relu(maps: DeadMaps, x: torch.Tensor, inplace: bool = False) -> Any:
    return _relu_split(maps, x, (), inplace)


def _silu(maps: DeadMaps, x: torch.Tensor, inplace: bool = False) -> Any:
    return _silu_split(maps, x, (), inplace)


def _gelu(maps: DeadMaps, x: torch.Tensor, approximate: str = "none") -> Any:
    return _gelu_split(maps, x, (approximate,))


def _leaky_relu(maps: DeadMaps, x: torch.Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Any:
    return _leaky_split(maps, x, (negative_slope,), inplace)


def _hardtanh(
    maps: DeadMaps, x: torch.Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
) -> Any:
    return _hardtanh_split(maps, x, (min_val, max_val), inplace)


def _relu6(maps: DeadMaps, x: torch.Tensor, inplace: bool = False) -> Any:
    return _hardtanh_split(maps, x, (0.0, 6.0), inplace)


ACTIVATIONS: dict[Callable[..., Any], Callable[..., Any]] = {
    F.relu: _relu,
    torch.relu: _relu,
    torch.Tensor.relu: _relu,
    F.gelu: _gelu,
    F.silu: _silu,
    torch.sigmoid: _sigmoid_split,
    torch.Tensor.sigmoid: _sigmoid_split,
    torch.tanh: _tanh_split,
    torch.Tensor.tanh: _tanh_split,
    F.leaky_relu: _leaky_relu,
    F.hardtanh: _hardtanh,
    F.relu6: _relu6,
}
