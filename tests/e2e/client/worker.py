# SPDX-License-Identifier: Apache-2.0
"""A worker (or a gateway of several): arrives, scores its assignments, sends tokens, and follows the broker's
answers."""
from collections import Counter, deque

from crowdveil import wire
from crowdveil.schema import schema
from crowdveil.wire import Closing, Connection, context


class Session(Closing):
    """One connection of the crowd schema after both hellos. Received messages become (kind, message) pairs."""

    def __init__(self, address, ca, cert, key, hello=True, timeout=20):
        self.pb = schema("crowd")
        self.connection = Connection(address, context(ca, cert, key), timeout=timeout or 20)
        self.connection.sock.settimeout(timeout)
        self.inbox = deque()
        if hello:
            self.send(wire.hello("crowd"))

    def send(self, envelope):
        self.connection.send(envelope.SerializeToString())

    def arrive(self, workers, credit=0):
        envelope = self.pb.Envelope()
        envelope.arrives.add(workers=workers, credit=credit)
        self.send(envelope)

    def token(self, ticket, values):
        envelope = self.pb.Envelope()
        envelope.tokens.add(ticket=ticket, values=values)
        self.send(envelope)

    def decline(self, campaign, why, ticket=b"", used_up=False, arms=()):
        envelope = self.pb.Envelope()
        envelope.declines.add(campaign=campaign, why=why, ticket=ticket, used_up=used_up, arms=arms)
        self.send(envelope)

    def next(self):
        """The next (kind, message); kind None at the end of the connection."""
        while not self.inbox:
            payload = self.connection.receive()
            if payload is None:
                return None, None
            envelope = self.pb.Envelope.FromString(payload)
            if envelope.HasField("hello"):
                self.inbox.append(("hello", envelope.hello))
            for kind in ("campaigns", "assigns", "acks", "backoffs", "dones"):
                self.inbox.extend((kind[:-1], message) for message in getattr(envelope, kind))
            if envelope.HasField("goodbye"):
                self.inbox.append(("goodbye", envelope.goodbye))
        return self.inbox.popleft()

    def until(self, *kinds):
        """Skips to the next message of one of these kinds; an unexpected end is an error."""
        while True:
            kind, message = self.next()
            if kind in kinds:
                return message if len(kinds) == 1 else (kind, message)
            if kind is None or kind == "goodbye":
                raise ConnectionError(f"closed while waiting for {kinds}: {message.why if message else 'no goodbye'}")

    def ack(self, ticket):
        """The verdict for this ticket."""
        while True:
            ack = self.until("ack")
            if ack.ticket == ticket:
                return ack

    def verdict(self, ack):
        return self.pb.Verdict.Name(ack.verdict)[len("VERDICT_"):].lower()


def work(session, workers, score, credit=64, tokens_per_worker=1):
    """Works until the first campaign is done or every worker has given its tokens.

    `score(worker, arm, place)` gives a grid value. Returns the count of each verdict, and what was accepted as
    (worker, arm, value).
    """
    verdicts, accepted, open_ = Counter(), [], {}
    left = {worker: tokens_per_worker for worker in workers}
    session.arrive(sorted(left), credit)
    while any(left.values()) or open_:
        kind, message = session.next()
        if kind is None or kind in ("goodbye", "done"):
            break
        if kind == "assign":
            values = [score(message.worker, arm, message.place) for arm in message.arms]
            open_[message.ticket] = (message.worker, message.arms[0], values[0])
            session.token(message.ticket, values)
        elif kind == "ack" and message.ticket in open_:
            token = open_.pop(message.ticket)
            verdict = session.verdict(message)
            verdicts[verdict] += 1
            if verdict == "accepted":
                accepted.append(token)
            left[token[0]] -= verdict in ("accepted", "duplicate")
            if left[token[0]] > 0:
                session.arrive([token[0]])
        elif kind == "backoff" and message.delay_ms == 0:
            for worker in message.workers:
                left[worker] = 0
        elif kind == "backoff":
            session.arrive(message.workers)
    return verdicts, accepted
