# SPDX-License-Identifier: Apache-2.0
"""What a peer can make a third-party keep, say or decode: the pure parts, with time as an argument."""
import os
import resource

import pytest
from crowdveil import Damaged, ProtocolError, read_export
from crowdveil.callers import FREE, HANDSHAKES, HELLOS, KEPT, STRANGERS, Call, Callers, address_of
from crowdveil.checks import check_order
from crowdveil.errors import Error, clean
from crowdveil.listener import allow_files
from crowdveil.notes import BURST, ENTRIES, REASONS, Notes
from crowdveil.schema import schema
from crowdveil.store import open_database
from crowdveil.wire import FRAME_S, Splitter, Stopwatch, decode, frame


def test_the_oldest_handshake_of_the_fullest_address_leaves():
    callers, calls = Callers(), []
    honest = Call("10.0.0.9")
    assert callers.arrive(honest, 0) is None
    for at in range(HANDSHAKES[0] - 1):
        calls.append(Call("10.0.0.1"))
        assert callers.arrive(calls[-1], at) is None
    for victim in calls[:3]:
        assert callers.arrive(Call("10.0.0.1"), 99) is victim
        callers.leave(victim, False, 99)
    assert callers.arrive(Call("10.0.0.3"), 99) is calls[3], "not the honest one, which is the oldest of all"


def test_a_known_address_keeps_some_places_beside_a_flood_of_many():
    callers, known = Callers(), [Call("10.0.0.9") for _ in range(FREE)]
    first = Call("10.0.0.9")
    callers.arrive(first, 0)
    callers.leave(first, True, 0)
    for call in known:
        callers.arrive(call, 1)
    victims = [callers.arrive(Call(f"10.1.{at // 250}.{at % 250}"), 2) for at in range(1000)]
    assert not set(map(id, known)) & {id(victim) for victim in victims if victim}
    assert len(callers.all) <= KEPT + 1


def test_hellos_have_a_rate_for_each_address_and_for_all_strangers():
    callers = Callers()

    def answered(address, now):
        call = Call(address)
        callers.arrive(call, now)
        yes, _ = callers.hello(call, now)
        callers.leave(call, False, now)
        return yes
    assert sum(answered("10.0.0.1", 5) for _ in range(3 * HELLOS)) == HELLOS
    assert sum(answered(f"10.0.1.{at % 250}", 5) for at in range(9 * HELLOS)) == (STRANGERS - 1) * HELLOS
    assert not answered("10.0.0.2", 5) and answered("10.0.0.2", 6)


@pytest.mark.parametrize("peer, address", [
    (("10.0.0.1", 5), "10.0.0.1"), (("::ffff:10.0.0.1", 5, 0, 0), "10.0.0.1"),
    (("2001:db8:1:2:3:4:5:6", 5, 0, 0), "2001:db8:1:2::/64"), (("fe80::1%eth0", 5, 0, 0), "fe80::/64"), ("", ""),
    (None, "")])
def test_an_address_is_one_of_ipv4_or_a_network_of_ipv6(peer, address):
    assert address_of(peer) == address


def test_a_peer_causes_few_lines_and_all_peers_a_bounded_number():
    notes = Notes()
    lines = [notes.take("broker main", f"campaign {at} is refused", 0) for at in range(1000)]
    assert len([line for line in lines if line]) == BURST
    for at in range(1000):
        notes.take("broker main", f"reason {'x' * at}", 0)
    assert len(notes.entries) <= REASONS + 1
    assert sum(bool(notes.take(f"peer {chr(65 + at)}", "again", 0)) for at in range(5000)) <= ENTRIES
    assert len(notes.entries) <= ENTRIES + 1
    assert list(notes.sums(59)) == []
    assert f"broker main: campaign 0 is refused ({1000 - BURST} more in 60 s)" in list(notes.sums(60))
    assert notes.take("broker main", "campaign 1 is refused", 61)


@pytest.mark.parametrize("hostile", ["a\nb", "\x1b]0;t\x07", "\x9b2J", "a\u202eb", "a\u2028b", "\ud800", "a\rb"])
def test_no_text_of_a_peer_breaks_or_turns_a_line(hostile):
    for line in (clean(hostile), str(Error(hostile)), Notes().take(hostile, hostile, 0)):
        assert not set(line) & set("\n\r\x1b\x07\x9b\u202e\u2028\ud800")
    assert len(clean("x" * 10 ** 6)) < 600


