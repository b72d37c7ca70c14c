"""The PyTorch worker of a central node."""

import http.client
import json
import struct
import threading
import time
import urllib.parse
import zlib

import torch
from torch.utils._python_dispatch import _disable_current_modes

from .errors import ParamsError
from .half import encode_half
from .mirror import Mirror, encode_header, half_bytes
from .prefetch import Prefetch

WIRE_VERSION = 1
ALIGNMENT = 16  # elements; as the server places parameters
PAUSE_SECONDS = 0.1


class ParameterClient:
    """Trains ``model`` with its parameters updated at a central node.

    One step: ``client.begin_step()``, forward (each layer waits for its own parameters, the next ones are copied
    meanwhile), ``loss.backward()``, ``client.push()``. The first worker's parameters become the job's.

    url: of `dsc params serve`. rank: of this worker. token: where the server has one.
    patience_seconds: how long a server that restarts is waited for.
    parameters: where the model's parameters live, if not in it: ``executor.host_parameters()`` of a memory plan.
    push_type: how gradients travel: "f32", or "f16": scaled halves, half the bytes, rounded to 11 bits.
    """

    def __init__(
        self, model, url, rank, token=None, patience_seconds=30.0, free_host_bytes=None, parameters=None,
        push_type="f32",
    ):
        if push_type not in ("f32", "f16"):
            raise ValueError(f"push_type is {push_type!r}, expected 'f32' or 'f16'")
        self.model, self.rank = model, rank
        self._push_type = push_type
        self._url = urllib.parse.urlsplit(url)
        self._token = token
        self._patience = patience_seconds
        self._local = threading.local()
        self._homes = None if parameters is None else dict(zip(model.parameters(), parameters, strict=True))
        self._layers = [m for m in model.modules() if any(True for _ in m.parameters(recurse=False))]
        self._places = self._lay_out()
        self.length = self._end
        pin = self._homes is None and next(model.parameters()).device.type == "cuda"
        self.mirror = Mirror(self.length, pin=pin, free_bytes=free_host_bytes)
        self.epoch = -1
        self.last_step = -1
        self.step = 0
        self._held = []  # (epoch, version) in the halves, newest first
        self._hooks = []
        self._prefetch = None
        slots = [{"name": n, "shape": list(p.shape), "layer": layer} for n, p, layer, _ in self._places]
        begun = self._call("POST", "/v1/begin", {"rank": rank, "slots": slots}, self._gather(lambda p: p))
        self._mode = begun["mode"]
        self._pushed = -1  # version that the last accepted push was computed with
        self._base = self.pull()
        self.load()

    def begin_step(self):
        """Prepares a forward and returns the step it is of: pulls what the step needs, then copies parameters to
        the device layer by layer, each before its layer runs. After a restart of the server a step may come again.
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

    def pull(self, at_least=0, step=0):
        """Waits for a version of at least ``at_least``; receives it straight into the mirror's inactive half."""
        while True:
            have = self._held[1] if len(self._held) > 1 else (-1, -1)
            asked = {"have": have[1], "epoch": have[0], "sees": self.epoch, "rank": self.rank}
            query = urllib.parse.urlencode({**asked, "atLeast": at_least, "step": step})
            news = self._call("GET", f"/v1/pull?{query}", into=self.mirror)
            if news is None:
                continue
            self._held = [(news["epoch"], news["version"]), *self._held[:1]]
            self.epoch, self.last_step = news["epoch"], news["lastStep"]
            return news["version"]

    def push(self):
        """Pushes the model's gradients of the step. Returns ``applied``, ``waiting`` (for other ranks) or ``duplicate``.

        ``stale``, ``ahead`` or ``epoch`` mean that nothing was applied: begin the step again. A gradient that is
        not finite raises, naming the parameter.
        """
        self._finish_layers()
        header = {
            "rank": self.rank,
            "epoch": self.epoch,
            "step": self.step,
            "baseVersion": self._base,
        }
        gradient = self._gather(lambda p: p.grad if p.grad is not None else torch.zeros_like(p))
        if self._push_type == "f16":
            with _disable_current_modes():
                exponents, gradient = encode_half(gradient, [(at, p.numel()) for _, p, _, at in self._places])
            header = {**header, "dtype": "f16", "exponents": exponents}
        answer = self._call("POST", "/v1/push", header, gradient)
        if "error" in answer:
            return answer["error"]["reason"]
        self._pushed = self._base
        if self._mode != "sync":
            self.step += 1
        return answer["state"]

    def load(self):
        """Copies the mirror into the model at once. Returns its version."""
        with torch.no_grad(), _disable_current_modes():
            self._base = self.mirror.read(
                lambda half: [self.copy(p, half, at) for _, p, _, at in self._places]
            )
            return self._base

    def status(self):
        """What the server says of itself: version, steps per rank, who is waited for."""
        return self._call("GET", "/v1/status")

    def close(self):
        self._finish_layers()
        connection = getattr(self._local, "connection", None)
        if connection is not None:
            connection.close()

    def _lay_out(self):
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

    def _of_layer(self, index):
        return [(p, at) for _, p, layer, at in self._places if layer == index]

    def copy(self, parameter, half, at):
        # A home's version tells the executor of the change; autograd must not see a device parameter's.
        target = parameter.data if self._homes is None else parameter
        target.copy_(half[at : at + parameter.numel()].view(parameter.shape), non_blocking=True)

    def _gather(self, of):
        with torch.no_grad(), _disable_current_modes():
            values = torch.zeros(self.length)
            for _, parameter, _, at in self._places:
                values[at : at + parameter.numel()].copy_(of(parameter).reshape(-1))
        return values

    def _finish_layers(self):
        if self._prefetch is not None:
            self._prefetch.need(len(self._layers) - 1)
            self._base = self._prefetch.version
        self._stop_prefetch()

    def _stop_prefetch(self):
        for hook in self._hooks:
            hook.remove()
        self._hooks.clear()
        self._prefetch = None

    def _call(self, method, path, header=None, values=None, into=None):
        with _disable_current_modes():  # messages and mirror are the host's memory, whatever device is counted
            return self._call_patiently(method, path, header, values, into)

    def _call_patiently(self, method, path, header, values, into):
        deadline = time.monotonic() + self._patience
        while True:
            try:
                status, answer = self._call_once(method, path, header, values, into)
                if status == 200:
                    return answer
                if status == 202:
                    return None
                error = answer["error"]
                if error["reason"] in ("stale", "ahead", "epoch"):
                    return answer
                if error["message"] != "the server is stopping":
                    raise ParamsError(error["reason"], error["message"])
            except (OSError, http.client.HTTPException) as error:
                self._local.connection = None
                if time.monotonic() > deadline:
                    raise ParamsError("unreachable", f"{self._url.geturl()} does not answer: {error}") from error
            time.sleep(PAUSE_SECONDS)

    def _call_once(self, method, path, header, values, into):
        connection = getattr(self._local, "connection", None)
        if connection is None:
            connection = http.client.HTTPConnection(self._url.hostname, self._url.port, timeout=60)
            self._local.connection = connection
        headers = {"authorization": f"Bearer {self._token}"} if self._token else {}
        if values is not None:
            payload = half_bytes(values)
            start = encode_header({**header, "v": WIRE_VERSION, "crc": zlib.crc32(payload)})
            connection.request(
                method, path, body=_parts(start, payload),
                headers={**headers, "content-length": str(len(start) + len(payload))},
            )
        else:
            connection.request(method, path, headers=headers)
        response = connection.getresponse()
        if response.status == 200 and into is not None:
            return 200, self._receive(response, into)
        return response.status, json.loads(response.read())

    def _receive(self, response, mirror):
        """Reads a pull: header, then values straight into the inactive half; a broken one is not shown."""
        (size,) = struct.unpack("<I", _read_exactly(response, bytearray(4)))
        news = json.loads(bytes(_read_exactly(response, bytearray(size))))
        changed = news.get("changed")
        if changed is None:
            ranges = [(0, self.length)]
        else:
            ranges = [(at, p.numel()) for i, (_, p, _, at) in enumerate(self._places) if i in set(changed)]

        def fill(half):
            crc = 0
            for at, count in ranges:
                part = half_bytes(half[at : at + count])
                _read_exactly(response, part)
                crc = zlib.crc32(part, crc)
            response.read()
            if crc != news["crc"]:
                raise ConnectionError("a pull arrived damaged")

        try:
            mirror.update(news["version"], fill)
        except BaseException:
            self._held = self._held[:1]  # the inactive half is unusable: the next pull brings all of it
            raise
        return news


def _parts(start, payload):
    yield start
    for at in range(0, len(payload), 1 << 20):
        yield payload[at : at + (1 << 20)]


def _read_exactly(response, target):
    view, at = memoryview(target), 0
    while at < len(view):
        count = response.readinto(view[at:])
        if not count:
            raise ConnectionError(f"the answer was cut off after {at} of {len(view)} bytes")
        at += count
    return target
