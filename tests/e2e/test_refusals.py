# SPDX-License-Identifier: Apache-2.0
"""Everything that a broker (and a third-party) must refuse: with its reason, nothing is counted and no other peer is
harmed."""
import os
import re
import socket
import ssl
import struct

import pytest

from client.requester import spec
from client.worker import Session
from crowdveil.schema import schema
from crowdveil.wire import GRID, VERSION, Connection, context
from harness.pki import Pki

HONEST, HOSTILE = "gateway/1-1000", "gateway/2001-3000"


class Stage:
    """A running campaign with an honest gateway; `tokens()` is the broker's count."""

    def __init__(self, deployment):
        self.deployment, self.pki = deployment, deployment.pki
        deployment.up()
        self.requester = deployment.requester()
        self.campaign = self.requester.submit(
            spec(2, epsilon=1, tokens=100_000, policy_params={"alpha": .1, "tokens_per_round": 5000})).campaign
        self.honest, self.next_worker, self.given = self.session(HONEST), 1, 0
        self.give()

    def session(self, identity, **kwargs):
        files = self.pki.issue(identity)
        return Session(self.deployment.broker.address, files.ca, files.cert, files.key, **kwargs)

    def hostile(self, **kwargs):
        return self.session(HOSTILE, **kwargs)

    def give(self):
        """The honest gateway gives one token; the broker must take it."""
        self.honest.arrive([self.next_worker], credit=8)
        assign = self.honest.until("assign")
        self.honest.token(assign.ticket, [GRID])
        assert self.honest.verdict(self.honest.ack(assign.ticket)) == "accepted"
        self.next_worker += 1
        self.given += 1

    def tokens(self):
        return self.requester.status().campaigns[0].tokens

    def unharmed(self):
        """No token of a hostile peer was counted, and the honest one goes on."""
        self.give()
        assert self.tokens() == self.given

    def log_says(self, pattern, since):
        return self.deployment.broker.wait_for(pattern, after=since)

    def close(self):
        self.honest.close()
        self.requester.close()


@pytest.fixture
def stage(deployment):
    made = Stage(deployment)
    yield made
    made.close()


def assigned(session, worker=2001):
    session.arrive([worker], credit=8)
    return session.until("assign")


def ended(session):
    """Reads to the end of the connection; the goodbye's reason, or the TLS layer's error."""
    why = ""
    try:
        while True:
            kind, message = session.next()
            if kind is None:
                return why
            if kind == "goodbye":
                why = message.why
    except (ssl.SSLError, ConnectionError) as error:
        return why or str(error)


# --- certificates


def handshake_error(address, tls):
    """The other side's refusal as the client sees it: under TLS 1.3 it may come with the first read."""
    try:
        with Connection(address, tls, timeout=20) as connection:
            assert connection.receive() is None
            return "closed"
    except (ssl.SSLError, ConnectionError) as error:
        return str(error)


def files_context(files, ca=None, **kwargs):
    return context(ca or files.ca, files.cert, files.key, **kwargs)


@pytest.mark.quick
@pytest.mark.parametrize("case, reason", [
    ("wrong CA", "not signed by our CA"),
    ("expired", "expired"),
    ("no certificate", "certificate"),
    ("role broker", "role broker"),
    ("role thirdparty", "role thirdparty"),
    ("no identity", "crowdveil:|identity|URI"),
    ("two identities", "crowdveil:|identity|URI"),
    ("bad identity", "crowdveil:|identity|id"),
])
def test_a_certificate_that_does_not_fit_is_refused_by_the_broker(stage, tmp_path, case, reason):
    pki, since = stage.pki, stage.deployment.broker.mark()
    tls = {
        "wrong CA": lambda: files_context(Pki(tmp_path / "other").issue("worker/5000"), ca=pki.ca),
        "expired": lambda: files_context(pki.issue("worker/5001", days=-1)),
        "no certificate": lambda: context(pki.ca),
        "role broker": lambda: files_context(pki.issue("broker/other")),
        "role thirdparty": lambda: files_context(pki.issue("thirdparty/other")),
        "no identity": lambda: files_context(pki.issue("worker/5002", name="none", extra="x,DNS:somewhere")),
        "two identities": lambda: files_context(pki.issue("worker/5003", extra=",URI:crowdveil:gateway/1-9")),
        "bad identity": lambda: files_context(pki.issue("worker/0005")),
    }[case]()
    assert handshake_error(stage.deployment.broker.address, tls)
    stage.log_says(reason, since)
    stage.unharmed()


@pytest.mark.quick
def test_the_third_party_takes_brokers_only(stage):
    thirdparty, since = stage.deployment.thirdparty, stage.deployment.thirdparty.mark()
    for identity in ("worker/5004", "requester/alice", HONEST, "thirdparty/other"):
        files = stage.pki.issue(identity)
        try:
            with Connection(thirdparty.address, files_context(files), role="thirdparty") as connection:
                assert connection.receive() is None
        except (ssl.SSLError, ConnectionError):
            pass
        thirdparty.wait_for(f"role {identity.split('/')[0]}", after=since)
        since = thirdparty.mark()
    stage.unharmed()


