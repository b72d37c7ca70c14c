"""The most that CUDA's allocator held, since some moment."""

from __future__ import annotations

import logging

import torch


def begin_peak(device: torch.device) -> None:
    """Restarts the peak of a device. torch cannot put the earlier one back, so it is logged.

    Args:
        device: whose `torch.cuda.max_memory_allocated` restarts.
    """
    earlier = torch.cuda.max_memory_allocated(device)
    told = "the peak statistics of %s restart; its peak until now: %d bytes"
    logging.getLogger(__name__).info(told, device, earlier)
    torch.cuda.reset_peak_memory_stats(device)
