# SPDX-License-Identifier: Apache-2.0
"""A third-party over rank.proto: honest unless a campaign's class makes it lie."""
import select
import socket
import threading
from contextlib import suppress

from crowdveil import ProtocolError
from crowdveil.chain import NONE, chain_plan, chain_release
from crowdveil.schema import schema
from crowdveil.wire import VERSION, Splitter, frame, server_context
from support.address import HOST

class Honest:
    """
    One campaign: `rounds` plans of `tokens` for every arm, then a result. Each message has a method that handles it; a
    lie is another version of one of them. `say(kind, **fields)` adds a message to the answer.
    """
    rounds, tokens = 1 << 30, 100

    def __init__(self, spec, campaign):
        self.spec, self.campaign = spec, campaign
        self.releases, self.releases_hash, self.plans, self.plans_hash = 0, NONE, 0, NONE
        self.seed, self.want, self.closed = bytes(8), None, False

    # --- messages sent

    def wants(self, number):
        return [(arm, self.tokens) for arm in range(self.spec.arms)]

    def position(self):
        return {"campaign": self.campaign, "releases": self.releases, "releases_hash": self.releases_hash,
                "plans": self.plans, "plans_hash": self.plans_hash}

    def opened(self, say):
        say("opened", position=self.position(), seed=self.seed)

    def plan(self, say, number=None, wants=None, **more):
        number = self.plans + 1 if number is None else number
        self.want = self.wants(number) if wants is None else wants
        say("plans", campaign=self.campaign, number=number,
            wants=[{"arm": arm, "tokens": tokens} for arm, tokens in self.want], **more)

    def result(self, say, reason, standings=None):
        say("results", campaign=self.campaign, reason=reason,
            standings=[{"arm": arm, "rank_class": 1} for arm in range(self.spec.arms)]
            if standings is None else standings)

    def ack(self, say):
        say("acks", campaign=self.campaign, release=self.releases)

    # --- messages received

    def on_open(self, say, stop):
        self.opened(say)
        if stop:
            self.result(say, stop)
        elif self.releases == self.plans * self.spec.arms:
            self.next(say)

    def next(self, say):
        if self.plans < self.rounds:
            self.plan(say)
        else:
            self.result(say, schema("base").END_COMPLETE)

    def on_accepted(self, say, number):
        if number == self.plans + 1:
            self.plans, self.plans_hash = number, chain_plan(self.plans_hash, number, self.want)

    def on_refused(self, say, refused):
        self.result(say, refused.reason)

    def on_release(self, say, release):
        assert release.number == self.releases + 1, f"release {release.number} after {self.releases}"
        self.releases, self.releases_hash = release.number, chain_release(self.releases_hash, release)
        self.ack(say)
        if self.releases == self.plans * self.spec.arms:
            self.next(say)

    def on_stop(self, say, reason):
        self.result(say, reason)


class Thirdparty:
    """
    Listens for one broker at a time. `roles` maps the beginning of a campaign's name to the class that plays it;
    `greet(connection)` may replace the hello (and returns whether to go on).
    """

    def __init__(self, files, roles=None, greet=None):
        self.tls, self.roles, self.greet = server_context(files), roles or {}, greet
        self.pb, self.books, self.failures, self.refusals, self.connections = schema("rank"), {}, [], [], 0
        self.goodbyes = []
        self.listener = socket.create_server((HOST, 0))
        self.address = f"{HOST}:{self.listener.getsockname()[1]}"
        self.sock, self.turn = None, threading.Lock()  # a TLS connection may be used by one thread at a time
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def _serve(self):
        while True:
            try:
                raw, _ = self.listener.accept()
            except OSError:
                return
            try:
                self.sock = self.tls.wrap_socket(raw, server_side=True)
                self.connections += 1
                self._talk()
            except (OSError, ProtocolError, ConnectionError):
                pass
            except Exception as error:  # the broker sent a message that an honest third-party does not expect
                self.failures.append(error)
            finally:
                raw.close()
                if self.sock is not None:
                    self.sock.close()

    def _talk(self):
        if self.greet is not None and not self.greet(self):
            return
        hello = self.pb.Envelope()
        hello.hello.version = VERSION
        self.send(hello)
        splitter = Splitter()
        while data := self._receive():
            for payload in splitter.feed(data):
                answer = self.pb.Envelope()
                self._hear(self.pb.Envelope.FromString(payload), answer)
                if answer.ListFields():
                    self.send(answer)

    def _receive(self):
        if not self.sock.pending():
            select.select([self.sock], [], [])
        with self.turn:
            return self.sock.recv(65536)

    def send(self, envelope):
        self.send_raw(frame(envelope.SerializeToString()))

    def send_raw(self, data):
        with self.turn:
            self.sock.sendall(data)

    def _book(self, message):
        spec, campaign = message.spec, message.position.campaign
        if campaign not in self.books:
            role = next((role for name, role in self.roles.items() if spec.name.startswith(name)), Honest)
            self.books[campaign] = role(spec, campaign)
        return self.books[campaign]

    def _hear(self, envelope, answer):
        def say(kind, **fields):
            getattr(answer, kind).add(**fields)
        if envelope.HasField("goodbye"):
            self.goodbyes.append(envelope.goodbye.why)
        for message in envelope.opens:
            self._book(message).on_open(say, message.stop)
        for message in envelope.accepted:
            self.books[message.campaign].on_accepted(say, message.plan)
        for message in envelope.refused:
            self.refusals.append(message)
            self.books[message.campaign].on_refused(say, message)
        for message in envelope.releases:
            self.books[message.campaign].on_release(say, message)
        for message in envelope.stops:
            self.books[message.campaign].on_stop(say, message.reason)
        for message in envelope.closed:
            self.books[message.campaign].closed = True

    def close(self):
        self.listener.close()
        if self.sock is not None:
            with suppress(OSError):  # it has ended
                self.sock.shutdown(socket.SHUT_RDWR)  # wakes the connection's thread, which closes it
