"""Reads what `dsc exchange plan --out` wrote."""

import inspect
import json

PLAN_FORMAT = "dsc.exchange.plan/1"


def read_plan(path):
    """Returns the plan in file `path` as a dictionary; ValueError if it is something else."""
    with open(path, encoding="utf-8") as file:
        plan = json.load(file)
    if not isinstance(plan, dict) or plan.get("format") != PLAN_FORMAT:
        found = plan.get("format") if isinstance(plan, dict) else type(plan).__name__
        raise ValueError(f"{path}: expected format {PLAN_FORMAT}, found {found}; write it with `dsc exchange plan --out`")
    return plan


def ddp_kwargs(path):
    """Returns the keyword arguments that give DistributedDataParallel the plan's buckets.

    A plan made with --optimum has one cap per bucket, which only newer PyTorch takes; older ones get the threshold.
    """
    from torch.nn.parallel import DistributedDataParallel

    arguments = dict(read_plan(path)["ddp"])
    if "bucket_cap_mb_list" in arguments:
        known = inspect.signature(DistributedDataParallel.__init__).parameters
        arguments.pop("bucket_cap_mb" if "bucket_cap_mb_list" in known else "bucket_cap_mb_list", None)
    return arguments
