"""Messages to and from a central node, over HTTP."""

from __future__ import annotations

import http.client
import json
import threading
import time
import urllib.parse
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch

from ..frames import START_BYTES, FrameError, Wire, format_start, parse_head, parse_start
from ..torch_private import without_modes
from .errors import ParamsError
from .mirror import half_bytes

WIRE = Wire(b"DSCP", 2)
_PAUSE_SECONDS = 0.1
_TRY_AGAIN = ("stale", "ahead", "epoch")  # refusals that a worker answers itself


class Server:
    """A central node, as one worker sees it. Any thread may call; each has a connection of its own.

    Args:
        url: of `dsc params serve`.
        token: where the server has one.
        job: as the server was told.
        patience_seconds: how long a server that restarts is waited for.
    """

    def __init__(self, url: str, *, token: str | None, job: str, patience_seconds: float) -> None:
        self._url = urllib.parse.urlsplit(url)
        if self._url.scheme != "http" or not self._url.hostname:
            raise ValueError(f"the central node is said to be at {url!r}, expected http://host:port")
        self._token = token
        self._job = job
        self._patience_seconds = patience_seconds
        self._local = threading.local()

    def call(
        self,
        method: str,
        path: str,
        header: Mapping[str, Any] | None = None,
        values: torch.Tensor | None = None,
        *,
        body: bytes | None = None,
        receive: Callable[[http.client.HTTPResponse], Any] | None = None,
    ) -> Any:
        """Sends a request, again if need be, and returns what is answered.

        Args:
            method: GET or POST.
            path: with its query.
            header: JSON values that go before `values`.
            values: the body.
            body: instead of header and values: as it is sent.
            receive: reads an answer that is not JSON.

        Returns:
            What `receive` made of the answer, or its JSON values; None where there is nothing new.

        Raises:
            ParamsError: the server refuses for good, or does not answer.
        """
        with without_modes():  # messages and mirror are in the host's memory, for every device
            return self._call_patiently(
                lambda: self._call_once(method, path, header, body if values is None else values, receive)
            )

    def close(self) -> None:
        """Ends this thread's connection."""
        connection = getattr(self._local, "connection", None)
        if connection is not None:
            connection.close()

    def _call_patiently(self, call_once: Callable[[], tuple[int, Any]]) -> Any:
        deadline: float | None = None  # from the first failure on: a pull may have waited for other ranks before
        while True:
            try:
                status, answer = call_once()
                if status == 200:
                    return answer
                if status == 202:
                    return None
                error = self._error_of(status, answer)
                if error["reason"] in _TRY_AGAIN:
                    return answer
                if error["message"] != "the server is stopping":
                    raise ParamsError(error["reason"], error["message"])
                raise ConnectionError(error["message"])
            except (OSError, http.client.HTTPException) as error:
                self._local.connection = None
                deadline = deadline or time.monotonic() + self._patience_seconds
                if time.monotonic() > deadline:
                    raise ParamsError("unreachable", f"{self._url.geturl()} does not answer: {error}") from error
            time.sleep(_PAUSE_SECONDS)

    def _call_once(
        self,
        method: str,
        path: str,
        header: Mapping[str, Any] | None,
        values: torch.Tensor | bytes | None,
        receive: Callable[[http.client.HTTPResponse], Any] | None,
    ) -> tuple[int, Any]:
        connection = getattr(self._local, "connection", None)
        if connection is None:
            connection = http.client.HTTPConnection(self._url.hostname or "", self._url.port, timeout=60)
            self._local.connection = connection
        headers = {"x-dsc-job": self._job}
        if self._token:
            headers["authorization"] = f"Bearer {self._token}"
        if isinstance(values, torch.Tensor):
            payload = half_bytes(values)
            start = format_start(WIRE, {**(header or {}), "crc": zlib.crc32(payload)}, len(payload))
            headers["content-length"] = str(len(start) + len(payload))
            connection.request(method, path, body=_parts(start, payload), headers=headers)
        else:
            connection.request(method, path, body=values, headers=headers)
        response = connection.getresponse()
        if response.status == 200 and receive is not None:
            return 200, receive(response)
        return response.status, self._parse(response)

    def _parse(self, response: http.client.HTTPResponse) -> Any:
        try:
            return json.loads(response.read())
        except ValueError:
            if response.status >= 502:  # of a proxy, while the server restarts
                raise ConnectionError(f"it answers {response.status}") from None
            return None

    def _error_of(self, status: int, answer: Any) -> dict[str, str]:
        try:
            return {"reason": answer["error"]["reason"], "message": answer["error"]["message"]}
        except (KeyError, TypeError):
            raise ParamsError(
                "address", f"{self._url.geturl()} answers {status} and is no central node: `dsc params serve` is one"
            ) from None


def read_head(response: http.client.HTTPResponse) -> dict[str, Any]:
    """The head of the message that an answer is; its values are to be read next."""
    try:
        start = parse_start(WIRE, read_exactly(response, bytearray(START_BYTES)))
        return parse_head(start, read_exactly(response, bytearray(start.head_bytes)))
    except FrameError as error:
        raise ConnectionError(f"the central node {error}") from None


def read_exactly(response: http.client.HTTPResponse, target: bytearray | memoryview) -> bytearray | memoryview:
    """Fills `target` from an answer, or raises ConnectionError."""
    view, at = memoryview(target), 0
    while at < len(view):
        count = response.readinto(view[at:])
        if not count:
            raise ConnectionError(f"the answer was cut off after {at} of {len(view)} bytes")
        at += count
    return target


def _parts(start: bytes, payload: memoryview) -> Iterator[bytes | memoryview]:
    yield start
    for at in range(0, len(payload), 1 << 20):
        yield payload[at : at + (1 << 20)]
