# SPDX-License-Identifier: Apache-2.0
"""A requester that shows the broker's messages as they are, and sends any."""
import os

import crowdveil
from crowdveil.schema import schema


# mechanism and privatizer: a name, or (name, {parameter: value})
# two: with two brokers, in shares of 15 bits unless `score_bits` says otherwise
def spec(arms, name="test", policy="ppar", policy_params=None, trusted=False, two=False, **more):
    """By default a ranking asks up to the limit, and a worker that gives more tokens than there are items is asked
    again: its scores are drawn."""
    more.setdefault("repeat", more.get("tokens_per_worker", 1) > arms and "costs_micro" not in more)
    brokers = {"brokers": 2, "score_bits": 15} if two else {}
    params = {"boundary": "feed"} if policy in ("ppar", "ppar-kl") else {}
    return crowdveil.Spec(name, arms, (policy, params | (policy_params or {})), thirdparty_trusted=trusted,
                          **{**brokers, **more}).message()


def gold(*args, **kwargs):
    """As crowdveil.Gold: first {number among all items: known score}."""
    return crowdveil.Gold(*args, **kwargs).message()


class Requester(crowdveil.Requester):
    """One connection; requests are answered in order."""

    def __init__(self, address, files, timeout=120):
        super().__init__(address, files, timeout=timeout)

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

    def export(self, campaign):
        """All parts."""
        self.ask(export={"campaign": campaign})
        parts = [self.answer().part]
        while not parts[-1].last:
            parts.append(self.answer().part)
        return parts

    def ledger(self, campaign=0):
        self.ask(ledger={"campaign": campaign})
        return self.expect("statement")

    def status(self):
        self.ask(status={})
        return self.expect("status_answer")


def end_name(end):
    """`complete`, `tokens`, ..."""
    return schema("base").End.Name(end)[len("END_"):].lower()


def classes(finished):
    """({class: [arms]}, arms without a class of their own)."""
    ranked, undecided = {}, []
    for standing in finished.standings:
        is_decided = standing.rank_class > 0 and standing.held == 0
        (ranked.setdefault(standing.rank_class, []) if is_decided else undecided).append(standing.arm)
    return ranked, undecided
