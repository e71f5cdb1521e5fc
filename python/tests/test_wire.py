# SPDX-License-Identifier: Apache-2.0
"""Frames, envelopes, schemas and certificates' names; addresses and who answers there."""
import socket
import threading

import pytest
from crowdveil import Error, ProtocolError, Spec, Tls
from crowdveil.schema import HERE, NAMES, PROTO, compiled, schema
from crowdveil.wire import (FRAME_LIMIT, GRID, STAY_S, VERSION, Splitter, Turns, answers, check_hello, check_peer,
                            decode, frame, grid, hello, host_and_port, opened)
from hypothesis import given
from hypothesis import strategies as st


@given(st.lists(st.binary(min_size=1, max_size=700), max_size=8), st.lists(st.integers(1, 900), min_size=1))
def test_frames_come_out_whole_however_the_bytes_are_cut(payloads, cuts):
    stream, splitter, out, at = b"".join(map(frame, payloads)), Splitter(), [], 0
    while at < len(stream):
        step = cuts[at % len(cuts)]
        out.extend(splitter.feed(stream[at:at + step]))
        at += step
    assert out == payloads and not splitter.rest


@pytest.mark.parametrize("length", [0, FRAME_LIMIT + 1, 0xFFFFFFFF])
def test_a_length_out_of_bounds_is_refused_before_the_body_comes(length):
    with pytest.raises(ProtocolError, match=str(length)):
        list(Splitter().feed(length.to_bytes(4, "big")))


@given(st.binary(max_size=300), st.sampled_from(NAMES[1:]))
def test_arbitrary_bytes_raise_nothing_but_the_protocols_error(data, name):
    try:
        for payload in Splitter().feed(data):
            check_hello(decode(name, payload), greeted=False)
        check_hello(decode(name, data), greeted=True)
    except ProtocolError as error:
        assert "\n" not in str(error)


@given(st.lists(st.tuples(st.binary(min_size=48, max_size=48), st.lists(st.integers(-2 ** 63, 2 ** 63 - 1)))))
def test_an_envelope_survives_the_wire(tokens):
    envelope = hello("crowd")
    for ticket, values in tokens:
        envelope.tokens.add(ticket=ticket, values=values)
    payload, = Splitter().feed(frame(envelope.SerializeToString()))
    again = decode("crowd", payload)
    assert again == envelope and again.hello.version == VERSION
    assert [(token.ticket, list(token.values)) for token in again.tokens] == tokens


def test_an_envelope_without_a_known_field_and_an_old_version_are_refused():
    with pytest.raises(ProtocolError, match="without any known field"):
        decode("order", b"\xd2\x3e\x01\x00")
    with pytest.raises(ProtocolError, match="version 1; expected 3"):
        check_hello(hello("rank", version=1), greeted=False)
    status = schema("order").Envelope()
    status.status.SetInParent()
    with pytest.raises(ProtocolError, match="no hello"):
        check_hello(status, greeted=False)


def test_the_third_partys_schema_has_no_message_with_a_token():
    for name in ("base", "rank", "order"):
        for message in schema(name).DESCRIPTOR.message_types_by_name:
            assert message not in ("Token", "Assign", "Arrive"), f"{name}.proto has a message {message}"


def test_a_compiled_schema_is_that_of_the_source():
    made = HERE / "schema.bin"
    assert not made.exists() or made.read_bytes() == compiled(PROTO), f"{made} is out of date; remove it"


@given(st.floats(allow_nan=False))
def test_scores_land_on_the_nearest_grid_point(score):
    assert abs(grid(score) - min(max(score, 0), 1) * GRID) <= .5


def test_a_spec_that_cannot_be_sent_is_said_in_one_line():
    for changes in ({"arms": -1}, {"epsilon": float("nan")}, {"policy": ("x", {"k": None})}, {"policy": 7},
                    {"tokens": 2 ** 64}, {"names": (1, 2)}):
        with pytest.raises(Error, match="cannot be sent|is no algorithm") as raised:
            Spec(**{"name": "a", "arms": 2, **changes}).message()
        assert "\n" not in str(raised.value)


def test_a_spec_says_how_many_brokers_and_bits():
    assert Spec("a", 2).message().SerializeToString() == Spec("a", 2, brokers=0).message().SerializeToString()
    for changes, bits in (({}, 15), ({"pairs": True}, 1), ({"privatizer": ("randomized-response", {"epsilon": 1})}, 1),
                          ({"score_bits": 1}, 1)):
        spec = Spec("a", 2, brokers=2, **changes)
        message = spec.message()
        assert (message.brokers, message.score_bits) == (2, bits)
        assert Spec.of(message) == spec


