# SPDX-License-Identifier: Apache-2.0
"""
Bad input with two brokers: whoever refuses it says so in one line (what, where, what was expected), and nothing of it
is counted, in sums, ledger, accounts and metrics.
"""
import re

import pytest

from client.requester import Requester, end_name, spec
from client.two import Peer, Worker
from client.worker import Session
from crowdveil.prio3 import P
from harness.admin import metrics
from harness.commands import as_requester, crowdveil
from harness.daemon import PROGRAMS
from harness.deployment import Deployment, missing_programs

TAU = 10
ONE = 1 << 20
TWO = """campaign: two
items: {list: [{name: a, mean: 0.9}, {name: b, mean: 0.2}]}
policy: {name: ppar, alpha: 0.2, tokens_per_round: 500}
privacy: {epsilon: 1, brokers: 2, tokens_per_worker: 1}
limits: {tokens: 40000, idle: 30s}
"""


@pytest.fixture(autouse=True)
def programs():
    absent = missing_programs("broker", "cobroker", "thirdparty", "worker", "crowdveil")
    if absent:
        pytest.fail(f"not built: {', '.join(absent)}")


def small(name, two=True, **changes):
    return spec(2, **{"name": name, "two": two, "epsilon": 10, "tokens": 2 * TAU,
                      "policy_params": {"alpha": .2, "tokens_per_round": TAU}, **changes})


def lines_of(daemon, pattern, since=0):
    return [line for line in daemon.text().split("\n")[since:] if re.search(pattern, line)]


def one_line(daemon, pattern, since=0):
    """The line, once it is there; no second one has the pattern."""
    daemon.wait_for(pattern, after=since)
    line, = lines_of(daemon, pattern, since)
    return line


class Stage:
    """All parties, and one campaign at a time, with a worker of its own."""

    def __init__(self, folder, pki):
        limits = {"limits": {"release_tokens": TAU}}
        # else a place is offered to a second worker after an eighth of it, and one of the two answers is expired
        self.deployment = Deployment(folder, pki).up(thirdparty={}, broker={"lease": "1h", **limits}, cobroker=limits)
        self.requester = Requester(self.deployment.broker.address, pki.issue("requester/alice"), timeout=20)
        self.first = 1

    def submit(self, name, **changes):
        """The only open campaign from now on."""
        for entry in self.requester.status().campaigns:
            if not entry.end:
                self.requester.cancel(entry.campaign)
        return self.requester.submit(small(name, **changes)).campaign

    def identity(self):
        self.first += 100
        return f"gateway/{self.first}-{self.first + 99}", range(self.first, self.first + 60)

    def counted(self, campaign):
        """All that says that something was counted."""
        broker, cobroker = (metrics(self.deployment.folder / f"{name}.sock") for name in ("broker", "cobroker"))
        return ({entry.campaign: entry.tokens for entry in self.requester.status().campaigns}[campaign],
                sum(account.spent for account in self.requester.ledger(campaign).accounts),
                broker["crowdveil_tokens_total"], cobroker['crowdveil_cobroker_answers_total{answer="accepted"}'])

    def refused(self, reason="value"):
        return metrics(self.deployment.folder / "broker.sock")[f'crowdveil_refused_total{{reason="{reason}"}}']

    def close(self):
        self.requester.close()
        self.deployment.close()


@pytest.fixture(scope="module")
def stage(tmp_path_factory, pki):
    made = Stage(tmp_path_factory.mktemp("stage"), pki)
    yield made
    made.close()


# ---- shares


def changed(share, **changes):
    return {**share, **changes}


def unproved(worker, place, encoded):
    """Shares of what is no score, with everything else as it should be."""
    rand, nonce = worker.fresh()
    return worker.sealer.sealed(*worker.sealer.prio.split_encoded(worker.sealer.context, encoded, rand), place, nonce)


def first_element(share, value):
    return changed(share, leader=value.to_bytes(8, "little") + share["leader"][8:])


