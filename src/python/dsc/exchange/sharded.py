"""Narrow gradients for FSDP2 (`fully_shard`): its reduce-scatter, and the all-reduce between replicas.

Halves or int8 travel, sums are taken in fp32. Each rank scales what it sends by a number taken from the values
themselves, and sends that with them: nothing overflows, so nothing is repeated, and there is no state to save. Halves
have a power of two per part; `int8_blocks` says what int8 has.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch.distributed.fsdp import FSDPModule
from torch.distributed.tensor import DTensor

from ..torch_private import ReduceScatter
from .errors import ExchangeMismatch
from .int8_blocks import decode_rows, encode_rows

# The largest magnitude of a part lands in [2^14, 2^15); fp16 ends at 65,504.
TOP_EXPONENT = 15
EXPONENT_LIMIT = 120
# Halves before the values of a part: its exponent, and room so that the values begin at a multiple of 16 bytes.
HEADER = 8


class Narrow(NamedTuple):
    """How rows of values travel."""

    encode: Callable[[torch.Tensor], torch.Tensor]  # [rows, values] → [rows, what travels]
    decode: Callable[[torch.Tensor, int], torch.Tensor]  # that, values per row → [rows, values], fp32


class ScaledReduceScatter(ReduceScatter):
    """The reduce-scatter of one FSDP unit, in scaled halves (or another `narrow` way) with sums in fp32.

    For ``module.set_custom_reduce_scatter(ScaledReduceScatter())``.
    """

    def __init__(self, narrow: Narrow | None = None) -> None:
        super().__init__()
        self._narrow = narrow or HALVES

    def allocate(self, size: Sequence[int | torch.SymInt], *, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
        """See PyTorch's `Comm`."""
        return torch.empty(*size, dtype=dtype, device=device)

    def __call__(
        self,
        output_tensor: torch.Tensor,
        input_tensor: torch.Tensor,
        group: dist.ProcessGroup,
        op: Any,
        async_op: bool = False,
    ) -> dist.Work | None:
        """Writes this rank's part of the sum or mean.

        Args:
            output_tensor: flat, one part.
            input_tensor: flat, one part per rank; it stays as it is.
            group: the ranks that share the unit.
            op: SUM or AVG.
            async_op: is not available.

        Returns:
            None: it is done, or in its place on the stream.

        Raises:
            ExchangeMismatch: another operation.
        """
        if async_op or op not in (dist.ReduceOp.SUM, dist.ReduceOp.AVG):
            raise ExchangeMismatch(
                f"FSDP asks for {op}, expected SUM or AVG: leave out set_gradient_divide_factor(), or this exchange"
            )
        ranks = group.size()
        total = _exchange_sum(input_tensor.view(ranks, -1), group, self._narrow)
        output_tensor.copy_(total.div_(ranks) if op == dist.ReduceOp.AVG else total)
        return None


