"""From a step that was recorded while saved tensors were dropped to the same step with all of them kept."""

from __future__ import annotations

import bisect
import copy

from .record import Event, MemoryRecord


def keep_dropped(dropped: MemoryRecord) -> MemoryRecord:
    """The record that the step would have had without dropping: what autograd saves lives until its last use.

    Args:
        dropped: a step whose saved feature maps were dropped; it is left as it is.
    """
    kept = copy.copy(dropped)
    owner = {reload: identity for identity, reloads in dropped.reloads.items() for reload in reloads}
    kept.births = {one: birth for one, birth in dropped.births.items() if one not in owner}
    kept.deaths = {one: clock for one, clock in dropped.deaths.items() if one not in owner}
    kept.kinds, kept.names = dict(dropped.kinds), dict(dropped.names)
    for identity, reloads in dropped.reloads.items():
        _extend(kept, dropped, identity, [dropped.deaths.get(reload) for reload in reloads])
        for reload in reloads:  # whose memory became part of a gradient
            if reload in dropped.kinds:
                kept.kinds.setdefault(identity, dropped.kinds[reload])
            if reload in dropped.names:
                kept.names.setdefault(identity, dropped.names[reload])
    for saved in dropped.saved:  # by nodes that do not ask for it: theirs until their backward has run
        if saved["id"] not in dropped.reloads and saved["id"] not in dropped.gathered:
            _extend(kept, dropped, saved["id"], [_end_of_backward(dropped, saved["segment"])])
    kept.events = _find_peaks(kept)
    return kept


def _extend(kept: MemoryRecord, dropped: MemoryRecord, identity: int, ends: list[int | None]) -> None:
    """Lets a storage live until the last of `ends`; None: it lives on after the step."""
    if identity not in kept.deaths:
        return
    if any(end is None for end in ends):
        del kept.deaths[identity]
    else:
        kept.deaths[identity] = max(kept.deaths[identity], *(end for end in ends if end is not None))


def _end_of_backward(record: MemoryRecord, segment: int) -> int:
    events = record.events
    own = next((i for i, e in enumerate(events) if e.is_backward and e.segment <= segment), len(events) - 1)
    return events[own + 1].start_clock if own + 1 < len(events) else record.device.clock


def _find_peaks(record: MemoryRecord) -> list[Event]:
    changes = [(clock, size) for clock, size, _ in record.births.values()]
    changes += [(clock, -record.births[one][1]) for one, clock in record.deaths.items() if one in record.births]
    changes.sort(key=lambda change: (change[0], change[1] > 0))
    clocks, levels, live = [-1], [0], 0
    for clock, size in changes:
        live += size
        clocks.append(clock)
        levels.append(live)
    events = []
    for at, before in enumerate(record.events):
        event = copy.copy(before)
        last = len(changes) if at + 1 == len(record.events) else _at(clocks, record.events[at + 1].start_clock)
        first = _at(clocks, event.start_clock)
        highest = max(range(first, last + 1), key=lambda i: levels[i])
        event.peak_bytes = levels[highest]
        event.peak_clock = max(event.start_clock, clocks[highest])
        events.append(event)
    return events


def _at(clocks: list[int], clock: int) -> int:
    """Index of the last change up to an instant."""
    return bisect.bisect_right(clocks, clock) - 1
