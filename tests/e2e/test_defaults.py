# SPDX-License-Identifier: Apache-2.0
"""What the parties permit if nobody says otherwise, and what becomes of campaigns that were accepted with more."""
import json
import sqlite3

import pytest

import crowdveil
from client.requester import end_name, spec
from client.worker import Session, work
from crowdveil.wire import GRID
from harness.admin import metric
from harness.campaign import NOISE
from harness.commands import as_requester
from harness.commands import crowdveil as command
from harness.daemon import PYTHON, wait_until

pytestmark = pytest.mark.usefixtures("worker_program")

BY_DEFAULT = {"limits": None}
OPEN = {"limits": {"epsilon": 10, "worker_epsilon": 100, "release_tokens": 10}}  # the defaults of 0.2.0
GIVES_ANY = {"epsilon": 10, "tokens": 0, "mechanisms": "hybrid, batch"}
SCORE, OTHERS = .37, .5  # the victim's, of every item; those of the accomplices
NAMES = [f"c{number}" for number in range(10)]
ITEMS = 2


# --- nine accomplices, a requester and a third-party, who want to know what the victim has answered

class Crowd:
    """The victim, and accomplices: programs that answer, and write down what they are asked."""

    def __init__(self, deployment, folder, accomplices, accept):
        self.deployment, self.folder = deployment, folder
        campaigns = folder / "campaigns"
        campaigns.mkdir()
        for name in NAMES:
            (campaigns / f"{name}.yaml").write_text(
                f"campaign: {name}\nitems: {{list: [{{name: a}}, {{name: b}}]}}\npolicy: ppar\n"
                "privacy: {epsilon: 1}\n")
        self.victim = self.start("worker/1", SCORE, accept)
        self.others = self.start(f"gateway/2-{1 + accomplices}", OTHERS, GIVES_ANY)

    def start(self, identity, score, accept):
        name = identity.replace("/", "-")
        program = self.folder / f"{name}.py"
        program.write_text(f"import sys\nlog = open({str(self.folder / name)!r}, 'a')\nfor line in sys.stdin:\n"
                           f"    print(line, end='', file=log, flush=True)\n    print({score}, flush=True)\n")
        daemon = self.deployment.start_worker(identity, self.folder / "campaigns", {
            "accept": accept, "state": self.deployment.state(f"{name}-state"), "seed": None, "requesters": "any",
            "exec": f"{PYTHON} {program}", "exit_when_done": False})
        daemon.wait_for("connected as")
        return daemon

    def asked(self, pattern):
        return [json.loads(line) for path in self.folder.glob(pattern) if path.is_file()
                for line in path.read_text().splitlines()]

    def known(self, name, item):
        """How many of an item's answers the accomplices gave."""
        return sum(1 for each in self.asked("gateway-*[0-9]") if (each["campaign"], each["item"]) == (name, item))


def attack(deployment, crowd, epsilon, each, mechanism="hybrid"):
    """The estimates of the victim's score, one for each release that it is in, with the noise's standard deviation."""
    found = []
    with deployment.requester() as requester, deployment.requester_in_python() as reader:
        for name in NAMES:
            params = {"alpha": .1, "tokens_per_round": each}
            number = requester.submit(spec(ITEMS, name, "ppar", params, epsilon=epsilon, mechanism=mechanism,
                                           tokens=ITEMS * each)).campaign
            seen = requester.watch(number, until=lambda progress: progress.declined)
            if seen.DESCRIPTOR.name == "Progress":  # the victim gives no more, and nobody else is left
                reader.cancel(number)
            found += [(release.noisy_sum / GRID - OTHERS * crowd.known(name, release.arm), release.variance(epsilon))
                      for release in reader.export(number).releases
                      if release.tokens == 1 + crowd.known(name, release.arm)]
    return found



def error_of(found):
    """The standard deviation of the mean of all estimates."""
    return sum(variance for _, variance in found) ** .5 / len(found)


def test_ten_campaigns_read_a_score_where_the_limits_are_wide(deployment, tmp_path):
    """What the defaults are there for; also shows that the attack works."""
    deployment.up(broker={**OPEN, **NOISE})
    found = attack(deployment, Crowd(deployment, tmp_path, ITEMS * 10 - 1, GIVES_ANY), epsilon=10, each=10)
    assert len(found) == len(NAMES) and error_of(found) < .1
    assert abs(sum(estimate for estimate, _ in found) / len(found) - SCORE) < .2


