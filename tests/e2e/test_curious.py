# SPDX-License-Identifier: Apache-2.0
"""
A broker that is curious or lies. A worker gives nothing beyond its owner's list and the terms it received; a
third-party accepts releases once, in order, and nothing that no honest broker sends.
"""
import re
import sqlite3
import types

import pytest

from client.broker import Dialer, FakeBroker
from client.requester import spec
from crowdveil.errors import Error
from harness.admin import metric
from harness.daemon import wait_until

# --- towards a worker

WORKER = "gateway/1-100"


def terms(envelope, campaign=1, name="test", privatizer="none", mechanism="hybrid", epsilon=0.5, tokens=1, arms=2,
          requester="alice"):
    message = envelope.campaigns.add(id=campaign, name=name, requester=requester, epsilon_micro=round(epsilon * 1e6),
                                     tokens_per_worker=tokens, arms=arms, lease_ms=5000)
    message.privatizer.name, message.mechanism.name = privatizer, mechanism


def assign(envelope, worker, arm=0, ticket=None, campaign=1, arms=None):
    envelope.assigns.add(campaign=campaign, worker=worker, arms=[arm] if arms is None else arms, place=0,
                         ticket=ticket or bytes([worker % 256, arm % 256]) + bytes(46))


TOKEN = "waits for a token"


def script(*steps):
    """Each step fills an envelope, given the workers that have arrived; all are sent, one after another, on the
    first connection. At TOKEN it waits for a token: a message that arrives together with a reason to close is not
    answered."""
    def run(broker, arrived):
        for step in steps if broker.connections == 1 else ():
            if step is TOKEN:
                while not broker.tokens:
                    broker.hear()
                continue
            envelope = broker.pb.Envelope()
            step(envelope, arrived)
            broker.tell(envelope)
    return run


def both(**wanted):
    """Terms, and an assignment with them."""
    def step(envelope, arrived):
        terms(envelope, **wanted)
        assign(envelope, arrived[0])
    return step


CASES = {
    # terms beyond the list: declined, and no token leaves even though one is asked for
    "more epsilon": (script(both(epsilon=1.5)), 0, "epsilon"),
    "no mechanism": (script(both(mechanism="none")), 0, "mechanism"),
    "unknown privatizer": (script(both(privatizer="secret")), 0, "privatizer"),
    "another campaign": (script(both(name="other")), 0, "no scores"),
    "more arms": (script(both(arms=3)), 0, "3 arms"),
    # messages against the terms: the worker closes with the reason, having given at most what the terms ask for
    "unknown arm": (script(lambda e, who: terms(e), lambda e, who: assign(e, who[0], arm=2)), 0,
                    "assignment of arm 3"),
    "without terms": (script(lambda e, who: assign(e, who[0])), 0, "without its terms"),
    "another worker": (script(lambda e, who: terms(e), lambda e, who: assign(e, 500)), 0,
                      "an assignment for worker 500; expected"),
    "the same place twice": (script(lambda e, who: terms(e),
                                    lambda e, who: assign(e, who[0], ticket=b"t" * 48), TOKEN,
                                    lambda e, who: assign(e, who[1], ticket=b"t" * 48)), 1, "ticket again"),
    "a worker twice": (script(lambda e, who: terms(e), lambda e, who: assign(e, who[0]), TOKEN,
                              lambda e, who: assign(e, who[0], arm=1)), 1, "is not waiting for one"),
    "a worker's message": (script(lambda e, who: e.tokens.add(ticket=b"t" * 48, values=[1])), 0,
                           "only a worker|only worker|may send"),
    "a second hello": (script(lambda e, who: setattr(e.hello, "version", 1)), 0, "[Hh]ello"),
}


@pytest.fixture
def worker(deployment, tmp_path, worker_program):
    """`start(script)`: a real worker and a broker that follows the script."""
    made = []
    (tmp_path / "campaign.yaml").write_text(
        "campaign: test\nitems: {list: [{name: a, mean: 0.9}, {name: b, mean: 0.2}]}\n"
        "policy: {name: ppar, alpha: 0.2}\nprivacy: {epsilon: 0.5}\n")

    def start(the_script, **accept):
        broker = FakeBroker(deployment.pki.issue("broker/main"), the_script)
        made.append(broker)
        deployment.broker = types.SimpleNamespace(address=broker.address, name="fake",
                                                  process=types.SimpleNamespace(poll=lambda: 0))
        daemon = deployment.start_worker(WORKER, tmp_path / "campaign.yaml", {
            "exit_when_done": False, "concurrency": 8, "state": str(tmp_path), "accept": {
                "privatizers": "none", "mechanisms": "hybrid", "epsilon": 1, **accept}})
        return broker, daemon
    yield start
    for broker in made:
        assert not broker.failures, broker.failures
        broker.close()


