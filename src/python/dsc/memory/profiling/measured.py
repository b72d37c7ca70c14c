"""The measurements that a profile is made from."""

from __future__ import annotations

from typing import NamedTuple

from ..recording.record import MemoryRecord
from ..recording.timing import StepTimes


class Measured(NamedTuple):
    """Timed and recorded steps of one model.

    Attributes:
        times: of several steps alike.
        shares: of backward spent on the parameter gradient, 0 to 1, per call of a leaf module.
        plain: the step as the script runs it.
        moved: the same step without its saved feature maps.
        reusing: the same step with feature gradients written into dead maps; None where that cannot be.
        non_torch_bytes: device memory beyond what tensors hold.
    """

    times: list[StepTimes]
    shares: list[float]
    plain: MemoryRecord
    moved: MemoryRecord
    reusing: MemoryRecord | None
    non_torch_bytes: int
