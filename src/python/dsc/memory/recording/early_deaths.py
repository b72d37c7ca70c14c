"""Saved tensors whose memory must be given back one by one, not with an arena."""

from __future__ import annotations

from collections.abc import Container

from .record import MemoryRecord

WORTH = 0.01  # of the step's peak: what an arena may take more than was recorded, unnoticed


def find_early_deaths(record: MemoryRecord, saved: Container[int]) -> set[int]:
    """Storages that die within the backward of a layer while its memory still grows.

    A layer of several operations frees what it saved one by one, and what it computes takes the room. An arena would
    keep that room, so the layer's peak would be above the recorded one.

    Args:
        record: of the step.
        saved: the storages that autograd saves.
    """
    changes = [(clock, size, one) for one, (clock, size, _) in record.births.items()]
    changes += [(clock, -record.births[one][1], one) for one, clock in record.deaths.items() if one in record.births]
    changes.sort()
    worth = WORTH * max(event.peak_bytes for event in record.events)
    ends = [event.start_clock for event in record.events[1:]] + [record.device.clock + 1]
    found: set[int] = set()
    live = at = 0
    for event, end in zip(record.events, ends):
        kept, highest, early = 0, 0, set()
        while at < len(changes) and changes[at][0] <= end:
            _, size, one = changes[at]
            at += 1
            live += size
            if event.is_backward and size < 0 and one in saved:
                kept -= size
                early.add(one)
            highest = max(highest, live + kept)
        if highest > event.peak_bytes + worth:
            found |= early
    return found
