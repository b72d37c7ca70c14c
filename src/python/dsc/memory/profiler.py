"""``dsc.memory.profile``: writes what the planner needs to know about one training step."""

import hashlib
import json

import torch
from torch.utils import _pytree as pytree

from .dtypes import short_dtype
from .record import MemoryRecord
from .tensors import list_tensors
from .timing import measure_copies, time_gradients, time_step

def profile(model, inputs, out=None, loss=None, optimizer=None, device=None):
    """Profiles training steps of ``model`` on ``inputs`` and returns the profile (a dict of JSON values).

    inputs: one tensor, a tuple of positional or a dict of keyword arguments of the model.
    loss: from the model's output to a scalar; default: the sum of the first tensor in it.
    out: a path to write the profile to. The model's gradients, buffers and random numbers are as before.
    """
    loss = loss or sum_of_first
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
    tensors = list_tensors(layer_of, measured)
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


def _tensors_in(nest):
    return [leaf for leaf in pytree.tree_leaves(nest) if isinstance(leaf, torch.Tensor)]


def sum_of_first(output):
    if isinstance(output, torch.Tensor):
        return output.float().sum() if not output.is_floating_point() else output.sum()
    if isinstance(output, dict):
        return output["loss"] if "loss" in output else sum_of_first(next(iter(output.values())))
    return output.loss if hasattr(output, "loss") and output.loss is not None else sum_of_first(output[0])


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