HUGE = [1 << 40] + [0] * 14
RANGE = "its proof fails or its seal does not open; expected shares of a score from 0 to 1, sealed"
LENGTH = "the share has a wrong length; expected 48 bytes with score_bits 1, and 376 with score_bits 15"
ELEMENT = r"the share has a number that is no field element; expected numbers below p = 2\^64 - 2\^32 \+ 1"
LIES = {
    "an element less": (lambda worker, share, place: changed(share, leader=share["leader"][8:]), LENGTH),
    "a byte less": (lambda worker, share, place: changed(share, leader=share["leader"][:-1]), LENGTH),
    "a share for one bit": (lambda worker, share, place: changed(share, leader=share["leader"][:48]), LENGTH),
    "p": (lambda worker, share, place: first_element(share, P), ELEMENT),
    "above p": (lambda worker, share, place: first_element(share, 2 ** 64 - 1), ELEMENT),
    "a huge score": (lambda worker, share, place: unproved(worker, place, HUGE), RANGE),
    "a negative score": (lambda worker, share, place: unproved(worker, place, [P - 1] + [0] * 14), RANGE),
    "another share": (lambda worker, share, place: first_element(share, 1), RANGE),
    "another seed": (lambda worker, share, place: {**share, "sealed": worker.sealer.sealed(
        b"", bytes(32), place, share["nonce"])["sealed"], "counter": worker.sealer.counter - 1}, RANGE),
    "another counter": (lambda worker, share, place: changed(share, counter=share["counter"] + 1), RANGE),
    "another nonce": (lambda worker, share, place: changed(share, nonce=bytes(16)), RANGE),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_share_that_is_none_is_refused_and_not_counted(stage, lie):
    make, says = LIES[lie]
    campaign, (identity, workers) = stage.submit(lie), stage.identity()
    before, refused, since = stage.counted(campaign), stage.refused(), stage.deployment.broker.mark()
    with Worker(stage.deployment, identity, workers) as worker:
        assign, place = worker.assigned()
        worker.send(assign.ticket, make(worker, worker.sealer.share(ONE, place), place))
        verdict, why = worker.verdict(assign.ticket)
        assert verdict == "refused" and re.match(says, why), why
        line = one_line(stage.deployment.broker, "token refused", since)
        assert re.search(f'info: {identity}: campaign {campaign} "{lie}": token refused: {says}', line), line
        assert stage.counted(campaign) == before and stage.refused() == refused + 1
        complete(stage, worker, campaign)


def complete(stage, worker, campaign):
    """Honest tokens fill the plan, and its sums are theirs alone, up to noise."""
    for _ in range(2 * TAU):
        assign, place = worker.assigned()
        worker.send(assign.ticket, worker.sealer.share(ONE, place))
        verdict = worker.verdict(assign.ticket)
        assert verdict[0] == "accepted", verdict
    assert stage.requester.watch(campaign).progress.tokens == 2 * TAU
    releases = [release for part in stage.requester.export(campaign) for release in part.releases]
    assert sorted((release.arm, release.tokens) for release in releases) == [(0, TAU), (1, TAU)]
    assert all(abs(release.noisy_sum / ONE - TAU) < 9 for release in releases), releases


def test_a_share_too_long_for_any_campaign_ends_the_connection(stage):
    campaign, (identity, workers) = stage.submit("too long"), stage.identity()
    before, since = stage.counted(campaign), stage.deployment.broker.mark()
    with Worker(stage.deployment, identity, workers) as worker:
        assign, place = worker.assigned()
        share = worker.sealer.share(ONE, place)
        worker.send(assign.ticket, changed(share, leader=share["leader"] + bytes(8)))
        with pytest.raises(ConnectionError, match="is not a valid message for its role"):
            worker.verdict(assign.ticket)
    line = one_line(stage.deployment.broker, "not a valid message", since)
    assert identity in line and stage.counted(campaign) == before


def test_a_seed_twice_counts_once(stage):
    """The same answer again is a duplicate; under another ticket its seal does not open."""
    campaign, (identity, workers) = stage.submit("twice"), stage.identity()
    since, refused = stage.deployment.broker.mark(), stage.refused()
    with Worker(stage.deployment, identity, workers) as worker:
        assign, place = worker.assigned()
        share = worker.sealer.share(ONE, place)
        for expected in ("accepted", "duplicate"):
            worker.send(assign.ticket, share)
            assert worker.verdict(assign.ticket)[0] == expected
        once = stage.counted(campaign)
        assert once[0] == 1 and not lines_of(stage.deployment.broker, "refused", since)
        other, _ = worker.assigned()
        worker.send(other.ticket, share)
        assert worker.verdict(other.ticket)[0] == "refused"
        line = one_line(stage.deployment.broker, "token refused", since)
        assert RANGE in line and stage.counted(campaign) == once and stage.refused() == refused + 1


# ---- one broker only


def test_a_worker_with_one_broker_only_is_refused(stage):
    """Without the co-broker it has no share, or one that no session vouches for."""
    campaign, (identity, workers) = stage.submit("one only"), stage.identity()
    before, since = stage.counted(campaign), stage.deployment.broker.mark()
    with Worker(stage.deployment, identity, workers) as worker:
        assign, place = worker.assigned()
        worker.session.token(assign.ticket, [ONE])
        assert worker.verdict(assign.ticket) == (
            "refused", "no share; expected one, because the campaign has two brokers")
        line = one_line(stage.deployment.broker, "token refused", since)
        assert f'{identity}: campaign {campaign} "one only": token refused: no share; expected one' in line
        assign, place = worker.assigned()
        worker.send(assign.ticket, changed(worker.sealer.share(ONE, place), session=bytes(16)))
        assert worker.verdict(assign.ticket) == ("expired", "")
        line = one_line(stage.deployment.broker, "token not counted", since)
        assert identity in line and "the co-broker knows no session that vouches for the worker; expected a" in line
        assert stage.counted(campaign) == before
        complete(stage, worker, campaign)


def test_a_share_for_one_broker_is_refused(stage):
    campaign, (identity, workers) = stage.submit("of one", two=False), stage.identity()
    before, since = stage.counted(campaign), stage.deployment.broker.mark()
    files = stage.deployment.pki.issue(identity)
    with Session(stage.deployment.broker.address, files.ca, files.cert, files.key) as session:
        session.arrive(workers, credit=8)
        ticket = session.until("assign").ticket
        session.send(session.pb.Envelope(tokens=[{"ticket": ticket, "share": {
            "nonce": bytes(16), "leader": bytes(376), "session": bytes(16), "sealed": bytes(48)}}]))
        assert session.ack(ticket).why == "a share; expected values, because the campaign has one broker"
    assert identity in one_line(stage.deployment.broker, "token refused: a share; expected values", since)
    assert stage.counted(campaign) == before


def test_a_broker_without_a_co_broker_refuses(deployment, tmp_path):
    (tmp_path / "two.yaml").write_text(TWO)
    deployment.up()
    done = crowdveil("submit", tmp_path / "two.yaml", *as_requester(deployment))
    assert done.returncode == 1 and len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert "cobroker" in done.stderr or "co-broker" in done.stderr, done.stderr
    with deployment.requester() as requester:
        assert not requester.status().campaigns


# ---- who declines


def declined(stage, tmp_path, campaign, says, accept, **settings):
    """A worker program says why in one line, and gives nothing."""
    (tmp_path / "two.yaml").write_text(TWO)
    before, since, (identity, _) = stage.counted(campaign), stage.deployment.broker.mark(), stage.identity()
    worker = stage.deployment.start_worker(identity, tmp_path / "two.yaml", {
        "accept": accept, "exit_when_done": False, **settings})
    one_line(worker, says)
    assert identity in one_line(stage.deployment.broker, says, since)
    assert worker.stop() == 0 and stage.counted(campaign) == before


@pytest.mark.parametrize("accept, two, says", [
    ({"pairs": ""}, True, "the campaign has two brokers; expected one, since this worker has no accept.pairs"),
    ({"pairs": "{broker}+{other}"}, True, "the co-broker's key is [0-9a-f]{{64}}; expected the one that accept"),
    ({"pairs": "{other}+{cobroker}"}, True, "the broker's key is {broker}; expected that of a pair in accept.pairs"),
    ({}, False, "the campaign has one broker; expected two, a pair of accept.pairs"),
], ids=["no pairs", "another co-broker", "another broker", "one broker"])
def test_a_worker_declines_brokers_that_it_does_not_list(stage, tmp_path, monkeypatch, accept, two, says):
    keys = {name.split("/")[0]: stage.deployment.key_of(name) for name in ("broker/main", "cobroker/second")}
    keys["other"] = stage.deployment.key_of("cobroker/other")
    accept = {key: value.format(**keys) for key, value in accept.items()}
    if accept == {"pairs": ""}:  # a worker without pairs has no co-broker either
        monkeypatch.setattr(stage.deployment, "cobroker_address", None)
        accept = {}
    declined(stage, tmp_path, stage.submit("two", two=two), says.format(**keys), accept)


@pytest.mark.parametrize("change, what", [({"epsilon": 2}, "epsilon"), ({"tokens": 999}, "spec")])
def test_two_brokers_that_disagree_get_nothing(stage, pki, tmp_path, change, what):
    """The co-broker is one of the pair, but the campaign that it knows under the number is another one."""
    campaign = stage.submit("two")
    (tmp_path / "other").mkdir()
    other = Deployment(tmp_path / "other", pki)
    try:
        other.start_cobroker({"limits": {"release_tokens": 1}})
        wrong = small("two", **change)
        wrong.mechanism.name = "hybrid"
        assert not Peer(other.cobroker_address, pki.issue("broker/main")).open(campaign, spec=wrong).refused
        declined(stage, tmp_path, campaign, "broker and co-broker tell another (%s|database of the broker); "
                 "expected the same terms of both" % what, {}, cobroker=other.cobroker_address)
        assert metrics(other.folder / "cobroker.sock")["crowdveil_cobroker_batches_total"] == 0
    finally:
        other.close()


# ---- a campaign that the co-broker refuses


@pytest.mark.parametrize("limits, says", [
    ({"epsilon": .5}, "epsilon 1.000000 is over the co-broker's limit of 0.500000 .limits.epsilon."),
    ({"tokens": 100}, "a limit of 40000 tokens is over the co-broker's limit of 100 .limits.tokens."),
    ({"release_tokens": 5000}, "releases of 10 tokens are below the co-broker's smallest release of 5000"),
], ids=["epsilon", "tokens", "release_tokens"])
def test_a_limit_of_the_co_broker_refuses_in_one_line(deployment, tmp_path, limits, says):
    """Which the broker cannot know when it accepts the campaign, as the co-broker has not connected yet."""
    (tmp_path / "two.yaml").write_text(TWO)
    deployment.start_thirdparty()
    address = deployment.start_cobroker().address
    deployment.cobroker.kill()
    deployment.start_broker()
    running = deployment.launch("submit", [PROGRAMS["crowdveil"], "submit", tmp_path / "two.yaml", "--watch",
                                           *as_requester(deployment)])
    running.wait_for("^campaign 1 waits for the co-broker")
    deployment.start_cobroker({"listen": address, "limits": limits})
    assert running.wait() == 1
    assert re.search(f"^ended +refused.*^why: co-broker: {says}", running.text(), re.M | re.S), running.text()
    for daemon in (deployment.broker, deployment.cobroker):
        assert "refused" in one_line(daemon, says)
    with deployment.requester() as requester:
        entry, = requester.status().campaigns
        assert end_name(entry.end) == "refused" and entry.tokens == 0
        assert not any(account.spent for account in requester.ledger(entry.campaign).accounts)
    assert metrics(deployment.folder / "cobroker.sock")["crowdveil_cobroker_plans_total"] == 0
