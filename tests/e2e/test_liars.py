# SPDX-License-Identifier: Apache-2.0
"""
A third-party that lies: the broker names the lie and freezes or ends that campaign; its other campaigns go on. One
broker and one third-party for all lies; beside each lie an honest campaign collects tokens.
"""
import re
import threading
import time

import pytest

from client.requester import Requester, end_name, spec
from client.thirdparty import Honest, Thirdparty
from client.worker import Session
from crowdveil.schema import schema
from crowdveil.wire import VERSION
from harness.admin import metric
from harness.commands import as_requester, crowdveil
from harness.daemon import wait_until
from harness.deployment import Deployment

BUDGET = 5000


class Workers(threading.Thread):
    """A gateway whose workers arrive for any campaign; `hold`: names of campaigns that get no token."""

    def __init__(self, address, files, first=1):
        super().__init__(daemon=True)
        self.address, self.files, self.next, self.hold, self.given, self.ended = address, files, first, set(), 0, False

    def run(self):
        try:
            self.answer()
        except OSError:
            pass  # the broker was gone while a token was on its way
        self.ended = True

    def answer(self):
        with Session(self.address, self.files.ca, self.files.cert, self.files.key, timeout=None) as session:
            self.session, names = session, {}
            self.arrive(32)
            while True:
                kind, message = session.next()
                if kind is None or kind == "goodbye":
                    return
                if kind == "campaign":
                    names[message.id] = message.name
                elif kind == "assign" and names[message.campaign] not in self.hold:
                    session.token(message.ticket, [0])
                elif kind == "ack":
                    self.given += session.verdict(message) == "accepted"
                    self.arrive(1)

    def arrive(self, n):
        self.session.arrive(range(self.next, self.next + n), credit=64)
        self.next += n


class Stage:
    def __init__(self, folder, pki):
        self.deployment = Deployment(folder, pki)
        self.thirdparty = Thirdparty(pki.issue("thirdparty/ranker"), LIES)
        self.deployment.start_broker({"thirdparty": self.thirdparty.address, "limits": {"release_tokens": 10}})
        self.requester = Requester(self.deployment.broker.address, pki.issue("requester/alice"), timeout=20)
        self.honest = self.submit("honest", tokens=10_000_000)
        self.workers = Workers(self.deployment.broker.address, pki.issue("gateway/1-100000000"))
        self.workers.start()

    def submit(self, name, tokens=BUDGET):
        return self.requester.submit(spec(2, name=name, tokens=tokens)).campaign

    def tokens(self, campaign):
        return {entry.campaign: entry.tokens for entry in self.requester.status().campaigns}[campaign]

    def honest_goes_on(self):
        """The honest campaign collects the tokens of a further plan."""
        before = self.tokens(self.honest)
        wait_until(lambda: self.tokens(self.honest) >= before + 300, "the honest campaign goes on", 30)
        assert not self.workers.ended and not self.thirdparty.failures, self.thirdparty.failures

    def refused(self, reason):
        return metric(self.deployment.folder, "broker", f'crowdveil_refused_total{{reason="{reason}"}}')

    def close(self):
        self.thirdparty.close()
        self.requester.close()
        self.deployment.close()


@pytest.fixture(scope="module")
def stage(tmp_path_factory, pki):
    made = Stage(tmp_path_factory.mktemp("liars"), pki)
    yield made
    made.close()


# --- lies in a plan


class AboveBudget(Honest):
    def wants(self, number):
        return [(0, BUDGET), (1, 10)]


class UnknownArm(Honest):
    def wants(self, number):
        return [(0, 100), (2, 100)]


class ArmTwice(Honest):
    def wants(self, number):
        return [(0, 100), (0, 100)]


class NoTokens(Honest):
    def wants(self, number):
        return [(0, 0), (1, 100)]


class FewTokens(Honest):
    """Below the operator's smallest release."""

    def wants(self, number):
        return [(0, 9), (1, 100)]


class NoWants(Honest):
    def wants(self, number):
        return []


class Overflow(Honest):
    """Sums that wrap around."""

    def wants(self, number):
        return [(0, 0xFFFFFFFF), (1, 0xFFFFFFFF)]


class SecondPlanAboveBudget(Honest):
    def wants(self, number):
        return [(0, 100), (1, 100)] if number == 1 else [(0, BUDGET - 199), (1, 10)]


