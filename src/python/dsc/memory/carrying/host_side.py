"""The host side of an executor: the arena for feature maps, parameters whose home is there, the copies' queues."""

from __future__ import annotations

import torch

from ...torch_private import without_modes
from ..plan.plan_format import Move
from ..plan.runnable_plan import PlanError, RunnablePlan
from .copies import Copies, CpuCopies
from .cuda_copies import CudaCopies
from .host_memory import free_host_bytes
from .host_parameters import HostParameters

HOST_SHARE = 0.5  # of the free host memory that an arena may take


class HostSide:
    """Host memory of one executor; opened when it is first needed, and by then checked against what is free."""

    def __init__(self, limit_bytes: int | None, copies: Copies | None) -> None:
        self.device: torch.device | None = None  # that of the first tensor that moves
        self.homes: HostParameters | None = None
        self._copies = copies
        self._limit_bytes = limit_bytes
        self._arena: torch.Tensor | None = None

    @property
    def copies(self) -> Copies:
        """The queues of the device. Open from the first tensor that moves on."""
        assert self._copies is not None
        return self._copies

    @property
    def is_cuda(self) -> bool:
        """Whether the device is a GPU."""
        return self._copies is not None and self._copies.is_cuda

    @property
    def arena(self) -> torch.Tensor | None:
        """The bytes that feature maps are copied to; None before the first."""
        return self._arena

    def open_arena(self, device: torch.device, size_bytes: int) -> bool:
        """Opens the arena, and the queues of `device`. False if it was open, and large enough."""
        if self._arena is not None:
            if self._arena.nbytes >= size_bytes:
                return False
            self.copies.close()  # a step that failed may have left copies under way
            self.drop_arena()
        self._open_copies(device)
        with without_modes():
            self._arena = self.copies.pinned(size_bytes)
        return True

    def open_homes(self, model: torch.nn.Module, plan: RunnablePlan) -> HostParameters:
        """Gives the model's parameters their home on the host, once."""
        if self.homes is None:
            devices = {parameter.device for parameter in model.parameters()}
            if len(devices) != 1:
                names = sorted(map(str, devices))
                raise PlanError(f"parameters on the host are for a model on one device, not on {names}")
            self._open_copies(devices.pop())
            arena_bytes = 0 if self._arena is not None else plan.host_bytes
            self.check(arena_bytes + HostParameters.count_bytes(model))
            self.homes = HostParameters(model, plan.raw, self.copies)
        return self.homes

    def check_arena(self, size_bytes: int) -> None:
        """Refuses an arena that would take more host memory than is permitted."""
        if self._arena is None or self._arena.nbytes < size_bytes:
            self.check(size_bytes, own_bytes=0 if self._arena is None else self._arena.nbytes)

    def check(self, needed_bytes: int, own_bytes: int = 0) -> None:
        """Refuses what would take more host memory than is permitted, once `own_bytes` of it are given back."""
        free = free_host_bytes() + own_bytes
        limit = self._limit_bytes if self._limit_bytes is not None else int(HOST_SHARE * free)
        if needed_bytes > limit:
            raise PlanError(
                f"the plan needs {needed_bytes} bytes of host memory, {limit} are permitted here "
                f"({'given' if self._limit_bytes is not None else 'half of what is free'}): "
                "plan with a larger --budget, or free host memory"
            )

    def slot(self, move: Move) -> torch.Tensor:
        """The place of one storage in the arena."""
        assert self._arena is not None
        with without_modes():  # not an accounting device's memory
            return self._arena[move["hostOffset"] : move["hostOffset"] + move["bytes"]]

    def read_lateness(self, *, is_last: bool = False) -> None:
        """Has those told that were promised how late their copies came."""
        if self._copies is not None:
            self._copies.read_lateness(is_last)

    def drop_arena(self) -> None:
        """Gives the arena back; nothing in it is in use."""
        if self._arena is not None:
            self.copies.release(self._arena)
            self._arena = None

    def close(self) -> None:
        """Gives all host memory back; parameters return to the device."""
        arenas = [] if self._arena is None else [self._arena]
        if self.homes is not None:
            arenas += self.homes.close()
        if self._copies is not None:
            self._copies.close()
            for arena in arenas:
                self._copies.release(arena)
        self._arena = self.homes = None

    def _open_copies(self, device: torch.device) -> None:
        if self.device is None:
            self.device = device
        if self._copies is None:
            self._copies = CudaCopies(device) if device.type == "cuda" else CpuCopies()
