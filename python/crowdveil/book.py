# SPDX-License-Identifier: Apache-2.0
"""
One campaign as a third-party knows it: releases, plans and their hashes, and what the broker must be told. Pure: no
time, no input or output; the caller stores what `fresh` has before it sends what is due. docs/protocol.md describes the
messages.
"""
from __future__ import annotations

from array import array
from collections import deque
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Callable, Optional, TypeVar

from .chain import NONE, chain_plan, chain_release
from .checks import REPEATING, WHY_BYTES, fits, is_noise
from .errors import ProtocolError, cut
from .judge import FAILURES, Broken, plan_of, reason_of, standings_of, state_of
from .model import End, Plan, Release, Standing, Want
from .policy import Policy
from .schema import schema

T = TypeVar("T")
QUEUED_MAX = 8 << 20  # wants of recorded plans that run ahead of their releases, of all campaigns of a broker


@dataclass
class Queued:
    """The number of wants that wait in the queues of a broker's campaigns."""
    wants: int = 0


@dataclass
class Fresh:
    """What is not stored yet: messages of releases, plans (with standings), decisions (plan, release, standing), and
    the policy's state."""
    releases: list[Any] = field(default_factory=list)
    plans: list[Plan] = field(default_factory=list)
    decisions: list[tuple[int, int, Standing]] = field(default_factory=list)
    state: str = ""