REFUSED_PLANS = {
    "above budget": (AboveBudget, "tokens", "asks for 5010 tokens; expected at most 5000, "),
    "unknown arm": (UnknownArm, "refused", "arm 3 is unknown"),
    "arm twice": (ArmTwice, "refused", "arm 1 is named twice"),
    "no tokens": (NoTokens, "refused", "0 tokens of arm 1 in one release"),
    "few tokens": (FewTokens, "refused", "9 tokens of arm 1 in one release; expected 10"),
    "no wants": (NoWants, "refused", "is empty"),
    "overflow": (Overflow, "tokens", "4294967295 tokens of arm 1"),
    "second plan": (SecondPlanAboveBudget, "tokens", "asks for 4811 tokens; expected at most 4800, "),
}


# --- contradictions


class PlanFromTheFuture(Honest):
    def plan(self, say, **changes):
        super().plan(say, number=self.plans + 2)


class PlanZero(Honest):
    def plan(self, say, **changes):
        super().plan(say, number=0)


class PlanWhileOpen(Honest):
    """The next plan follows the acceptance of the last one, not its releases."""

    def on_accepted(self, say, number):
        super().on_accepted(say, number)
        self.plan(say)


class SamePlanOtherwise(Honest):
    def on_accepted(self, say, number):
        self.plan(say, number=number, wants=[(0, 101), (1, 100)])


class AckAhead(Honest):
    def ack(self, say):
        say("acks", campaign=self.campaign, release=self.releases + 1)


class ResultWhileOpen(Honest):
    def on_accepted(self, say, number):
        self.result(say, schema("base").END_COMPLETE)


class ResultForNoReason(Honest):
    def next(self, say):
        self.result(say, schema("base").END_TOKENS)


class StandingOfNobody(Honest):
    def next(self, say):
        self.result(say, schema("base").END_COMPLETE, [{"arm": 2, "rank_class": 1}])


class StandingOfNobodyInAPlan(Honest):
    def plan(self, say, **changes):
        super().plan(say, standings=[{"arm": 0, "rank_class": 3}])


class PlanBeforeOpened(Honest):
    def opened(self, say):
        pass


class KnowsMoreReleases(Honest):
    def position(self):
        return {**super().position(), "releases": 7}


class KnowsMorePlans(Honest):
    def position(self):
        return {**super().position(), "plans": 1}


class WrongHash(Honest):
    def position(self):
        return {**super().position(), "plans_hash": b"\x01" * 32}


FROZEN = {
    "plan from the future": (PlanFromTheFuture, "reports plan 2, the broker has 0"),
    "plan zero": (PlanZero, "reports plan 0, the broker has 0"),
    "plan while open": (PlanWhileOpen, "before the last plan was closed, plan 2"),
    "same plan otherwise": (SamePlanOtherwise, "a different plan of number 1"),
    "ack ahead": (AckAhead, "reports release [23], the broker has [12]"),
    "result while open": (ResultWhileOpen, "an unrequested result"),
    "result for no reason": (ResultForNoReason, "an unrequested result"),
    "standing of no arm": (StandingOfNobody, "a standing of arm 3"),
    "standing in a plan": (StandingOfNobodyInAPlan, "in class 3"),
    "plan before opened": (PlanBeforeOpened, "before opening the campaign, plan 1"),
    "more releases": (KnowsMoreReleases, "reports release 7, the broker has 0"),
    "more plans": (KnowsMorePlans, "reports accepted plan 1, the broker has 0"),
    "wrong hash": (WrongHash, "different plans up to number 0"),
}


class SamePlanAgain(Honest):
    """That is allowed: an answer may have been lost."""
    rounds = 2

    def on_accepted(self, say, number):
        first = number == self.plans + 1
        super().on_accepted(say, number)
        if first:
            self.plan(say, number=number)


class AcksTwice(Honest):
    rounds = 2

    def ack(self, say):
        super().ack(say)
        super().ack(say)


class ResultTwice(Honest):
    rounds = 1

    def result(self, say, reason, standings=None):
        super().result(say, reason, standings)
        super().result(say, reason, [{"arm": 0, "rank_class": 2}])


ALLOWED = {"same plan again": SamePlanAgain, "acks twice": AcksTwice, "result twice": ResultTwice}

LIES = {name: entry[0] for table in (REFUSED_PLANS, FROZEN) for name, entry in table.items()} | ALLOWED


@pytest.mark.parametrize("lie", REFUSED_PLANS)
def test_a_plan_that_makes_no_sense_is_refused(stage, lie):
    _, end, reason = REFUSED_PLANS[lie]
    since, before = stage.deployment.broker.mark(), stage.refused("plan")
    campaign = stage.submit(lie)
    finished = stage.requester.watch(campaign)
    assert end_name(finished.progress.end) == end
    stage.deployment.broker.wait_for(f'"{lie}": plan . refused: .*{reason}', after=since)
    refused, = [message for message in stage.thirdparty.refusals if message.campaign == campaign]
    assert reason in refused.why, "the third-party receives the same reason"
    assert re.search(f"^plan .: .*{reason}", finished.progress.why), "and so does the requester"
    assert stage.refused("plan") == before + 1
    assert finished.progress.tokens == (200 if lie == "second plan" else 0)
    stage.honest_goes_on()


