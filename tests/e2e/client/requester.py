# SPDX-License-Identifier: Apache-2.0
"""A requester over order.proto: submits, watches, exports."""
import os

from .schema import schema
from .wire import VERSION, Closing, Connection, context
from .worker import GRID


class Refused(Exception):
    """The broker answered with an error."""


def choice(message, name, **params):
    message.name = name
    for key, value in params.items():
        param = message.params.add(key=key)
        if isinstance(value, str):
            param.text = value
        else:
            param.number = value


# mechanism and privatizer: a name, or (name, {parameter: value})
def spec(arms, name="test", policy="ppar", policy_params=None, mechanism="hybrid", privatizer="none", epsilon=1.0,
         tokens=50_000_000, tokens_per_worker=1, trusted=False, deadline_ms=0, idle_ms=0, names=(), edges=(),
         pairs=False):
    message = schema("base").Spec(name=name, arms=arms, names=names, epsilon_micro=round(epsilon * 1e6),
                                  tokens_per_worker=tokens_per_worker, thirdparty_trusted=trusted, tokens=tokens,
                                  deadline_ms=deadline_ms, idle_ms=idle_ms, pairs=pairs)
    message.edges.extend(arm for edge in edges for arm in edge)
    choice(message.policy, policy, **(policy_params or {}))
    for field, chosen in ((message.mechanism, mechanism), (message.privatizer, privatizer)):
        field_name, params = chosen if isinstance(chosen, tuple) else (chosen, {})
        choice(field, field_name, **params)
    return message


def gold(answers, tolerance=.3, error=.05, level=.001, share=.3):
    """`answers`: {number among all items: known score}."""
    message = schema("order").Gold(tolerance=round(tolerance * GRID), error_micro=round(error * 1e6),
                                   level_micro=round(level * 1e6), share_micro=round(share * 1e6))
    for item, answer in sorted(answers.items()):
        message.items.append(item)
        message.answers.append(round(answer * GRID))
    return message


class Requester(Closing):
    """One connection; requests are answered in order."""

    def __init__(self, address, files, timeout=120):
        self.pb = schema("order")
        self.connection = Connection(address, context(files.ca, files.cert, files.key), timeout=timeout)
        envelope = self.pb.Envelope()
        envelope.hello.version = VERSION
        envelope.hello.program = "crowdveil-e2e"
        self.connection.send(envelope.SerializeToString())

    def ask(self, **request):
        """Sends one request: the field's name and its message's fields."""
        (field, values), = request.items()
        envelope = self.pb.Envelope()
        getattr(envelope, field).SetInParent()
        for key, value in values.items():
            if hasattr(value, "DESCRIPTOR"):
                getattr(getattr(envelope, field), key).CopyFrom(value)
            else:
                setattr(getattr(envelope, field), key, value)
        self.connection.send(envelope.SerializeToString())

    def answer(self):
        """The next envelope that contains more than a hello."""
        while True:
            payload = self.connection.receive()
            if payload is None:
                raise ConnectionError("the broker closed the connection")
            envelope = self.pb.Envelope.FromString(payload)
            if envelope.HasField("goodbye"):
                raise ConnectionError(f"the broker says goodbye: {envelope.goodbye.why}")
            if envelope.HasField("error"):
                raise Refused(envelope.error.why)
            if any(field.name != "hello" for field, _ in envelope.ListFields()):
                return envelope

    def submit(self, the_spec, client_key=None, gold=None):
        fields = {"client_key": client_key or os.urandom(16), "spec": the_spec}
        self.ask(submit={**fields, "gold": gold} if gold is not None else fields)
        return self.answer().accepted

    def watch(self, campaign=0, until=None):
        """Waits for the end (the Finished message), or until `until(progress)` is true (the Progress)."""
        self.ask(watch={"campaign": campaign})
        while True:
            envelope = self.answer()
            if envelope.HasField("finished"):
                return envelope.finished
            if until is not None and until(envelope.progress):
                return envelope.progress

    def describe(self, campaign=0):
        """(the broker's description of the campaign, the answer after it)."""
        self.ask(watch={"campaign": campaign, "describe": True})
        envelope = self.answer()
        assert envelope.HasField("description"), envelope
        return envelope.description.spec, self.answer()

    def cancel(self, campaign):
        self.ask(cancel={"campaign": campaign})
        return self.answer()

    def purge(self, campaign=0):
        """Returns how many ended campaigns were purged; 0: all of them."""
        self.ask(purge={"campaign": campaign})
        return self.answer().purged.campaigns

    def export(self, campaign):
        """All parts."""
        self.ask(export={"campaign": campaign})
        parts = [self.answer().part]
        while not parts[-1].last:
            parts.append(self.answer().part)
        return parts

    def other_answer(self):
        """The next answer that is no news of a watched campaign, which may come at any time."""
        while (envelope := self.answer()).HasField("progress") or envelope.HasField("finished"):
            pass
        return envelope

    def ledger(self, campaign=0):
        self.ask(ledger={"campaign": campaign})
        return self.other_answer().statement

    def status(self):
        self.ask(status={})
        return self.other_answer().status_answer


def end_name(end):
    """`complete`, `tokens`, ..."""
    return schema("base").End.Name(end)[len("END_"):].lower()


def classes(finished):
    """({class: [arms]}, undecided arms)."""
    ranked, undecided = {}, []
    for standing in finished.standings:
        (ranked.setdefault(standing.rank_class, []) if standing.rank_class else undecided).append(standing.arm)
    return ranked, undecided
