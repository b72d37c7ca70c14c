"""Block-wise int8: values in blocks of 256, each with a scale of its own beside its values.

The largest magnitude of a block becomes 127. A value is rounded up or down by chance, so that on average it is what it
was (QSGD, Alistarh et al. 2017). A block's own scale chooses its random numbers: the same values are the same bytes on
every run, and there is no state to save.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator

import torch

from .buffers import Buffers

BLOCK_VALUES = 256  # with its scale a block is 260 bytes: 0.508 of what it is as halves
BLOCK_BYTES = BLOCK_VALUES + 4
LARGEST = 127
# Such scales are no normal floats, and the inverse of small ones is infinite: a block below 1.5e-36 counts as zero.
LARGEST_SUBNORMAL = 2.0**-126 - 2.0**-149
# Blocks handled at a time on a CPU: few enough that what is between two passes stays in the cache.
BLOCKS_AT_A_TIME = 512
ROWS = 1024  # blocks of random numbers, a power of two
HASH = 2654435761 - 2**32  # a prime near 2**32 divided by the golden ratio: neighbouring scales choose distant rows
# Room for one piece on a CPU, used again: fresh memory takes longer than what fills it.
_ROOMS = Buffers()


def encode_blocks(blocks: torch.Tensor, out: torch.Tensor | None = None) -> torch.Tensor:
    """Blocks as they travel.

    Args:
        blocks: [n, 256], floats of any type.
        out: written to and returned; default: a new tensor.

    Returns:
        [n, 260], uint8: the values, then the block's scale as fp32. The scale of a block with inf or NaN is NaN.
    """
    wire = new_wire(len(blocks), blocks.device) if out is None else out
    # Two reductions read less than one over magnitudes that are written first.
    high, low = torch.empty(2, len(blocks), dtype=torch.float32, device=blocks.device)
    for part, highest, lowest in _pieces(blocks, high, low):
        torch.amax(part.float(), 1, out=highest)
        torch.amin(part.float(), 1, out=lowest)
    # All scales at once: these are many small steps.
    # Not / LARGEST: on a GPU that would be this, on a CPU not quite.
    scales = torch.maximum(high, low.neg_(), out=high).mul_(1 / LARGEST)
    torch.threshold_(scales, LARGEST_SUBNORMAL, 0.0)
    torch.sub(scales, scales - scales, out=wire[:, BLOCK_VALUES:].view(torch.float32)[:, 0])  # inf - NaN is NaN
    rows = (scales.view(torch.int32) * HASH).bitwise_right_shift_(16).bitwise_and_(ROWS - 1)
    inverse = scales.reciprocal_().nan_to_num_(nan=0.0, posinf=0.0)[:, None]
    random_rows = _random_rows(blocks.device)
    with _rooms(blocks, 2) as (first, second):
        for part, factors, chosen, target in _pieces(blocks, inverse, rows, wire[:, :BLOCK_VALUES].view(torch.int8)):
            random = torch.index_select(random_rows, 0, chosen, out=first[: len(part)])
            # Not addcmul: whether it rounds the product depends on the processor, and so would the bytes.
            values = torch.mul(part.float(), factors, out=second[: len(part)]).add_(random)
            target.copy_(values.floor_().clamp_(-LARGEST, LARGEST))
    return wire


def new_wire(count: int, device: torch.device) -> torch.Tensor:
    """Room for so many blocks: [count, 260], uint8."""
    return torch.empty(count, BLOCK_BYTES, dtype=torch.uint8, device=device)


def mean_blocks(wires: torch.Tensor, out: torch.Tensor | None = None) -> torch.Tensor:
    """The mean of what several ranks sent, summed in their order.

    Args:
        wires: [ranks, n, 260], uint8.
        out: written to and returned, [n, 256], of any float type; default: a new tensor, fp32.

    Returns:
        [n, 256].
    """
    shape = wires.shape[1], BLOCK_VALUES
    mean = torch.empty(shape, dtype=torch.float32, device=wires.device) if out is None else out
    scales = wires[:, :, BLOCK_VALUES:].view(torch.float32) * (1 / len(wires))
    values = wires[:, :, :BLOCK_VALUES].view(torch.int8)
    with _rooms(mean, 2) as (first, second):
        for target, *parts in _pieces(mean, *values, *scales):
            ranks = zip(parts[: len(wires)], parts[len(wires) :])
            total = target if mean.dtype == torch.float32 else second[: len(target)]
            for at, (part, factors) in enumerate(ranks):
                if at == 0:
                    _scale(part, factors, total)
                else:
                    total.add_(_scale(part, factors, first[: len(part)]))
            if total is not target:
                target.copy_(total)
    return mean


def _scale(values: torch.Tensor, factors: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
    if out.is_cuda:
        return torch.mul(values, factors, out=out)
    return out.copy_(values).mul_(factors)  # on a CPU a product of two types first makes floats of one, in fresh memory


def decode_blocks(wire: torch.Tensor) -> torch.Tensor:
    """The values that travelled: [n, 256], fp32."""
    return mean_blocks(wire[None])


def _pieces(*tensors: torch.Tensor) -> zip[tuple[torch.Tensor, ...]]:
    return zip(*(tensor.split(_piece_blocks(tensors[0])) for tensor in tensors))


def _piece_blocks(blocks: torch.Tensor) -> int:
    return max(1, len(blocks)) if blocks.is_cuda else BLOCKS_AT_A_TIME


@contextlib.contextmanager
def _rooms(blocks: torch.Tensor, count: int) -> Iterator[list[torch.Tensor]]:
    """Room for so many pieces of blocks, [≥ blocks of a piece, 256], fp32 each."""
    if blocks.is_cuda:
        yield [torch.empty(blocks.shape, dtype=torch.float32, device=blocks.device) for _ in range(count)]
        return
    rooms = [_ROOMS.take(BLOCKS_AT_A_TIME * BLOCK_VALUES, torch.float32) for _ in range(count)]
    yield [room.view(-1, BLOCK_VALUES) for room in rooms]
    _ROOMS.give(*rooms)


@functools.lru_cache(maxsize=16)
def _random_rows(device: torch.device) -> torch.Tensor:
    """Random numbers in [0, 1): [1024, 256], 1 MiB."""
    generator = torch.Generator("cpu").manual_seed(8)
    return torch.rand(ROWS, BLOCK_VALUES, generator=generator, dtype=torch.float32, device="cpu").to(device)


def encode_rows(rows: torch.Tensor) -> torch.Tensor:
    """Rows [r, n] as blocks that end with their row, as they travel: [r, bytes], uint8."""
    count = -(-rows.shape[1] // BLOCK_VALUES)
    padded = torch.nn.functional.pad(rows, (0, count * BLOCK_VALUES - rows.shape[1]))
    return encode_blocks(padded.view(-1, BLOCK_VALUES)).view(len(rows), count * BLOCK_BYTES)


def decode_rows(wire: torch.Tensor, count: int) -> torch.Tensor:
    """The rows of `count` values that travelled: [r, count], fp32."""
    return decode_blocks(wire.view(-1, BLOCK_BYTES)).view(len(wire), -1)[:, :count]
