"""Messages between a feed and its clients, as src/feed/session/wire.ts defines them."""

from __future__ import annotations

import struct
from enum import IntEnum

PROTOCOL = 7


class Message(IntEnum):
    """What a frame is."""

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


def format_frame(kind: Message, payload: bytes = b"") -> bytes:
    """One message: the length of what follows (u32), its kind (u8), then the payload; little endian."""
    return struct.pack("<IB", 1 + len(payload), kind) + payload


def take_frame(received: bytearray) -> tuple[int, bytes] | None:
    """Takes the first whole message off `received`: its kind and payload. None if there is no whole one."""
    if len(received) < 4:
        return None
    (length,) = struct.unpack_from("<I", received)
    if len(received) < 4 + length:
        return None
    kind, payload = received[4], bytes(memoryview(received)[5 : 4 + length])
    del received[: 4 + length]
    return kind, payload
