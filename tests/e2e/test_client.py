# SPDX-License-Identifier: Apache-2.0
"""The second implementation itself: framing and messages, without a broker."""
import pytest

from client.schema import schema
from client.wire import FRAME_LIMIT, VERSION, FrameError, Splitter, frame
from client.worker import GRID, grid


def test_frames_come_out_whole_however_the_bytes_are_cut():
    payloads = [b"a", b"bb" * 300, b"\0" * 70000]
    stream = b"".join(frame(payload) for payload in payloads)
    for step in (1, 3, 4, 5, 4096, len(stream)):
        splitter, out = Splitter(), []
        for at in range(0, len(stream), step):
            out.extend(splitter.feed(stream[at:at + step]))
        assert out == payloads
        assert not splitter.rest


@pytest.mark.parametrize("length", [0, FRAME_LIMIT + 1, 0xFFFFFFFF])
def test_a_length_out_of_bounds_is_refused_before_the_body_comes(length):
    with pytest.raises(FrameError, match=str(length)):
        list(Splitter().feed(length.to_bytes(4, "big")))


def test_an_envelope_survives_the_wire():
    pb = schema("crowd")
    envelope = pb.Envelope()
    envelope.hello.version = VERSION
    envelope.tokens.add(ticket=bytes(range(48)), values=[0, GRID, -3])
    payload, = Splitter().feed(frame(envelope.SerializeToString()))
    again = pb.Envelope.FromString(payload)
    assert again == envelope and list(again.tokens[0].values) == [0, GRID, -3]


def test_the_third_partys_schema_has_no_message_with_a_token():
    for name in ("base", "rank", "order"):
        for message in schema(name).DESCRIPTOR.message_types_by_name:
            assert message not in ("Token", "Assign", "Arrive"), f"{name}.proto has a message {message}"


@pytest.mark.parametrize("score, value", [(0, 0), (1, GRID), (.5, GRID // 2), (-1, 0), (2, GRID), (.3, 314573)])
def test_scores_land_on_the_nearest_grid_point(score, value):
    assert grid(score) == value
