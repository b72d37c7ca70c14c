"""From two recorded steps to the tensors of a profile."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

from ..plan.dtypes import short_dtype
from .early_deaths import find_early_deaths
from .record import Event, MemoryRecord

_Place: TypeAlias = dict[str, Any]  # {"layer": index, "phase": "fwd" | "bwd_param" | "bwd_feat"}
_Tensor: TypeAlias = dict[str, Any]  # as a profile lists it


class _Context(NamedTuple):
    places: list[_Place]
    packs_of: dict[int, list[int]]
    unpacks_of: dict[int, list[int]]
    plain: MemoryRecord
    held: dict[int, _Place | None]
    lives_on: set[int]
    layer_of: Mapping[int, int]


def list_tensors(layer_of: Mapping[int, int], plain: MemoryRecord, moved: MemoryRecord) -> list[_Tensor]:
    """One tensor per view that was saved, and per storage that lives through more than one event.

    Args:
        layer_of: layer of a segment.
        plain: the step.
        moved: the same step without its saved feature maps.
    """
    places = [_place(event, layer_of) for event in plain.events]
    spans = _find_spans(plain, places)
    packs_of: dict[int, list[int]] = {}
    for sequence, saved in enumerate(plain.saved):
        packs_of.setdefault(saved["id"], []).append(sequence)
    unpacks_of: dict[int, list[int]] = {}
    for position, sequence in enumerate(plain.unpacked):
        unpacks_of.setdefault(sequence, []).append(position)
    held, lives_on = _find_held(plain, moved, layer_of)
    lives_on |= find_early_deaths(plain, set(packs_of))
    context = _Context(places, packs_of, unpacks_of, plain, held, lives_on, layer_of)
    given = {one["storage"] for call in plain.blocks.calls for one in call.inputs}
    tensors: list[_Tensor] = []
    workspace: dict[int, int] = {}
    for identity, (_, size, _) in plain.births.items():
        if identity not in spans and identity not in packs_of and identity not in given:
            continue
        span = spans.get(identity)
        kind = "workspace" if identity in plain.gathered else plain.kinds.get(identity)
        if kind is None:
            if identity in packs_of:
                kind = "feature" if held.get(identity) is not None else "buffer"
            elif span is not None and span[0] == span[1] and identity not in given:
                workspace[span[0]] = workspace.get(span[0], 0) + size
                continue
            else:
                is_born_backward = plain.events[plain.births[identity][2]].is_backward
                kind = "feature_grad" if is_born_backward else "workspace"
        if size == 0:
            continue
        tensors += _views(identity, kind, size, span, context)
    storage = max((t["storage"] for t in tensors), default=0)
    for offset, (event, size) in enumerate(sorted(workspace.items()), 1):
        tensors.append(_plain_tensor(storage + offset, "workspace", size, [places[event], places[event]], []))
    for identity, tensor in enumerate(tensors):
        tensor["id"] = identity
    return tensors


def _views(identity: int, kind: str, size: int, span: tuple[int, int] | None, context: _Context) -> list[_Tensor]:
    places, packs_of, unpacks_of, plain, held, lives_on, layer_of = context
    birth = places[plain.births[identity][2]]
    # A backward event covers both phases of its layer: eager kernels compute them in one.
    alive: list[_Place] | None = [places[span[0]], _end_of(places[span[1]])] if span else [birth, birth]
    if kind in ("param", "buffer", "opt_state"):
        alive = None
    touched = None
    if kind in ("param", "param_grad"):
        events = sorted(plain.touches.get(identity, ()))
        touched = [use for event in events for use in _phases_of(places[event])]
    rows: dict[tuple[Any, ...], list[int]] = {}
    for sequence in packs_of.get(identity, []):
        saved = plain.saved[sequence]
        rows.setdefault((saved["dtype"], saved["shape"], saved["stride"], saved["offset"]), []).append(sequence)
    if not rows:
        unsaved = _named(_plain_tensor(identity, kind, size, alive, touched or []), plain)
        end = plain.event_of_death(identity)
        if kind == "workspace" and end < len(places) and not plain.events[end].is_backward:
            unsaved["heldUntil"] = places[end]
        return [unsaved]
    tensors = []
    for (dtype, shape, stride, offset), sequences in rows.items():
        asking = [plain.asked_by[position] for s in sequences for position in unpacks_of.get(s, [])]
        segments = asking or [plain.saved[s]["segment"] for s in sequences]
        if identity in plain.gathered:  # read in backward from memory that FSDP allocates again
            segments = []
        layers = sorted({layer_of[segment] for segment in segments}, reverse=True)
        uses = [{"layer": layer, "phase": p} for layer in layers for p in ("bwd_param", "bwd_feat")]
        tensor = _named(_plain_tensor(identity, kind, size, alive, uses if touched is None else touched), plain)
        tensor.update(
            dtype=short_dtype(dtype),
            shape=list(shape),
            stride=list(stride),
            offset=offset,
            producer=birth,
            pack=sequences,
            unpack=sorted(p for s in sequences for p in unpacks_of.get(s, [])),
        )
        tensor["refs"] = len(tensor["unpack"])
        if plain.saved[sequences[0]]["line"]:
            tensor["line"] = plain.saved[sequences[0]]["line"]
        if kind == "feature":
            tensor["heldUntil"] = held[identity]
            if identity in lives_on:
                tensor["livesOn"] = True
        tensors.append(tensor)
    return tensors


def _plain_tensor(storage: int, kind: str, size: int, alive: list[_Place] | None, uses: list[_Place]) -> _Tensor:
    tensor = {
        "id": 0,
        "kind": kind,
        "bytes": size,
        "dtype": "u8",
        "shape": [size],
        "storage": storage,
        "offset": 0,
        "stride": [1],
        "producer": alive[0] if alive else {"layer": 0, "phase": "fwd"},
        "uses": uses,
        "pack": [],
        "unpack": [],
        "refs": 0,
    }
    if alive:
        tensor["alive"] = alive
    return tensor


def _named(tensor: _Tensor, plain: MemoryRecord) -> _Tensor:
    name = plain.names.get(tensor["storage"])
    return tensor if name is None else {**tensor, "name": name}


def _phases_of(place: _Place) -> list[_Place]:
    return [place] if place["phase"] == "fwd" else [place, _end_of(place)]


def _find_spans(record: MemoryRecord, places: list[_Place]) -> dict[int, tuple[int, int]]:
    """First and last event at whose fullest instant each storage was alive."""
    spans = {}
    for identity, (born, _, _) in record.births.items():
        dead = record.deaths.get(identity, 1 << 62)
        events = [i for i, e in enumerate(record.events) if born <= e.peak_clock < dead]
        if events:
            spans[identity] = (events[0], events[-1])
    return spans


def _find_held(
    plain: MemoryRecord, moved: MemoryRecord, layer_of: Mapping[int, int]
) -> tuple[dict[int, _Place | None], set[int]]:
    """Per saved storage the last forward place that holds it besides autograd; None: it cannot be moved.

    Known from the run that drops every saved map: what stays alive then is held by something else. Also those of which
    a reloaded copy outlives its node: it has become part of a gradient, or a checkpoint runs again from it. Such a
    storage must not lie in a shared arena.
    """
    held: dict[int, _Place | None] = {}
    lives_on: set[int] = set()
    turn = next(i for i, e in enumerate(moved.events) if e.is_backward)
    for sequence, saved in enumerate(moved.saved):
        identity = plain.saved[sequence]["id"]
        death = moved.event_of_death(saved["id"])
        if any(moved.event_of_death(reload) > moved.births[reload][2] for reload in moved.reloads.get(saved["id"], ())):
            lives_on.add(identity)
        if death >= turn:
            held[identity] = None
        elif identity not in held or held[identity] is not None:
            held[identity] = {"layer": layer_of[moved.events[death].segment], "phase": "fwd"}
    return held, lives_on


def _place(event: Event, layer_of: Mapping[int, int]) -> _Place:
    return {"layer": layer_of[event.segment], "phase": "bwd_param" if event.is_backward else "fwd"}


def _end_of(place: _Place) -> _Place:
    return {**place, "phase": "bwd_feat"} if place["phase"] == "bwd_param" else place
