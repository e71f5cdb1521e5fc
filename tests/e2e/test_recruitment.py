# SPDX-License-Identifier: Apache-2.0
"""Recruitments: workers are hired under a budget. Who is asked, who is paid, and that the budget is never exceeded."""
import json
import re
import signal

import pytest

from client.requester import end_name, spec
from client.thirdparty import Honest, Thirdparty
from client.worker import Session
from crowdveil import Refused
from crowdveil.wire import grid
from harness.commands import as_requester, crowdveil
from harness.daemon import ROOT, wait_until
from harness.standstill import step

# settings that an operator must allow: releases of one token, and workers that are hired again and again
LIMITS = {"release_tokens": 1, "worker_epsilon": 1000}
COSTS = [2, 4, 5]
QUALITIES = [.4, .6, .8]


def hiring(budget, policy, policy_params=None, costs=COSTS, workers=None, **more):
    message = spec(len(costs), policy=policy, policy_params=policy_params,
                   tokens_per_worker=int(budget / min(costs)), **more)
    message.costs_micro.extend(round(cost * 1e6) for cost in costs)
    message.workers.extend(workers or range(1, len(costs) + 1))
    message.budget_micro = round(budget * 1e6)
    return message


def campaign_file(folder, budget, policy):
    path = folder / "campaign.yaml"
    workers = ", ".join(f"{{id: {n + 1}, cost: {cost}, quality: {quality}}}"
                        for n, (cost, quality) in enumerate(zip(COSTS, QUALITIES)))
    path.write_text(f"campaign: test\nworkers: [{workers}]\nbudget: {budget}\npolicy: {policy}\n"
                    "privacy: {mechanism: hybrid, epsilon: 1}\n")
    return path


