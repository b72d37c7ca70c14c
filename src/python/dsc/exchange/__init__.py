"""Gradient exchange for PyTorch: dsc's bucket plan, scaled half precision and same-host all-reduce for stock DDP.

    from dsc.exchange import ddp_kwargs, register_planned_hook

    ddp = DistributedDataParallel(model, **ddp_kwargs("exchange.plan.json"))
    state = register_planned_hook(ddp, "exchange.plan.json")

Names are loaded when first used, so that importing this package does not import torch.
"""

import importlib

_HOMES = {
    "ExchangeMismatch": "errors",
    "PeerLost": "errors",
    "Profiler": "profile",
    "ScaledHalf": "hook",
    "SharedMemory": "shared_memory",
    "ddp_kwargs": "plan",
    "probe_link": "probe",
    "register_planned_hook": "plan",
    "scaled_half_hook": "hook",
    "shared_memory_hook": "shared_memory",
}

__all__ = sorted(_HOMES)


def __getattr__(name):
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{home}"), name)
