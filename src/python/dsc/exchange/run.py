"""What travels in one call."""

from __future__ import annotations

import math

import torch

# Values handled at a time on a CPU: few enough that what is between two passes stays in the cache, and enough that
# calls of PyTorch do not count.
BLOCK = 1 << 18
TYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}


def bounds_of(values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The smallest and the largest of `values`; 0 of none, which is a bucket whose parameters are all empty."""
    if values.numel() == 0:
        return values.new_zeros(()), values.new_zeros(())
    low, high = torch.aminmax(values)
    return low, high


class Run:
    """Neighbouring values of a bucket that travel in one call: the whole bucket, except in the step after a resume."""

    def __init__(self, group: tuple[int, ...], values: torch.Tensor, wire_type: str, exponent: int) -> None:
        self.group = group
        self.values = values
        self.wire_type = wire_type
        self.exponent = exponent
        self.is_here = False
        self.is_redone = False
        self.amax: float | None = None  # of the mean; None if not finite

    @property
    def dtype(self) -> torch.dtype:
        """The element type that travels."""
        return TYPES[self.wire_type]

    def restart(self) -> None:
        """Goes back to before it was sent, now in fp32: the local values are still there."""
        self.wire_type, self.exponent = "fp32", 0
        self.is_here = False
        self.is_redone = True

    def accept(self, total: torch.Tensor, low: float, high: float, factor: float) -> None:
        """Writes the mean over the local values, unless half precision overflowed: then they are still needed.

        total: the scaled sum, with the bounds `low` and `high` (NaN if there is one in it).
        """
        unscale = 2.0**-self.exponent * factor
        peak = math.nan if math.isnan(low) else max(-low, high)
        if math.isfinite(peak):
            self.amax = peak * unscale
        if math.isfinite(peak) or self.wire_type == "fp32":
            block = self.values.numel() if self.values.is_cuda else BLOCK
            for start in range(0, self.values.numel(), block):
                self.values[start : start + block].copy_(total[start : start + block]).mul_(unscale)
        self.is_here = True