@pytest.mark.parametrize("name", ["dpf", "dpu", "dpu-kl", "eps-greedy", "dp-ucb-bound", "cheapest", "uniform"])
def test_the_example_of_each_recruitment_spends_its_budget_and_no_more(tmp_path, name):
    done = crowdveil("up", ROOT / f"deploy/campaigns/{name}.yaml", "--json", "--seed", "3", "--state",
                     tmp_path / "state", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    arms = result["arms"]
    assert result["policy"] == name and result["pulls"] == sum(arm["pulls"] for arm in arms) == result["tokens"]
    assert sum(arm["pulls"] * arm["cost"] for arm in arms) == pytest.approx(result["spent"])
    assert 0 < result["spent"] <= result["budget"]
    cheapest = min(arm["cost"] for arm in arms)
    assert result["budget"] - result["spent"] < cheapest, "something could still have been bought"
    assert result["reward"] == pytest.approx(sum(arm["pulls"] * arm["truth"] for arm in arms))
    assert result["regret"] > -max(arm["truth"] for arm in arms), "no policy exceeds the optimum"
    hired = max(arms, key=lambda arm: arm["pulls"])
    if name == "cheapest":
        assert hired["cost"] == cheapest and hired["pulls"] == result["pulls"]
    if name in ("dpu", "eps-greedy", "dp-ucb-bound"):
        assert all(arm["pulls"] > 0 for arm in arms), "each is tried"
    replayed = crowdveil("replay", tmp_path / "state/thirdparty/thirdparty.db", cwd=tmp_path)
    assert replayed.returncode == 0, replayed.stdout + replayed.stderr


@pytest.mark.quick
def test_what_was_paid_is_on_record_everywhere_and_survives_a_restart(deployment, tmp_path):
    path = campaign_file(tmp_path, 60, "dpu")
    deployment.up(broker={"limits": LIMITS})
    with deployment.requester() as requester:
        number = requester.submit(hiring(60, "dpu")).campaign
        gateway = deployment.start_worker("gateway/1-3", path)
        finished = requester.watch(number)
        assert end_name(finished.progress.end) == "complete"
        statement = requester.ledger(number)
        told, then = requester.describe(number)
        assert then.finished.standings == finished.standings
    assert told.policy.name == "dpu" and list(told.workers) == [1, 2, 3] and told.budget_micro == 60_000_000
    with deployment.requester("bob") as other, pytest.raises(Refused, match=f"no campaign {number} of bob"):
        other.describe(number)
    assert gateway.wait() == 0
    hires = {standing.arm: standing.tokens for standing in finished.standings}
    paid = [hires[arm] * COSTS[arm] * 1_000_000 for arm in range(3)]
    assert finished.progress.paid_micro == sum(paid) <= finished.progress.budget_micro == 60_000_000
    assert 60_000_000 - sum(paid) < 2_000_000
    assert [account.paid for account in statement.accounts] == paid
    assert [account.worker for account in statement.accounts] == [1, 2, 3]
    assert [account.hires for account in statement.accounts] == [hires[arm] for arm in range(3)]
    deployment.broker.kill()
    deployment.start_broker({"limits": LIMITS})
    status = crowdveil("status", *as_requester(deployment), cwd=tmp_path)
    assert f"paid {sum(paid) // 1_000_000} of 60" in status.stdout
    ledger = crowdveil("ledger", number, *as_requester(deployment), cwd=tmp_path)
    assert re.search(rf"^ +2 +{hires[1]} +{hires[1] * 4}\.000000$", ledger.stdout, re.M), ledger.stdout
    export = tmp_path / "export.json"
    done = crowdveil("export", number, *as_requester(deployment), "--output", export, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    exported = json.loads(export.read_text())
    assert exported["progress"]["paid_micro"] == sum(paid) and exported["spec"]["costs_micro"][2] == 5_000_000
    verified = crowdveil("verify", export, cwd=tmp_path)
    assert verified.returncode == 0, verified.stdout + verified.stderr
    # what is left out is said, in place of that it agrees
    frozen = {**exported["progress"], "end": 7}
    for change, says in (({"standings": []}, "without a result"), ({"progress": frozen}, "is frozen")):
        export.write_text(json.dumps({**exported, **change}))
        partial = crowdveil("verify", export, cwd=tmp_path)
        assert partial.returncode == 3 and says in partial.stderr and "agree" not in partial.stdout, partial.stderr
    exported["plans"][-1]["wants"][0]["arm"] = (exported["plans"][-1]["wants"][0]["arm"] + 1) % 3
    export.write_text(json.dumps(exported))
    assert crowdveil("verify", export, cwd=tmp_path).returncode == 1


def test_a_wanted_worker_arrives_whatever_the_gateways_concurrency(deployment, tmp_path):
    """Two workers that are not wanted fill the queue of a gateway with a concurrency of one; the third is wanted."""
    path = campaign_file(tmp_path, 10, "cheapest")
    deployment.up(broker={"limits": LIMITS})
    with deployment.requester() as requester:
        number = requester.submit(hiring(10, "cheapest", costs=[5, 4, 2])).campaign
        gateway = deployment.start_worker("gateway/1-3", path, {"concurrency": 1})
        finished = requester.watch(number)
    assert end_name(finished.progress.end) == "complete"
    assert [standing.tokens for standing in finished.standings] == [0, 0, 5]
    assert gateway.wait() == 0


class Crew:
    """Three workers on one connection of the test's client."""

    def __init__(self, deployment):
        files = deployment.pki.issue("gateway/1-9")
        self.session = Session(deployment.broker.address, files.ca, files.cert, files.key)

    def assignment(self, workers):
        self.session.arrive(workers, 64)
        return self.session.until("assign", "backoff", "done")


def test_only_hired_workers_are_asked_and_others_are_sent_away(deployment):
    deployment.up(broker={"limits": LIMITS})
    with deployment.requester() as requester:
        requester.submit(hiring(10, "cheapest", costs=[3, 2], workers=[7, 5]))
        crew = Crew(deployment)
        kind, backoff = crew.assignment([9])
        assert kind == "backoff" and list(backoff.workers) == [9] and backoff.delay_ms == 0
        assert "recruitment does not name this worker" in backoff.why
        crew.session.arrive([7])                 # a more expensive worker waits, and delays no other
        for _ in range(5):                       # 10 buys five of worker 5, and worker 7 gets nothing
            kind, assign = crew.assignment([5])
            assert kind == "assign" and assign.worker == 5 and list(assign.arms) == [1]
            crew.session.token(assign.ticket, [grid(.5)])
            assert crew.session.verdict(crew.session.ack(assign.ticket)) == "accepted"
            crew.session.token(assign.ticket, [grid(.5)])    # sent again, it is not paid again
            assert crew.session.verdict(crew.session.ack(assign.ticket)) in ("duplicate", "expired")
        finished = requester.watch()
        assert end_name(finished.progress.end) == "complete" and finished.progress.paid_micro == 10_000_000


def test_a_worker_that_does_not_answer_is_not_paid_and_is_asked_again(deployment):
    deployment.up(broker={"limits": LIMITS, "lease": "4s"})  # the second answer must come within it
    with deployment.requester() as requester:
        number = requester.submit(hiring(3, "cheapest", costs=[3])).campaign
        crew = Crew(deployment)
        kind, first = crew.assignment([1])
        assert kind == "assign"
        kind, second = crew.assignment([1])      # after the lease: the same place again
        assert kind == "assign" and second.place == first.place and second.ticket != first.ticket
        assert requester.ledger(number).accounts[0].paid == 0
        crew.session.token(second.ticket, [grid(1)])
        assert crew.session.verdict(crew.session.ack(second.ticket)) == "accepted"
        crew.session.token(first.ticket, [grid(1)])
        assert crew.session.verdict(crew.session.ack(first.ticket)) in ("duplicate", "expired")
        finished = requester.watch(number)
        assert finished.progress.paid_micro == 3_000_000 and finished.progress.tokens == 1


class Greedy(Honest):
    """Asks for more than the money buys, once some is spent."""

    def wants(self, number):
        return [(0, 1), (1, 1), (2, 1)] if number == 1 else [(0, 1), (1, 2), (2, 8)]


def test_a_plan_beyond_the_budget_is_refused_before_a_worker_is_asked(deployment, tmp_path):
    thirdparty = Thirdparty(deployment.pki.issue("thirdparty/ranker"), {"test": Greedy})
    deployment.start_broker({"thirdparty": thirdparty.address, "limits": LIMITS})
    with deployment.requester() as requester:
        number = requester.submit(hiring(60, "dpu")).campaign
        crew = Crew(deployment)
        for worker in (1, 2, 3):
            kind, assign = crew.assignment([worker])
            assert kind == "assign"
            crew.session.token(assign.ticket, [grid(.5)])
        finished = requester.watch(number)
        assert end_name(finished.progress.end) == "budget"
        assert finished.progress.paid_micro == 11_000_000 and finished.progress.tokens == 3
    watched = crowdveil("watch", number, *as_requester(deployment), "--file", campaign_file(tmp_path, 60, "dpu"),
                        cwd=tmp_path)
    assert watched.returncode == 0, "what was to be spent is spent: no failure" + watched.stderr
    assert "ended       budget\n" in watched.stdout and "paid        11 of 60\n" in watched.stdout
    (tmp_path / "other").mkdir()
    other = campaign_file(tmp_path / "other", 60, "cheapest")
    watched = crowdveil("watch", number, *as_requester(deployment), "--file", other, cwd=tmp_path)
    assert re.search(r"ignoring the file of campaign \"test\", 3 arms, policy cheapest; expected .* policy dpu",
                     watched.stderr), watched.stderr
    assert "paid        11 of 60\n" in watched.stdout and "regret" not in watched.stdout
    (refused,) = thirdparty.refusals
    assert (refused.asked, refused.left) == (50_000_000, 49_000_000)
    assert "costs 50.000000; expected at most 49.000000, which is left of 60" in refused.why
    thirdparty.close()


def test_kills_neither_lose_a_payment_nor_make_a_second_one(deployment, tmp_path):
    budget, limits = 4000, LIMITS | {"worker_epsilon": 4000}
    path = campaign_file(tmp_path, budget, "dpu")
    deployment.up(broker={"limits": limits})
    here = {"listen": deployment.broker.address, "limits": limits}
    with deployment.requester() as requester:
        number = requester.submit(hiring(budget, "dpu")).campaign
    gateway = deployment.start_worker("gateway/1-3", path)
    seen = 0
    for kill in range(4):
        def further():
            step(gateway.process)  # so that each kill comes during the work
            with deployment.requester() as requester:
                return requester.ledger(number)
        wait_until(lambda: sum(account.hires for account in further().accounts) >= seen + 15, "further payments", 60)
        statement = further()
        seen = sum(account.hires for account in statement.accounts)
        assert sum(account.paid for account in statement.accounts) <= budget * 1_000_000
        gateway.signal(signal.SIGCONT)
        deployment.broker.kill()
        if kill % 2 == 1:
            listen = deployment.thirdparty.address
            deployment.thirdparty.kill()
            deployment.start_thirdparty({"listen": listen})
        deployment.start_broker(here)
        with deployment.requester() as requester:
            kept = sum(account.hires for account in requester.ledger(number).accounts)
        assert kept >= seen, "a payment was forgotten"
    with deployment.requester() as requester:
        finished = requester.watch(number)
        statement = requester.ledger(number)
    assert gateway.wait() == 0
    assert end_name(finished.progress.end) == "complete"
    hires = {standing.arm: standing.tokens for standing in finished.standings}
    assert [account.hires for account in statement.accounts] == [hires[arm] for arm in range(3)]
    assert finished.progress.paid_micro == sum(account.paid for account in statement.accounts)
    assert (budget - 2) * 1_000_000 < finished.progress.paid_micro <= budget * 1_000_000


@pytest.mark.parametrize("change,line", [
    (dict(policy="ppar", policy_params={"alpha": .1}), None),
    (dict(tokens_per_worker=2), "tokens_per_worker is 2; expected 30, which the budget buys of the cheapest worker"),
    (dict(budget_micro=200_000 * 1_000_000), "the budget buys 100000 tokens of the cheapest worker; expected at most"),
])
def test_a_recruitment_that_cannot_be_is_refused_with_one_line(deployment, change, line):
    deployment.up(broker={"limits": LIMITS})
    message = hiring(60, change.pop("policy", "dpu"), change.pop("policy_params", None))
    for key, value in change.items():
        setattr(message, key, value)
    with deployment.requester() as requester:
        if line is not None:
            with pytest.raises(Refused, match=line):
                requester.submit(message)
            return
        finished = requester.watch(requester.submit(message).campaign)
        assert end_name(finished.progress.end) == "refused"
    deployment.broker.wait_for("policy ppar hires no workers; expected no costs and no budget")