def test_a_worker_refuses_a_server_that_is_no_broker(deployment, tmp_path):
    """A control: the Python client's own check, on which the other tests rely."""
    deployment.start_thirdparty()
    files = deployment.pki.issue(HONEST)
    with pytest.raises(Exception, match="expected a broker|alert|EOF|reset"):
        Connection(deployment.thirdparty.address, files_context(files)).receive()


# --- the transport


def test_plain_text_on_the_tls_port_is_refused(stage):
    since = stage.deployment.broker.mark()
    host, port = stage.deployment.broker.address.rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=20) as plain:
        plain.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        answer = b""
        try:
            while chunk := plain.recv(4096):
                answer += chunk
        except ConnectionError:
            pass
    assert len(answer) < 100 and b"HTTP" not in answer
    stage.log_says("plain text", since)
    stage.unharmed()


@pytest.mark.parametrize("weak", ["TLS 1.2", "no ALPN", "another ALPN"])
def test_another_protocol_is_refused(stage, weak):
    since = stage.deployment.broker.mark()
    files = stage.pki.issue(HOSTILE)
    tls = files_context(files, alpn={"no ALPN": None, "another ALPN": "h2"}.get(weak, "crowdveil/1"))
    if weak == "TLS 1.2":
        tls.minimum_version, tls.maximum_version = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_2
    assert handshake_error(stage.deployment.broker.address, tls)
    stage.log_says("TLS 1.3" if weak == "TLS 1.2" else "ALPN", since)
    stage.unharmed()


# --- frames


@pytest.mark.parametrize("head, reason", [
    (0, "frame of 0 bytes"), (256 * 1024 + 1, "frame of 262145 bytes"), (0xFFFFFFFF, "frame of 4294967295 bytes")])
def test_a_frame_out_of_bounds_closes_the_connection(stage, head, reason):
    since = stage.deployment.broker.mark()
    with stage.hostile() as session:
        session.until("hello")
        session.connection.send_raw(struct.pack(">I", head) + b"x" * 1000)
        ended(session)  # without a goodbye: the beginning of the next frame is unknown
    stage.log_says(reason, since)
    stage.unharmed()


def test_a_frame_that_is_cut_off_counts_for_nothing(stage):
    with stage.hostile() as session:
        assign = assigned(session)
        envelope = schema("crowd").Envelope()
        envelope.tokens.add(ticket=assign.ticket, values=[GRID])
        payload = envelope.SerializeToString()
        session.connection.send_raw(struct.pack(">I", len(payload)) + payload[:-1])
    stage.unharmed()


def hostile_payload(case):
    pb, envelope = schema("crowd"), schema("crowd").Envelope()
    if case == "garbage":
        return b"\xff" * 300
    if case == "nothing known":
        return bytes([0xF8, 0x07, 0x01])  # field 127
    if case == "a million empty messages":
        return bytes([0x1A, 0x00]) * 120_000
    if case == "a short ticket":
        envelope.tokens.add(ticket=b"x" * 47, values=[1])
    if case == "no values":
        envelope.tokens.add(ticket=b"x" * 48)
    if case == "too many values":
        envelope.tokens.add(ticket=b"x" * 48, values=[0] * 65)
    if case == "a broker's message":
        envelope.acks.add(ticket=b"x" * 48, verdict=pb.VERDICT_ACCEPTED)
    if case == "a second hello":
        envelope.hello.version = VERSION
    if case == "a worker outside the range":
        envelope.arrives.add(workers=[1], credit=1)
    if case == "worker 0":
        envelope.arrives.add(workers=[0], credit=1)
    return envelope.SerializeToString()


INVALID = "not a valid message"


@pytest.mark.quick
@pytest.mark.parametrize("case, reason", [
    ("garbage", INVALID), ("nothing known", INVALID), ("a million empty messages", "too large to decode"),
    ("a short ticket", INVALID), ("no values", INVALID), ("too many values", INVALID),
    ("a broker's message", "only a broker may send"), ("a second hello", "second Hello"),
    ("a worker outside the range", "outside the certificate's range"),
    ("worker 0", "outside the certificate's range|" + INVALID)])
def test_an_envelope_that_makes_no_sense_closes_the_connection(stage, case, reason):
    since = stage.deployment.broker.mark()
    with stage.hostile() as session:
        session.until("hello")
        session.connection.send(hostile_payload(case))
        assert re.search(reason, ended(session)), "the peer receives the reason"
    stage.log_says(reason, since)
    stage.unharmed()


@pytest.mark.parametrize("version", [None, 0, 2, 4])
def test_a_connection_that_does_not_start_with_our_hello_is_closed(stage, version):
    since = stage.deployment.broker.mark()
    with stage.hostile(hello=False) as session:
        envelope = session.pb.Envelope()
        if version is None:
            envelope.arrives.add(workers=[2001], credit=1)
        else:
            envelope.hello.SetInParent()
            envelope.hello.version = version
        session.send(envelope)
        ended(session)
    stage.log_says("[Hh]ello", since)
    stage.unharmed()


