"""Parameters whose home is the host: the optimizer updates them there; the device has them while they are needed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import cast

import torch

from ...torch_private import storage_key, version_of, without_modes
from ..plan.plan_format import Move, Plan
from .copies import Copies
from .home import Home, ParameterHandle
from .layer_clock import LayerClock

ALIGNMENT = 64  # bytes


class HostParameters:
    """Carries out the moves of parameters and their gradients. One per executor and model.

    A parameter that is away reads as NaN, in its own shape: autograd needs the shape, and a use that nobody
    announced shows. All that a layer or its backward really needs is brought in, planned or not.
    """

    def __init__(self, model: torch.nn.Module, plan: Plan, copies: Copies) -> None:
        self._copies = copies
        self._homes: dict[torch.nn.Parameter, Home] = {}
        self._by_storage: dict[int, Home] = {}  # storage key → home, for tensors that autograd saves
        places, size = _lay_out(model)
        with without_modes():
            self._values, self._gradients = copies.pinned(size), copies.pinned(size)
        moves: dict[tuple[str, str | None], list[Move]] = {}
        for move in plan["moves"]:
            if move["kind"] in ("param", "param_grad"):
                moves.setdefault((move["kind"], move["name"]), []).append(move)
        for name, parameter, offset in places:
            span = slice(offset, offset + parameter.numel() * parameter.element_size())
            with without_modes():
                value_bytes, gradient_bytes = self._values[span], self._gradients[span]
            home = Home(
                name,
                parameter,
                value_bytes,
                gradient_bytes,
                moves=moves.get(("param", name), []),
                is_gradient_moved=("param_grad", name) in moves,
            )
            self._homes[parameter] = home
        self._schedule = _order(self._homes.values(), moves)
        self._clock = LayerClock(model, plan["layerNames"], self.reach)  # its hooks first: what leaves makes room
        self._hooks = [
            parameter.register_post_accumulate_grad_hook(self._on_gradient)
            for parameter, home in self._homes.items()
            if home.is_gradient_moved
        ]
        self._hooks.append(model.register_forward_pre_hook(lambda m, x: self._refresh_kept()))
        for module in model.modules():
            self._hooks.append(module.register_state_dict_pre_hook(self._bring_back_of))
            if next(module.children(), None) is None and any(True for _ in module.parameters()):
                self._hooks.append(module.register_forward_pre_hook(lambda m, x: self._need(m.parameters())))
        self._layer_count = len(plan["layerNames"])
        self._next = 0
        self._is_planned: Callable[[], bool] = lambda: False
        self._moved_bytes = 0
        self.host_bytes = 2 * size

    @staticmethod
    def count_bytes(model: torch.nn.Module) -> int:
        """Host memory that a model's parameters and gradients take."""
        return 2 * _lay_out(model)[1]

    def take_moved_bytes(self) -> int:
        """Bytes that moved since the last call."""
        moved, self._moved_bytes = self._moved_bytes, 0
        return moved

    @property
    def parameters(self) -> list[torch.nn.Parameter]:
        """The parameters on the host, in the model's order: what an optimizer is given."""
        return [home.host for home in self._homes.values()]

    def begin_step(self, is_planned: Callable[[], bool]) -> None:
        """Every value may have been updated: what the plan keeps here is copied again, the rest leaves."""
        self._is_planned = is_planned
        self._next = 0
        kept = []
        for home in self._homes.values():
            home.begin_step()
            self._settle(home)
            if any(move["outAfter"] < 0 for move in home.moves):
                self._drop(home)
            else:
                kept.append(home.parameter)
        self._need(kept)
        self._moved_bytes = 0  # a plan counts what moves within a step
        self._clock.begin()
        self.reach(0)

    def end_forward(self) -> None:
        """The forward is over: layers that run from now on run in backward."""
        self._clock.end()

    def reach(self, event: int) -> None:
        """Does what the plan says for the beginning of ``event``, and of those before it."""
        while self._next < len(self._schedule) and self._schedule[self._next][0] <= event:
            _, _, action, home = self._schedule[self._next]
            self._next += 1
            if self._is_planned():
                action(self, home)

    def reach_backward(self, layer: int) -> None:
        """The backward of ``layer`` begins."""
        self.reach(self._layer_count + 2 * (self._layer_count - 1 - layer))

    def pack(self, tensor: torch.Tensor) -> ParameterHandle | None:
        """Stands for a moved parameter, or a view of one, in autograd; None for any other tensor."""
        if tensor.layout != torch.strided:
            return None
        home = self._by_storage.get(storage_key(tensor))
        return None if home is None or not home.moves else ParameterHandle(home, tensor)

    def unpack(self, handle: ParameterHandle) -> torch.Tensor:
        """The saved parameter again, brought in if it is away."""
        home = handle.home
        if version_of(home.host) != handle.version:
            raise RuntimeError(f"{home.name} was updated between its forward and its backward")
        self._need([home.parameter])
        storage = home.parameter.untyped_storage()
        empty = torch.empty(0, dtype=handle.dtype, device=home.parameter.device)
        return empty.set_(storage, handle.offset, handle.shape, handle.stride)

    @property
    def has_gradients(self) -> bool:
        """Whether a backward has run whose gradients ``end_step`` has not taken yet."""
        return any(home.copy_out is not None or home.parameter.grad is not None for home in self._homes.values())

    def end_step(self) -> None:
        """All gradients of the step are on the host when this returns: ``.grad`` of the host's parameters."""
        for home in self._homes.values():
            gradient = home.parameter.grad
            if gradient is not None and gradient.layout != torch.strided:
                home.take_sparse_gradient()
            elif gradient is not None and not home.is_gradient_moved:
                self._start_gradient(home)
        for home in self._homes.values():
            if home.copy_in is not None:
                self._copies.wait_on_host(home.copy_in)  # the host's values may change from now on
                self._settle(home)
            if home.copy_out is not None:
                self._free_gradient(home)
                self._copies.wait_on_host(home.copy_out)
            home.end_step()

    def bring_back(self) -> None:
        """Every parameter to the device, as the host has it: before evaluating, or saving a checkpoint."""
        self._need(list(self._homes))

    def close(self) -> list[torch.Tensor]:
        """Brings everything back; returns the host memory, which nobody uses any more."""
        self.bring_back()
        for hook in self._hooks:
            hook.remove()
        self._clock.close()
        self._by_storage.clear()
        return [self._values, self._gradients]

    def _need(self, parameters: Iterable[torch.nn.Parameter]) -> None:
        homes = [home for home in map(self._homes.get, parameters) if home is not None and not home.is_current]
        for home in homes:
            self._start_in(home)
        for home in homes:
            self._copies.wait(home.copy_in)
            home.install()
            self._by_storage[storage_key(home.parameter)] = home

    def _bring_back_of(self, module: torch.nn.Module, prefix: str, keep_vars: bool) -> None:
        """A state of the model has no NaN in the place of what is away."""
        self._need(module.parameters(recurse=False))

    def _refresh_kept(self) -> None:
        self._need([parameter for parameter, home in self._homes.items() if not home.moves])

    def _start_in(self, home: Home) -> None:
        if home.copy_in is not None or home.is_current:
            return
        home.copy_in = self._copies.start_in(home.start_arrival(), home.value_bytes)
        if home.moves and not home.is_here:
            self._moved_bytes += home.value_bytes.numel()

    def _settle(self, home: Home) -> None:
        """Gives up what is on its way and nobody used: an old value, once the host's may have changed."""
        if home.copy_in is not None:
            self._copies.wait(home.copy_in)
            home.copy_in = home.arriving = None

    def _drop(self, home: Home) -> None:
        self._settle(home)
        if home.is_here:
            self._by_storage.pop(storage_key(home.parameter), None)
            home.leave()

    def _on_gradient(self, parameter: torch.Tensor) -> None:
        home = self._homes[cast(torch.nn.Parameter, parameter)]
        if home.copy_out is not None:
            self._copies.wait_on_host(home.copy_out)
        if home.is_gradient_away:  # a second backward of one step: the first one's gradient is on the host
            home.set_gradient_aside()
        self._start_gradient(home)
        self._moved_bytes += home.gradient_bytes.numel()

    def _start_gradient(self, home: Home) -> None:
        home.leaving = home.dense_gradient()  # perhaps a copy that nobody else holds
        home.copy_out = self._copies.start_out(home.gradient_bytes, home.leaving)

    def _free_gradient(self, home: Home) -> None:
        if home.copy_out is not None and not home.is_gradient_away:
            self._copies.wait(home.copy_out)
            home.parameter.grad = home.leaving = None
            home.is_gradient_away = True


# (event, order at that event, what is done then, to which home)
_Row = tuple[int, int, Callable[[HostParameters, Home], None], Home]


def _lay_out(model: torch.nn.Module) -> tuple[list[tuple[str, torch.nn.Parameter, int]], int]:
    places: list[tuple[str, torch.nn.Parameter, int]] = []
    size = 0
    for name, parameter in model.named_parameters():
        places.append((name, parameter, size))
        size += -(-parameter.numel() * parameter.element_size() // ALIGNMENT) * ALIGNMENT
    return places, size


def _order(homes: Iterable[Home], moves: dict[tuple[str, str | None], list[Move]]) -> list[_Row]:
    """(event, order at that event, action, home): what leaves goes before what comes."""
    rows: list[_Row] = []
    for home in homes:
        for move in home.moves:
            if move["outAfter"] >= 0:
                rows.append((move["freeBy"], 0, HostParameters._drop, home))
            if move["inUs"] > 0:
                rows.append((move["inAt"], 1, HostParameters._start_in, home))
        for move in moves.get(("param_grad", home.name), []):
            rows.append((move["freeBy"], 0, HostParameters._free_gradient, home))
    return sorted(rows, key=lambda row: row[:2])
