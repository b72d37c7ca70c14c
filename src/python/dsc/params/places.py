"""Where parameters, and buffers if they are shared, lie in what a central node and its workers exchange."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.nn import Parameter

from .errors import ParamsError

ALIGNMENT = 16  # elements; as the server places parameters
TYPES = {torch.float32: "f32", torch.bfloat16: "bf16", torch.float16: "f16"}
_GROUP_NAMES = {"weight_decay": "weightDecay", "lr_scale": "rateScale"}


@dataclasses.dataclass(frozen=True)
class Place:
    """One parameter or buffer: `tensor` is where it lives, `own` the model's, `offset` in float32 elements."""

    name: str
    own: torch.Tensor
    tensor: torch.Tensor
    layer: int
    offset: int

    @property
    def is_buffer(self) -> bool:
        """Whether its values are pushed, instead of a gradient."""
        return not isinstance(self.own, Parameter)

    @property
    def padded(self) -> int:
        """Elements it takes up with its padding."""
        return -(-self.tensor.numel() // ALIGNMENT) * ALIGNMENT

    def pushed_values(self) -> torch.Tensor:
        """The gradient, zeros where there is none, or a buffer's values."""
        if self.is_buffer:
            return self.tensor
        grad = self.tensor.grad
        return torch.zeros_like(self.tensor) if grad is None else grad.to_dense()


class Places:
    """The places of a model, layer by layer in the order of its modules.

    Args:
        model: whose they are.
        homes: where parameters live instead of in the model.
        buffers: whether floating-point buffers have places, but for masks: those with infinities in them.

    Raises:
        ParamsError: one of them is neither float32 nor a half.
    """

    def __init__(
        self, model: torch.nn.Module, homes: Mapping[torch.nn.Parameter, torch.nn.Parameter] | None, *, buffers: bool
    ) -> None:
        self._buffers = buffers
        self.layers = [m for m in model.modules() if self._tensors_of(m)]
        self.all: list[Place] = []
        self.length = 0
        names = {id(t): name for name, t in [*model.named_parameters(), *model.named_buffers()]}
        seen: set[int] = set()
        for index, layer in enumerate(self.layers):
            for own in self._tensors_of(layer):
                if id(own) in seen:
                    continue
                seen.add(id(own))
                home = homes[own] if homes is not None and isinstance(own, Parameter) else own
                if home.dtype not in TYPES:
                    expected = "expected float32, bfloat16 or float16"
                    raise ParamsError("dtype", f"{names[id(own)]} is {home.dtype}, {expected}")
                self.all.append(Place(names[id(own)], own, home, index, self.length))
                self.length += self.all[-1].padded

    def by_layer(self) -> list[list[tuple[torch.Tensor, int]]]:
        """Tensors of every layer, each with its offset."""
        tensors: list[list[tuple[torch.Tensor, int]]] = [[] for _ in self.layers]
        for place in self.all:
            tensors[place.layer].append((place.tensor, place.offset))
        return tensors

    def without_gradient(self) -> list[int]:
        """Indices of the parameters that the last backward had nothing for."""
        return [i for i, place in enumerate(self.all) if not place.is_buffer and place.tensor.grad is None]

    def spans(self) -> list[tuple[int, int]]:
        """Offset and length of every place; a buffer's length is 0."""
        return [(place.offset, 0 if place.is_buffer else place.tensor.numel()) for place in self.all]

    def buffer_spans(self) -> list[tuple[int, int]]:
        """Offset and padded length of the buffers."""
        return [(place.offset, place.padded) for place in self.all if place.is_buffer]

    def describe(self, groups: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """The places as the central node is told of them.

        Args:
            groups: settings of their own for some parameters.

        Raises:
            ValueError: a group has a setting that there is not, or a parameter that the model does not have.
        """
        own: dict[int, dict[str, float]] = {}
        known = {id(place.own) for place in self.all}
        for group in groups:
            unknown = group.keys() - {"params", *_GROUP_NAMES}
            if unknown:
                raise ValueError(f"a group has {', '.join(sorted(unknown))}, expected params, weight_decay, lr_scale")
            settings = {to: float(group[name]) for name, to in _GROUP_NAMES.items() if name in group}
            for parameter in group["params"]:
                if id(parameter) not in known:
                    raise ValueError(
                        f"a group names a tensor {list(parameter.shape)} that is no parameter of the model"
                    )
                own[id(parameter)] = settings
        slots = []
        for place in self.all:
            slot: dict[str, Any] = {"name": place.name, "shape": list(place.tensor.shape), "layer": place.layer}
            if place.tensor.dtype != torch.float32:
                slot["type"] = TYPES[place.tensor.dtype]
            if place.is_buffer:
                slot["kind"] = "buffer"
            slots.append({**slot, **own.get(id(place.own), {})})
        return slots

    def _tensors_of(self, module: torch.nn.Module) -> list[torch.Tensor]:
        buffers = module.buffers(recurse=False) if self._buffers else ()
        shared = (b for b in buffers if b.is_floating_point() and not torch.isinf(b).any())  # infinities are a mask's
        return [*module.parameters(recurse=False), *shared]
