# SPDX-License-Identifier: Apache-2.0
"""
Peers of a co-broker: its broker, and a worker (or gateway) with two brokers, which makes the shares of its assignments
as it likes, also wrong ones.
"""
import os
from collections import deque

from crowdveil.prio3 import NONCE_BYTES, RAND_BYTES
from crowdveil.schema import schema
from crowdveil.split import KeyLog, Place, Sealer, context_of, fingerprint
from crowdveil.wire import Closing, Connection, context, hello

from .requester import spec
from .worker import Session


LEAST = {"release_tokens": 10}  # as the broker raises it to the co-broker's limit


def merged(fields, changes):
    return {**fields, **{key: {**fields[key], **value} if isinstance(value, dict) else value
                         for key, value in changes.items()}}


class Peer(Closing):
    """A connection to the co-broker, of a broker or a worker, that shows its messages as they are."""

    def __init__(self, address, files):
        self.pb, tls = schema("share"), context(files.ca, files.cert, files.key)
        self.keys, self.hellos = KeyLog(tls), 0
        self.connection = Connection(address, tls, role="cobroker")
        self.connection.send(hello("share").SerializeToString())

    def say(self, **fields):
        self.connection.send(self.pb.Envelope(**fields).SerializeToString())

    def envelope(self):
        """The next one; a second Hello would be refused by a broker or worker."""
        envelope = self.pb.Envelope.FromString(self.connection.receive() or b"")
        self.hellos += envelope.HasField("hello")
        assert self.hellos == 1 or envelope.ByteSize() == 0
        return envelope

    def hear(self, field):
        """The messages of the next envelope that has the field; a goodbye fails the test."""
        while True:
            envelope = self.envelope()
            assert not envelope.HasField("goodbye"), envelope.goodbye
            assert envelope.ByteSize() > 0, "closed"
            if getattr(envelope, field):
                return list(getattr(envelope, field))

    def goodbye(self):
        while True:
            envelope = self.envelope()
            if envelope.HasField("goodbye"):
                return envelope.goodbye.why
            assert envelope.ByteSize() > 0, "closed without a reason"

    def open(self, number=1, **changes):
        """As a broker: the co-broker's answer to a campaign."""
        fields = {"spec": spec(2, two=True, epsilon=1, tokens=1000, policy_params=LEAST),
                  "database": bytes(range(16)), "requester": "alice",
                  "position": {"campaign": number, "plans_hash": bytes(32), "batches_hash": bytes(32),
                               "closings_hash": bytes(32)}}
        fields["spec"].mechanism.name = "hybrid"
        self.say(opens=[merged(fields, changes)])
        return self.hear("opened")[0]

    def enter(self, terms, broker):
        """As a worker: the sealer of a session in this campaign; `broker` is the fingerprint of the broker's key."""
        self.say(enters=[{"campaign": terms.id}])
        session, sock = self.hear("sessions")[0], self.connection.sock
        bound = context_of(terms, broker, fingerprint(sock.getpeercert(True)))
        return Sealer(terms.split.score_bits, bound, session.id, self.keys.export(sock, bound))

    def close(self):
        super().close()
        self.keys.close()


class Worker(Closing):
    """Both connections, and a session in the first campaign that the broker names. `sealer` makes honest shares."""

    def __init__(self, deployment, identity, workers):
        files = deployment.pki.issue(identity)
        self.connection = self.session = Session(deployment.broker.address, files.ca, files.cert, files.key)
        self.waiting = deque()
        self.session.arrive(workers, credit=64)
        self.terms = self.session.until("campaign")
        self.cobroker = Peer(deployment.cobroker_address, files)
        self.sealer = self.cobroker.enter(self.terms, fingerprint(self.session.connection.sock.getpeercert(True)))

    def assigned(self):
        """The next assignment, and its place."""
        assign = self.waiting.popleft() if self.waiting else self.session.until("assign")
        return assign, Place(assign.plan, assign.arms[0], assign.place, assign.worker, assign.slot)

    def fresh(self):
        """Random bits for a split, and a nonce."""
        return os.urandom(RAND_BYTES), os.urandom(NONCE_BYTES)

    def send(self, ticket, share):
        """The share's fields as they are."""
        self.session.send(self.session.pb.Envelope(tokens=[{"ticket": ticket, "share": share}]))

    def verdict(self, ticket):
        """(verdict, why); other assignments wait meanwhile."""
        while True:
            kind, message = self.session.until("ack", "assign")
            if kind == "assign":
                self.waiting.append(message)
            elif message.ticket == ticket:
                return self.session.verdict(message), message.why

    def close(self):
        self.session.close()
        self.cobroker.close()