def test_a_spec_says_its_scale():
    message = Spec("a", 2, scale=(1, 5.5)).message()
    assert (message.scale.low, message.scale.high) == (1, 5.5)
    assert Spec.of(message) == Spec("a", 2, scale=(1, 5.5)) and Spec.of(Spec("a", 2).message()).scale is None


def test_what_is_no_score_address_or_file_is_said_in_one_line():
    for wrong in ("", "host", ":1", "host:70000", "host:x"):
        with pytest.raises(Error, match="expected HOST:PORT"):
            host_and_port(wrong)
    assert host_and_port("[::1]:7401") == ("::1", 7401)
    with pytest.raises(Error, match="not a number"):
        grid(float("nan"))
    with pytest.raises(Error, match="/nonexistent/ca.pem: No such file or directory; expected a PEM file"):
        opened(Tls("/nonexistent/ca.pem", "b", "c"))


def test_addresses_take_turns_and_only_whole_cycles_pause():
    turns = Turns("a:1, b:2,c:3")
    for cycle in range(6):
        order, pauses = [], []
        for _ in range(3):
            order.append(turns.address)
            assert turns.limit == min(2 ** cycle, 4)
            pauses.append(turns.failed())
        assert order == ["a:1", "b:2", "c:3"] and pauses[:2] == [0, 0]
        longest = min(.1 * 2 ** cycle, .5)
        assert longest / 2 <= pauses[2] <= longest


def test_after_a_loss_the_next_address_comes_first():
    turns = Turns(["a:1", "b:2"])
    for expected in ("b:2", "a:1", "b:2"):
        turns.begin()
        assert .05 <= turns.lost() <= .1 and turns.address == expected and turns.limit == 1


def test_one_address_is_tried_as_ever():
    turns = Turns("a:1")
    assert turns.limit is None and turns.address == "a:1"
    pauses = [turns.failed() for _ in range(8)]
    assert all(pause > 0 for pause in pauses) and 2.5 <= pauses[-1] <= 5 and turns.address == "a:1"


class Place:
    """A port: bound alone, as a standby's; listening, as of a process that stands still; or with one that serves."""

    def __init__(self, listens=False, serves=False):
        self.sock = socket.socket()
        self.sock.bind(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.sock.getsockname()[1]}"
        if listens or serves:
            self.sock.listen()
        if serves:
            threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            with self.sock.accept()[0] as caller:
                assert caller.recv(64) == b""


def test_only_a_process_answers_a_knock():
    standby, still, process = Place(), Place(listens=True), Place(serves=True)
    assert [answers(place.address) for place in (standby, still, process)] == [False, False, True]


def test_a_quiet_connection_is_left_for_an_address_that_answers():
    standby, still, process = Place(), Place(listens=True), Place(serves=True)
    turns = Turns([place.address for place in (still, standby, process)])
    assert turns.knock() == 2
    assert str(turns.leave(2)) == f"{still.address}: silent, while {process.address} answers"
    assert turns.lost() > 0 and turns.address == process.address
    assert turns.knock() is None
    turns.left -= STAY_S
    assert turns.knock() is None  # only itself would answer
    turns.lost()
    assert turns.address == still.address
    assert Turns(still.address).knock() is None


@pytest.mark.parametrize("wrong", ["", " , ", [], ["a:1", "b"], "a:1, b"])
def test_what_is_no_list_of_addresses_is_said_in_one_line(wrong):
    with pytest.raises(Error, match="expected HOST:PORT"):
        Turns(wrong)


class Sock:
    def __init__(self, name, alpn="crowdveil/1"):
        self.name, self.alpn = name, alpn

    def getpeercert(self):
        return {"subjectAltName": (("DNS", "x"), ("URI", self.name))}

    def selected_alpn_protocol(self):
        return self.alpn


def test_a_peer_needs_its_role_its_name_and_the_protocol():
    assert check_peer(Sock("crowdveil:broker/main"), "broker", frozenset(["main"])) == "main"
    for sock in (Sock("crowdveil:worker/7"), Sock("crowdveil:broker/other"), Sock(""),
                 Sock("crowdveil:broker/main", None)):
        with pytest.raises(ProtocolError, match="the other side is"):
            check_peer(sock, "broker", frozenset(["main"]))