def test_a_requester_may_not_speak_as_a_worker_nor_a_worker_as_a_requester(stage):
    since = stage.deployment.broker.mark()
    with stage.session("requester/mallory") as session:
        session.arrive([1], credit=1)
        session.token(b"x" * 48, [GRID])
        ended(session)
    stage.log_says("requester/mallory: .*(message|may send)", since)
    order = schema("order").Envelope()
    order.status.SetInParent()
    order.cancel.campaign = stage.campaign
    with stage.hostile() as session:
        session.connection.send(order.SerializeToString())
        ended(session)
    stage.log_says(f"{HOSTILE}: .*(message|may send)", since)
    stage.unharmed()


# --- tokens and tickets


def verdict_of(session, ticket, values):
    session.token(ticket, values)
    ack = session.ack(ticket)
    return session.verdict(ack), ack.why


@pytest.mark.quick
def test_a_token_that_is_sent_twice_counts_once(stage):
    with stage.hostile() as session:
        ticket = assigned(session).ticket
        assert verdict_of(session, ticket, [GRID])[0] == "accepted"
        assert verdict_of(session, ticket, [GRID])[0] == "duplicate"
        assert verdict_of(session, ticket, [0])[0] == "duplicate"
    with stage.hostile() as session:
        assert verdict_of(session, ticket, [GRID])[0] == "duplicate", "on a new connection"
    stage.given += 1
    stage.unharmed()


def test_both_halves_of_a_double_in_one_frame_count_once(stage):
    with stage.hostile() as session:
        ticket = assigned(session).ticket
        envelope = session.pb.Envelope()
        envelope.tokens.add(ticket=ticket, values=[GRID])
        envelope.tokens.add(ticket=ticket, values=[GRID])
        session.send(envelope)
        assert [session.verdict(session.ack(ticket)) for _ in range(2)] == ["accepted", "duplicate"]
    stage.given += 1
    stage.unharmed()


@pytest.mark.parametrize("values", [[GRID + 1], [-1], [2**62], [-2**63], [2**63 - 1], [0, 0]])
def test_a_value_out_of_range_is_refused(stage, values):
    with stage.hostile() as session:
        ticket = assigned(session).ticket
        verdict, why = verdict_of(session, ticket, values)
        assert verdict == "refused" and ("range" in why or "number of values" in why)
        # the slot is not spent: the same worker may still give an honest token
        assert verdict_of(session, assigned(session).ticket, [GRID])[0] == "accepted"
    stage.given += 1
    stage.unharmed()


@pytest.mark.quick
def test_a_forged_ticket_is_refused(stage):
    with stage.hostile() as session:
        ticket = assigned(session).ticket
        forged = [bytes(48), os.urandom(48), b"\xff" * 48]
        for at in range(48):
            forged.append(ticket[:at] + bytes([ticket[at] ^ 1]) + ticket[at + 1:])
        for fake in forged:
            verdict, why = verdict_of(session, fake, [GRID])
            assert verdict == "refused" and "not issued by this broker" in why
        assert verdict_of(session, ticket, [GRID])[0] == "accepted"
    stage.given += 1
    stage.unharmed()


def test_the_ticket_of_another_worker_is_refused(stage):
    stage.honest.arrive([999], credit=8)
    stolen = stage.honest.until("assign")
    with stage.hostile() as session:
        verdict, why = verdict_of(session, stolen.ticket, [0])
        assert verdict == "refused" and "outside this certificate" in why
    assert verdict_of(stage.honest, stolen.ticket, [GRID])[0] == "accepted"
    stage.given += 1
    stage.unharmed()


def test_a_worker_gives_no_more_than_its_tokens(stage):
    """The broker counts slots: arriving again and again, on two connections at once, gains nothing."""
    with stage.hostile() as one:
        assert verdict_of(one, assigned(one).ticket, [GRID])[0] == "accepted"
        one.arrive([2001] * 10, credit=64)
        assert "given" in one.until("backoff").why
    with stage.hostile() as two:
        two.arrive([2001], credit=64)
        assert two.until("backoff").delay_ms == 0
    stage.given += 1
    stage.unharmed()


def test_a_ticket_of_a_cancelled_campaign_counts_for_nothing(stage):
    with stage.hostile() as session:
        ticket = assigned(session).ticket
        stage.requester.cancel(stage.campaign)
        finished = stage.requester.watch(stage.campaign)
        verdict, _ = verdict_of(session, ticket, [GRID])
        assert verdict in ("expired", "refused")
        assert finished.progress.tokens == stage.given == stage.tokens()


def test_overlapping_certificates_are_not_both_let_in(stage):
    since = stage.deployment.broker.mark()
    with stage.session("gateway/500-600") as session:
        session.arrive([550], credit=1)
        assert ended(session)
    stage.log_says("overlap|vouched", since)
    stage.unharmed()