def test_a_frame_has_half_a_minute_however_it_drips():
    splitter = Splitter()
    watch = Stopwatch(splitter, 100)
    for at in range(5):
        list(splitter.feed(frame(b"x" * 20)[at:at + 1]))
        watch.take(101 + at)
        assert watch.until == 100 + FRAME_S, "the first one counts from the connection on"
    assert list(splitter.feed(frame(b"x" * 20)[5:])) == [b"x" * 20]
    watch.take(120)
    assert watch.until is None
    list(splitter.feed(frame(b"y" * 20)[:3]))
    watch.take(500)
    list(splitter.feed(frame(b"y" * 20)[3:9]))
    watch.take(520)
    assert watch.until == 500 + FRAME_S
    list(splitter.feed(frame(b"y" * 20)[9:] + b"\0"))
    watch.take(525)
    assert watch.until == 525 + FRAME_S


@pytest.mark.parametrize("payload", [
    b"\x1a\0" * 600_000, b"\x78\1" * 600_000, b"\x7b\x7c" * 600_000, b"\x1a" * 100_000, b"\xff" * 100_000,
    b"\x0a\xff\xff\xff\xff\x0f" + b"x" * 100_000], ids=["empty", "unknown", "groups", "cut", "numbers", "beyond"])
def test_a_large_frame_is_counted_before_it_is_decoded(payload):
    with pytest.raises(ProtocolError, match="too large to decode|not a valid message"):
        decode("rank", payload)


def test_what_a_broker_may_send_at_once_is_decoded():
    envelope = schema("rank").Envelope()
    envelope.opens.add().spec.names.extend(f"item {at}" for at in range(131_072))
    for number in (1, 2):
        plan = envelope.recorded.add().plan
        plan.number = number
        for arm in range(131_072):
            plan.wants.add(arm=arm, tokens=6000)
    for arm in range(256):
        release = envelope.releases.add(arm=arm)
        for _ in range(24):
            release.noise.add(scale=1.5, count=2)
    assert decode("rank", envelope.SerializeToString()) == envelope


def progress(**fields):
    envelope = schema("order").Envelope()
    envelope.status_answer.campaigns.add(**fields)
    return envelope


def error(why):
    envelope = schema("order").Envelope()
    envelope.error.why = why
    return envelope


@pytest.mark.parametrize("envelope", [
    progress(name="\x1b]0;x\x07"), progress(name="a\nb"), progress(why="x" * 256), progress(waits_for="\x9b"),
    progress(declined=[{"why": "\x1b"}]), error("\x1b[2J"), error("no\nline"), error("x" * 256)])
def test_no_answer_of_a_broker_breaks_a_line_of_its_requester(envelope):
    with pytest.raises(ProtocolError, match="not a valid message"):
        check_order(envelope)


def test_a_state_file_is_a_file_of_its_user_alone(tmp_path):
    (tmp_path / "wide.db").touch(0o666)
    (tmp_path / "wide.db").chmod(0o666)
    open_database(tmp_path / "wide.db", "CREATE TABLE a (b);", 1).close()
    assert (tmp_path / "wide.db").stat().st_mode & 0o777 == 0o600
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(Error, match="not a regular file"):
        open_database(tmp_path / "pipe", "", 1)


def test_a_file_of_nothing_but_brackets_is_damaged(tmp_path):
    (tmp_path / "export.json").write_text("[" * 100_000)
    with pytest.raises(Damaged, match="export.json: RecursionError"):
        read_export(tmp_path / "export.json")


def test_too_few_open_files_are_said_at_the_start(monkeypatch):
    limits = [40, 64]
    monkeypatch.setattr(resource, "getrlimit", lambda _: tuple(limits))
    monkeypatch.setattr(resource, "setrlimit", lambda _, to: limits.__setitem__(slice(0, 2), to))
    with pytest.raises(Error, match="9 connections need 265 open files, but the system allows 64"):
        allow_files(9)
    limits[1] = 4096
    allow_files(9)
    assert limits == [265, 4096]
