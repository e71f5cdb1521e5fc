# SPDX-License-Identifier: Apache-2.0
"""Campaigns on a feedback graph: the arm that is played shows its neighbours."""
import json
import random
import sqlite3

import pytest

from client.requester import end_name, spec
from client.worker import Session, work
from crowdveil.wire import GRID
from conftest import ROOT
from harness.commands import as_requester, crowdveil

PATH = [(0, 1), (1, 2), (2, 3)]
# means of the example campaigns
TRUTH = {"Roma": .9, "Golden Wok": .8, "Corner Grill": .6, "Blue Fish": .55, "Station Buffet": .2}


@pytest.mark.parametrize("name", ["gap", "gapu", "graph-ucb", "aae", "dp-se", "best-arm", "adap-tt", "alpha-sample"])
def test_the_example_of_each_policy_finds_the_best(tmp_path, name):
    """But for delta, the chance of another winner, which is one in a million here; graph-ucb has its default."""
    text = (ROOT / f"deploy/campaigns/{name}.yaml").read_text()
    assert ("delta: 0.1" in text) == (name != "graph-ucb")
    (tmp_path / "rare.yaml").write_text(text.replace("delta: 0.1", "delta: 0.000001"))
    done = crowdveil("up", "rare.yaml", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["policy"] == name
    assert [arm["name"] for arm in result["arms"] if arm["active"]] == ["Roma"]
    assert {arm["name"]: arm["truth"] for arm in result["arms"]} == TRUTH
    pulls = {arm["name"]: arm["pulls"] for arm in result["arms"]}
    assert result["tokens"] == result["pulls"] == sum(pulls.values())
    regret = sum(count * (.9 - TRUTH[item]) for item, count in pulls.items())
    assert result["regret"] == pytest.approx(regret)
    assert result["epsilon_spent_micro"] == (0 if name in ("aae", "alpha-sample") else 500_000)
    # a policy without a graph plays every arm
    assert (min(pulls.values()) > 0) == (name in ("aae", "dp-se", "best-arm", "adap-tt", "alpha-sample"))
    # a table for people, too
    assert "still active" in done.stderr and "ended       complete, Roma is the best\n" in done.stderr


def test_a_phase_that_no_longer_fits_is_said_and_no_failure(tmp_path):
    path = tmp_path / "gap.yaml"
    path.write_text((ROOT / "deploy/campaigns/gap.yaml").read_text().replace("tokens: 200000", "tokens: 4000"))
    done = crowdveil("up", path, "--json", "--seed", "1", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    active = sum(arm["active"] for arm in result["arms"])
    assert active > 1 and 0 < result["tokens"] < 4000
    assert (f"ended       token limit, {active} of 5 still active: the next phase asks for more than the "
            f"{4000 - result['tokens']:,} tokens that are left\n") in done.stderr


def test_every_score_that_was_shown_is_summed_once(deployment):
    """Exact sums, compared with what the test's own workers were asked and gave."""
    def score(worker, arm, place):
        return random.Random(f"{worker}/{arm}").randrange(GRID)

    shown = {}

    def noted(worker, arm, place):
        shown.setdefault(worker, []).append(arm)
        return score(worker, arm, place)

    deployment.up(broker={"limits": {"trusted_thirdparty": True}})
    with deployment.requester() as requester:
        campaign = requester.submit(spec(4, policy="alpha-sample", policy_params={"delta": .1}, mechanism="none",
                                         trusted=True, epsilon=1, tokens=2_000, edges=PATH)).campaign
        files = deployment.pki.issue("gateway/1-20000")
        with Session(deployment.broker.address, files.ca, files.cert, files.key) as session:
            _, accepted = work(session, range(1, 20_001), noted, credit=64)
        finished = requester.watch(campaign)
    assert end_name(finished.progress.end) == "tokens", "every score has the same mean: no arm is ever dropped"
    assert deployment.broker.stop() == 0 and deployment.thirdparty.stop() == 0
    with sqlite3.connect(f"{deployment.state('thirdparty-state')}/thirdparty.db") as db:
        released = {arm: (tokens, total) for arm, tokens, total in
                    db.execute("SELECT arm, max(tokens), noisy_sum FROM release GROUP BY arm")}
        planned = dict(db.execute("SELECT plan, sum(tokens) FROM plan_want GROUP BY plan"))
        last, = db.execute("SELECT max(plan) FROM release").fetchone()
    assert len(accepted) == finished.progress.tokens == sum(planned[plan] for plan in range(1, last + 1))
    given = {arm: [score(worker, arm, 0) for worker, _, _ in accepted if arm in shown[worker]] for arm in range(4)}
    assert {arm: (len(values), sum(values)) for arm, values in given.items()} == released
    assert sum(map(len, given.values())) > len(accepted), "some answered for neighbours"
    assert all(len(arms) == len(set(arms)) for arms in shown.values())


def campaign_file(folder, means):
    path = folder / "campaign.yaml"
    items = ", ".join(f"{{name: i{arm}, mean: {mean}}}" for arm, mean in enumerate(means))
    path.write_text(f"campaign: test\nitems: {{list: [{items}]}}\npolicy: gap\n"
                    "privacy: {epsilon: 1, mechanism: batch}\ngraph: {edges: [[1, 2], [2, 3], [3, 4]]}\n")
    return path


def test_what_was_decided_can_be_verified_and_replayed(deployment, tmp_path):
    campaign = campaign_file(tmp_path, [.9, .8, .3, .2])
    deployment.up()
    with deployment.requester() as requester:
        number = requester.submit(spec(4, policy="gap", policy_params={"delta": .1}, mechanism="batch",
                                       tokens=50_000, edges=PATH)).campaign
        deployment.start_worker("gateway/1-50000", campaign, {"accept": {"mechanisms": "batch"}})
        finished = requester.watch(number)
    assert end_name(finished.progress.end) == "complete"
    assert {s.arm: s.rank_class for s in finished.standings} == {0: 1, 1: 2, 2: 2, 3: 2}
    done = crowdveil("export", number, *as_requester(deployment), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    export = json.loads(done.stdout)
    assert export["spec"]["edges"] == [list(edge) for edge in PATH]
    assert any(want["tokens"] == 0 for plan in export["plans"] for want in plan["wants"]), "some arm is only shown"
    (tmp_path / "export.json").write_text(done.stdout)
    done = crowdveil("verify", tmp_path / "export.json", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    export["spec"]["edges"] = export["spec"]["edges"][1:]  # another graph has other sets
    (tmp_path / "other.json").write_text(json.dumps(export))
    done = crowdveil("verify", tmp_path / "other.json", cwd=tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    deployment.stop()
    done = crowdveil("replay", tmp_path / "thirdparty-state/thirdparty.db", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_worker_at_its_limit_declines_and_others_answer_at_once(deployment, tmp_path):
    """Workers that give two scores at most are asked for three; with a lease of an hour the places must come back at
    once."""
    campaign = campaign_file(tmp_path, [.9, .5, .2])
    campaign.write_text(campaign.read_text().replace("[3, 4]", "[1, 3]"))
    deployment.up(broker={"lease": "1h"})
    with deployment.requester() as requester:
        number = requester.submit(spec(3, policy="gap", policy_params={"delta": .1}, mechanism="batch",
                                       tokens=50_000, edges=[(0, 1), (0, 2), (1, 2)])).campaign
        frugal = deployment.start_worker("gateway/1-3000", campaign, {"accept": {"mechanisms": "batch", "tokens": 2},
                                                                      "state": str(tmp_path)})
        deployment.broker.wait_for(f'gateway/1-3000: campaign {number} "test": assignment declined: '
                                   "the assignment asks for more scores than the worker's own limit leaves")
        deployment.start_worker("gateway/3001-50000", campaign, {"accept": {"mechanisms": "batch"}})
        started = deployment.clock.ms
        finished = requester.watch(number)
    assert end_name(finished.progress.end) == "complete"
    assert deployment.clock.ms - started < 30_000, "places waited for their lease"
    frugal.wait_for("declined an assignment: it asks for more scores than accept.tokens leaves the worker")


@pytest.mark.parametrize("change, line", [
    (("mechanism: batch", "mechanism: hybrid"), "needs the mean of one phase with one noise; expected mechanism batch"),
    (("policy: gap", "policy: dp-se"), "policy dp-se uses no feedback graph; expected no edges"),
    (("[1, 2]", "[1, 5]"), ":5:1: graph.edges names item 5; expected at most 4"),
])
def test_a_campaign_that_cannot_work_is_refused_in_one_line(tmp_path, change, line):
    path = campaign_file(tmp_path, [.9, .8, .3, .2])
    path.write_text(path.read_text().replace(*change))
    done = crowdveil("up", path, cwd=tmp_path)
    assert done.returncode == 2
    assert line in done.stderr and done.stderr.count("\n") == 1