@pytest.mark.parametrize(("accept", "mechanism", "releases", "error"), [
    (None, "hybrid", 1, 2.8), (GIVES_ANY, "hybrid", len(NAMES), .89), (GIVES_ANY, "batch", len(NAMES), .44)],
    ids=["the worker's defaults, too", "the broker's alone", "the least noise"])
def test_by_default_they_read_nothing(deployment, tmp_path, accept, mechanism, releases, error):
    """Each as much as is permitted, with as many accomplices as it takes. A guess of .5 is off by .5 at most."""
    deployment.up(broker={**BY_DEFAULT, **NOISE})
    accept = {"epsilon": None, "tokens": None} if accept is None else accept
    crowd = Crowd(deployment, tmp_path, ITEMS * 20 - 1, accept)
    for wanted, why in (({"epsilon": 10}, "epsilon 10.000000 is over the broker's limit of 1.000000 (limits.epsilon)"),
                        ({"tokens": 10}, "a limit of 10 tokens is below the broker's smallest release of 20 tokens "
                                         "(limits.release_tokens)")):
        with deployment.requester_in_python() as requester, pytest.raises(crowdveil.Refused) as refused:
            requester.submit(crowdveil.Spec("c0", ITEMS, ("ppar", {}), **wanted))
        assert why in str(refused.value)
    found = attack(deployment, crowd, epsilon=1, each=20, mechanism=mechanism)
    assert len(found) == releases and error_of(found) > error
    assert len(crowd.asked("worker-1")) == releases
    with deployment.requester_in_python() as requester:
        limit = requester.ledger().lifetime_epsilon_micro
    assert limit == 10_000_000


def test_a_worker_by_default_says_what_it_declines_and_what_to_write(deployment, tmp_path):
    """A broker that asks for more than a worker's own list: requester and owner read which key it is."""
    deployment.up(broker=OPEN)
    crowd = Crowd(deployment, tmp_path, 19, {"epsilon": None, "tokens": None})
    plan = {"policy_params": {"alpha": .1, "tokens_per_round": 10}, "tokens": 20, "mechanism": "hybrid"}
    with deployment.requester() as requester:
        for name, epsilon, why in (
                ("c0", 2, "epsilon 2.000000 is not accepted here; expected at most 1.000000, which is accept.epsilon"),
                ("c1", 1, None),
                ("c2", 1, "accept.tokens: 1 are given by 1 of 1 workers; expected more of them, or other workers")):
            number = requester.submit(spec(ITEMS, name, epsilon=epsilon, **plan)).campaign
            seen = requester.watch(number, until=lambda progress: progress.declined)
            if why is None:
                assert end_name(seen.progress.end) == "tokens"
            else:
                assert [each.why for each in seen.declined] == [why]
                crowd.victim.wait_for(why.replace("(", "."))
    assert crowd.victim.stop() == 0
    with sqlite3.connect(f"{deployment.state('worker-1-state')}/given.db") as db:
        assert db.execute("SELECT sum(scores) FROM given").fetchone() == (1,)


def test_one_token_is_for_all_requesters_and_campaigns_and_restarts(deployment, tmp_path):
    """Also where a campaign repeats its questions."""
    deployment.up(broker=BY_DEFAULT)
    crowd = Crowd(deployment, tmp_path, ITEMS * 20 - 1, {"epsilon": None, "tokens": None})
    for at, (who, more) in enumerate([("alice", {}), ("bob", {}), ("alice", {"tokens_per_worker": 9, "repeat": True})]):
        with deployment.requester(who) as requester:
            number = requester.submit(spec(ITEMS, NAMES[at], policy_params={"alpha": .1, "tokens_per_round": 20},
                                           epsilon=1, mechanism="hybrid", tokens=40, **more)).campaign
            seen = requester.watch(number, until=lambda progress: progress.declined)
            if seen.DESCRIPTOR.name == "Progress":
                requester.ask(cancel={"campaign": number})
        assert crowd.victim.stop() == 0
        crowd.victim = crowd.start("worker/1", SCORE, {"epsilon": None, "tokens": None})
    assert [question["campaign"] for question in crowd.asked("worker-1")] == NAMES[:1]


# --- an upgrade: campaigns that were accepted with wider limits

SINGLE = {"policy": "kl-local", "policy_params": {}, "mechanism": "none", "epsilon": 2, "tokens": 200,
          "privatizer": ("randomized-response", {"epsilon": 2})}
TENS = {"policy_params": {"alpha": .2, "tokens_per_round": 10}, "mechanism": "binary", "epsilon": 4, "tokens": 600}


