# SPDX-License-Identifier: Apache-2.0
"""What a campaign has spent, as the daemon reports it: charged as released, shown to its owner only, predicted by a
plan."""
import contextlib
import csv
import io
import json
import sqlite3

import pytest

from client.requester import end_name, spec
from crowdveil import Refused
from harness.commands import as_requester, crowdveil

pytestmark = pytest.mark.usefixtures("worker_program")

ARMS, TAU = 3, 500
CAMPAIGN = """campaign: books
items: {list: [{name: a, mean: 0.9}, {name: b, mean: 0.5}, {name: c, mean: 0.1}]}
policy: {name: ppar, alpha: 0.2, tokens_per_round: 500}
privacy: {epsilon: 0.5, tokens_per_worker: 4, repeat: true}
limits: {tokens: 100000}
"""


@pytest.fixture
def campaign_file(tmp_path):
    path = tmp_path / "campaign.yaml"
    path.write_text(CAMPAIGN)
    return path


def submit(requester, tokens=100_000, **kwargs):
    return requester.submit(spec(ARMS, name="books", epsilon=.5, tokens=tokens, tokens_per_worker=4, repeat=True,
                                 policy_params={"alpha": .2, "tokens_per_round": TAU}, **kwargs)).campaign


def expected_micro(releases):
    """The hybrid mechanism: an arm's first three releases contain one noise of half the budget, all from the fourth
    on."""
    return 0 if releases == 0 else 250_000 if releases < 4 else 500_000


def test_the_ledger_is_charged_as_it_was_released(deployment, campaign_file):
    deployment.up()
    with deployment.requester() as requester:
        number = submit(requester)
        before = requester.ledger(number)
        assert [account.spent for account in before.accounts] == [0] * ARMS and before.end == 0
        deployment.start_worker("gateway/1-20000", campaign_file, {"accept": {"epsilon": 1}})
        assert end_name(requester.watch(number).progress.end) == "complete"
        statement = requester.ledger(number)
        releases = [release for part in requester.export(number) for release in part.releases]
        assert requester.ledger(0) == statement, "0 is the newest"
    for arm, account in enumerate(statement.accounts):
        own = [release for release in releases if release.arm == arm]
        assert (account.releases, account.tokens) == (len(own), max(r.tokens for r in own))
        assert (account.spent, account.lost) == (expected_micro(len(own)), 0)
    assert statement.epsilon_micro == 500_000 and statement.worker_epsilon_micro == 2_000_000
    assert statement.floor_micro == 0 and not statement.exact

    # the same after a restart: it is on disk
    assert deployment.broker.stop() == 0
    deployment.start_broker()
    with deployment.requester() as requester:
        assert requester.ledger(number) == statement

    table = crowdveil("ledger", number, *as_requester(deployment))
    assert table.returncode == 0, table.stderr
    assert "complete" in table.stdout and "Event level" in table.stdout and "Worker level" in table.stdout
    rows = list(csv.DictReader(io.StringIO(
        crowdveil("ledger", number, "--format", "csv", *as_requester(deployment)).stdout)))
    assert [int(row["spent_micro"]) for row in rows] == [account.spent for account in statement.accounts]
    assert all(int(row["spent_micro"]) + int(row["left_micro"]) == int(row["limit_micro"]) for row in rows)
    told = json.loads(crowdveil("ledger", "--json", *as_requester(deployment)).stdout)
    assert told["campaign"] == number and told["state"] == "complete"
    assert told["most_micro"] == max(account.spent for account in statement.accounts)
    assert [arm["spent_micro"] for arm in told["arms"]] == [account.spent for account in statement.accounts]
    assert told["worker_micro"] == 2_000_000 and len(told["guarantee"]) >= 4


def test_a_requester_reads_its_own_ledger_only(deployment):
    deployment.up()
    with deployment.requester("alice") as alice, deployment.requester("bob") as bob:
        number = submit(alice)
        with pytest.raises(Refused, match=f"no campaign {number} of bob"):
            bob.ledger(number)
        with pytest.raises(Refused, match="no campaign of bob"):
            bob.ledger(0)
        assert alice.ledger(number).campaign == number
    done = crowdveil("ledger", number, *as_requester(deployment, "bob"))
    assert done.returncode == 1 and f"no campaign {number} of bob" in done.stderr


