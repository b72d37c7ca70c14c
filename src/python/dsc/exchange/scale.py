"""The scales of one bucket, as in the TypeScript engine: fixtures/exchange/scale-vectors.json is checked by both.

Values of each part (here a parameter) are multiplied by 2**exponent before they become half precision. The exponents
follow from results that all ranks hold bit by bit, so all ranks agree on them without a message.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

TARGET_EXPONENT = 11  # a part's largest value lands below 2**11: 2**5 is left for growth and ranks above the mean
LEAST_SCALED = 1.0  # while it is at least that, values down to 2**-14 of it keep all bits of a half
MOST_SCALED = 2.0**16  # where halves end, about: a mean above it does not fit
EXPONENT_LIMIT = 117  # the largest float is just below 2**128: it, too, lands at the target
GROWTH_INTERVAL = 16
RESTLESS_OVERFLOWS = 2
OVERFLOW_MEMORY = 32
SMALL_BYTES = 4096  # a lone tensor below this gains nothing from being narrowed


@dataclass(frozen=True)
class Scale:
    """State of one bucket.

    Attributes:
        exponents: by part; none until a first exchange in fp32 has shown how large the values are.
        is_looking: whether the next exchange is in fp32: this one was too large for its scale, or a part too small.
        since_growth: exchanges since the exponents last grew.
        overflows: exchanges that were too large for their scale lately.
        since_overflow: exchanges since the last of them.
    """

    exponents: tuple[int, ...] = ()
    is_looking: bool = True
    since_growth: int = 0
    overflows: int = 0
    since_overflow: int = 0

    @property
    def is_restless(self) -> bool:
        """Twice too large within 32 exchanges: halves would be repeated more often than they pay, until it is calm."""
        return self.overflows >= RESTLESS_OVERFLOWS and self.since_overflow < OVERFLOW_MEMORY


def target_exponent(amax: float) -> int:
    """Largest e with amax * 2**e <= 2**11, within ±117. `amax` > 0, finite."""
    mantissa, exponent = math.frexp(amax)  # amax = mantissa * 2**exponent, 0.5 <= mantissa < 1
    target = TARGET_EXPONENT - exponent + (1 if mantissa == 0.5 else 0)
    return max(-EXPONENT_LIMIT, min(EXPONENT_LIMIT, target))


def plan_wire(scale: Scale, elements: int, tensors: int) -> tuple[str, tuple[int, ...]]:
    """Returns (wire type, exponents by part) for a bucket in this step."""
    is_small = tensors == 1 and elements * 4 < SMALL_BYTES
    if scale.is_looking or scale.is_restless or is_small:
        return "fp32", ()
    return "fp16", scale.exponents


def advance(scale: Scale, kind: str, wire_type: str = "fp32", amaxes: Sequence[float] = ()) -> Scale:
    """The state after an exchange.

    Nothing in it can stick: what is too large for its exponent overflows and is repeated in fp32, what is too small
    shows as such, and after either the next exchange is in fp32 and shows what the exponent must be.

    Args:
        scale: the state before it.
        kind: how it ended: `clean`, `redone` (in fp32, after an overflow) or `not finite`.
        wire_type: how it travelled.
        amaxes: by part, the largest magnitude of the mean.
    """
    if kind == "not finite":
        return scale
    is_redone = kind == "redone"
    is_exact = not is_redone and wire_type == "fp32"
    is_growing = not is_redone and scale.since_growth + 1 >= GROWTH_INTERVAL
    known = scale.exponents
    if not known:
        exponents = tuple(_find_exponent(amax) for amax in amaxes)
    elif is_redone:
        exponents = known
    else:
        exponents = tuple(_next_exponent(e, amax, is_exact, is_growing) for e, amax in zip(known, amaxes))
    is_too_large = any(amax * 2.0**exponent > MOST_SCALED for amax, exponent in zip(amaxes, known))
    # An exchange that looks is the second one of a rise that was counted.
    has_overflowed = is_redone or (is_exact and is_too_large and not scale.is_looking)
    remembered = scale.overflows if scale.since_overflow < OVERFLOW_MEMORY else 0
    return Scale(
        exponents=exponents,
        is_looking=is_redone or any(_is_unseen(amax, e, is_exact) for amax, e in zip(amaxes, exponents)),
        since_growth=0 if is_growing else scale.since_growth + 1,
        overflows=remembered + (1 if has_overflowed else 0),
        since_overflow=0 if has_overflowed else scale.since_overflow + 1,
    )


def _next_exponent(exponent: int, amax: float, is_exact: bool, is_growing: bool) -> int:
    """The table stands beside `nextExponent` of src/exchange/plan/scale.ts."""
    scaled = amax * 2.0**exponent
    if scaled > 2**TARGET_EXPONENT or (scaled < LEAST_SCALED and is_exact):
        return _find_exponent(amax)
    has_room = LEAST_SCALED <= scaled <= 2 ** (TARGET_EXPONENT - 1)
    return min(EXPONENT_LIMIT, exponent + 1) if is_growing and has_room else exponent


def _find_exponent(amax: float) -> int:
    """The largest exponent for zeros alone: later values are seen, or overflow and are repeated."""
    return target_exponent(amax) if amax > 0 else EXPONENT_LIMIT


def _is_unseen(amax: float, exponent: int, is_exact: bool) -> bool:
    """Whether a part is too small for its exponent: also for good, where the largest one does not suffice."""
    if amax == 0:
        return not is_exact and exponent < EXPONENT_LIMIT
    return amax * 2.0**exponent < LEAST_SCALED


def plan_averaging(ranks: int) -> tuple[int, float]:
    """Returns (shift, factor): values are multiplied by 2**shift before they are summed and by factor afterwards."""
    bits = (ranks - 1).bit_length()
    return -bits, 2**bits / ranks