@pytest.mark.parametrize("case", CASES)
def test_a_worker_gives_no_more_than_it_has_agreed_to(worker, case):
    the_script, tokens, reason = CASES[case]
    broker, daemon = worker(the_script)
    daemon.wait_for(reason)
    wait_until(lambda: broker.declines or broker.connections > 1, "it declines, or closes and dials again")
    assert {decline.campaign for decline in broker.declines} <= {1}
    assert len({token.ticket for token in broker.tokens}) == tokens, broker.tokens
    assert daemon.stop() == 0


def test_a_worker_is_not_asked_for_more_over_several_campaigns(worker):
    """Its owner's limit of one token holds for campaigns of any name."""
    def run(broker, arrived):
        for campaign in range(1, 4):
            envelope = broker.pb.Envelope()
            terms(envelope, campaign=campaign)
            assign(envelope, arrived[0], campaign=campaign, ticket=bytes([campaign]) * 48)
            envelope.acks.add(ticket=bytes([campaign + 100]) * 48, verdict=broker.pb.VERDICT_ACCEPTED)  # never given
            broker.tell(envelope)
            before = len(broker.tokens)
            if campaign == 1:
                while len(broker.tokens) == before:
                    broker.hear()
                envelope = broker.pb.Envelope()
                envelope.acks.add(ticket=b"\x01" * 48, verdict=broker.pb.VERDICT_ACCEPTED)
                broker.tell(envelope)
    broker, daemon = worker(run, tokens=1)
    daemon.wait_for("is not waiting for one|declined|closed")
    assert daemon.stop() == 0
    assert {token.ticket for token in broker.tokens} == {b"\x01" * 48}
    assert daemon.wait_for(r"(\d+) tokens accepted").group(1) == "1", "acknowledgements of nothing count for nothing"


# --- towards a third-party


class Ranking:
    """An open campaign of two arms at a real third-party, seen from a broker."""

    def __init__(self, deployment):
        self.deployment = deployment
        deployment.start_thirdparty()
        self.files = deployment.pki.issue("broker/main")
        self.link = Dialer(deployment.thirdparty.address, self.files)
        self.spec = spec(2, tokens=100_000, policy_params={"alpha": .1, "tokens_per_round": 100})
        self.link.say("opens", spec=self.spec, position=self.position())
        self.link.until("opened")
        self.plan = self.link.until("plans")
        self.link.say("accepted", campaign=1, plan=1)

    @staticmethod
    def position():
        return {"campaign": 1, "releases_hash": bytes(32), "plans_hash": bytes(32)}

    def release(self, number, **changes):
        fields = {"campaign": 1, "number": number, "plan": 1, "arm": self.plan.wants[(number - 1) % 2].arm,
                  "tokens": self.plan.wants[0].tokens, "noisy_sum": 50 << 20,
                  "noise": [{"scale": 1.0, "count": 1}], **changes}
        self.link.say("releases", **fields)

    def stored(self):
        assert self.deployment.thirdparty.stop() == 0
        with sqlite3.connect(self.deployment.folder / "thirdparty-state/thirdparty.db") as database:
            return database.execute("SELECT number, noisy_sum FROM release ORDER BY number").fetchall()


@pytest.fixture
def ranking(deployment):
    made = Ranking(deployment)
    yield made
    made.link.close()


def test_a_release_twice_or_otherwise_is_applied_once(ranking):
    ranking.release(1)
    assert ranking.link.until("acks").release == 1
    ranking.release(1)
    assert ranking.link.until("acks").release == 1
    ranking.release(1, noisy_sum=99 << 20)
    assert ranking.link.until("acks").release == 1
    assert ranking.stored() == [(1, 50 << 20)]


