"""Gradients as halves with one power-of-two scale per parameter, as the central node reads them."""

from __future__ import annotations

import math
from collections.abc import Iterable

import torch

MAX_EXPONENT = 120
TOP_EXPONENT = 15


def encode_half(
    gradient: torch.Tensor, places: Iterable[tuple[int, int]], buffers: Iterable[tuple[int, int]] = ()
) -> tuple[list[int], torch.Tensor]:
    """Exponents (one per ``(offset, length)`` of ``places``) and the float16 values, scaled by 2 to that power.

    The largest magnitude of each parameter lands in [2^14, 2^15). One that is not finite has exponent 0 and stays so.
    After them, as the bytes they are, the float32 values of ``buffers``, which have no scale to be rounded at.
    """
    halves = torch.zeros(gradient.numel(), dtype=torch.float16)
    exponents = []
    for offset, length in places:
        values = gradient[offset : offset + length]
        low, high = torch.aminmax(values) if length else (torch.zeros(()), torch.zeros(()))
        largest = max(-low.item(), high.item())  # NaN in both if there is one
        exponents.append(_find_exponent(largest))
        halves[offset : offset + length] = values * 2.0 ** exponents[-1]
    rest = [gradient[at : at + length].view(torch.float16) for at, length in buffers]
    return exponents, torch.cat([halves, *rest])


def _find_exponent(largest: float) -> int:
    if largest == 0 or not math.isfinite(largest):
        return 0
    return max(-MAX_EXPONENT, min(MAX_EXPONENT, TOP_EXPONENT - math.frexp(largest)[1]))
