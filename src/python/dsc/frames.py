"""Frames, as src/frames/frame.ts defines them: a start, a head of JSON, then a payload of bytes."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Mapping
from typing import Any, NamedTuple

# Mark, bytes of the head, bytes of the payload (their lower 32 bits and the 16 above), version, CRC-32; little endian.
_START = struct.Struct("<4sIIHHI")
START_BYTES = _START.size
_CRC_AT = 16
_MAX_HEAD_BYTES = 1024 * 1024


class Wire(NamedTuple):
    """One of the wires that frames travel on."""

    mark: bytes
    version: int


class Start(NamedTuple):
    """The contents of the first `START_BYTES` of a frame."""

    raw: bytes
    head_bytes: int
    payload_bytes: int


class FrameError(ValueError):
    """The other end sent something that is not a frame of that wire."""


def format_start(wire: Wire, head: Mapping[str, Any], payload_bytes: int) -> bytes:
    """The beginning of a frame; the payload follows, at a multiple of 8."""
    text = json.dumps(head, separators=(",", ":")).encode()
    text += b" " * (-(START_BYTES + len(text)) % 8)
    low, high = payload_bytes & 0xFFFFFFFF, payload_bytes >> 32
    start = _START.pack(wire.mark, len(text), low, high, wire.version, 0)[:_CRC_AT]
    return start + struct.pack("<I", zlib.crc32(text, zlib.crc32(start))) + text


def parse_start(wire: Wire, raw: bytes | bytearray | memoryview) -> Start:
    """Reads the first `START_BYTES` of a frame.

    Raises:
        FrameError: they are of another wire, or of another version of it.
    """
    mark, head_bytes, low, high, version, _ = _START.unpack_from(raw)
    name = wire.mark.decode()
    if mark != wire.mark:
        raise FrameError(f"does not speak {name}")
    if version != wire.version:
        raise FrameError(f"speaks {name} {version}, this is {name} {wire.version}")
    if head_bytes > _MAX_HEAD_BYTES:
        raise FrameError(f"sent a head of {head_bytes} bytes")
    return Start(bytes(raw[:START_BYTES]), head_bytes, low | high << 32)


def parse_head(start: Start, text: bytes | bytearray | memoryview) -> dict[str, Any]:
    """Reads the head of a frame.

    Raises:
        FrameError: it was damaged on its way.
    """
    (expected,) = struct.unpack_from("<I", start.raw, _CRC_AT)
    if zlib.crc32(text, zlib.crc32(start.raw[:_CRC_AT])) != expected:
        raise FrameError("sent a damaged head")
    head: dict[str, Any] = json.loads(bytes(text))
    return head