@pytest.mark.parametrize("lie, reason", [
    ({"number": 2}, "release 2 of campaign 1 follows release 0"),
    ({"number": 0}, "not a valid message|release 0"),
    ({"plan": 2}, "plan"),
    ({"plan": 0}, "plan|not a valid message"),
    ({"arm": 7}, "arm"),
    ({"tokens": 0}, "tokens|not a valid message"),
    ({"campaign": 9}, "campaign 9 has not been opened"),
    ({"noise": [{"scale": float("inf"), "count": 1}]}, "not a valid message"),
    ({"noise": [{"scale": 1.0, "count": 1}] * 1000}, "not a valid message"),
])
def test_a_release_that_cannot_be_closes_the_link(ranking, lie, reason):
    ranking.release(**{"number": 1, **lie})
    with pytest.raises(ConnectionError, match=reason):
        ranking.link.until("acks")
    assert sum(metric(ranking.deployment.folder, "thirdparty", f'crowdveil_refused_total{{reason="{kind}"}}')
               for kind in ("message", "order", "role", "campaign", "limit")) == 1
    with Dialer(ranking.deployment.thirdparty.address, ranking.files) as again:  # and an honest broker is served again
        again.say("opens", spec=ranking.spec, position=ranking.position())
        assert again.until("opened").position.releases == 0
    assert ranking.stored() == []


@pytest.mark.parametrize("kind, fields, reason", [
    ("accepted", {"campaign": 1, "plan": 7}, "plan 7 of campaign 1 was accepted"),
    ("refused", {"campaign": 1, "plan": 1, "reason": 1}, "was refused after it was accepted"),
    ("stops", {"campaign": 1, "reason": 1}, "was stopped without a valid reason"),
    ("plans", {"campaign": 1, "number": 1}, "only a third-party may send"),
    ("acks", {"campaign": 1, "release": 1}, "only a third-party may send"),
    ("results", {"campaign": 1, "reason": 1}, "only a third-party may send"),
])
def test_a_broker_that_says_what_it_may_not_is_closed(ranking, kind, fields, reason):
    ranking.link.say(kind, **fields)
    with pytest.raises(ConnectionError, match=reason):
        ranking.link.until("acks")
    assert ranking.stored() == []


# --- a requester


ABSURD = (
    ({"arms": 0}, "arms"), ({"arms": 2**32 - 1}, "arms|not a valid"), ({"epsilon": 0}, "epsilon"),
    ({"epsilon": 1e9}, "epsilon"), ({"tokens": 0}, "tokens"), ({"tokens": 2**64 - 1}, "tokens"),
    ({"tokens_per_worker": 0}, "tokens|not a valid"), ({"policy": "x" * 100_000}, "not a valid"),
    ({"name": "\n\x1b[2J"}, "not a valid|name"), ({"mechanism": "nothing"}, "mechanism"),
    ({"privatizer": "nothing"}, "privatizer"), ({"names": ["a"]}, "not a valid|names"),
    ({"privatizer": ("randomized-response", {"epsilon": 1e-6, "delta": .999999})}, "limits.delta"),
    ({"mechanism": "none", "trusted": True}, "limits.trusted_thirdparty"),
    ({"names": ["a" * 200_000, "b"]}, "not a valid|names"), ({"policy_params": {"alpha": float("nan")}}, "not a valid"),
    # odd, but permitted
    ({"tokens_per_worker": 2**32 - 1}, None), ({"deadline_ms": 2**64 - 1}, None), ({"idle_ms": 2**64 - 1}, None),
)


def test_absurd_campaigns_do_no_harm(deployment):
    """Each is refused with its reason, or accepted and cancelled; another requester's campaign goes on."""
    usual = {"arms": 2, "policy_params": {"alpha": .1, "tokens_per_round": 100}, "tokens": 10_000}
    deployment.up()
    with deployment.requester("bob") as bob:
        for absurd, reason in ABSURD:
            said = ""
            with deployment.requester("mallory") as mallory:
                try:
                    mallory.cancel(mallory.submit(spec(**{**usual, **absurd})).campaign)
                except (Error, ConnectionError) as error:  # of the client, or of the broker
                    said = str(error)
            if reason is not None:
                assert re.search(reason, said), f"{absurd}: {said or 'accepted'}"
            sound = bob.submit(spec(**usual)).campaign
            wait_until(lambda: {entry.campaign: entry.plans for entry in bob.status().campaigns}[sound] == 1,
                       f"a sound campaign gets its plan after {absurd}")
            bob.cancel(sound)
            bob.watch(sound)
    assert deployment.broker.stop() == 0
