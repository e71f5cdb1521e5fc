# SPDX-License-Identifier: Apache-2.0
"""
The sessions of a crew with its co-broker, one for each campaign with two brokers, and which slots of each worker are
used and not settled. Pure: the caller has the connections, and gives their keys.
"""
from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any, Optional

from .errors import Error, ProtocolError
from .split import BIT, SCORE, Place, Sealer, context_of

Pair = tuple[str, str]  # the fingerprints of broker and co-broker
DIFFERENT = {"id": "campaign", "epsilon_micro": "epsilon", "tokens_per_worker": "number of tokens per worker",
             "arms": "number of arms", "pairs": "kind of score", "repeat": "rule on repeated questions",
             "score_bits": "kind of score", "database": "database of the broker", "key": "verify key"}


def difference(one: Any, other: Any) -> str:
    """What differs in two base.Terms, apart from the lease, of which a co-broker knows nothing; empty: nothing."""
    for message, against in ((one, other), (one.split, other.split)):
        for descriptor in message.DESCRIPTOR.fields:
            name = descriptor.name
            if name not in ("lease_ms", "split") and getattr(message, name) != getattr(against, name):
                return DIFFERENT.get(name, name)
    return ""


@dataclass
class Session:
    """A campaign's; without a sealer there is none now."""
    terms: Any
    sealer: Optional[Sealer] = None
    asked: bool = False
    due: float = 0.0
    duo: Optional[Pair] = None  # of its first session
    open: dict[int, set[int]] = field(default_factory=dict)  # slots that were used and are not settled, by worker
    settled: set[tuple[int, int]] = field(default_factory=set)

    def check_slot(self, worker: int, slot: int) -> None:
        if slot >= self.terms.tokens_per_worker:
            raise ProtocolError(f"an assignment with slot {slot} of worker {worker}; expected one below "
                                f"{self.terms.tokens_per_worker}")
        if (worker, slot) in self.settled:
            raise ProtocolError(f"the broker asks for slot {slot} of worker {worker} again, whose token is settled")

    def is_open(self, worker: int, slot: int) -> bool:
        return slot in self.open.get(worker, ())

    def use(self, place: Place) -> bool:
        """True if the slot had not been used before."""
        slots = self.open.setdefault(place.worker, set())
        fresh = place.slot not in slots
        slots.add(place.slot)
        return fresh

    def settle(self, place: Place) -> None:
        self.open[place.worker].discard(place.slot)
        self.settled.add((place.worker, place.slot))

    def begin(self, told: Any, duo: Pair, export: Callable[[bytes], bytes]) -> None:
        """With a share.Session and the keys that this side sees; Error declines the campaign."""
        what = difference(self.terms, told.terms)
        if what:
            raise Error(f"broker and co-broker tell another {what}; expected the same terms of both")
        if self.duo not in (None, duo):
            raise Error("broker or co-broker has another key than in the campaign's first session; expected the same "
                        "keys until the campaign ends")
        context = context_of(self.terms, *duo)
        self.duo, self.sealer = duo, Sealer(self.terms.split.score_bits, context, told.id, export(context))


class Sessions:
    """`pairs`: what the owner accepts (Accept.pairs)."""

    def __init__(self, pairs: Collection[Pair]) -> None:
        self.pairs, self.broker, self.cobroker = pairs, "", ""
        self.of = dict[int, Session]()
        self.export: Callable[[bytes], bytes] = lambda context: b""

    def check(self, terms: Any, in_range: bool) -> None:
        """Whether the owner accepts this number of brokers, and these; `in_range`: tokens lie from 0 to 1. Error."""
        two = terms.HasField("split")
        if not two and self.pairs:
            raise Error("the campaign has one broker; expected two, a pair of accept.pairs")
        if not two:
            return
        if not self.pairs:
            raise Error("the campaign has two brokers; expected one, since this worker has no accept.pairs and "
                        "cobroker")
        self.check_pair()
        if terms.split.score_bits not in (BIT, SCORE):
            raise Error(f"shares of {terms.split.score_bits} bits; expected {BIT} or {SCORE}")
        if not in_range:
            raise Error(f"privatizer {terms.privatizer.name} sends values outside 0 to 1, which have no shares; "
                            "expected another one")
        before = self.of.setdefault(terms.id, Session(terms))
        what = difference(before.terms, terms)
        if what:
            raise Error(f"the broker tells another {what} than before; expected terms that do not change")

    def check_pair(self) -> None:
        if all(broker != self.broker for broker, _ in self.pairs):
            raise Error(f"the broker's key is {self.broker}; expected that of a pair in accept.pairs")
        if self.cobroker and (self.broker, self.cobroker) not in self.pairs:
            raise Error(f"the co-broker's key is {self.cobroker}; expected the one that accept.pairs has for the "
                        "broker")

    # --- the connection to the co-broker

    def join(self, cobroker: str, export: Callable[[bytes], bytes]) -> None:
        self.cobroker, self.export = cobroker, export

    def leave(self) -> None:
        self.cobroker = ""
        for session in self.of.values():
            session.sealer, session.asked, session.due = None, False, 0.0

    def asked(self, campaign: int) -> Session:
        """The session that the co-broker answers about."""
        session = self.of.get(campaign)
        if session is None or not session.asked:
            raise ProtocolError(f"the co-broker answers for campaign {campaign}, which was not asked")
        session.asked = False
        return session

    def enter(self, campaign: int, now: float) -> bool:
        """Whether to ask for a session of this campaign now."""
        session = self.of[campaign]
        due = bool(self.cobroker) and session.sealer is None and not session.asked and now >= session.due
        session.asked = session.asked or due
        return due