def started(deployment, tmp_path, campaign, of_cobroker):
    """A campaign that runs, at a broker and co-broker that permit it: (number, client key, gateway)."""
    deployment.up(broker=OPEN, cobroker=of_cobroker)
    path = tmp_path / "campaign.yaml"
    path.write_text("campaign: test\nitems: {list: [{name: a, mean: .55}, {name: b, mean: .5}]}\npolicy: ppar\n"
                    "privacy: {epsilon: 1}\n")
    accept = {"privatizers": "none, randomized-response", "mechanisms": "none, binary", "tokens": 0}
    with deployment.requester() as requester:
        key = bytes(range(16))
        number = requester.submit(spec(ITEMS, **campaign), client_key=key).campaign
        deployment.start_worker("gateway/1-100000", path, {
            "accept": accept, "state": deployment.state("gateway"), "seed": None, "arrival_rate": 60,
            "exit_when_done": False})
        seen = requester.watch(number, until=lambda progress: progress.releases >= 6)
        assert seen.DESCRIPTOR.name == "Progress", "the campaign was over before it could be disturbed"
    return number, key


@pytest.mark.parametrize(("campaign", "least", "of_cobroker"), [(SINGLE, 1, None), (TENS, 10, None),
                                                               ({**TENS, "two": True}, 10, OPEN)],
                         ids=["single tokens", "small releases", "two brokers"])
def test_a_campaign_keeps_the_limits_that_it_was_accepted_with(deployment, tmp_path, campaign, least, of_cobroker):
    number, key = started(deployment, tmp_path, campaign, of_cobroker)
    with deployment.requester() as requester:
        before = requester.ledger(number)
    address = deployment.broker.address
    assert deployment.broker.stop() == 0
    if of_cobroker:
        at = deployment.cobroker_address
        assert deployment.cobroker.stop() == 0
        deployment.start_cobroker({**BY_DEFAULT, "listen": at})
    deployment.start_broker({**BY_DEFAULT, "listen": address})
    with deployment.requester() as requester:
        after = requester.ledger(number)
        assert (after.release_tokens, after.epsilon_micro, after.worker_epsilon_micro) == \
            (before.release_tokens, before.epsilon_micro, before.worker_epsilon_micro)
        assert after.release_tokens == least
        again = requester.submit(spec(ITEMS, **campaign), client_key=key)
        assert (again.campaign, again.existed) == (number, True), "the same submission"
        with pytest.raises(crowdveil.Refused, match="over the broker's limit of 1.000000 .limits.epsilon."):
            requester.submit(spec(ITEMS, **campaign))
        finished = requester.watch(number)
        assert end_name(finished.progress.end) in ("tokens", "complete"), finished.progress.why
        assert finished.progress.tokens > 6 * least
        released = [release.tokens for part in requester.export(number) for release in part.releases]
    assert len(released) > 10 and min(released) == least


def test_a_worker_that_has_spent_more_than_the_limit_of_today_gives_no_more(deployment):
    """Its account and the ledgers stay as they are, and the broker starts."""
    deployment.up(broker=OPEN)
    files = deployment.pki.issue("gateway/1-100")

    def give(epsilon, workers):
        with (deployment.requester() as requester,
              Session(deployment.broker.address, files.ca, files.cert, files.key) as session):
            number = requester.submit(spec(ITEMS, mechanism="hybrid", epsilon=epsilon, tokens=40,
                                           policy_params={"alpha": .1, "tokens_per_round": 20})).campaign
            verdicts, accepted = work(session, workers, lambda worker, arm, place: GRID // 2)
            if verdicts["accepted"] == 40:
                assert end_name(requester.watch(number).progress.end) == "tokens"
            return number, {worker for worker, _, _ in accepted}

    first, _ = give(8, range(1, 41))
    second, _ = give(7, range(1, 41))
    with deployment.requester() as requester:
        before = [requester.ledger(number) for number in (first, second)]
    address = deployment.broker.address
    assert deployment.broker.stop() == 0
    deployment.start_broker({**BY_DEFAULT, "listen": address})
    with deployment.requester() as requester:
        after = [requester.ledger(number) for number in (first, second)]
    for old, new in zip(before, after):
        assert new.lifetime_epsilon_micro == 10_000_000
        new.lifetime_epsilon_micro = old.lifetime_epsilon_micro
        assert new == old
    assert metric(deployment.folder, "broker", "crowdveil_workers_spent") == 40
    _, gave = give(1, range(21, 61))
    assert gave == set(range(41, 61)), "those who have spent 15 are not asked"
