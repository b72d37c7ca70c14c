"""Messages between a feed and its clients, as src/feed/session/wire.ts defines them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Any, NamedTuple

from ..frames import START_BYTES, Wire, format_start, parse_head, parse_start

WIRE = Wire(b"DSCS", 9)


class Message(IntEnum):
    """The kinds of frames."""

    HELLO = 1
    WELCOME = 2
    START = 3
    STARTED = 4
    NEXT = 5
    BATCH = 6
    RELEASE = 7
    EPOCH_END = 8
    ERROR = 9
    GET = 10
    IDS = 11
    STATUS = 12
    STOP = 13
    NOTE = 14
    WAITS = 15
    MADE = 16


class Frame(NamedTuple):
    """One message."""

    kind: int
    fields: dict[str, Any]
    payload: bytes


def format_frame(kind: Message, fields: Mapping[str, Any] | None = None, payload: bytes = b"") -> bytes:
    """One message as it goes over the wire."""
    return format_start(WIRE, {"type": int(kind), **(fields or {})}, len(payload)) + payload


def take_frame(received: bytearray) -> Frame | None:
    """Takes the first whole message off `received`; None if there is no whole one.

    Raises:
        FrameError: there is something else.
    """
    if len(received) < START_BYTES:
        return None
    start = parse_start(WIRE, received)
    payload_at = START_BYTES + start.head_bytes
    end = payload_at + start.payload_bytes
    if len(received) < end:
        return None
    with memoryview(received) as view:
        fields = parse_head(start, view[START_BYTES:payload_at])
        payload = bytes(view[payload_at:end])
    del received[:end]
    return Frame(fields.pop("type"), fields, payload)
