"""The parts of a plan file that the executor reads, as src/memory/plan/memory-plan.ts writes them."""

from __future__ import annotations

from typing import Any, TypedDict

# On the executor's clock, which ticks once per pack call, then once per unpack call.
Ticks = TypedDict("Ticks", {"out": int, "free": int, "in": int})


class Move(TypedDict):
    """One storage that leaves the device and comes back. Event numbers count along the timeline of the profile."""

    storage: int
    kind: str
    name: str | None
    bytes: int
    outAfter: int
    freeBy: int
    inAt: int
    useAt: int
    inUs: float
    hostOffset: int
    reloadOffset: int | None
    packs: list[int]
    unpacks: list[int]
    ticks: Ticks | None


class Reuse(TypedDict):
    """A saved map that a feature gradient is written into: by the pack call whose node does so."""

    pack: int
    layer: int
    storage: int
    bytes: int


class Recomputation(TypedDict):
    """A call of a module that runs its forward again: by the module's name, and how many calls of it are before."""

    name: str
    call: int
    inputs: int
    buffers: list[str]


class Plan(TypedDict):
    """A plan file of version 2."""

    v: int
    kind: str
    profile: str
    budgetBytes: int
    options: dict[str, Any]
    predicted: dict[str, Any]
    recompute: list[Recomputation]
    moves: list[Move]
    arenas: dict[str, dict[str, Any]]
    reuse: list[Reuse]
    packSignatures: list[str]
    packLayers: list[int]
    layerNames: list[str]
