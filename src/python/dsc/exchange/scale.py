"""The scale of one bucket, as in the TypeScript engine: fixtures/exchange/scale-vectors.json is checked by both.

Values are multiplied by 2**exponent before they become half precision. The scale advances only from results that all
ranks hold bit by bit, so all ranks agree on it without a message.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

TARGET_EXPONENT = 11  # the largest reduced value lands below 2**11: 2**5 is left for growth and ranks above the mean
EXPONENT_LIMIT = 117  # the largest float is just below 2**128: it, too, lands at the target
GROWTH_INTERVAL = 16
OVERFLOW_DROP = 10
JUMP_FACTOR = 32.0
JUMP_MEMORY = 32
SMALL_BYTES = 4096


@dataclass(frozen=True)
class Scale:
    """State of one bucket. `exponent` is None until a first exchange in fp32 has shown the size of the values."""

    exponent: int | None = None
    last_amax: float = 0.0
    since_growth: int = 0
    jumps: int = 0
    since_jump: int = 0
    half_type: str = "fp16"


def target_exponent(amax: float) -> int:
    """Largest e with amax * 2**e <= 2**11, within ±117. `amax` > 0, finite."""
    mantissa, exponent = math.frexp(amax)  # amax = mantissa * 2**exponent, 0.5 <= mantissa < 1
    target = TARGET_EXPONENT - exponent + (1 if mantissa == 0.5 else 0)
    return max(-EXPONENT_LIMIT, min(EXPONENT_LIMIT, target))


def plan_wire(scale: Scale, elements: int, tensors: int) -> tuple[str, int]:
    """Returns (wire type, exponent) for a bucket in this step."""
    is_small = tensors == 1 and elements * 4 < SMALL_BYTES
    if scale.exponent is None or is_small:
        return "fp32", 0
    if scale.half_type == "bf16":
        return "bf16", 0
    return "fp16", scale.exponent


def advance(scale: Scale, kind: str, amax: float = 0.0) -> Scale:
    """Returns the state after an exchange that ended `clean`, `redone` (in fp32, after an overflow) or `not finite`."""
    if kind == "not finite":
        return scale
    has_jumped = (
        scale.last_amax > 0
        and amax > 0
        and (amax > scale.last_amax * JUMP_FACTOR or amax * JUMP_FACTOR < scale.last_amax)
    )
    remembered = scale.jumps if scale.since_jump < JUMP_MEMORY else 0
    jumps = remembered + 1 if has_jumped else remembered
    after = replace(
        scale,
        last_amax=amax if amax > 0 else scale.last_amax,
        since_growth=scale.since_growth + 1,
        jumps=jumps,
        since_jump=0 if has_jumped else scale.since_jump + 1,
        half_type="bf16" if jumps >= 2 else scale.half_type,
    )
    exponent = scale.exponent
    if kind == "redone":
        dropped = None if exponent is None else max(-EXPONENT_LIMIT, exponent - OVERFLOW_DROP)
        return replace(after, exponent=dropped, since_growth=0)
    if amax == 0:
        return after
    target = target_exponent(amax)
    if exponent is None or target < exponent:
        return replace(after, exponent=target)
    if target > exponent and after.since_growth >= GROWTH_INTERVAL:
        return replace(after, exponent=exponent + 1, since_growth=0)
    return after


def plan_averaging(ranks: int) -> tuple[int, float]:
    """Returns (shift, factor): values are multiplied by 2**shift before they are summed and by factor afterwards."""
    bits = (ranks - 1).bit_length()
    return -bits, 2**bits / ranks
