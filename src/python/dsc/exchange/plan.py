"""Reads what `dsc exchange plan --out` wrote."""

from __future__ import annotations

import inspect
import json
import logging
import os
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from torch.nn.parallel import DistributedDataParallel

    from .hook import ScaledHalf
    from .int8_hook import BlockwiseInt8

PLAN_FORMAT = "dsc.exchange.plan/1"


def read_plan(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Returns the plan in file `path`.

    Raises:
        ValueError: the file is something else.
    """
    with open(path, encoding="utf-8") as file:
        plan = json.load(file)
    if not isinstance(plan, dict) or plan.get("format") != PLAN_FORMAT:
        found = plan.get("format") if isinstance(plan, dict) else type(plan).__name__
        raise ValueError(
            f"{path}: expected format {PLAN_FORMAT}, found {found}; write it with `dsc exchange plan --out`"
        )
    return cast(dict[str, Any], plan)


def ddp_kwargs(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Returns the keyword arguments that give DistributedDataParallel the plan's buckets.

    A plan whose first bucket leaves early has a cap for it, one made with --optimum a cap for every bucket. Only newer
    PyTorch takes such a list; older ones get the threshold.

    Args:
        path: what `dsc exchange plan --out` wrote.

    Returns:
        Keyword arguments of `DistributedDataParallel`.
    """
    from torch.nn.parallel import DistributedDataParallel

    arguments = dict(read_plan(path)["ddp"])
    if "bucket_cap_mb_list" in arguments:
        known = inspect.signature(DistributedDataParallel.__init__).parameters
        arguments.pop("bucket_cap_mb" if "bucket_cap_mb_list" in known else "bucket_cap_mb_list", None)
    return arguments


def register_planned_hook(
    ddp: DistributedDataParallel, path: str | os.PathLike[str]
) -> ScaledHalf | BlockwiseInt8 | None:
    """Gives `ddp` the hook that the plan in file `path` asks for.

    Args:
        ddp: made with `ddp_kwargs(path)`.
        path: what `dsc exchange plan --out` wrote.

    Returns:
        The hook's state, which with fp16 belongs in the checkpoint. None if the plan says fp32: where the link is fast,
        DDP without a hook is faster, and the plan's `wireExplanation` says why.

    Raises:
        ValueError: the plan says a type that this version does not know.
    """
    plan = read_plan(path)
    if plan["wire"] == "fp32":
        logging.getLogger(__name__).info("no hook is registered: %s", plan.get("wireExplanation", "the plan says fp32"))
        return None
    if plan["wire"] == "int8":
        from .int8_hook import BlockwiseInt8, blockwise_int8_hook

        int8 = BlockwiseInt8(ddp.process_group, levels=plan.get("levels", 1))
        ddp.register_comm_hook(int8, blockwise_int8_hook)
        return int8
    if plan["wire"] != "fp16":
        raise ValueError(
            f"{path} says {plan['wire']!r} on the wire, expected fp32, fp16 or int8: run dsc exchange plan again"
        )
    from .hook import ScaledHalf, scaled_half_hook

    state = ScaledHalf(ddp.module.parameters(), ddp.process_group, levels=plan.get("levels", 1))
    ddp.register_comm_hook(state, scaled_half_hook)
    return state
