"""``dsc.memory.profile``: writes what the planner needs to know about one training step."""

import hashlib
import json
import os

import torch
from torch.utils import _pytree as pytree

from .record import MemoryRecord
from .timing import measure_copies, time_gradients, time_step

SHORT = {
    torch.float32: "f32", torch.float64: "f64", torch.float16: "f16", torch.bfloat16: "bf16",
    torch.int64: "i64", torch.int32: "i32", torch.int16: "i16", torch.int8: "i8", torch.uint8: "u8",
    torch.bool: "b8", torch.complex64: "c64", torch.complex128: "c128",
}


def short_dtype(dtype):
    return SHORT.get(dtype, str(dtype).replace("torch.", ""))


def profile(model, inputs, out=None, loss=None, optimizer=None, device=None):
    """Profiles training steps of ``model`` on ``inputs`` and returns the profile (a dict of JSON values).

    inputs: one tensor, a tuple of positional or a dict of keyword arguments of the model.
    loss: from the model's output to a scalar; default: the sum of the first tensor in it.
    out: a path to write the profile to. The model's gradients, buffers and random numbers are as before.
    """
    loss = loss or _sum_of_first
    device = device or next(model.parameters()).device

    def step():
        if isinstance(inputs, dict):
            return loss(model(**inputs))
        return loss(model(*(inputs if isinstance(inputs, (tuple, list)) else (inputs,))))

    return profile_step(model, step, held=[inputs], optimizer=optimizer, device=device, out=out)


def profile_step(model, step, held=(), optimizer=None, device=None, out=None):
    """Like ``profile`` for any ``step`` that returns the loss; ``held`` are the tensors it is given."""
    device = device or next(model.parameters()).device
    grads = {name: p.grad for name, p in model.named_parameters()}
    buffers = {name: b.detach().clone() for name, b in model.named_buffers()}
    rng = torch.get_rng_state()
    cuda_rng = torch.cuda.get_rng_state(device) if device.type == "cuda" else None

    def fresh():
        for parameter in model.parameters():
            parameter.grad = None
        with torch.no_grad():
            for name, b in model.named_buffers():
                b.copy_(buffers[name])
        torch.set_rng_state(rng)
        if cuda_rng is not None:
            torch.cuda.set_rng_state(cuda_rng, device)

    try:
        fresh()
        step().backward()  # iteration 0: lazy layers, kernels to be chosen
        times = []
        for _ in range(3):
            fresh()
            times.append(time_step(model, step, device))
        fresh()
        shares = time_gradients(model, step, device)
        kinds = {
            "param": list(model.parameters()),
            "opt_state": _tensors_in(optimizer.state_dict() if optimizer else ()),
            "buffer": [*model.buffers(), *_tensors_in(held)],  # a batch is not the planner's to move either
        }
        fresh()
        plain = MemoryRecord(model, kinds).run(step)
        fresh()
        moved = MemoryRecord(model, kinds, is_offloading=True).run(step)
        non_torch = 0
        if device.type == "cuda":
            fresh()
            torch.cuda.reset_peak_memory_stats(device)
            step().backward()
            non_torch = max(0, torch.cuda.max_memory_allocated(device) - plain.device.peak_bytes)
    finally:
        fresh()
        for name, parameter in model.named_parameters():
            parameter.grad = grads[name]
    built = _build(model, optimizer, device, _Measured(times, shares, plain, moved, non_torch))
    if out is not None:
        with open(out, "w", encoding="utf-8") as file:
            json.dump(built, file, separators=(",", ":"))
    return built


class _Measured:
    def __init__(self, times, shares, plain, moved, non_torch):
        self.times, self.shares, self.plain, self.moved, self.non_torch = times, shares, plain, moved, non_torch


def _build(model, optimizer, device, measured):
    plain, moved = measured.plain, measured.moved
    if [s["segment"] for s in plain.saved] != [s["segment"] for s in moved.saved]:
        raise RuntimeError("the model saves other tensors in every iteration: it cannot be planned")
    count = plain.segments.current + 1
    used = sorted(
        {e.segment for e in plain.events if e.ops > 0} | {s["segment"] for s in plain.saved} | {0}
    )
    layer_of = {}
    for segment in range(count):  # an empty gap belongs to the layer before it
        layer_of[segment] = used.index(segment) if segment in used else layer_of[segment - 1]
    layers = _list_layers(plain.segments.names, used, layer_of, measured)
    tensors = _list_tensors(layer_of, measured)
    packs = [layer_of[s["segment"]] for s in plain.saved]
    highest = max(plain.events, key=lambda e: e.peak_bytes)
    host = _host_bytes()
    signature = [
        [short_dtype(s["dtype"]), list(s["shape"]), list(s["stride"])] for s in plain.saved
    ]
    names = [[n, list(p.shape), short_dtype(p.dtype)] for n, p in model.named_parameters()]
    return {
        "v": 1,
        "kind": "dsc.mem.profile",
        "signature": _sha256(signature),
        "model": _sha256(names),
        "device": {"name": _device_name(device), "bytes": _device_bytes(device), **measure_copies(device)},
        "host": host,
        "layers": layers,
        "tensors": tensors,
        "peak": {
            "bytes": highest.peak_bytes,
            "at": f"{plain.segments.names[highest.segment]} {'bwd' if highest.is_backward else 'fwd'}",
        },
        "nonTorchBytes": measured.non_torch,
        "packLayers": packs,
        "unpackOrder": plain.unpacked,
    }


