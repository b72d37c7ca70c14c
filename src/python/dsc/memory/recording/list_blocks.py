"""The blocks of a recorded step as a profile lists them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .record import MemoryRecord


def list_blocks(record: MemoryRecord, layer_of: Mapping[int, int], used: set[int]) -> list[dict[str, Any]]:
    """The calls that save something, as a profile lists them.

    Args:
        record: of the step.
        layer_of: layer of a segment.
        used: segments that are layers of their own.
    """
    blocks = []
    for call in record.blocks.calls:
        inside = [layer_of[s] for s in range(call.segments[0], call.segments[1] + 1) if s in used]
        if not inside or call.packs[0] == call.packs[1]:
            continue
        blocks.append(
            {
                "name": call.name,
                "call": call.call,
                "layers": [inside[0], inside[-1]],
                "packs": list(call.packs),
                "inputs": call.inputs,
                "buffers": call.buffers,
                **({"obstacle": call.obstacle} if call.obstacle else {}),
            }
        )
    return blocks