class Book:
    """
    Methods named as messages take them; ProtocolError if the broker may not say this now. Whatever the policy raises
    ends the campaign: `why` then has the reason. `within()` is held while the policy has control.
    """

    def __init__(self, campaign: int, policy: Policy, seed: bytes, queued: Optional[Queued] = None,
                 within: Callable[[], AbstractContextManager[Any]] = nullcontext) -> None:
        self.campaign, self.policy, self.seed, self.within = campaign, policy, seed, within
        self.spec, self.message = policy.spec, b""  # the message: what the store keeps of the spec
        self.why, self.cause = "", ""  # for the requester, and for the operator
        self.releases, self.releases_hash = 0, NONE
        self.accepted, self.plans_hash = 0, NONE
        self.plan, self.left = Plan(0, ()), set[int]()
        self.plays_of, self.plays = self.plan, dict[int, int]()
        self.queue, self.queued = deque[tuple[int, "array[int]"]](), queued or Queued()
        self.expected_plans = self.expected_releases = 0
        self.stopped, self.end, self.done, self.closed = End.NONE, End.NONE, False, False
        self.classes = [0] * self.spec.arms
        self.fresh, self.changed = Fresh(), False
        self.due = set[str]()
        self.neighbours: dict[int, list[int]] = {}
        for a, b in self.spec.edges:
            self.neighbours.setdefault(a, []).append(b)
            self.neighbours.setdefault(b, []).append(a)

    # --- the policy

    def _ask(self, what: str, act: Callable[[], T], otherwise: T) -> T:
        """What the policy answers; once it has failed it is not called any more."""
        if self.why:
            return otherwise
        try:
            with self.within():
                return act()
        except FAILURES as error:
            self.why, self.cause = reason_of(self.policy.name, what, error)
            self._finish(End.REFUSED)
            return otherwise

    def _now(self) -> list[Standing]:
        return self._ask("standings", lambda: standings_of(self.policy), [])

    def take_classes(self) -> None:
        """After its policy was restored: what it had decided."""
        for standing in self._now():
            self.classes[standing.arm] = standing.rank_class

    # --- messages of the broker

    def begin(self) -> None:
        """For a new campaign: the first plan."""
        self._advance()

    def open(self, position: Any, stop: int) -> None:
        self._forget_queue()
        self.due = {"opened"}
        if self.plan.number > self.accepted and not self.end:
            self.due.add("plan")
        if self.end:
            self.due.add("result")
        # Until this side has these, it neither asks for more nor ends: the broker has already gone past.
        self.expected_plans, self.expected_releases = position.plans, position.releases
        if stop:
            self.stop(stop)
        else:
            self._finish_if_over()

    def record(self, plan: Plan) -> None:
        last = self.queue[-1][0] if self.queue else self.accepted
        if self.end or plan.number <= last:
            return
        if plan.number > last + 1:
            raise ProtocolError(f"recorded plan {plan.number} of campaign {self.campaign} follows plan {last}")
        self._check_recorded(plan)
        if plan.number == self.plan.number and plan.wants == self.plan.wants:
            self._take_accepted()
        elif self.plan.number == self.accepted and self.left:
            if self.queued.wants + len(plan.wants) > QUEUED_MAX:
                raise ProtocolError(f"recorded plans run more than {QUEUED_MAX} wants ahead of their releases")
            self.queued.wants += len(plan.wants)
            self.queue.append((plan.number, array("Q", [number for want in plan.wants
                                                        for number in (want.arm, want.tokens, want.opponent)])))
        else:
            self._set_plan(plan, recorded=True)
        self._finish_if_over()

    def _check_recorded(self, plan: Plan) -> None:
        arms, pairs = self.spec.arms, self.spec.pairs
        names = [want.arm for want in plan.wants]
        if not names or len(set(names)) < len(names) or not all(
                want.arm < arms and (want.tokens or self.spec.edges) and fits(want.opponent, want.arm, pairs, arms)
                for want in plan.wants):
            raise ProtocolError(f"recorded plan {plan.number} of campaign {self.campaign} is empty, or has an arm "
                                "twice, an arm or an opponent out of range, or an arm without tokens")

    def _forget_queue(self) -> None:
        self.queued.wants -= sum(len(wants) // 3 for _, wants in self.queue)
        self.queue.clear()

    def release(self, message: Any) -> None:
        self.due.add("ack")
        if self.end or message.number <= self.releases:
            return
        release = Release.of(message)
        self._check(release)
        self.changed = True
        if not self._ask("apply", lambda: self._apply(release), False):
            return
        self.releases, self.releases_hash = release.number, chain_release(self.releases_hash, message)
        self.fresh.releases.append(message)
        self.left.discard(release.arm)
        if release.last and not self._ask("exhaust", lambda: bool(self.policy.exhaust(release.arm)), True):
            self._finish(End.USED_UP)
        elif not self.left and not self.end:
            self._advance()
        self._finish_if_over()

    def _apply(self, release: Release) -> bool:
        Policy.apply(self.policy, release)  # the estimates, which later releases are checked against
        self.policy.apply(release)
        return True

    def _check(self, release: Release) -> None:
        where = f"release {release.number} of campaign {self.campaign}"
        if release.number > self.releases + 1:
            raise ProtocolError(f"{where} follows release {self.releases}")
        if release.plan != self.plan.number or self.accepted != self.plan.number:
            raise ProtocolError(f"{where} is for plan {release.plan}; the last accepted is {self.accepted}")
        if release.arm not in self.left:
            raise ProtocolError(f"{where} is for arm {release.arm}, which plan {release.plan} does not ask for, or "
                                "not again")
        asked, before = self._shown(release.arm), self.policy.arms[release.arm].tokens
        if not self._may_sum(release, asked, before):
            raise ProtocolError(f"{where} sums {release.tokens} tokens; expected {asked} or {before + asked}")
        noisy = self.spec.mechanism.name != "none" and release.tokens > 0
        if bool(release.noise) != noisy or not is_noise(release.noise, self.spec.brokers) or (
                not release.tokens and release.noisy_sum):
            raise ProtocolError(f"{where} has noise that mechanism {self.spec.mechanism.name} does not add")

    def _shown(self, arm: int) -> int:
        """The plan's plays that show the arm."""
        if self.plays_of is not self.plan:
            self.plays_of, self.plays = self.plan, {want.arm: want.tokens for want in self.plan.wants}
        return sum(self.plays.get(each, 0) for each in (arm, *self.neighbours.get(arm, ())))

    def _may_sum(self, release: Release, asked: int, before: int) -> bool:
        """Whether a release may sum this number of tokens: all of the arm, or those of this plan alone; with a
        mechanism that repeats releases any number from that of the last one on, and the last release of an arm may lack
        some."""
        tokens, most = release.tokens, self.spec.tokens
        repeats = self.spec.mechanism.name in REPEATING
        if release.last and not self.neighbours:
            return tokens <= (most if repeats else before + asked)
        if tokens in (asked, before + asked) and tokens:
            return True
        if self.neighbours:  # a play shows neighbours too
            return asked < tokens <= most
        return repeats and 0 < before <= tokens <= most

    def accept(self, plan: int) -> None:
        if plan <= self.accepted:
            return
        if plan != self.plan.number:
            raise ProtocolError(f"plan {plan} of campaign {self.campaign} was accepted; the last one is "
                                f"{self.plan.number}")
        self._take_accepted()

    def refuse(self, plan: int, reason: int) -> None:
        if self.end:
            return
        if plan != self.plan.number or plan == self.accepted or reason in (End.NONE, End.COMPLETE):
            raise ProtocolError(f"plan {plan} of campaign {self.campaign} was refused after it was accepted, or "
                                "without a reason")
        self._finish(End(reason))

    def stop(self, reason: int) -> None:
        if self.end:
            return
        if reason in (End.NONE, End.COMPLETE):
            raise ProtocolError(f"campaign {self.campaign} was stopped without a valid reason")
        self.stopped = End(reason)
        if self.stopped == End.FROZEN:  # its missing releases may never come
            self._finish(End.FROZEN)
        self._finish_if_over()

    def close(self) -> None:
        if not self.end:
            self._finish(End.CANCELLED)
        self.closed = self.changed = True
        self._forget_queue()
        self.due.clear()

    # --- what follows from them

    def _take_accepted(self) -> None:
        self.accepted = self.plan.number
        self.plans_hash = chain_plan(self.plans_hash, self.plan.number, self._wants())
        self.due.discard("plan")
        self.changed = True

    def _wants(self) -> list[tuple[int, ...]]:
        return [(want.arm, want.tokens, want.opponent) for want in self.plan.wants]

    def _set_plan(self, plan: Plan, recorded: bool) -> None:
        self.plan, self.left = plan, {want.arm for want in plan.wants}
        self.fresh.plans.append(plan)
        self.changed = True
        if recorded:
            self._take_accepted()
        else:
            self.due.add("plan")

    def _next_queued(self) -> Plan:
        number, flat = self.queue.popleft()
        self.queued.wants -= len(flat) // 3
        return Plan(number, tuple(map(Want, flat[::3], flat[1::3], flat[2::3])))

    def _advance(self) -> None:
        """The policy's next step, after the last release of the plan, or before the first plan."""
        number = self.plan.number + 1
        wants = self._ask("step", lambda: plan_of(self.policy, number), None)
        self._note_decisions()
        self.changed = True
        if self.end:
            return
        self.done = wants is None
        if self.queue:  # the broker has already run it: it goes before the policy's own plan
            self.done = False
            self._set_plan(self._next_queued(), recorded=True)
        elif wants:
            self._set_plan(Plan(number, wants), recorded=False)
        elif wants is not None:
            self._finish(End.USED_UP)

    def _note_decisions(self) -> None:
        for standing in self._now():
            if standing.rank_class != self.classes[standing.arm]:
                self.classes[standing.arm] = standing.rank_class
                self.fresh.decisions.append((self.plan.number, self.releases, standing))

    def _is_level(self) -> bool:
        return self.accepted >= self.expected_plans and self.releases >= self.expected_releases

    def _finish_if_over(self) -> None:
        if self.end or not self._is_level():
            return
        if self.stopped:
            self._finish(self.stopped)
        elif self.done and not self.left and self.plan.number == self.accepted:
            self._finish(End.COMPLETE)

    def _finish(self, reason: End) -> None:
        self._note_decisions()
        self.end, self.changed = End.REFUSED if self.why else reason, True
        self._forget_queue()
        self.due.discard("plan")
        self.due.add("result")

    # --- messages to the broker

    def position(self) -> dict[str, Any]:
        return {"campaign": self.campaign, "releases": self.releases, "releases_hash": self.releases_hash,
                "plans": self.accepted, "plans_hash": self.plans_hash}

    def _standings(self, message: Any) -> None:
        known = schema("base").Standing.DESCRIPTOR.fields_by_name
        for standing in self._now():
            message.standings.add(**{name: value for name, value in vars(standing).items() if name in known})

    def say(self, envelope: Any) -> None:
        """Adds what is due; a plan waits until this side has what the broker has."""
        if self.why:
            self._say_failed(envelope)
            return
        if "opened" in self.due:
            envelope.opened.add(position=self.position(), seed=self.seed)
        if "ack" in self.due:
            envelope.acks.add(campaign=self.campaign, release=self.releases)
        if "plan" in self.due and not self.end and self.accepted >= self.expected_plans:
            message = envelope.plans.add(campaign=self.campaign, number=self.plan.number)
            for want in self.plan.wants:
                message.wants.add(**{name: value for name, value in vars(want).items() if value or name != "opponent"})
            self._standings(message)
        if "result" in self.due:
            self._standings(envelope.results.add(campaign=self.campaign, reason=self.end))
        if self.why:  # it failed while it was asked for standings
            envelope.Clear()
            self._say_failed(envelope)
        self.due.clear()

    def _say_failed(self, envelope: Any) -> None:
        """In place of all else: the broker ends the campaign."""
        if self.due:
            envelope.opened.add(position=self.position(), seed=self.seed, refused=cut(self.why, WHY_BYTES))
        self.due.clear()

    def take_fresh(self) -> Optional[Fresh]:
        """What to store now; None if nothing has changed."""
        if not self.changed:
            return None
        self.fresh.state = self._ask("save", lambda: state_of(self.policy), "")
        if self.why:
            self.fresh.state = Broken.state(self.why)
        fresh, self.fresh, self.changed = self.fresh, Fresh(), False
        return fresh


def failed(campaign: int, policy: Policy, seed: bytes, why: str) -> Book:
    """A campaign that its policy has ended in an earlier run."""
    book = Book(campaign, policy, seed)
    book.why, book.end = why, End.REFUSED
    return book