def _list_layers(names, used, layer_of, measured):
    forward, backward = [0.0] * len(used), [0.0] * len(used)
    for (segment, phase), row in _medians(measured.times).items():
        (forward if phase == "fwd" else backward)[layer_of[segment]] += row
    layers = []
    for index, segment in enumerate(used):
        is_leaf = segment % 2 == 1
        call = segment // 2
        share = measured.shares[call] if is_leaf and call < len(measured.shares) else 0.0
        layers.append(
            {
                "i": index,
                "name": names[segment],
                "fwdUs": round(forward[index], 3),
                "bwdParamUs": round(backward[index] * share, 3),
                "bwdFeatUs": round(backward[index] * (1 - share), 3),
                "prev": [index - 1] if index > 0 else [],
                "next": [index + 1] if index + 1 < len(used) else [],
                "fused": True,
            }
        )
    return layers


def _medians(times):
    keys = [key for key in times[0] if isinstance(key[0], int)]
    return {key: sorted(t.get(key, 0.0) for t in times)[len(times) // 2] for key in keys}


def _list_tensors(layer_of, measured):
    """One tensor per view that was saved, and per storage that lives through more than one event."""
    plain, moved = measured.plain, measured.moved
    places = [_place(event, layer_of) for event in plain.events]
    spans = _find_spans(plain, places)
    packs_of = {}
    for sequence, saved in enumerate(plain.saved):
        packs_of.setdefault(saved["id"], []).append(sequence)
    unpacks_of = {}
    for position, sequence in enumerate(plain.unpacked):
        unpacks_of.setdefault(sequence, []).append(position)
    held = _find_held(plain, moved, layer_of)
    tensors, workspace = [], {}
    for identity, (_, size, _) in plain.births.items():
        if identity not in spans and identity not in packs_of:
            continue
        span = spans.get(identity)
        kind = plain.kinds.get(identity)
        if kind is None:
            if identity in packs_of:
                kind = "feature" if held.get(identity) is not None else "buffer"
            elif span[0] == span[1]:
                workspace[span[0]] = workspace.get(span[0], 0) + size
                continue
            else:
                is_born_backward = plain.events[plain.births[identity][2]].is_backward
                kind = "feature_grad" if is_born_backward else "workspace"
        if size == 0:
            continue
        tensors += _views(identity, kind, size, span, (places, packs_of, unpacks_of, plain, held, layer_of))
    storage = max((t["storage"] for t in tensors), default=0)
    for offset, (event, size) in enumerate(sorted(workspace.items()), 1):
        tensors.append(_plain_tensor(storage + offset, "workspace", size, [places[event], places[event]], []))
    for identity, tensor in enumerate(tensors):
        tensor["id"] = identity
    return tensors


def _views(identity, kind, size, span, context):
    places, packs_of, unpacks_of, plain, held, layer_of = context
    birth = places[plain.births[identity][2]]
    # A backward event covers both phases of its layer: eager kernels compute them in one.
    alive = [places[span[0]], _end_of(places[span[1]])] if span else [birth, birth]
    if kind in ("param", "buffer", "opt_state"):
        alive = None
    rows = {}
    for sequence in packs_of.get(identity, []):
        saved = plain.saved[sequence]
        rows.setdefault((saved["dtype"], saved["shape"], saved["stride"], saved["offset"]), []).append(sequence)
    if not rows:
        return [_plain_tensor(identity, kind, size, alive, [])]
    tensors = []
    for (dtype, shape, stride, offset), sequences in rows.items():
        layers = sorted({layer_of[plain.saved[s]["segment"]] for s in sequences}, reverse=True)
        uses = [{"layer": layer, "phase": p} for layer in layers for p in ("bwd_param", "bwd_feat")]
        tensor = _plain_tensor(identity, kind, size, alive, uses)
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
        if kind == "feature":
            tensor["heldUntil"] = held[identity]
        tensors.append(tensor)
    return tensors


def _plain_tensor(storage, kind, size, alive, uses):
    tensor = {
        "id": 0, "kind": kind, "bytes": size, "dtype": "u8", "shape": [size], "storage": storage, "offset": 0,
        "stride": [1], "producer": alive[0] if alive else {"layer": 0, "phase": "fwd"}, "uses": uses,
        "pack": [], "unpack": [], "refs": 0,
    }
    if alive:
        tensor["alive"] = alive
    return tensor


def _find_spans(record, places):
    """First and last event at whose fullest instant each storage was alive."""
    spans = {}
    for identity, (born, _, _) in record.births.items():
        dead = record.deaths.get(identity, 1 << 62)
        events = [i for i, e in enumerate(record.events) if born <= e.peak_clock < dead]
        if events:
            spans[identity] = (events[0], events[-1])
    return spans


def _find_held(plain, moved, layer_of):
    """Per saved storage the last forward place that holds it besides autograd; None: it cannot be moved.

    Known from the run that drops every saved map: what stays alive then is held by something else. A reloaded copy
    that outlives its node has become part of a gradient; such a storage must not lie in a shared arena.
    """
    held = {}
    turn = next(i for i, e in enumerate(moved.events) if e.is_backward)
    for sequence, saved in enumerate(moved.saved):
        identity = plain.saved[sequence]["id"]
        death = moved.event_of_death(saved["id"])
        is_aliased = any(
            moved.event_of_death(reload) > moved.births[reload][2] for reload in moved.reloads.get(saved["id"], ())
        )
        if death >= turn or is_aliased:
            held[identity] = None
        elif held.get(identity, ()) is not None:
            held[identity] = {"layer": layer_of[moved.events[death].segment], "phase": "fwd"}
    return held


def _tensors_in(nest):
    return [leaf for leaf in pytree.tree_leaves(nest) if isinstance(leaf, torch.Tensor)]


def _place(event, layer_of):
    return {"layer": layer_of[event.segment], "phase": "bwd_param" if event.is_backward else "fwd"}


def _end_of(place):
    return {**place, "phase": "bwd_feat"} if place["phase"] == "bwd_param" else place


def _sum_of_first(output):
    if isinstance(output, torch.Tensor):
        return output.float().sum() if not output.is_floating_point() else output.sum()
    if isinstance(output, dict):
        return output["loss"] if "loss" in output else _sum_of_first(next(iter(output.values())))
    return output.loss if hasattr(output, "loss") and output.loss is not None else _sum_of_first(output[0])


def _sha256(value):
    return hashlib.sha256(json.dumps(value, separators=(",", ":")).encode()).hexdigest()


def _device_name(device):
    return torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu (accounting)"


def _device_bytes(device):
    if device.type == "cuda":
        return torch.cuda.get_device_properties(device).total_memory
    return _host_bytes()["bytes"]


def _host_bytes():
    from .host_memory import free_host_bytes, total_host_bytes

    free = free_host_bytes()
    return {"bytes": total_host_bytes(), "pinnable": free // 2}


class AutoProfiler:
    """Profiles an unchanged script: takes over the first training calls of its outermost module."""

    def __init__(self, out, is_stopped_after):
        self.out = out
        self.is_stopped_after = is_stopped_after
        self._is_busy = False
        self._call = torch.nn.Module.__call__
        self._backward = torch.Tensor.backward
        self._last = None
        torch.nn.Module.__call__ = lambda module, *a, **k: self._on_call(module, a, k)
        torch.Tensor.backward = lambda tensor, *a, **k: self._on_backward(tensor, a, k)

    def _on_call(self, module, args, kwargs):
        outermost = not self._is_busy and module.training and torch.is_grad_enabled()
        if not outermost or next(module.parameters(), None) is None:
            return self._call(module, *args, **kwargs)
        self._is_busy = True
        try:
            result = self._call(module, *args, **kwargs)
        finally:
            self._is_busy = False
        self._last = (module, args, kwargs, result)
        return result

    def _on_backward(self, tensor, args, kwargs):
        result = self._backward(tensor, *args, **kwargs)
        if self._last is None:
            return result
        module, inputs, named, _ = self._last
        torch.nn.Module.__call__, torch.Tensor.backward = self._call, self._backward
        profile_step(
            module,
            lambda: _sum_of_first(module(*inputs, **named)),
            held=[inputs, named],
            out=self.out,
        )
        if self.is_stopped_after:
            os._exit(0)
        return result
