"""Gradient exchange for PyTorch: dsc's bucket plan, scaled half precision and same-host all-reduce for stock DDP.

from dsc.exchange import ddp_kwargs, register_planned_hook

ddp = DistributedDataParallel(model, **ddp_kwargs("exchange.plan.json"))
state = register_planned_hook(ddp, "exchange.plan.json")
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import lazy_names

if TYPE_CHECKING:
    from .errors import ExchangeMismatch as ExchangeMismatch
    from .errors import PeerLost as PeerLost
    from .hook import ScaledHalf as ScaledHalf
    from .hook import scaled_half_hook as scaled_half_hook
    from .int8_hook import BlockwiseInt8 as BlockwiseInt8
    from .int8_hook import blockwise_int8_hook as blockwise_int8_hook
    from .plan import ddp_kwargs as ddp_kwargs
    from .plan import register_planned_hook as register_planned_hook
    from .probe import probe_link as probe_link
    from .profile import Profiler as Profiler
    from .sharded import ScaledAllReduce as ScaledAllReduce
    from .sharded import ScaledReduceScatter as ScaledReduceScatter
    from .sharded import use_blockwise_int8 as use_blockwise_int8
    from .sharded import use_scaled_half as use_scaled_half
    from .shared_memory import SharedMemory as SharedMemory
    from .shared_memory import shared_memory_hook as shared_memory_hook

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "BlockwiseInt8": "int8_hook",
        "ExchangeMismatch": "errors",
        "PeerLost": "errors",
        "Profiler": "profile",
        "ScaledHalf": "hook",
        "ScaledAllReduce": "sharded",
        "ScaledReduceScatter": "sharded",
        "SharedMemory": "shared_memory",
        "blockwise_int8_hook": "int8_hook",
        "ddp_kwargs": "plan",
        "probe_link": "probe",
        "register_planned_hook": "plan",
        "scaled_half_hook": "hook",
        "shared_memory_hook": "shared_memory",
        "use_blockwise_int8": "sharded",
        "use_scaled_half": "sharded",
    },
)