@pytest.mark.parametrize("lie", FROZEN)
def test_a_contradiction_freezes_that_campaign_only(stage, lie):
    since, before = stage.deployment.broker.mark(), stage.refused("history")
    connections = stage.thirdparty.connections
    campaign = stage.submit(lie)
    finished = stage.requester.watch(campaign)
    assert end_name(finished.progress.end) == "frozen"
    stage.deployment.broker.wait_for(FROZEN[lie][1], after=since)
    assert finished.progress.why.startswith("the third-party ranker reports "), finished.progress.why
    assert stage.refused("history") == before + 1
    stage.honest_goes_on()
    assert stage.thirdparty.connections == connections, "the others' link was closed"
    assert stage.tokens(campaign) == finished.progress.tokens, "a frozen campaign collects nothing"
    export = stage.deployment.folder / "export.json"
    export.write_text(crowdveil("export", campaign, *as_requester(stage.deployment)).stdout)
    done = crowdveil("verify", export)
    assert done.returncode != 0 and "agree" not in done.stdout + done.stderr, done.stdout + done.stderr


@pytest.mark.parametrize("name", ALLOWED)
def test_saying_the_same_again_is_no_lie(stage, name):
    finished = stage.requester.watch(stage.submit(name))
    assert end_name(finished.progress.end) == "complete"
    assert [standing.rank_class for standing in finished.standings] == [1, 1]
    stage.honest_goes_on()


def test_what_is_no_message_closes_the_link_and_it_comes_back(stage):
    """An invalid frame, an older version, a message that only a broker may send: the broker reconnects, campaigns go
    on."""
    pb = schema("rank")
    old, own, unknown, second = pb.Envelope(), pb.Envelope(), pb.Envelope(), pb.Envelope()
    own.closed.add(campaign=stage.honest)
    unknown.plans.add(campaign=999, number=1)
    second.hello.version = VERSION
    old.hello.version = 0
    old.hello.program = "old"
    for envelope, reason in ((None, "not a valid message"), (own, "only a broker may send"),
                             (unknown, "campaign 999; expected a campaign"), (second, "second Hello"),
                             (old, "second Hello")):
        connections = stage.thirdparty.connections
        payload = envelope.SerializeToString() if envelope else b"\xff" * 300
        stage.thirdparty.send_raw(len(payload).to_bytes(4, "big") + payload)
        wait_until(lambda: stage.thirdparty.connections > connections, "the broker dials again", 30)
        assert reason in stage.thirdparty.goodbyes[-1], stage.thirdparty.goodbyes
        stage.honest_goes_on()


def test_a_third_party_that_sends_plans_without_end_is_bounded(stage):
    """Thousands of plans at once: one counts, the campaign is frozen at the next."""
    pb = schema("rank")
    campaign = stage.submit("honest flood")
    wait_until(lambda: stage.tokens(campaign) > 0, "the campaign runs", 30)
    envelope = pb.Envelope()
    for number in range(3000):
        envelope.plans.add(campaign=campaign, number=number)
    stage.thirdparty.send(envelope)
    assert end_name(stage.requester.watch(campaign).progress.end) == "frozen"
    stage.honest_goes_on()


@pytest.mark.parametrize("kind", ["never reads", "never speaks", "speaks half a hello"])
def test_a_third_party_that_does_not_serve(tmp_path, pki, kind):
    """The broker neither waits for ever nor grows; the crowd and requesters are served, and its health reports it."""
    release = threading.Event()

    def greet(thirdparty):
        if kind == "never reads":
            hello = thirdparty.pb.Envelope()
            hello.hello.version = VERSION
            thirdparty.send(hello)
        elif kind == "speaks half a hello":
            thirdparty.send_raw(b"\0\0\0\x02\x0a")
        release.wait(60)
        return False

    thirdparty, deployment = Thirdparty(pki.issue("thirdparty/ranker"), greet=greet), Deployment(tmp_path, pki)
    try:
        deployment.start_broker({"thirdparty": thirdparty.address})
        with deployment.requester() as requester:
            campaigns = [requester.submit(spec(2000, name=f"c{n}", tokens=10**6)).campaign for n in range(16)]
            wait_until(lambda: thirdparty.connections > 0, "the broker connects", 30)
            status = requester.status()
            assert len(status.campaigns) == 16 and all(entry.plans == 0 for entry in status.campaigns)
            for campaign in campaigns:
                requester.cancel(campaign)
        assert deployment.broker.stop() == 0
    finally:
        release.set()
        thirdparty.close()
        deployment.close()
