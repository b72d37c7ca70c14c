"""Runs: the values that travel in one call."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import torch

from ..torch_private import largest_magnitudes, multiply_each

# Values handled at a time on a CPU: few enough that what is between two passes stays in the cache, and enough that
# calls of PyTorch do not count.
BLOCK = 1 << 18
TYPES = {"fp32": torch.float32, "fp16": torch.float16}


class Run:
    """Neighbouring values of a bucket that travel in one call: the whole bucket, except in the step after a resume.

    Args:
        group: indices of all parameters of the bucket whose scales they have.
        parameters: indices of those that are in it, each a part.
        values: of all parts, flat.
        sizes: values per part.
        wire_type: how they travel.
        exponents: by part; none for fp32.
    """

    def __init__(
        self,
        group: tuple[int, ...],
        parameters: Sequence[int],
        values: torch.Tensor,
        sizes: Sequence[int],
        wire_type: str,
        exponents: Sequence[int],
    ) -> None:
        self.group = group
        self.parameters = list(parameters)
        self.values = values
        self.sizes = list(sizes)
        self.wire_type = wire_type
        self.exponents = list(exponents)
        self.is_here = False
        self.is_redone = False
        self.amaxes: list[float] | None = None  # of the mean, by part; None if one is not finite

    @property
    def dtype(self) -> torch.dtype:
        """The element type that travels."""
        return TYPES[self.wire_type]

    @property
    def has_overflowed(self) -> bool:
        """Whether halves could not hold the mean, so that it is not written: all ranks repeat the run."""
        return self.is_here and self.amaxes is None and self.wire_type == "fp16"

    def restart(self) -> None:
        """Goes back to before it was sent, now in fp32: the local values are still there."""
        self.wire_type, self.exponents = "fp32", []
        self.is_here = False
        self.is_redone = True

    def spans(self) -> Iterator[tuple[int, int, int]]:
        """Neighbouring parts of one exponent: (first value, value after the last, exponent)."""
        if not self.exponents:
            yield 0, self.values.numel(), 0
            return
        start = end = 0
        for at, (size, exponent) in enumerate(zip(self.sizes, self.exponents)):
            end += size
            if at + 1 == len(self.sizes) or self.exponents[at + 1] != exponent:
                yield start, end, exponent
                start = end

    def scaled(self, shift: int) -> torch.Tensor:
        """The values as they travel, on the device where they are, times 2**shift."""
        spans = list(self.spans())
        parts = [self.values[start:end] for start, end, _ in spans]
        wire = torch.empty(self.values.numel(), dtype=self.dtype, device=self.values.device)
        factors = [2.0 ** (exponent + shift) for _, _, exponent in spans]
        multiply_each(parts, factors, out=[wire[start:end] for start, end, _ in spans])
        return wire

    def accept(self, total: torch.Tensor, peaks: Sequence[float], factor: float) -> None:
        """Writes the mean over the local values, unless half precision overflowed: then they are still needed.

        total: the scaled sum, with the largest magnitudes `peaks` by part (NaN or inf if one is in it).
        """
        is_finite = all(map(math.isfinite, peaks))
        exponents = self.exponents or [0] * len(self.sizes)
        if is_finite:
            self.amaxes = [peak * 2.0**-exponent * factor for peak, exponent in zip(peaks, exponents)]
        if is_finite or self.wire_type == "fp32":
            self._write(total, factor)
        self.is_here = True

    def _write(self, total: torch.Tensor, factor: float) -> None:
        spans = list(self.spans())
        if self.values.is_cuda:
            self.values.copy_(total)
            parts = [self.values[start:end] for start, end, _ in spans]
            multiply_each(parts, [2.0**-exponent * factor for _, _, exponent in spans], out=parts)
            return
        for first, end, exponent in spans:
            for start in range(first, end, BLOCK):
                stop = min(end, start + BLOCK)
                self.values[start:stop].copy_(total[start:stop]).mul_(2.0**-exponent * factor)


def peaks_of(values: torch.Tensor, sizes: Sequence[int]) -> torch.Tensor:
    """Largest magnitudes by part, fp32 [parts]: NaN where there is one, 0 of a parameter that is empty."""
    parts = [part for part in values.split(list(sizes)) if part.numel() > 0]
    found = torch.stack(largest_magnitudes(parts)).float() if parts else values.new_zeros(0, dtype=torch.float32)
    if len(parts) == len(sizes):
        return found
    peaks = torch.zeros(len(sizes), dtype=torch.float32, device=values.device)
    places = [at for at, size in enumerate(sizes) if size > 0]
    peaks[torch.tensor(places, dtype=torch.int64, device=values.device)] = found
    return peaks
