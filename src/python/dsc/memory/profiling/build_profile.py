"""Puts a profile together from measured steps."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from ...torch_private import without_modes
from ..carrying.host_memory import free_host_bytes, total_host_bytes
from ..plan.dtypes import short_dtype
from ..plan.plannable import refuse_without_layers
from ..plan.runnable_plan import PlanError
from ..recording.copy_times import measure_copies
from ..recording.list_blocks import list_blocks
from ..recording.segments import Segments
from ..recording.tensors import list_tensors
from ..recording.timing import StepTimes
from .measured import Measured


def build_profile(model: torch.nn.Module, device: torch.device, measured: Measured) -> dict[str, Any]:
    """The profile, as the planner reads it: a dict of JSON values.

    Args:
        model: that was measured.
        device: that ran it.
        measured: its steps.

    Raises:
        PlanError: the model saves other tensors in every iteration, or calls no layers.
    """
    plain, moved = measured.plain, measured.moved
    if [s["segment"] for s in plain.saved] != [s["segment"] for s in moved.saved]:
        raise PlanError("the model saves other tensors in every iteration: it cannot be planned")
    refuse_without_layers(model, plain.segments.names)
    count = plain.segments.current + 1
    used = sorted({e.segment for e in plain.events if e.ops > 0} | {s["segment"] for s in plain.saved} | {0})
    layer_of: dict[int, int] = {}
    for segment in range(count):  # an empty gap belongs to the layer before it
        layer_of[segment] = used.index(segment) if segment in used else layer_of[segment - 1]
    layers = _list_layers(plain.segments, used, layer_of, measured)
    tensors = list_tensors(layer_of, plain, moved)
    blocks = list_blocks(plain, layer_of, set(used))
    packs = [layer_of[s["segment"]] for s in plain.saved]
    highest = max(plain.events, key=lambda e: e.peak_bytes)
    host = _host_bytes()
    signature = [[short_dtype(s["dtype"]), list(s["shape"]), list(s["stride"])] for s in plain.saved]
    names = [[n, list(p.shape), short_dtype(p.dtype)] for n, p in model.named_parameters()]
    reuse = measured.reusing and {
        "packs": sorted(measured.reusing.reused),
        "tensors": list_tensors(layer_of, measured.reusing, moved),
    }
    with without_modes():  # what is measured is not part of the step
        copies = measure_copies(device)
    return {
        "v": 1,
        "kind": "dsc.mem.profile",
        "signature": _sha256(signature),
        "model": _sha256(names),
        "device": {"name": _device_name(device), "bytes": _device_bytes(device), **copies},
        "host": host,
        "layers": layers,
        "tensors": tensors,
        "peak": {
            "bytes": highest.peak_bytes,
            "at": f"{plain.segments.names[highest.segment]} {'bwd' if highest.is_backward else 'fwd'}",
        },
        "nonTorchBytes": measured.non_torch_bytes,
        "packLayers": packs,
        "unpackOrder": plain.unpacked,
        "unpackLayers": [layer_of[segment] for segment in plain.asked_by],
        "blocks": blocks,
        **({"reuse": reuse} if reuse else {}),
    }


def _list_layers(
    segments: Segments, used: list[int], layer_of: Mapping[int, int], measured: Measured
) -> list[dict[str, Any]]:
    forward, backward = [0.0] * len(used), [0.0] * len(used)
    least = _peaks_without_maps(measured, layer_of, len(used))
    for (segment, phase), row in _medians(measured.times).items():
        (forward if phase == "fwd" else backward)[layer_of[segment]] += row
    layers = []
    for index, segment in enumerate(used):
        call = segments.leaf_calls.get(segment, len(measured.shares))
        share = measured.shares[call] if call < len(measured.shares) else 0.0
        layers.append(
            {
                "i": index,
                "name": segments.names[segment],
                "fwdUs": round(forward[index], 3),
                "bwdParamUs": round(backward[index] * share, 3),
                "bwdFeatUs": round(backward[index] * (1 - share), 3),
                "prev": [index - 1] if index > 0 else [],
                "next": [index + 1] if index + 1 < len(used) else [],
                "fused": True,
                "leastBytes": least[index],
            }
        )
    return layers


def _peaks_without_maps(measured: Measured, layer_of: Mapping[int, int], count: int) -> list[list[int]]:
    """Per layer, the peaks of its forward and backward where every saved map is on the host, and calls get copies."""
    peaks = [[0, 0] for _ in range(count)]
    for event in measured.moved.events:
        row = peaks[layer_of[event.segment]]
        row[event.is_backward] = max(row[event.is_backward], event.peak_bytes)
    return peaks


def _medians(times: Sequence[StepTimes]) -> StepTimes:
    keys = [key for key in times[0] if isinstance(key[0], int)]
    return {key: sorted(t.get(key, 0.0) for t in times)[len(times) // 2] for key in keys}


def _sha256(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, separators=(",", ":")).encode()).hexdigest()


def _device_name(device: torch.device) -> str:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu (accounting)"


def _device_bytes(device: torch.device) -> int:
    if device.type == "cuda":
        return torch.cuda.get_device_properties(device).total_memory
    return _host_bytes()["bytes"]


def _host_bytes() -> dict[str, int]:
    free = free_host_bytes()
    return {"bytes": total_host_bytes(), "pinnable": free // 2}
