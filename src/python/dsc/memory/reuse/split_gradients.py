"""Layers whose backward computes the parameter gradient first, then writes the feature gradient into the dead map.

Eager PyTorch computes both gradients in one node and allocates the feature gradient itself. The functions here save the
same tensors as PyTorch's own, in the same order, and compute the same values with the same kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch.overrides import TorchFunctionMode

from .dead_maps import DeadMaps, space_now
from .split_activations import ACTIVATIONS

_aten = torch.ops.aten
PARTS = 8  # a kernel that cannot write where it is told runs in so many parts, which are copied: 1/8 more memory


class SplitGradients(TorchFunctionMode):
    """While it is on, linear layers, convolutions, activations and norms use the functions of this file.

    Args:
        maps: says, when backward runs, where a gradient may be written.
    """

    def __init__(self, maps: DeadMaps) -> None:
        super().__init__()
        self._maps = maps

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        split = _SPLIT.get(func)
        if split is not None and args and _may_split(args[0]):
            try:
                result = split(self._maps, *args, **(kwargs or {}))
            except TypeError:  # called in a way that the function here does not know
                result = NotImplemented
            if result is not NotImplemented:
                return result
        return func(*args, **(kwargs or {}))


def _may_split(x: Any) -> bool:
    return (
        isinstance(x, torch.Tensor)
        and type(x) in (torch.Tensor, torch.nn.Parameter)
        and x.layout == torch.strided
        and x.is_floating_point()
        and torch.is_grad_enabled()
        and not torch.is_autocast_enabled(x.device.type)  # which changes types inside of the layer
    )


def _linear(maps: DeadMaps, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> Any:
    if not (x.dim() >= 2 and x.is_contiguous() and weight.is_contiguous() and x.requires_grad and weight.requires_grad):
        return NotImplemented
    rows = x if x.dim() == 2 else x.view(-1, x.shape[-1])
    result = _Product.apply(maps, bias, rows, weight.t())
    return result if x.dim() == 2 else _aten._unsafe_view(result, [*x.shape[:-1], weight.shape[0]])


def _addmm(maps: DeadMaps, bias: torch.Tensor, x: torch.Tensor, weight: torch.Tensor) -> Any:
    is_usual = _may_split(x) and x.is_contiguous() and x.requires_grad and weight.requires_grad and bias.dim() == 1
    return _Product.apply(maps, bias, x, weight) if is_usual else NotImplemented


class _Product(torch.autograd.Function):
    """``bias + x @ weight`` of matrices."""

    @staticmethod
    def forward(
        ctx: Any, maps: DeadMaps, bias: torch.Tensor | None, x: torch.Tensor, weight: torch.Tensor
    ) -> torch.Tensor:
        ctx.maps = maps
        ctx.has_bias = bias is not None
        if bias is None:
            ctx.save_for_backward(weight, x)
            return torch.mm(x, weight)
        ctx.save_for_backward(x, weight)
        return torch.addmm(bias, x, weight)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        x, weight = ctx.saved_tensors if ctx.has_bias else ctx.saved_tensors[::-1]
        if weight.stride(0) == 1 and weight.stride(1) == weight.shape[0]:
            of_weight = gradient.t().mm(x).t()
        else:
            of_weight = x.t().mm(gradient)
        of_bias = gradient.sum(0) if ctx.needs_input_grad[1] else None
        space = space_now(ctx.maps, x)
        if space is None or space.dtype != gradient.dtype:
            return None, of_bias, gradient.mm(weight.t()), of_weight
        return None, of_bias, torch.mm(gradient, weight.t(), out=space), of_weight


def _convolution(
    maps: DeadMaps,
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Any:
    dimensions = weight.dim() - 2
    if isinstance(padding, str) or x.dim() != weight.dim() or not (x.requires_grad and weight.requires_grad):
        return NotImplemented
    lists = [[value] * dimensions if isinstance(value, int) else list(value) for value in (stride, padding, dilation)]
    if any(len(values) != dimensions for values in lists):
        return NotImplemented
    return _Convolution.apply(maps, x, weight, bias, *lists, groups)


class _Convolution(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        maps: DeadMaps,
        x: torch.Tensor,
        weight: torch.Tensor,
        bias: torch.Tensor | None,
        stride: list[int],
        padding: list[int],
        dilation: list[int],
        groups: int,
    ) -> torch.Tensor:
        ctx.maps = maps
        ctx.bias_shape = None if bias is None else list(bias.shape)
        ctx.options = (stride, padding, dilation, False, [0] * len(stride), groups)
        ctx.save_for_backward(x, weight)
        return torch.convolution(x, weight, bias, *ctx.options)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        x, weight = ctx.saved_tensors

        def of_features(part: slice) -> torch.Tensor:
            inputs = (gradient[part], x[part], weight, ctx.bias_shape, *ctx.options)
            of_x: torch.Tensor = _aten.convolution_backward(*inputs, [True, False, False])[0]
            return of_x

        inputs = (gradient, x, weight, ctx.bias_shape, *ctx.options)
        needs_bias = bool(ctx.needs_input_grad[3])
        _, of_weight, of_bias = _aten.convolution_backward(*inputs, [False, True, needs_bias])
        return None, _write_parts(ctx.maps, x, of_features), of_weight, of_bias, None, None, None, None


def _layer_norm(
    maps: DeadMaps,
    x: torch.Tensor,
    normalized_shape: Sequence[int],
    weight: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    eps: float = 1e-5,
) -> Any:
    if weight is None or bias is None or not x.is_contiguous() or x.dim() <= len(normalized_shape):
        return NotImplemented
    if not (x.requires_grad and weight.requires_grad and bias.requires_grad):
        return NotImplemented
    return _LayerNorm.apply(maps, x, list(normalized_shape), weight, bias, eps)


class _LayerNorm(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        maps: DeadMaps,
        x: torch.Tensor,
        shape: list[int],
        weight: torch.Tensor,
        bias: torch.Tensor,
        eps: float,
    ) -> torch.Tensor:
        ctx.maps, ctx.shape = maps, shape
        result, mean, inverse = torch.native_layer_norm(x, shape, weight, bias, eps)
        ctx.save_for_backward(bias, x, weight, mean, inverse)
        return result

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        bias, x, weight, mean, inverse = ctx.saved_tensors

        def of_features(part: slice) -> torch.Tensor:
            inputs = (gradient[part], x[part], ctx.shape, mean[part], inverse[part], weight, bias)
            of_x: torch.Tensor = _aten.native_layer_norm_backward(*inputs, [True, False, False])[0]
            return of_x

        inputs = (gradient, x, ctx.shape, mean, inverse, weight, bias)
        _, of_weight, of_bias = _aten.native_layer_norm_backward(*inputs, [False, True, True])
        return None, _write_parts(ctx.maps, x, of_features), None, of_weight, of_bias, None


def _write_parts(maps: DeadMaps, x: torch.Tensor, of_features: Callable[[slice], torch.Tensor]) -> torch.Tensor:
    """The feature gradient of a kernel that takes samples one by one and chooses its own memory."""
    length = -(-x.shape[0] // PARTS)
    parts = [slice(start, start + length) for start in range(0, x.shape[0], length)]
    space = space_now(maps, x) if len(parts) > 1 else None
    if space is None:
        return of_features(slice(None))
    for part in parts:
        space[part].copy_(of_features(part))
    return space


_SPLIT: dict[Callable[..., Any], Callable[..., Any]] = {
    F.linear: _linear,
    torch.addmm: _addmm,
    F.conv1d: _convolution,
    F.conv2d: _convolution,
    F.conv3d: _convolution,
    F.layer_norm: _layer_norm,
    **ACTIVATIONS,
}
