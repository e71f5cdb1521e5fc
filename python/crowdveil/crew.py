# SPDX-License-Identifier: Apache-2.0
"""
The workers behind one connection: which of them arrive, what they have given and answered, what waits for an
acknowledgement. Pure: time is an argument, and the caller sends what `say` adds only after it has stored what
`unstored` and `answers` have.
"""
from __future__ import annotations

import heapq
import re
from collections import Counter, deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Optional

from .errors import Error, ProtocolError
from .model import Choice
from .privatizer import PICO, Law, law_of
from .sessions import Pair, Session, Sessions
from .split import Place, measure
from .wire import GRID, MICRO

CREDIT_MAX = 8192
CAMPAIGNS_MAX = 64  # that a broker may have told the terms of and not ended
ANY = 0            # behind a privatizer a question is one of the name, whatever the number of the campaign
NEVER = 1 << 62    # given by a worker that no campaign wants any more
PROBE_S = 1.0      # between arrivals of one worker, while no known campaign wants any
LATE_S = 2.0       # for acknowledgements after the end of a campaign
REST_S = 1.0       # of a worker that declined an assignment
FINGERPRINT = re.compile("[0-9a-f]{64}")
ASKED = "this worker has been asked about this {} already"
CHANGED = ("the broker tells another name, number of arms or of tokens per worker, kind of score, privatizer or "
           "`repeat` than before; expected terms that do not change once a worker has answered")
NO_SESSION = "no session with the co-broker within the lease"


class Decline(Exception):
    """Raised by an answer function: no score for this assignment now; the text is told to the broker."""


class UsedUp(Decline):
    """Raised by an answer function: there will be no further score for this arm."""


@dataclass(frozen=True)
class Accept:
    """
    What the owner of the scores permits, whatever the broker asks for. `requesters`, `privatizers` and `mechanisms` are
    names. `epsilon` is the largest of a campaign, `delta` that of its privatizer. `tokens` is the largest number of
    scores of one worker over all campaigns, ever; 0: no limit.
    `pairs` are the pairs of brokers, by the fingerprints of their keys, whose campaigns with two brokers to serve, and
    then no other campaigns.
    """
    requesters: Collection[str]
    privatizers: Collection[str] = ("none",)
    mechanisms: Collection[str] = ("hybrid",)
    epsilon: float = 1.0
    delta: float = 0.0
    tokens: int = 1
    pairs: Collection[Pair] = ()

    def __post_init__(self) -> None:
        for name in ("requesters", "privatizers", "mechanisms"):
            if isinstance(getattr(self, name), str):
                raise Error(f"accept: {name} is a text; expected a list of names")
        for pair in self.pairs:
            if len(pair) != 2 or pair[0] == pair[1] or not all(map(FINGERPRINT.fullmatch, pair)):
                raise Error(f"accept: pairs has {pair!r}; expected two fingerprints of different keys, of 64 "
                            "hexadecimal digits each")
        if not isinstance(self.tokens, int) or self.tokens < 0:
            raise Error(f"accept: tokens is {self.tokens!r}; expected a whole number, 0 for no limit")

    def check(self, terms: Any) -> Law:
        """The law of the privatizer to apply; Error says why these terms (base.Terms) are not accepted."""
        for what, name, names in (("requester", terms.requester, self.requesters),
                                  ("privatizer", terms.privatizer.name, self.privatizers),
                                  ("mechanism", terms.mechanism.name, self.mechanisms)):
            if name not in names:
                raise Error(f"{what} {name} is not accepted here; expected one of {', '.join(sorted(names))} "
                            f"(accept.{what}s)")
        if terms.epsilon_micro > self.epsilon * MICRO:
            raise Error(f"epsilon {terms.epsilon_micro / MICRO:.6f} is not accepted here; expected at most "
                        f"{self.epsilon:.6f}, which is accept.epsilon")
        law = law_of(Choice.of(terms.privatizer), terms.arms)
        if law.epsilon_micro is not None and law.epsilon_micro > self.epsilon * MICRO:
            raise Error(f"the privatizer's epsilon {law.epsilon_micro / MICRO:.6f} is not accepted here; expected at "
                        f"most {self.epsilon:.6f}, which is accept.epsilon")
        if law.delta_pico > self.delta * PICO:
            raise Error(f"the privatizer's delta {law.delta_pico / PICO:.12g} is not accepted here; expected at most "
                        f"{self.delta:.12g}, which is accept.delta")
        return law


