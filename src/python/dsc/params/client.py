"""The PyTorch worker of a central node."""

from __future__ import annotations

import http.client
import json
import os
import struct
import urllib.parse
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import torch

from ..torch_private import without_modes
from .errors import ParamsError
from .half import encode_half
from .mirror import Mirror, half_bytes
from .prefetch import Prefetch
from .server import Server, read_exactly

ALIGNMENT = 16  # elements; as the server places parameters


def connect(model: torch.nn.Module, url: str, rank: int, **options: Any) -> ParameterClient:
    """A worker's client for the parameters of ``model``.

    Args:
        model: see ``ParameterClient``, like the arguments after it.
        url: of `dsc params serve`.
        rank: of this worker.
        **options: of ``ParameterClient``.
    """
    return ParameterClient(model, url, rank, **options)


class ParameterClient:
    """Trains ``model`` with its parameters updated at a central node.

    One step: ``client.begin_step()``, forward (each layer waits for its own parameters, the next ones are copied
    meanwhile), ``loss.backward()``, ``client.push()``. The first worker's parameters become the job's.

    Args:
        model: float32 parameters only.
        url: of `dsc params serve`.
        rank: of this worker.
        token: where the server has one.
        job: as the server was told (`--job`); default: `user-` and the number of this process's user.
        patience_seconds: how long a server that restarts is waited for.
        free_host_bytes: most host memory for the mirror; default: half of what is free.
        parameters: where the model's parameters live, if not in it: ``executor.host_parameters()`` of a memory plan.
        push_type: how gradients travel: "f32", or "f16": scaled halves, half the bytes, rounded to 11 bits.

    Raises:
        ParamsError: the server refuses, or does not answer.
        MirrorError: the host cannot hold the mirror.
        ValueError: an unknown `push_type`.
    """

    def __init__(
        self,
        model: torch.nn.Module,
        url: str,
        rank: int,
        *,
        token: str | None = None,
        job: str | None = None,
        patience_seconds: float = 30.0,
        free_host_bytes: int | None = None,
        parameters: Sequence[torch.nn.Parameter] | None = None,
        push_type: str = "f32",
    ) -> None:
        if push_type not in ("f32", "f16"):
            raise ValueError(f"push_type is {push_type!r}, expected 'f32' or 'f16'")
        self.model, self.rank = model, rank
        self._push_type = push_type
        self._server = Server(url, token=token, job=job or f"user-{os.getuid()}", patience_seconds=patience_seconds)
        self._homes = None if parameters is None else dict(zip(model.parameters(), parameters, strict=True))
        self._layers = [m for m in model.modules() if any(True for _ in m.parameters(recurse=False))]
        self._places = self._lay_out()
        self.length = self._end
        pin = self._homes is None and next(model.parameters()).device.type == "cuda"
        self.mirror = Mirror(self.length, pin=pin, free_bytes=free_host_bytes)
        self.epoch = -1
        self.last_step = -1
        self.step = 0
        self._held: list[tuple[int, int]] = []  # (epoch, version) in the halves, newest first
        self._hooks: list[torch.utils.hooks.RemovableHandle] = []
        self._prefetch: Prefetch | None = None
        slots = [{"name": n, "shape": list(p.shape), "layer": layer} for n, p, layer, _ in self._places]
        begun = self._server.call("POST", "/v1/begin", {"rank": rank, "slots": slots}, self._gather(lambda p: p))
        self._mode = begun["mode"]
        self._pushed = -1  # version that the last accepted push was computed with
        self._base = self.pull()
        self.load()

    def begin_step(self) -> int:
        """Prepares a forward: pulls what the step needs, then copies parameters layer by layer, each before it runs.

        Returns:
            The step that it is of. After a restart of the server a step may come again.
        """
        self._stop_prefetch()
        if self._mode == "sync":
            self.step = self.pull(at_least=self._pushed + 1)
        else:
            self.step = max(self.step, self.last_step + 1)
            self.pull(step=self.step)
        if self._homes is not None:
            self.load()  # the plan's executor copies them on, layer by layer
            return self.step
        self._prefetch = Prefetch(self, [self._of_layer(i) for i in range(len(self._layers))])
        for index, layer in enumerate(self._layers):
            self._hooks.append(layer.register_forward_pre_hook(lambda m, x, i=index: self._prefetch.need(i)))
        return self.step

    def pull(self, at_least: int = 0, step: int = 0) -> int:
        """Receives parameters straight into the mirror's inactive half.

        Args:
            at_least: the version that is waited for.
            step: of this worker, for servers that bound how far ahead one may be.

        Returns:
            The version that is there now.
        """
        while True:
            have = self._held[1] if len(self._held) > 1 else (-1, -1)
            asked = {"have": have[1], "epoch": have[0], "sees": self.epoch, "rank": self.rank}
            query = urllib.parse.urlencode({**asked, "atLeast": at_least, "step": step})
            news = self._server.call("GET", f"/v1/pull?{query}", receive=self._receive)
            if news is None:
                continue
            self._held = [(news["epoch"], news["version"]), *self._held[:1]]
            self.epoch, self.last_step = news["epoch"], news["lastStep"]
            return int(news["version"])

    def push(self) -> str:
        """Pushes the model's gradients of the step.

        Returns:
            ``applied``, ``waiting`` (for other ranks) or ``duplicate``. ``stale``, ``ahead`` or ``epoch`` mean that
            nothing was applied: begin the step again.

        Raises:
            ParamsError: a gradient is not finite; the message names the parameter.
        """
        self._finish_layers()
        header: dict[str, Any] = {
            "rank": self.rank,
            "epoch": self.epoch,
            "step": self.step,
            "baseVersion": self._base,
        }
        gradient = self._gather(lambda p: p.grad.to_dense() if p.grad is not None else torch.zeros_like(p))
        if self._push_type == "f16":
            with without_modes():
                exponents, gradient = encode_half(gradient, [(at, p.numel()) for _, p, _, at in self._places])
            header.update(dtype="f16", exponents=exponents)
        answer = self._server.call("POST", "/v1/push", header, gradient)
        if "error" in answer:
            return str(answer["error"]["reason"])
        self._pushed = self._base
        if self._mode != "sync":
            self.step += 1
        return str(answer["state"])

    def load(self) -> int:
        """Copies the mirror into the model at once, whatever was being copied layer by layer. Returns its version."""
        self._stop_prefetch()
        with torch.no_grad(), without_modes():
            self._base = self.mirror.read(lambda half: self.copy_all([(p, at) for _, p, _, at in self._places], half))
            return self._base

    def status(self) -> dict[str, Any]:
        """What the server says of itself: version, steps per rank, who is waited for."""
        status: dict[str, Any] = self._server.call("GET", "/v1/status")
        return status

    def close(self) -> None:
        """Ends the connection; the model keeps the values that it has."""
        self._stop_prefetch()
        self._server.close()

    def _lay_out(self) -> list[tuple[str, torch.nn.Parameter, int, int]]:
        places, at, seen = [], 0, set()
        names = {id(p): name for name, p in self.model.named_parameters()}
        for index, layer in enumerate(self._layers):
            for parameter in layer.parameters(recurse=False):
                if id(parameter) in seen:
                    continue
                seen.add(id(parameter))
                home = parameter if self._homes is None else self._homes[parameter]
                if parameter.dtype != torch.float32:
                    raise ParamsError("dtype", f"{names[id(parameter)]} is {parameter.dtype}: only float32 is served")
                places.append((names[id(parameter)], home, index, at))
                at += -(-parameter.numel() // ALIGNMENT) * ALIGNMENT
        self._end = at
        return places

    def _of_layer(self, index: int) -> list[tuple[torch.nn.Parameter, int]]:
        return [(p, at) for _, p, layer, at in self._places if layer == index]

    def copy_all(self, parameters: Sequence[tuple[torch.nn.Parameter, int]], half: torch.Tensor) -> None:
        """Copies parameters' values from a half of the mirror.

        Args:
            parameters: with the first element of each in the half.
            half: float32 [length].
        """
        for parameter, at in parameters:
            self._copy(parameter, half, at)

    def _copy(self, parameter: torch.nn.Parameter, half: torch.Tensor, at: int) -> None:
        # A home's version tells the executor of the change; autograd must not see a device parameter's.
        target = parameter.data if self._homes is None else parameter
        target.copy_(half[at : at + parameter.numel()].view(parameter.shape), non_blocking=True)

    def _gather(self, of: Callable[[torch.nn.Parameter], torch.Tensor]) -> torch.Tensor:
        with torch.no_grad(), without_modes():
            values = torch.zeros(self.length)
            for _, parameter, _, at in self._places:
                values[at : at + parameter.numel()].copy_(of(parameter).reshape(-1))
        return values

    def _finish_layers(self) -> None:
        if self._prefetch is not None:
            self._prefetch.need(len(self._layers) - 1)
            self._base = self._prefetch.version
        self._stop_prefetch()

    def _stop_prefetch(self) -> None:
        for hook in self._hooks:
            hook.remove()
        self._hooks.clear()
        if self._prefetch is not None:
            self._prefetch.stop()
            self._prefetch = None

    def _receive(self, response: http.client.HTTPResponse) -> dict[str, Any]:
        """Reads a pull: header, then values straight into the inactive half; a broken one is not shown."""
        (size,) = struct.unpack("<I", read_exactly(response, bytearray(4)))
        news: dict[str, Any] = json.loads(bytes(read_exactly(response, bytearray(size))))
        changed = news.get("changed")
        if changed is None:
            ranges = [(0, self.length)]
        else:
            ranges = [(at, p.numel()) for i, (_, p, _, at) in enumerate(self._places) if i in set(changed)]

        def fill(half: torch.Tensor) -> None:
            crc = 0
            for at, count in ranges:
                part = half_bytes(half[at : at + count])
                read_exactly(response, part)
                crc = zlib.crc32(part, crc)
            response.read()
            if crc != news["crc"]:
                raise ConnectionError("a pull arrived damaged")

        try:
            self.mirror.update(news["version"], fill)
        except BaseException:
            self._held = self._held[:1]  # the inactive half is unusable: the next pull brings all of it
            raise
        return news
