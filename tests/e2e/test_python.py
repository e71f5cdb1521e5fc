# SPDX-License-Identifier: Apache-2.0
"""The Python package behind, before and beside the real programs."""
import asyncio
import os
import socket
import sqlite3

import pytest

from crowdveil import Accept, Counts, End, Gateway, Requester, Spec, Worker
from crowdveil.wire import Connection, context, decode, hello
from harness.admin import metrics
from harness.campaign import NOISE
from harness.daemon import PYTHON, ROOT
from support.address import ANY_PORT

MEANS = [.2, .8, .5, .81, .35]


@pytest.fixture
def campaign_file(tmp_path):
    items = ", ".join(f"{{name: i{arm}, mean: {mean}}}" for arm, mean in enumerate(MEANS))
    path = tmp_path / "campaign.yaml"
    path.write_text(f"campaign: test\nitems: {{list: [{items}]}}\npolicy: {{name: ppar}}\nprivacy: {{epsilon: 1}}\n")
    return path


class Bayes:
    """python/examples/bayes.py as the third-party of a deployment, at one address."""

    def __init__(self, deployment):
        self.deployment, self.files = deployment, deployment.pki.issue("thirdparty/ranker")
        self.state, self.address = deployment.folder / "bayes", ANY_PORT
        self.start()

    def start(self):
        self.daemon = self.deployment.launch("bayes", [
            PYTHON, ROOT / "python/examples/bayes.py", "--listen", self.address, "--state", self.state, "--tls",
            self.files.ca, self.files.cert, self.files.key], env=dict(os.environ, PYTHONPATH=str(ROOT / "python")))
        self.address = self.daemon.address

    def rows(self, query):
        with sqlite3.connect(self.state / "thirdparty.db") as db:
            return db.execute(query).fetchall()


@pytest.mark.quick
def test_a_policy_in_python_ranks_behind_the_real_broker_although_it_is_killed(deployment, campaign_file):
    bayes = Bayes(deployment)
    deployment.start_broker({"thirdparty": bayes.address, **NOISE})
    with Requester(deployment.broker.address, deployment.pki.issue("requester/alice"), "main", timeout=60) as requester:
        campaign = requester.submit(Spec("test", len(MEANS), policy=("bayes", {"alpha": .06, "tokens": 100}))).campaign
        deployment.start_worker("gateway/1-100000", campaign_file, {"arrival_rate": 400})
        killed = 0
        for seen in requester.watch(campaign):
            if not seen_end(seen) and seen.releases >= 5 * (killed + 1) and killed < 3:
                bayes.daemon.kill()
                killed += 1
                bayes.start()
                if killed == 3:
                    deployment.start_worker("gateway/100001-200000", campaign_file)
        export = requester.export(campaign)
    assert killed == 3 and seen.end == End.COMPLETE
    assert [standing.rank_class for standing in seen.standings] == [4, 1, 2, 1, 3]
    assert bayes.daemon.stop() == 0
    assert bayes.rows("SELECT number, arm, tokens, noisy_sum FROM release ORDER BY number") == [
        (release.number, release.arm, release.tokens, release.noisy_sum) for release in export.releases]
    assert bayes.rows("SELECT max(number) FROM plan") == [(len(export.plans),)]
    assert {(arm, level) for arm, level in bayes.rows("SELECT arm, rank_class FROM decision")} >= {(0, 4), (1, 1)}
    assert bayes.rows("SELECT closed, ended FROM campaign") == [(1, End.COMPLETE)]


def seen_end(seen):
    return hasattr(seen, "standings")


def test_a_policy_in_python_listens_to_the_broker_of_the_latest_term(deployment):
    """One whose term is over, and that has not found out yet, takes nothing over; one of the same term or a later one
    does."""
    bayes, files = Bayes(deployment), deployment.pki.issue("broker/main")

    def dial(term):
        connection = Connection(bayes.address, context(files.ca, files.cert, files.key), "thirdparty")
        envelope = hello("rank")
        envelope.hello.term = term
        connection.send(envelope.SerializeToString())
        assert decode("rank", connection.receive()).HasField("hello")
        return connection

    def goodbye(connection):
        return decode("rank", connection.receive()).goodbye.why
    first = dial(2)
    bayes.daemon.wait_for("broker main is connected")
    assert goodbye(dial(1)) == "term 1; a broker of term 2 is connected"
    for term in (2, 3):
        mark = bayes.daemon.mark()
        next_one = dial(term)
        assert goodbye(first) == "a newer connection of the same broker takes over"
        bayes.daemon.wait_for("broker main is connected", after=mark)
        first = next_one
    assert bayes.daemon.stop() == 0


ACCEPT = Accept(requesters=["alice"], privatizers=["none", "randomized-response", "laplace"], epsilon=5, tokens=0)


def ranked(deployment, spec, *crowd):
    """The result of a campaign with these gateways and workers, which are functions of the broker's address."""
    with deployment.requester_in_python() as requester:
        campaign = requester.submit(spec).campaign

        async def work():
            return await asyncio.gather(*(make(deployment.broker.address).serve() for make in crowd))
        counts = asyncio.run(asyncio.wait_for(work(), 120))
        return requester.wait(campaign), counts