@dataclass
class Counts:
    """The broker's answers to tokens."""
    accepted: int = 0
    duplicates: int = 0
    expired: int = 0
    refused: int = 0


Item = tuple[int, ...]  # one, or two in ascending order: what a question is about
Key = tuple[int, str]  # the number of a campaign, or ANY, and its name
Answer = tuple[int, str, int, Item]  # these, worker


def items_of(arms: Sequence[int], opponent: Optional[int]) -> list[Item]:
    """What an assignment asks."""
    return [(arm,) if opponent is None else (min(arm, opponent), max(arm, opponent)) for arm in arms]


@dataclass
class Terms:
    """
    A campaign as this side knows it; `law` is None if it was declined. `once`: each question is asked of a worker once,
    and `asked` has those that were answered.
    """
    message: Any
    law: Optional[Law]
    told: bool = True  # on this connection
    done: bool = False
    given: Counter[int] = field(default_factory=Counter)
    once: bool = False
    asked: dict[int, set[Item]] = field(default_factory=dict)
    key: Key = (ANY, "")  # of `asked`
    rule: Any = None    # what must not change once `gave`
    gave: bool = False

    def is_over(self, worker: int) -> bool:
        """The worker has answered all that there is."""
        arms = self.message.arms
        return self.once and len(self.asked.get(worker, ())) >= (arms * (arms - 1) // 2 if self.message.pairs else arms)

    def is_new(self, worker: int, items: list[Item]) -> bool:
        return not self.once or len(set(items)) == len(items) and self.asked.get(worker, set()).isdisjoint(items)


@dataclass
class Question:
    """An assignment that its worker has not answered yet; `place` with two brokers."""
    worker: int
    campaign: int
    ticket: bytes
    arms: tuple[int, ...]
    opponent: Optional[int]
    law: Law
    place: Optional[Place] = None


@dataclass
class Token:
    """What waits for an acknowledgement, with the fields of its crowd.Token."""
    worker: int
    campaign: int
    fields: dict[str, Any]
    place: Optional[Place] = None
    items: list[Item] = field(default_factory=list)
    is_disclosed: bool = False  # it has told what it can tell, whatever the broker does with it


@dataclass
class Held:
    """A question that waits for the session of its campaign: before it is asked, or after, with its tokens."""
    question: Question
    until: float
    values: Optional[tuple[int, ...]] = None


class Crew:
    """
    `answers_pairs`: whether the answer function can compare two items; `given` and `answered`: what is known of earlier
    runs; `hires`: each item is a worker, of which it is asked again and again.
    """

    def __init__(self, workers: Sequence[int], accept: Accept, campaign: str, credit: int = 64,
                 answers_pairs: bool = False, given: Mapping[int, int] = {},
                 answered: Collection[Answer] = (), hires: bool = False) -> None:
        if not workers or not 1 <= credit <= CREDIT_MAX:
            raise Error(f"{len(workers)} workers, {credit} assignments at once; expected 1 or more, and 1 to "
                        f"{CREDIT_MAX}")
        self.workers, self.accept, self.campaign, self.credit = workers, accept, campaign, credit
        self.answers_pairs, self.hires = answers_pairs, hires
        self.known = workers if isinstance(workers, range) else frozenset(workers)
        self.given, self.unstored = Counter(given), set[int]()
        self.answered = dict[Key, dict[int, set[Item]]]()
        for number, name, worker, item in answered:
            self.answered.setdefault((number, name), {}).setdefault(worker, set()).add(item)
        self.answers: list[tuple[bool, Answer]] = []  # unstored: given, or not given any more
        self.campaigns: dict[int, Terms] = {}
        self.next, self.waiting, self.again = 0, set[int](), deque[int]()
        self.resting: list[tuple[float, int]] = []
        self.had_rested = False  # the last one that arrived
        self.here = set[int]()  # waiting, resting, about to arrive, or without acknowledgement
        self.questions: dict[bytes, Question] = {}
        self.pending: dict[bytes, Token] = {}
        self.sessions, self.held = Sessions(accept.pairs), list[Held]()
        self.fresh: list[bytes] = []  # tickets of tokens that have not been sent
        self.declines: list[dict[str, Any]] = []
        self.counts, self.notes, self.met = Counts(), list[str](), False
        self.probe, self.probed, self.late = 0, 0.0, 0.0
        self.stall_due = False  # tokens were given, or terms told, since campaigns were searched that stand still

    # --- the connection

    def join(self) -> None:
        """Tokens without acknowledgement are sent again with their first values: drawn again, they would tell more."""
        self.fresh = list(self.pending)

    def leave(self) -> None:
        self.again.extend(self.waiting)
        self.again.extend(question.worker for question in self.questions.values())
        self.waiting.clear()
        self.questions.clear()
        self.held.clear()
        self.declines.clear()
        for terms in self.campaigns.values():
            terms.told = False

    # --- who may give what

    def _may_give(self, worker: int, scores: int) -> bool:
        limit, given = self.accept.tokens or NEVER, self.given[worker]
        return given < limit and scores <= limit - given

    def _is_wanted(self, worker: int) -> bool:
        live = [terms for terms in self.campaigns.values() if terms.law and terms.told and not terms.done]
        wanted = not live or any(
            terms.given[worker] < terms.message.tokens_per_worker and not terms.is_over(worker) for terms in live)
        return wanted and (self._may_give(worker, 1) or any(
            self._session(terms).open.get(worker) for terms in live
            if terms.message.HasField("split") and terms.law and terms.law.epsilon_micro is None))

    def _is_barred(self, worker: int) -> bool:
        """It has given all that its own limit permits."""
        return bool(self.accept.tokens) and not self._may_give(worker, 1)

    def _may_answer(self, terms: Terms, worker: int) -> bool:
        is_open = (terms.message.HasField("split") and terms.law is not None and terms.law.epsilon_micro is None
                   and bool(self._session(terms).open.get(worker)))
        return (terms.given[worker] < terms.message.tokens_per_worker and not terms.is_over(worker)
                and (self._may_give(worker, 1) or is_open))

    def _decline_stalled(self) -> None:
        """Says of a campaign that no worker may give another token, if what bars them the broker cannot know."""
        waiting = ({question.campaign for question in self.questions.values()}
                   | {pending.campaign for pending in self.pending.values()})
        live = [terms for terms in self.campaigns.values()
                if self.stall_due and terms.law and terms.told and not terms.done and terms.message.id not in waiting]
        for terms in live:
            if not any(self._may_answer(terms, worker) for worker in self.workers):
                self._decline_if_barred(terms)
        self.stall_due = self.stall_due and bool(waiting)

    def _decline_if_barred(self, terms: Terms) -> None:
        here = [worker for worker in self.workers if terms.given[worker] < terms.message.tokens_per_worker]
        over = sum(map(terms.is_over, here))
        barred = sum(not terms.is_over(worker) and self._is_barred(worker) for worker in here)
        if barred:
            self._give_up(terms, f"accept.tokens: {self.accept.tokens} are given by {barred} of {len(self.workers)} "
                                 "workers; expected more of them, or other workers")
        elif over:
            self._give_up(terms, f"{over} of {len(self.workers)} workers have answered all that this name asks, each "
                                 "once; expected others")

    def _session(self, terms: Terms) -> Session:
        """Of a campaign with two brokers."""
        return self.sessions.of[terms.message.id]

    def _move_on(self, worker: int) -> None:
        if self._is_wanted(worker):
            self.again.append(worker)
        else:
            self.here.discard(worker)

    # --- messages of the broker

    def hear(self, envelope: Any, now: float) -> list[Question]:
        """Takes one envelope; returns what there is to answer, each by `answer` or `decline`."""
        if envelope.arrives or envelope.tokens or envelope.declines:
            raise ProtocolError("the broker sent a message that only a worker may send")
        for message in envelope.campaigns:
            self._terms(message)
        for message in envelope.acks:
            self._ack(message)
        asked = [question for message in envelope.assigns for question in self._assign(message, now)]
        for message in envelope.backoffs:
            self._unwanted(message)
        for message in envelope.backoffs:
            for worker in message.workers:
                self._send_away(worker, message, now)
        for message in envelope.dones:
            terms = self.campaigns.get(message.campaign)
            if terms is not None and not terms.done:
                terms.done, self.next, self.late = True, 0, now + LATE_S
        return asked

    def _terms(self, message: Any) -> None:
        before = self.campaigns.get(message.id)
        if before is None:
            self._make_room()
        law = None
        try:
            if message.name != self.campaign:
                raise Error(f'this worker has no scores for the campaign, only for "{self.campaign}"')
            if getattr(message, "pairs", False) and not self.answers_pairs:
                raise Error("this worker scores single items; the campaign asks for comparisons")
            if not message.tokens_per_worker:
                raise Error("0 tokens per worker; expected 1 or more")
            accepted = self.accept.check(message)
            self.sessions.check(message, 0 <= accepted.low and accepted.high <= GRID)
            self._check_rule(message, accepted, before)
            law, self.met = accepted, True
        except Error as error:
            self._refuse(message, str(error))
        self.campaigns[message.id] = terms = Terms(message, law, done=before is not None and before.done)
        if before is not None:
            terms.given, terms.gave, terms.rule = before.given, before.gave, before.rule
        if law is not None:
            terms.rule = self._rule(message, law)
            terms.once = terms.rule[-1]
        elif before is not None:
            terms.once = before.once
        terms.key = before.key if law is None and before is not None else (
            ANY if law is not None and law.epsilon_micro is not None else message.id, message.name)
        terms.asked = self.answered.setdefault(terms.key, {})
        self.stall_due = True
        if before is None:
            self.next = 0  # workers that left may be wanted by the new campaign
        elif message != before.message:
            self._end(message.id)

    def _make_room(self) -> None:
        """A campaign that has ended, or was declined, is forgotten for a new one, unless tokens of it wait."""
        if len(self.campaigns) < CAMPAIGNS_MAX:
            return
        waiting = {token.campaign for token in self.pending.values()}
        waiting.update(question.campaign for question in self.questions.values())
        over = [number for number, terms in self.campaigns.items()
                if (terms.done or terms.law is None) and number not in waiting]
        if not over:
            raise ProtocolError(f"the broker opened more than {CAMPAIGNS_MAX} campaigns at once")
        del self.campaigns[over[0]]
        self.sessions.of.pop(over[0], None)

    def _rule(self, message: Any, law: Law) -> tuple[Any, ...]:
        """Ends with whether each question is asked of a worker once: behind a privatizer whatever the broker says,
        since each answer is randomized anew."""
        once = not self.hires and (not getattr(message, "repeat", False) or law.epsilon_micro is not None)
        is_local = law.epsilon_micro is not None
        return message.name, message.arms, message.tokens_per_worker, getattr(message, "pairs", False), is_local, once

    def _check_rule(self, message: Any, law: Law, before: Optional[Terms]) -> None:
        if before is not None and before.gave and before.rule != self._rule(message, law):
            raise Error(CHANGED)

    def _end(self, campaign: int) -> None:
        """Takes no answer to what was asked under terms that do not hold any more."""
        self.held = [held for held in self.held if held.question.campaign != campaign]
        for ticket, question in list(self.questions.items()):
            if question.campaign == campaign:
                del self.questions[ticket]
                self._move_on(question.worker)

    def _refuse(self, terms: Any, why: str) -> None:
        self.declines.append({"campaign": terms.id, "why": why})
        self.notes.append(f'declined campaign "{terms.name}": {why}')

    def _give_up(self, terms: Terms, why: str) -> None:
        """Declines a campaign whose terms were accepted before."""
        terms.law = None
        self._refuse(terms.message, why)
        self._end(terms.message.id)

    def _assign(self, message: Any, now: float) -> list[Question]:
        terms, worker, arms = self.campaigns.get(message.campaign), message.worker, tuple(message.arms)
        if terms is None or worker not in self.waiting:
            raise ProtocolError(f"an assignment of campaign {message.campaign} for worker {worker}, without terms or "
                                "for a worker that is not waiting for one")
        self.waiting.discard(worker)
        if terms.law is None or terms.done:
            self._move_on(worker)
            return []
        if terms.given[worker] >= terms.message.tokens_per_worker:
            raise ProtocolError(f"the broker asks worker {worker} for more than the {terms.message.tokens_per_worker} "
                                "tokens of the terms")
        if not arms or max(arms) >= terms.message.arms or len(set(arms)) < len(arms):
            raise ProtocolError(f"an assignment of arms {arms}; expected arms below {terms.message.arms}, each "
                                "once")
        pairs, opponent = getattr(terms.message, "pairs", False), getattr(message, "opponent", 0)
        if bool(opponent) != pairs or opponent > terms.message.arms or pairs and opponent - 1 in arms:
            raise ProtocolError(f"an assignment of arms {arms} with opponent {opponent}; expected another arm in a "
                                "campaign of pairs, else 0")
        if message.ticket in self.pending or message.ticket in self.questions:
            raise ProtocolError("the broker assigned an unacknowledged ticket again")
        if len(self.pending) + len(self.questions) >= 2 * self.credit:
            raise ProtocolError(f"the broker made more than {2 * self.credit} assignments at once")
        session, place = None, None
        if terms.message.HasField("split"):
            session, place = self._session(terms), Place(message.plan, arms[0], message.place, worker, message.slot)
            if len(arms) > 1:
                raise ProtocolError(f"an assignment of {len(arms)} arms; expected one: the campaign has two brokers")
            session.check_slot(worker, message.slot)
        is_free = session is not None and terms.law.epsilon_micro is None and session.is_open(worker, message.slot)
        if not is_free and not self._may_give(worker, len(arms)):
            self.given[worker] = NEVER
            self.declines.append({"ticket": message.ticket,
                                  "why": "the assignment asks for more scores than the worker's own limit leaves"})
            self._move_on(worker)
            return []
        opponent = message.opponent - 1 if getattr(message, "opponent", 0) else None
        if not terms.is_new(worker, items_of(arms, opponent)):
            why = ASKED.format("item" if opponent is None else "pair")
            self.declines.append({"ticket": message.ticket, "why": why})
            heapq.heappush(self.resting, (now + REST_S, worker))
            return []
        question = Question(worker, message.campaign, message.ticket, arms, opponent, terms.law, place)
        self.questions[message.ticket] = question
        if session is None or session.sealer is not None:
            return [question]
        self.held.append(Held(question, now + terms.message.lease_ms * .00075))
        return []

    def answer(self, question: Question, scores: Sequence[int], now: float = 0.0) -> None:
        """The scores of a question's arms, in grid units: privatized once, counted, and sent until acknowledged."""
        if question.ticket not in self.questions:
            return  # the connection on which it was asked has ended
        self._give(question, tuple(question.law.apply(arm, score) for arm, score in zip(question.arms, scores)), now)

    def _give(self, question: Question, values: tuple[int, ...], now: float) -> None:
        terms, fields, counts = self.campaigns[question.campaign], dict[str, Any](values=values), len(values)
        if question.place is not None:
            session = self._session(terms)
            try:
                measure(terms.message.split.score_bits, values[0])
            except Error as error:
                del self.questions[question.ticket]
                self._give_up(terms, str(error))
                self._move_on(question.worker)
                return
            if session.sealer is None:
                self.held.append(Held(question, now + terms.message.lease_ms * .00075, values))
                return
            fields = {"share": session.sealer.share(values[0], question.place)}
            counts = int(session.use(question.place) or question.law.epsilon_micro is not None)
        del self.questions[question.ticket]
        items = items_of(question.arms, question.opponent)
        self.pending[question.ticket] = Token(question.worker, question.campaign, fields, question.place, items,
                                              question.law.epsilon_micro is not None)
        terms.given[question.worker] += 1
        terms.gave = True
        if terms.once:
            terms.asked.setdefault(question.worker, set()).update(items)
            self._note(terms, question.worker, items, True)
        self.stall_due = True
        self.given[question.worker] += counts
        self.unstored.add(question.worker)
        self.fresh.append(question.ticket)

    def _note(self, terms: Terms, worker: int, items: list[Item], is_given: bool) -> None:
        self.answers += [(is_given, (*terms.key, worker, item)) for item in items]

    def decline(self, question: Question, why: str, used_up: bool, now: float) -> None:
        if self.questions.pop(question.ticket, None) is not None:
            self.declines.append({"ticket": question.ticket, "why": why[:200], "used_up": used_up})
            heapq.heappush(self.resting, (now + REST_S, question.worker))

    def _ack(self, message: Any) -> None:
        if message.ticket not in self.pending:
            return  # acknowledged before, on an earlier connection
        token = self.pending.pop(message.ticket)
        terms, worker, verdict = self.campaigns[token.campaign], token.worker, message.verdict
        given = terms.given
        if token.place is not None and verdict != 3:
            self.sessions.of[token.campaign].settle(token.place)
        if verdict == 1:
            self.counts.accepted += 1
        elif verdict == 2:
            self.counts.duplicates += 1
        elif verdict == 3:  # it filled no place, so that it does not count against tokens_per_worker
            self.counts.expired += 1
            if not token.is_disclosed:
                given[worker] -= 1 if 0 < given[worker] < NEVER else 0
                terms.asked.get(worker, set()).difference_update(token.items)
                self._note(terms, worker, token.items, False)
        else:  # what is refused once is refused again
            self.counts.refused += 1
            given[worker] = NEVER
            self.notes.append(f"the broker refused a token: {message.why or 'no reason given'}")
        self._move_on(worker)

    def _unwanted(self, message: Any) -> None:
        terms = self.campaigns.get(message.campaign)
        if terms is not None and message.delay_ms == 0:
            terms.told = True
            for worker in message.workers:
                if worker in self.known:
                    terms.given[worker] = NEVER

    def _send_away(self, worker: int, message: Any, now: float) -> None:
        if worker not in self.waiting:
            return
        self.waiting.discard(worker)
        if message.delay_ms > 0:
            heapq.heappush(self.resting, (now + message.delay_ms / 1000, worker))
        elif message.campaign == 0:
            self.given[worker] = NEVER
            self.here.discard(worker)
        elif message.campaign in self.campaigns:
            self._move_on(worker)
        else:
            self.here.discard(worker)

    # --- messages to the broker

    def _rested(self, now: float) -> Optional[int]:
        return heapq.heappop(self.resting)[1] if self.resting and self.resting[0][0] <= now else None

    def _other(self) -> Optional[int]:
        """The next of those that arrive again, then of those that never arrived."""
        if self.again:
            return self.again.popleft()
        while self.next < len(self.workers):
            worker, self.next = self.workers[self.next], self.next + 1
            if worker not in self.here:
                return worker
        return None

    def _next(self, now: float) -> Optional[int]:
        """Those that rested and the others take turns: the broker may send the same ones away again and again."""
        worker = None if self.had_rested else self._rested(now)
        self.had_rested = worker is not None
        worker = self._other() if worker is None else worker
        if worker is None:
            worker = self._rested(now)
            self.had_rested = worker is not None
        return worker

    def _arrivals(self, now: float) -> list[int]:
        arriving: list[int] = []
        while len(self.waiting) + len(arriving) < 2 * self.credit:
            worker = self._next(now)
            if worker is None:
                break
            if self._is_wanted(worker):
                self.here.add(worker)
                arriving.append(worker)
            else:
                self.here.discard(worker)
        if not arriving and not self.here and now - self.probed >= PROBE_S:
            # With the limits of all used up one comes, too: so the crew learns of campaigns, and says so.
            arriving = [worker for worker in self.workers[self.probe:self.probe + 1]
                        if self._may_give(worker, 1) or all(map(self._is_barred, self.workers))]
            self.probe = (self.probe + 1) % len(self.workers)
            self.here.update(arriving)
        if arriving:
            self.probed = now
        return arriving

    def _drop_late(self, now: float) -> None:
        """A broker acknowledges every token that an ended campaign has counted; the others have expired."""
        if not self.late or now < self.late:
            return
        self.late = 0.0
        for ticket, token in list(self.pending.items()):
            if self.campaigns[token.campaign].done:
                del self.pending[ticket]
                self.counts.expired += 1
                self._move_on(token.worker)

    def _drop_held(self, now: float) -> None:
        for held in [held for held in self.held if now >= held.until]:
            self.held.remove(held)
            self.decline(held.question, NO_SESSION, False, now)

    def say(self, envelope: Any, now: float) -> None:
        """Adds what is due."""
        self._drop_held(now)
        self._decline_stalled()
        for values in self.declines:
            decline = envelope.declines.add()
            for name, value in values.items():
                if name in decline.DESCRIPTOR.fields_by_name:
                    setattr(decline, name, value)
        self.declines.clear()
        self._drop_late(now)
        for ticket in self.fresh:
            if ticket in self.pending:
                envelope.tokens.add(ticket=ticket, **self.pending[ticket].fields)
        self.fresh.clear()
        arriving = self._arrivals(now)
        if arriving:
            envelope.arrives.add(workers=arriving, credit=self.credit)
            self.waiting.update(arriving)

    # --- the co-broker

    def join_cobroker(self, key: str, export: Callable[[bytes], bytes]) -> None:
        """`key`: its fingerprint; `export`: the session key of a context, from the connection."""
        self.sessions.join(key, export)
        try:
            self.sessions.check_pair()
        except Error as error:
            for terms in self.campaigns.values():
                if terms.law and terms.message.HasField("split"):
                    self._give_up(terms, str(error))

    def leave_cobroker(self) -> None:
        self.sessions.leave()

    def hear_cobroker(self, envelope: Any, now: float) -> list[Question]:
        """Takes one share.Envelope; returns what there is to answer now."""
        asked: list[Question] = []
        for told in envelope.sessions:
            session, terms = self.sessions.asked(told.terms.id), self.campaigns[told.terms.id]
            try:
                session.begin(told, (self.sessions.broker, self.sessions.cobroker), self.sessions.export)
            except Error as error:
                self._give_up(terms, str(error))
                continue
            asked += self._resume(told.terms.id, now)
        for turned in envelope.turned:
            session, terms = self.sessions.asked(turned.campaign), self.campaigns[turned.campaign]
            session.due = now + turned.again_ms / 1000
            if not turned.again_ms and terms.law and not terms.done:
                self._give_up(terms, f"the co-broker gives no session: {turned.why or 'no reason given'}")
        return asked

    def _resume(self, campaign: int, now: float) -> list[Question]:
        """What waited for the session: answers leave, questions are asked."""
        mine = [held for held in self.held if held.question.campaign == campaign]
        self.held = [held for held in self.held if held.question.campaign != campaign]
        mine = [held for held in mine if held.question.ticket in self.questions]
        for held in mine:
            if held.values is not None:
                self._give(held.question, held.values, now)
        return [held.question for held in mine if held.values is None]

    def say_cobroker(self, envelope: Any, now: float) -> None:
        """Asks for the sessions that are due."""
        for number, terms in self.campaigns.items():
            live = terms.law is not None and terms.told and not terms.done and terms.message.HasField("split")
            if live and self.sessions.enter(number, now):
                envelope.enters.add(campaign=number)

    # --- the end

    def is_done(self, now: float) -> bool:
        """Whether the campaign has ended, or every worker has given what it may."""
        if self.declines:
            return False
        ended = self.met and all(terms.done for terms in self.campaigns.values() if terms.law)
        if ended and (not self.pending or now >= self.late):
            return True  # LATE_S after the end the rest has expired
        idle = not self.here and self.next >= len(self.workers)
        return idle and not any(self._may_give(worker, 1) for worker in self.workers)
