"""The frames of feeds and central nodes, byte for byte as src/frames/fuzz.test.ts pins them."""

import pytest

from dsc.feed import wire
from dsc.frames import START_BYTES, FrameError, Wire, format_start, parse_head, parse_start

WIRE = Wire(b"TEST", 3)
FRAME = bytes.fromhex("544553540c000000030000000000030058c889f27b2261223a317d2020202020010203")


def test_a_frame_has_the_bytes_that_typescript_reads():
    assert format_start(WIRE, {"a": 1}, 3) + b"\1\2\3" == FRAME
    start = parse_start(WIRE, FRAME)
    assert start.payload_bytes == 3
    assert parse_head(start, FRAME[START_BYTES : START_BYTES + start.head_bytes]) == {"a": 1}


def test_a_payload_of_more_than_4_gib_is_announced():
    assert parse_start(WIRE, format_start(WIRE, {}, 2**40 + 5)).payload_bytes == 2**40 + 5


@pytest.mark.parametrize(
    ("place", "value", "says"),
    [(0, 0, "does not speak TEST"), (14, 2, "speaks TEST 2, this is TEST 3"), (7, 9, "a head of"), (21, 0, "damaged")],
)
def test_what_is_not_a_frame_of_this_wire_is_refused(place, value, says):
    frame = bytearray(FRAME)
    frame[place] = value
    with pytest.raises(FrameError, match=says):
        parse_head(parse_start(WIRE, frame), frame[START_BYTES:-3])


@pytest.mark.parametrize("step", [1, 3, 19, 1000])
def test_messages_are_taken_whole_however_they_arrive(step):
    sent = [wire.Frame(wire.Message.NEXT, {"count": 3}, b""), wire.Frame(wire.Message.GET, {"a": "é\u2028"}, b"\0" * 9)]
    stream = b"".join(wire.format_frame(kind, fields, payload) for kind, fields, payload in sent)
    received, taken = bytearray(), []
    for at in range(0, len(stream), step):
        received += stream[at : at + step]
        while (frame := wire.take_frame(received)) is not None:
            taken.append(frame)
    assert taken == sent
    assert not received
