"""The PyTorch worker of a central node."""

from __future__ import annotations

import http.client
import json
import os
import urllib.parse
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from ..torch_private import without_modes
from .half import encode_half
from .mirror import Mirror, half_bytes
from .places import Place, Places
from .prefetch import Prefetch
from .server import Server, read_exactly, read_head

CHANGES = {"lr": "learningRate", "weight_decay": "weightDecay", "momentum": "momentum", "clip_norm": "maxNorm"}


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
    at the same time), ``loss.backward()``, ``client.push()``. The first worker's parameters become the job's.

    Args:
        model: its parameters are float32, or bfloat16 or float16: the centre keeps float32 values of those.
        url: of `dsc params serve`.
        rank: of this worker.
        token: where the server has one.
        job: as the server was told (`--job`); default: `user-` and the number of this process's user.
        patience_seconds: how long a server that restarts is waited for.
        free_host_bytes: most host memory for the mirror; default: half of what is free.
        parameters: where the model's parameters live, if not in it: ``executor.host_parameters()`` of a memory plan.
        push_type: how gradients travel: "f32", or "f16": scaled halves, half the bytes, rounded to 11 bits.
        buffers: whether floating-point buffers (of batch norms) are shared: a sync step makes them their mean over
            all ranks, in other modes those of the last push count. Integers (`num_batches_tracked`), and masks with
            infinities in them, stay each rank's.
        groups: as an optimizer's, for what they name: ``[{"params": [...], "weight_decay": 0.0, "lr_scale": 0.1}]``.
            Everything else has the centre's weight decay and learning rate.

    Raises:
        ParamsError: the server refuses, or does not answer.
        MirrorError: the host cannot hold the mirror.
        ValueError: an unknown `push_type`, or a `url` that is not one of a central node.
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
        buffers: bool = False,
        groups: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        if push_type not in ("f32", "f16"):
            raise ValueError(f"push_type is {push_type!r}, expected 'f32' or 'f16'")
        self.model, self.rank = model, rank
        self._push_type = push_type
        self._server = Server(url, token=token, job=job or f"user-{os.getuid()}", patience_seconds=patience_seconds)
        self._homes = None if parameters is None else dict(zip(model.parameters(), parameters, strict=True))
        self._places = Places(model, self._homes, buffers=buffers)
        self._layers, self.length = self._places.layers, self._places.length
        pin = self._homes is None and next(model.parameters()).device.type == "cuda"
        self.mirror = Mirror(self.length, pin=pin, free_bytes=free_host_bytes)
        self.epoch = -1
        self.last_step = -1
        self.step = 0
        self._held: list[tuple[int, int]] = []  # (epoch, version) in the halves, newest first
        self._hooks: list[torch.utils.hooks.RemovableHandle] = []
        self._prefetch: Prefetch | None = None
        self._called: set[int] = set()  # layers whose forward was seen; the others' parameters are used without it
        header = {"rank": rank, "slots": self._places.describe(groups)}
        begun = self._server.call("POST", "/v1/begin", header, self._gather(lambda place: place.tensor))
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
        # First those that nobody calls, as attention does not call its output projection: all of them, in a first step.
        order = sorted(range(len(self._layers)), key=lambda index: index in self._called)
        tensors = self._places.by_layer()
        self._prefetch = Prefetch(self.mirror, self.copy_all, [tensors[index] for index in order])
        if not self._called:
            self._prefetch.need(len(order) - 1)
        for turn, index in enumerate(order):
            layer = self._layers[index]
            self._hooks.append(layer.register_forward_pre_hook(lambda m, x, i=index, t=turn: self._enter_layer(i, t)))
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
            query = urllib.parse.urlencode({**asked, "atLeast": at_least, "step": step, "halves": 1})
            news = self._server.call("GET", f"/v1/pull?{query}", receive=self._receive)
            if news is None:
                continue
            self._held = [(news["epoch"], news["version"]), *self._held[:1]]
            self.epoch, self.last_step = news["epoch"], news["lastStep"]
            return int(news["version"])

    def push(self, *, lr: float | None = None) -> str:
        """Pushes the model's gradients of the step. Parameters without one are not updated.

        Args:
            lr: learning rate of this update alone, from a schedule; all ranks of a sync step must name the same.

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
        if lr is not None:
            header["learningRate"] = float(lr)
        absent = self._places.without_gradient()
        if absent:
            header["absent"] = absent
        gradient = self._gather(lambda place: place.pushed_values())
        if self._push_type == "f16":
            with without_modes():
                exponents, gradient = encode_half(gradient, self._places.spans(), self._places.buffer_spans())
            header.update(dtype="f16", exponents=exponents)
        answer = self._server.call("POST", "/v1/push", header, gradient)
        if "error" in answer:
            return str(answer["error"]["reason"])
        self._pushed = self._base
        if self._mode != "sync":
            self.step += 1
        return str(answer["state"])

    def change(self, **settings: float) -> None:
        """Changes how the centre updates, for all ranks, from its next update on; it outlives a restart.

        Args:
            **settings: of ``lr``, ``weight_decay``, ``momentum`` (of SGD), ``clip_norm`` (0: none).

        Raises:
            ParamsError: the optimizer has none of that name, or the value is out of range.
            TypeError: an unknown name.
        """
        unknown = settings.keys() - CHANGES.keys()
        if unknown:
            raise TypeError(f"change() has no {', '.join(sorted(unknown))}; it has {', '.join(CHANGES)}")
        body = json.dumps({CHANGES[name]: value for name, value in settings.items()}).encode()
        self._server.call("POST", "/v1/optimizer", body=body)

    def load(self) -> int:
        """Copies the mirror into the model at once, even while layers are being copied. Returns its version."""
        self._stop_prefetch()
        with torch.no_grad(), without_modes():
            self._base = self.mirror.read(
                lambda half: self.copy_all([(place.tensor, place.offset) for place in self._places.all], half)
            )
            return self._base

    def status(self) -> dict[str, Any]:
        """The status of the server: its version, the steps of each rank, and the ranks that it waits for."""
        status: dict[str, Any] = self._server.call("GET", "/v1/status")
        return status

    def close(self) -> None:
        """Ends the connection; the model keeps the values that it has."""
        self._stop_prefetch()
        self._server.close()

    def copy_all(self, parameters: Sequence[tuple[torch.Tensor, int]], half: torch.Tensor) -> None:
        """Copies parameters' values from a half of the mirror.

        Args:
            parameters: with the first element of each in the half.
            half: float32 [length].
        """
        for parameter, at in parameters:
            self._copy(parameter, half, at)

    def _copy(self, parameter: torch.Tensor, half: torch.Tensor, at: int) -> None:
        # A home's version tells the executor of the change; autograd must not see a device parameter's.
        target = parameter.data if self._homes is None else parameter
        target.copy_(half[at : at + parameter.numel()].view(parameter.shape), non_blocking=True)

    def _gather(self, of: Callable[[Place], torch.Tensor]) -> torch.Tensor:
        with torch.no_grad(), without_modes():
            values = torch.zeros(self.length)
            for place in self._places.all:
                values[place.offset : place.offset + place.tensor.numel()].copy_(of(place).reshape(-1))
        return values

    def _enter_layer(self, index: int, turn: int) -> None:
        self._called.add(index)
        if self._prefetch is not None:  # else it is a copy of the model, made within a step
            self._prefetch.need(turn)

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
        news = read_head(response)
        changed = news.get("changed")
        if changed is None:
            ranges = [(0, self.length, torch.float32)]
        else:
            ranges = [
                (p.offset, p.tensor.numel(), p.tensor.dtype if news.get("halves") else torch.float32)
                for p in (self._places.all[i] for i in changed)
            ]

        def fill(half: torch.Tensor) -> None:
            crc = 0
            for at, count, dtype in ranges:
                values = half[at : at + count]
                bits = values if dtype == torch.float32 else torch.empty(count, dtype=torch.int16)
                part = half_bytes(bits)
                read_exactly(response, part)
                crc = zlib.crc32(part, crc)
                if bits is not values:
                    values.copy_(bits.view(dtype))
            response.read()
            if crc != news["crc"]:
                raise ConnectionError("a pull arrived damaged")

        try:
            self.mirror.update(news["version"], fill)
        except BaseException:
            self._held = self._held[:1]  # the inactive half is unusable: the next pull brings all of it
            raise
        return news