class ScaledAllReduce:
    """The mean between replicas of a sharded model, in scaled halves (or another `narrow` way), bit-equal on all.

    For ``module.set_all_reduce_hook(ScaledAllReduce(mesh.get_group("replicate")))`` of a model that is sharded over the
    other dimension of the mesh alone.
    """

    def __init__(self, group: dist.ProcessGroup, narrow: Narrow | None = None) -> None:
        self._group = group
        self._narrow = narrow or HALVES

    def __call__(self, values: torch.Tensor) -> None:
        """Writes the mean over `values`, flat."""
        ranks = self._group.size()
        part = -(-values.numel() // ranks)
        padded = torch.nn.functional.pad(values, (0, part * ranks - values.numel()))
        mean = _exchange_sum(padded.view(ranks, part), self._group, self._narrow).div_(ranks)
        own = self._narrow.encode(mean.view(1, part))
        everyone = own.new_empty(ranks, own.shape[1])
        dist.all_gather_into_tensor(everyone, own, group=self._group)
        values.copy_(self._narrow.decode(everyone, part).reshape(-1)[: values.numel()])


def use_scaled_half(model: torch.nn.Module, *, replicas: dist.ProcessGroup | None = None) -> int:
    """Gives all units of a model that `fully_shard` has sharded scaled halves for their gradients.

    Args:
        model: after all calls of `fully_shard`.
        replicas: ranks that hold the same shard, of a model that is sharded over one dimension of a mesh and replicated
            over another one: their gradients are averaged, too. Not for a two-dimensional mesh given to `fully_shard`,
            whose all-reduce is PyTorch's own and stays so.

    Returns:
        How many units there are.

    Raises:
        ExchangeMismatch: nothing is sharded, or `fully_shard` averages between replicas already.
    """
    return _narrow_units(model, replicas, HALVES)


def use_blockwise_int8(model: torch.nn.Module, *, replicas: dist.ProcessGroup | None = None) -> int:
    """The same in int8, 1 byte per value and 4 per block of 256, as `blockwise_int8_hook` describes them.

    Blocks are cut from what FSDP2 sends to a rank, so a block may hold values of two parameters.

    Args:
        model: as for `use_scaled_half`.
        replicas: as for `use_scaled_half`.

    Returns:
        How many units there are.

    Raises:
        ExchangeMismatch: as for `use_scaled_half`.
    """
    return _narrow_units(model, replicas, INT8)


def _narrow_units(model: torch.nn.Module, replicas: dist.ProcessGroup | None, narrow: Narrow) -> int:
    units = [module for module in model.modules() if isinstance(module, FSDPModule)]
    if not units:
        raise ExchangeMismatch("no module is sharded: call fully_shard() first")
    if replicas is not None:
        meshes = {p.device_mesh.ndim for p in model.parameters() if isinstance(p, DTensor)}
        if meshes != {1}:
            raise ExchangeMismatch(
                "fully_shard() was given a two-dimensional mesh and averages between replicas itself: give it the "
                'dimension to shard over alone (mesh["shard"]), or leave replicas out'
            )
    for unit in units:
        unit.set_custom_reduce_scatter(ScaledReduceScatter(narrow))
        if replicas is not None:
            unit.set_all_reduce_hook(ScaledAllReduce(replicas, narrow))
    return len(units)


def _exchange_sum(parts: torch.Tensor, group: dist.ProcessGroup, narrow: Narrow) -> torch.Tensor:
    """Sends every rank its row, and sums those that come here, in rank order and fp32."""
    own = narrow.encode(parts)
    shown = torch.empty_like(own)
    dist.all_to_all_single(shown, own, group=group)
    return narrow.decode(shown, parts.shape[1]).sum(0)


def _encode(rows: torch.Tensor) -> torch.Tensor:
    """Rows as halves, each behind its exponent; no value leaves the device."""
    largest = rows.abs().amax(1).float() if rows.shape[1] else rows.new_zeros(rows.shape[0], dtype=torch.float32)
    exponents = TOP_EXPONENT - torch.frexp(largest).exponent
    exponents = torch.where(torch.isfinite(largest) & (largest > 0), exponents, 0)
    exponents = exponents.clamp(-EXPONENT_LIMIT, EXPONENT_LIMIT)
    wire = torch.zeros(rows.shape[0], HEADER + rows.shape[1], dtype=torch.float16, device=rows.device)
    wire[:, 0] = exponents
    factors = torch.ldexp(torch.ones_like(largest), exponents)
    wire[:, HEADER:].copy_(rows * factors[:, None])
    return wire


def _decode(wire: torch.Tensor, count: int) -> torch.Tensor:
    exponents = wire[:, 0].to(torch.int32)
    factors = torch.ldexp(torch.ones(len(wire), dtype=torch.float32, device=wire.device), -exponents)
    return wire[:, HEADER : HEADER + count].float().mul_(factors[:, None])


HALVES = Narrow(_encode, _decode)
INT8 = Narrow(encode_rows, decode_rows)
