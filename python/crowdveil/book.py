# SPDX-License-Identifier: Apache-2.0
"""
One campaign as a third-party knows it: releases, plans and their hashes, and what the broker must be told. Pure: no
time, no input or output; the caller stores what `fresh` has before it sends what is due. docs/protocol.md describes the
messages.
"""
from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field
from typing import Any, Optional

from .chain import NONE, chain_plan, chain_release
from .errors import ProtocolError
from .model import End, Plan, Release, Standing, Want
from .policy import Policy
from .schema import schema

QUEUE_MAX = 1 << 20  # wants of recorded plans that run ahead of their releases


@dataclass
class Fresh:
    """What is not stored yet: messages of releases, plans (with standings) and decisions (plan, release, standing)."""
    releases: list[Any] = field(default_factory=list)
    plans: list[Plan] = field(default_factory=list)
    decisions: list[tuple[int, int, Standing]] = field(default_factory=list)


class Book:
    """Methods named as messages take them; ProtocolError if the broker may not say this now."""

    def __init__(self, campaign: int, policy: Policy, seed: bytes) -> None:
        self.campaign, self.policy, self.seed = campaign, policy, seed
        self.releases, self.releases_hash = 0, NONE
        self.accepted, self.plans_hash = 0, NONE
        self.plan, self.left = Plan(0, ()), set[int]()
        self.queue = deque[Plan]()
        self.expected_plans = self.expected_releases = 0
        self.stopped, self.end, self.done, self.closed = End.NONE, End.NONE, False, False
        self.classes = [0] * policy.spec.arms
        self.fresh, self.changed = Fresh(), False
        self.due = set[str]()

    # --- messages of the broker

    def begin(self) -> None:
        """For a new campaign: the first plan."""
        self._advance()

    def open(self, position: Any, stop: int) -> None:
        self.queue.clear()
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
        last = self.queue[-1].number if self.queue else self.accepted
        if self.end or plan.number <= last:
            return
        if plan.number > last + 1:
            raise ProtocolError(f"recorded plan {plan.number} of campaign {self.campaign} follows plan {last}")
        arms = [want.arm for want in plan.wants]
        if not arms or len(set(arms)) < len(arms) or max(arms) >= self.policy.spec.arms:
            raise ProtocolError(f"recorded plan {plan.number} of campaign {self.campaign} is empty, or has an arm "
                                "twice or out of range")
        if plan.number == self.plan.number and plan.wants == self.plan.wants:
            self._take_accepted()
        elif self.plan.number == self.accepted and self.left:
            if sum(len(queued.wants) for queued in self.queue) + len(arms) > QUEUE_MAX:
                raise ProtocolError("recorded plans run too far ahead of their releases")
            self.queue.append(plan)
        else:
            self._set_plan(plan, recorded=True)
        self._finish_if_over()

    def release(self, message: Any) -> None:
        self.due.add("ack")
        if self.end or message.number <= self.releases:
            return
        release = Release.of(message)
        self._check(release)
        self.policy.apply(release)
        self.releases, self.releases_hash = release.number, chain_release(self.releases_hash, message)
        self.fresh.releases.append(message)
        self.changed = True
        self.left.discard(release.arm)
        if release.last and not self.policy.exhaust(release.arm):
            self._finish(End.USED_UP)
        elif not self.left:
            self._advance()
        self._finish_if_over()

    def _check(self, release: Release) -> None:
        where = f"release {release.number} of campaign {self.campaign}"
        if release.number > self.releases + 1:
            raise ProtocolError(f"{where} follows release {self.releases}")
        if release.plan != self.plan.number or self.accepted != self.plan.number:
            raise ProtocolError(f"{where} is for plan {release.plan}; the last accepted is {self.accepted}")
        if release.arm not in self.left:
            raise ProtocolError(f"{where} is for arm {release.arm}, which plan {release.plan} does not ask for")
        noisy = self.policy.spec.mechanism.name != "none"
        if not release.tokens and not release.last or release.tokens and bool(release.noise) != noisy:
            raise ProtocolError(f"{where} has no tokens, or noise that mechanism {self.policy.spec.mechanism.name} "
                                "does not add")
        if not all(math.isfinite(group.scale) and group.scale > 0 for group in release.noise):
            raise ProtocolError(f"{where} has noise without a scale")

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

    def _advance(self) -> None:
        """The policy's next step, after the last release of the plan, or before the first plan."""
        wants = self.policy.step(self.plan.number + 1)
        self._note_decisions()
        self.done, self.changed = wants is None, True
        if self.queue:  # the broker has already run it: it goes before the policy's own plan
            self.done = False
            self._set_plan(self.queue.popleft(), recorded=True)
        elif wants is not None:
            asked = tuple(want for want in (Want(*each) if isinstance(each, tuple) else each for each in wants)
                          if want.arm not in self.policy.used_up)
            if asked:
                self._set_plan(Plan(self.plan.number + 1, asked), recorded=False)
            elif self.policy.used_up:
                self._finish(End.USED_UP)
            else:
                raise ValueError(f"policy {self.policy.name}: an empty plan; expected wants, or None at the end")

    def _note_decisions(self) -> None:
        for standing in self.policy.standings():
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
        self.end, self.changed = reason, True
        self._note_decisions()
        self.queue.clear()
        self.due.discard("plan")
        self.due.add("result")

    # --- messages to the broker

    def position(self) -> dict[str, Any]:
        return {"campaign": self.campaign, "releases": self.releases, "releases_hash": self.releases_hash,
                "plans": self.accepted, "plans_hash": self.plans_hash}

    def _standings(self, message: Any) -> None:
        known = schema("base").Standing.DESCRIPTOR.fields_by_name
        for standing in self.policy.standings():
            values = {name: value for name, value in vars(standing).items() if name in known}
            if not math.isfinite(standing.mean):
                values["mean"] = 0.0
            if not math.isfinite(standing.radius):
                values["radius"] = 1.0
            message.standings.add(**values)

    def say(self, envelope: Any) -> None:
        """Adds what is due; a plan waits until this side has what the broker has."""
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
        self.due.clear()

    def take_fresh(self) -> Optional[Fresh]:
        """What to store now; None if nothing has changed."""
        if not self.changed:
            return None
        fresh, self.fresh, self.changed = self.fresh, Fresh(), False
        return fresh
