"""Which models are planned, and which are refused in one sentence before anything is measured."""

from __future__ import annotations

import sys

import torch

from .runnable_plan import PlanError


def sharded_units(model: torch.nn.Module) -> list[torch.nn.Module]:
    """The modules that `fully_shard` was given, the model among them."""
    fsdp = sys.modules.get("torch.distributed.fsdp")  # nobody can have called it without this, which takes a second
    unit = getattr(fsdp, "FSDPModule", ())
    return [module for module in model.modules() if isinstance(module, unit)]


def is_sharded(tensor: torch.Tensor) -> bool:
    """Whether this rank has a part of a tensor alone."""
    module = sys.modules.get("torch.distributed.tensor")
    return module is not None and isinstance(tensor, module.DTensor)


def refuse_parted(model: torch.nn.Module) -> None:
    """Raises a `PlanError` for a model that is not here: on `meta`, or in parts that `fully_shard` does not gather."""
    first = getattr(sys.modules.get("torch.distributed.fsdp"), "FullyShardedDataParallel", ())
    for name, module in model.named_modules():
        if isinstance(module, first):
            raise PlanError(
                f"{name or 'the model'} is sharded by FullyShardedDataParallel, which keeps its parameters in one "
                "buffer: shard it by fully_shard instead"
            )
    gathered = {parameter for unit in sharded_units(model) for parameter in unit.parameters()}
    for name, parameter in model.named_parameters():
        if parameter.is_meta:
            raise PlanError(
                f"parameter {name} is on the device meta, where nothing has memory or takes time: dsc plans steps that "
                "run, so make the model on the device that trains it, or call model.to_empty(device=...) first"
            )
        if is_sharded(parameter) and parameter not in gathered:
            raise PlanError(
                f"parameter {name} is a DTensor, of which each rank has a part: dsc plans plain tensors, and models "
                "sharded by fully_shard"
            )


def refuse_sharded(model: torch.nn.Module) -> None:
    """Raises a `PlanError` for any model in parts: where parameters move, or steps are repeated."""
    refuse_parted(model)
    units = sharded_units(model)
    if units:
        name = next((name for name, module in model.named_modules() if module is units[0]), "")
        raise PlanError(
            f"{name or 'the model'} is sharded by fully_shard, which gathers and frees parameters itself: "
            "dsc.memory.fit(model, budget) plans its activations while it trains; a profile apart from the training, "
            "and plans that move parameters, are for models that are not sharded"
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
