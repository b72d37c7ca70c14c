"""A plan as the executor asks for it: by pack call, by tick."""

from __future__ import annotations

import json
import os
from typing import TypeAlias, cast

from .plan_format import Plan

PlanSource: TypeAlias = "str | os.PathLike[str] | Plan"  # a path, or the plan itself


class PlanError(RuntimeError):
    """A plan that cannot be made or carried out here; says what was needed and what there is."""


class RunnablePlan:
    """A plan file, indexed. Refuses what this executor cannot do before step 1."""

    def __init__(self, plan: PlanSource, *, has_model: bool) -> None:
        if isinstance(plan, (str, os.PathLike)):
            with open(plan, encoding="utf-8") as file:
                plan = cast(Plan, json.load(file))
        if plan.get("kind") != "dsc.mem.plan" or plan.get("v") != 2:
            raise PlanError("not a memory plan of version 2: make one with `dsc memory plan`")
        self.raw: Plan = plan
        self.moves = [move for move in plan["moves"] if move["kind"] == "feature"]
        self.moves_parameters = len(self.moves) < len(plan["moves"])
        self._refuse_what_cannot_be_done(has_model)
        self.signatures = plan["packSignatures"]
        self.reused = {reuse["pack"] for reuse in plan["reuse"]}
        self.pack_count = len(self.signatures)
        self.layers = plan["packLayers"]
        self.host_bytes = plan["arenas"]["host"]["bytes"]
        self.reload = plan["arenas"]["reload"]
        self.move_of = {sequence: move for move in self.moves for sequence in move["packs"]}
        self.actions: dict[int, list[tuple[str, int]]] = {}
        planned = [(move, move["ticks"]) for move in self.moves if move["ticks"] is not None]
        for move, ticks in planned:
            self.actions.setdefault(ticks["out"], []).append(("out", move["storage"]))
            self.actions.setdefault(ticks["free"], []).append(("free", move["storage"]))
        self.ins = sorted((ticks["in"], move["useAt"], move["storage"]) for move, ticks in planned)

    def _refuse_what_cannot_be_done(self, has_model: bool) -> None:
        plan = self.raw
        stuck = [move for move in self.moves if move["ticks"] is None] or [
            move
            for move in plan["moves"]
            if move["kind"] != "feature" and (move["kind"] == "opt_state" or move.get("name") is None)
        ]
        if stuck:
            raise PlanError(
                f"{len(stuck)} of {len(plan['moves'])} moves cannot be carried out (first: storage "
                f"{stuck[0]['storage']}, {stuck[0]['kind']}): plan from a profile of a real run, and without "
                "--move optimizer (an optimizer over host_parameters() has its state on the host anyway)"
            )
        if not has_model and plan["recompute"]:
            raise PlanError(f"the plan recomputes {plan['recompute'][0]['name']}: offload(plan, model=model)")
        if not has_model and self.moves_parameters:
            raise PlanError("the plan moves parameters or gradients: offload(plan, model=model)")