def test_the_cost_of_a_plan_is_predicted_and_nothing_is_stored(deployment, campaign_file):
    deployment.up(broker={"limits": {"epsilon": 1, "worker_epsilon": 3}})
    done = crowdveil("ledger", "--plan", campaign_file, "--json", *as_requester(deployment))
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["campaign"] is None and told["state"] == "planned"
    assert (told["most_micro"], told["worker_micro"], told["worker_lifetime_micro"]) == (500_000, 2_000_000, 3_000_000)
    assert [arm["spent_micro"] for arm in told["arms"]] == [0] * ARMS
    text = crowdveil("ledger", "--plan", campaign_file, *as_requester(deployment)).stdout
    assert "at most     epsilon 0.5 for each arm, 2 for a worker" in text
    with deployment.requester() as requester:
        assert len(requester.status().campaigns) == 0
    # a campaign that the operator would refuse is refused here, with the limit
    campaign_file.write_text(CAMPAIGN.replace("epsilon: 0.5", "epsilon: 2"))
    done = crowdveil("ledger", "--plan", campaign_file, *as_requester(deployment))
    assert done.returncode == 1
    assert "epsilon 2.000000 is over the broker's limit of 1.000000 (limits.epsilon)" in done.stderr


def test_a_worker_stops_at_its_lifetime_epsilon_over_campaigns(deployment, campaign_file):
    """Twenty workers, 1 epsilon each at this broker, campaigns of 0.5 a token: two tokens each, in all campaigns
    together."""
    deployment.up(broker={"limits": {"worker_epsilon": 1}})
    workers = {"accept": {"epsilon": 1}, "exit_when_done": False}
    with deployment.requester() as requester:
        first = submit(requester, tokens=100_000)
        deployment.start_worker("gateway/1-20", campaign_file, workers)
        requester.watch(first, until=lambda progress: progress.tokens == 40)
        requester.cancel(first)
        requester.watch(first)
        second = submit(requester, idle_ms=1000)
        finished = requester.watch(second)
    assert end_name(finished.progress.end) == "idle" and finished.progress.tokens == 0


def test_a_worker_s_own_limit_outlives_its_process(deployment, campaign_file, tmp_path):
    """Twenty workers that give three scores each in total: after any kill, and whatever they are asked for again."""
    deployment.up(broker={"lease": "1h"})
    state = tmp_path / "gateway"
    state.mkdir()
    workers = {"accept": {"epsilon": 1, "tokens": 3}, "state": str(state)}
    with deployment.requester() as requester:
        first = submit(requester)
        gateway = deployment.start_worker("gateway/1-20", campaign_file, dict(workers, arrival_rate=100))
        requester.watch(first, until=lambda progress: progress.tokens >= 20)
        gateway.kill()
        requester.cancel(first)
        counted = requester.watch(first).progress.tokens
        with contextlib.closing(sqlite3.connect(state / "given.db")) as db:
            given = dict(db.execute("SELECT worker, scores FROM given"))
        assert set(given) <= set(range(1, 21)) and max(given.values()) <= 3 and sum(given.values()) >= counted
        second = submit(requester)
        assert deployment.start_worker("gateway/1-20", campaign_file, workers).wait() == 0  # no worker has one left
        requester.cancel(second)
        assert requester.watch(second).progress.tokens == 60 - sum(given.values())


def test_usage_errors_are_one_line(deployment, campaign_file):
    deployment.up()
    for words, status, text in [(("seven",), 2, "not a campaign number"), (("1", "--plan", campaign_file), 2, "--plan"),
                                (("--plan", "/no/file.yaml"), 2, "/no/file.yaml"), (("--format", "xml"), 2, "xml"),
                                ((), 1, "no campaign of alice")]:
        done = crowdveil("ledger", *words, *as_requester(deployment))
        assert done.returncode == status and text in done.stderr, done.stderr
        assert len(done.stderr.strip().split("\n")) == 1
