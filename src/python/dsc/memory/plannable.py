"""Which models are planned, and which are refused in one sentence before anything is measured."""

from __future__ import annotations

import sys

import torch

from .runnable_plan import PlanError


def refuse_sharded(model: torch.nn.Module) -> None:
    """Raises a `PlanError` for a model whose parameters another library moves: FSDP, tensor parallelism."""
    # Nobody can have made one of these without these modules, and importing them takes a second.
    fsdp, tensor = sys.modules.get("torch.distributed.fsdp"), sys.modules.get("torch.distributed.tensor")
    by_fsdp = tuple(getattr(fsdp, name) for name in ("FSDPModule", "FullyShardedDataParallel") if hasattr(fsdp, name))
    for name, module in model.named_modules():
        if isinstance(module, by_fsdp):
            made_by = "FullyShardedDataParallel" if isinstance(module, by_fsdp[1:]) else "fully_shard"
            raise PlanError(
                f"{name or 'the model'} is sharded by {made_by}, which gathers and frees parameters itself: "
                "dsc plans unsharded models and those under DistributedDataParallel, so give FSDP its offload_policy"
            )
    for name, parameter in model.named_parameters():
        if tensor is not None and isinstance(parameter, tensor.DTensor):
            raise PlanError(
                f"parameter {name} is a DTensor, of which each rank has a part: dsc plans plain tensors, so profile "
                "the model before it is sharded or do without a memory plan"
            )


def refuse_compiled(model: torch.nn.Module) -> None:
    """Raises a `PlanError` for a compiled model, which decides by itself what it saves."""
    compiler = sys.modules.get("torch._dynamo.eval_frame")
    own = compiler is not None and isinstance(model, compiler.OptimizedModule)
    inside = [name for name, module in model.named_modules() if module._compiled_call_impl is not None]
    if own or inside:
        name = inside[0] if inside and inside[0] else "the model"
        raise PlanError(
            f"{name} is compiled, and torch.compile decides by itself what its graph saves: give dsc "
            "the model before torch.compile, or have the compiler recompute, by "
            "torch._functorch.config.activation_memory_budget = 0.5 (a share of what it would save)"
        )


def refuse_without_layers(model: torch.nn.Module, layer_names: list[str]) -> None:
    """Raises a `PlanError` for a step that called no layer: there is nothing between which a plan could move.

    Args:
        model: that was profiled.
        layer_names: the parts of the step, as `Segments` named them.
    """
    root = type(model).__name__
    if next(model.parameters(), None) is not None and set(layer_names) <= {
        "before the first layer",
        root,
        f"after {root}",
    }:
        raise PlanError(
            f"{root} computes with functions alone and calls no layer: dsc moves tensors between layers, so make its "
            "parts torch.nn.Modules that its forward calls"
        )
