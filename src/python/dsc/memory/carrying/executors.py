"""``with dsc.memory.offload(plan): loss = model(x)``: one executor of each plan and model."""

from __future__ import annotations

import os

import torch

from ..plan.runnable_plan import PlanError, PlanSource
from .copies import Copies
from .executor import Offload

_EXECUTORS: dict[object, tuple[list[Offload], PlanSource]] = {}


def offload(
    plan: PlanSource,
    *,
    report: str | os.PathLike[str] | None = None,
    host_limit_bytes: int | None = None,
    copies: Copies | None = None,
    model: torch.nn.Module | None = None,
    profile: str | os.PathLike[str] | None = None,
) -> Offload:
    """The executor of a plan, to be entered around each forward. One executor, and one host arena, per plan and model.

    Args:
        plan: the path of a plan of `dsc memory plan`, or the plan itself.
        report: path that ``close()`` (or the end of the process) writes what happened to, for `dsc memory verify`.
        host_limit_bytes: most host memory the arena may take; default: half of what is free.
        copies: what moves the bytes; default: threads on CPU, streams on CUDA.
        model: needed where the plan moves parameters or gradients; the optimizer then gets ``host_parameters()``.
        profile: the path of what the plan was made from: it is made again, beside the training and at most every 50
            steps, when copies come late, so that they start earlier. Not for plans that move parameters.

    Returns:
        The executor that carries this plan out for this model, the same one in every step.

    Raises:
        PlanError: the plan cannot be carried out here; the message says what was needed and what there is.
    """
    # A new plan under the same path is a new executor.
    key = (os.path.realpath(plan), os.stat(plan).st_mtime_ns) if isinstance(plan, (str, os.PathLike)) else id(plan)
    own, _ = _EXECUTORS.setdefault(key, ([], plan))  # the plan too: no other may get its id
    own[:] = [executor for executor in own if not executor.is_closed]
    found = [executor for executor in own if model is None or executor.model is model]
    if len(found) > 1:
        raise PlanError("the plan is carried out for several models: say which, offload(plan, model=model)")
    if not found:
        made = Offload(
            plan, report=report, host_limit_bytes=host_limit_bytes, copies=copies, model=model, profile=profile
        )
        own.append(made)
        return made
    return found[0]