@pytest.mark.parametrize("privatizer", ["none", ("randomized-response", {"epsilon": 3}), ("laplace", {"epsilon": 3})])
def test_gateways_and_workers_in_python_answer_the_real_broker(deployment, tmp_path, privatizer):
    deployment.up()
    asked = []

    def at_once(worker, arm):
        asked.append((worker, arm))
        return [.1, .9, .5][arm]

    async def later(arm):
        await asyncio.sleep(.001)
        asked.append((7, arm))
        return [.1, .9, .5][arm]

    issue = deployment.pki.issue
    result, counts = ranked(
        deployment, Spec("test", 3, ("ppar", {"alpha": .2, "tokens_per_round": 600}), privatizer=privatizer),
        lambda address: Gateway(address, issue("gateway/100-90000"), range(100, 90001), at_once, "test", ACCEPT,
                                broker_name="main"),
        lambda address: Worker(address, issue("worker/7"), 7, later, "test", ACCEPT, tmp_path / "given.db"))
    assert result.end == End.COMPLETE and result.classes == {1: [1], 2: [2], 3: [0]}
    assert sum(count.accepted + count.duplicates for count in counts) == result.progress.tokens
    assert len(asked) == len(set(asked)) >= result.progress.tokens, "a worker was asked twice"
    with sqlite3.connect(tmp_path / "given.db") as db:
        assert db.execute("SELECT worker, scores FROM given").fetchall() in ([], [(7, 1)])


@pytest.mark.parametrize("changes", [{}, {"privatizer": ("randomized-response", {"epsilon": 3})}, {"pairs": True}],
                         ids=["scores", "randomized", "pairs"])
def test_gateways_and_workers_in_python_give_shares_to_two_brokers(deployment, tmp_path, changes):
    deployment.up(cobroker={})
    accept = Accept(["alice"], ["none", "randomized-response"], epsilon=10, tokens=1,
                    pairs=[tuple(deployment.pair().split("+"))])
    both = {"campaign": "test", "accept": accept, "cobroker": deployment.cobroker_address, "pairs": "pairs" in changes}

    def score(arm, opponent=None):
        return [.1, .9][arm] if opponent is None else float(arm > opponent)

    asked = asyncio.Event()

    async def later(arm, opponent=None):
        asked.set()
        return score(arm, opponent)

    class Late(Gateway):
        async def serve(self):  # else it may fill all places before the worker is there
            await asked.wait()
            return await super().serve()
    issue = deployment.pki.issue
    result, counts = ranked(
        deployment, Spec("test", 2, ("ppar", {"alpha": .5, "tokens_per_round": 60}), epsilon=10, brokers=2, **changes),
        lambda address: Late(address, issue("gateway/100-9000"), range(100, 9001),
                             lambda worker, *arms: score(*arms), state=tmp_path / "many.db", **both),
        lambda address: Worker(address, issue("worker/7"), 7, later, state=tmp_path / "one.db", **both))
    assert result.end == End.COMPLETE and result.classes == {1: [1], 2: [0]}
    assert sum(count.accepted for count in counts) == result.progress.tokens and not any(c.refused for c in counts)
    assert counts[1].accepted == 1
    answers = metrics(deployment.folder / "cobroker.sock")
    assert answers['crowdveil_cobroker_answers_total{answer="accepted"}'] == result.progress.tokens


def test_a_gateway_whose_two_brokers_are_not_a_pair_gives_nothing(deployment, tmp_path, caplog):
    deployment.up(cobroker={})
    keys = [deployment.key_of(name) for name in ("broker/main", "cobroker/other")]
    with deployment.requester_in_python() as requester:
        spec = Spec("test", 2, ("ppar", {"alpha": .2, "tokens_per_round": 60}), brokers=2)
        campaign = requester.submit(spec).campaign
        gateway = Gateway(deployment.broker.address, deployment.pki.issue("gateway/1-10"), range(1, 11),
                          lambda worker, arm: .5, "test", Accept(["alice"], tokens=0, pairs=[tuple(keys)]),
                          cobroker=deployment.cobroker_address)

        async def declined():
            task = asyncio.ensure_future(gateway.serve())
            while not any("declined" in line for line in caplog.messages):
                await asyncio.sleep(.01)
            gateway.stop()
            return await task
        counts = asyncio.run(asyncio.wait_for(declined(), 20))
        requester.cancel(campaign)
        assert requester.wait(campaign).progress.tokens == 0 and counts == Counts()
    line, = [line for line in caplog.messages if "declined" in line]
    key = deployment.key_of("cobroker/second")
    assert line == (f'declined campaign "test": the co-broker\'s key is {key}; expected the one that accept.pairs has '
                    "for the broker")


def test_a_worker_gives_no_more_than_its_owner_accepts(deployment, tmp_path):
    deployment.up()
    issue, asked = deployment.pki.issue, []

    def answer(worker, arm):
        asked.append(worker)
        return .5

    def gateway(address, accept, state=None):
        return Gateway(address, issue("gateway/1-10"), range(1, 11), answer, "test", accept, state)
    spec = Spec("test", 2, ("ppar", {"alpha": .1, "tokens_per_round": 1000}), tokens_per_worker=4, repeat=True)
    with deployment.requester_in_python() as requester:
        requester.submit(spec)
        for expected in (20, 0):  # a restart does not forget
            counts = gateway(deployment.broker.address, Accept(["alice"], tokens=2), tmp_path / "given.db").run()
            assert counts.accepted == expected
        assert sorted(asked) == sorted(2 * list(range(1, 11)))
        with_less = Accept(["alice"], epsilon=.5, tokens=3)

        async def declined():
            refuses = gateway(deployment.broker.address, with_less, tmp_path / "other.db")
            task = asyncio.ensure_future(refuses.serve())
            while not refuses.crew.campaigns:
                await asyncio.sleep(.01)
            refuses.stop()
            await task
            return refuses.crew
        crew = asyncio.run(declined())
    assert len(asked) == 20 and all(terms.law is None for terms in crew.campaigns.values())


def test_messages_in_a_row_do_not_wait_for_acknowledgements(deployment):
    """The second one would leave only 40 ms later."""
    deployment.up()
    with deployment.requester() as requester:
        assert requester.connection.sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
