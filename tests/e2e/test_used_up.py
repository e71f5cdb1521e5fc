# SPDX-License-Identifier: Apache-2.0
"""Data that are used up end an item, and not the campaign."""
import contextlib
import json
import random
import re
import sqlite3

import pytest

from client.requester import end_name
from client.worker import Session
from harness.commands import as_requester, crowdveil
from harness.daemon import wait_until

pytestmark = pytest.mark.usefixtures("worker_program")

ROMA, OTHERS, ROUND = 312, 4000, 400
AT = 2  # items are in the order of their names
MEANS = {"Roma": .5, "Kiosk": .8, "Harbour": .5, "Station": .2}


def write(folder, roma=ROMA):
    """A data file in which one item has fewer rows than one round takes."""
    draw = random.Random(7)
    rows = [(item, int(draw.random() < mean)) for item, mean in MEANS.items()
            for _ in range(roma if item == "Roma" else OTHERS)]
    (folder / "rows.csv").write_text("item,score\n" + "".join(f"{item},{score}\n" for item, score in rows))
    path = folder / "rows.yaml"
    path.write_text("campaign: test\n"
                    "items: {source: csv, path: rows.csv, item: item, score: score, scale: [0, 1]}\n"
                    f"policy: {{name: ppar, alpha: .15, tokens_per_round: {ROUND}}}\n"
                    "privacy: {epsilon: 1, tokens_per_worker: 4, share_names: true}\n"
                    "limits: {tokens: 100000, idle: 120s}\n")
    return path


def gateways(deployment, path, ranges):
    return [deployment.start_worker(f"gateway/{first}-{last}", path, {"accept": {"epsilon": 1}})
            for first, last in ranges]


def releases_of(folder):
    with contextlib.closing(sqlite3.connect(next(folder.rglob("thirdparty.db")))) as db:
        return db.execute("SELECT r.arm, r.tokens, u.arm IS NOT NULL FROM release r LEFT JOIN used_up u"
                          " ON u.campaign = r.campaign AND u.release = r.number ORDER BY r.number").fetchall()


@pytest.mark.parametrize("ranges", [[(1, 20000)], [(1, 10000), (10001, 20000)]])
def test_an_item_with_few_rows_ends_and_the_others_are_ranked(deployment, tmp_path, ranges):
    """Two gateways share the file: each row is still given once, and the word of one of them ends nothing."""
    path = write(tmp_path)
    deployment.up(broker={"limits": {"worker_epsilon": 1000}})
    link = as_requester(deployment)
    assert crowdveil("submit", path, *link).returncode == 0
    running = gateways(deployment, path, ranges)
    with deployment.requester() as requester:
        finished = requester.watch(1)
    assert end_name(finished.progress.end) == "used_up"
    assert finished.progress.elapsed_ms < 120_000, "not after the limit of idle time"
    assert [(each.arm, each.tokens, each.wanted) for each in finished.progress.used_up] == [(AT, ROMA, ROUND)]
    assert finished.progress.used_up_arms == 1
    standing = {each.arm: each for each in finished.standings}
    assert standing[AT].tokens == ROMA
    assert (standing[1].rank_class, standing[1].held, standing[3].rank_class > 1) == (1, 0, True)
    done = crowdveil("watch", "--file", path, *link)
    assert "data used up: Roma, 312 of 400" in done.stdout, done.stdout
    for program in [*running, deployment.broker, deployment.thirdparty]:
        program.stop()
    last = [(arm, tokens) for arm, tokens, is_last in releases_of(tmp_path) if is_last]
    assert last == [(AT, ROMA)]


def test_fewer_rows_than_the_smallest_release_never_leave(deployment, tmp_path):
    path = write(tmp_path, roma=7)
    deployment.up(broker={"limits": {"worker_epsilon": 1000, "release_tokens": 10}})
    assert crowdveil("submit", path, *as_requester(deployment)).returncode == 0
    running = gateways(deployment, path, [(1, 20000)])
    with deployment.requester() as requester:
        finished = requester.watch(1)
    assert end_name(finished.progress.end) == "used_up"
    assert [(each.arm, each.tokens) for each in finished.progress.used_up] == [(AT, 7)]
    assert {each.arm: each.tokens for each in finished.standings}[AT] == 0
    for program in [*running, deployment.broker, deployment.thirdparty]:
        program.stop()
    assert [(arm, tokens) for arm, tokens, is_last in releases_of(tmp_path) if is_last] == [(AT, 0)]


def test_a_restart_in_the_middle_changes_nothing(deployment, tmp_path):
    path = write(tmp_path)
    changes = {"limits": {"worker_epsilon": 1000}}
    deployment.up(broker=changes)
    assert crowdveil("submit", path, *as_requester(deployment)).returncode == 0
    running = gateways(deployment, path, [(1, 20000)])
    running[0].wait_for("no more scores of arm 3")
    address = deployment.broker.address
    deployment.broker.kill()
    deployment.start_broker({**changes, "listen": address})
    with deployment.requester() as requester:
        finished = requester.watch(1)
    assert end_name(finished.progress.end) == "used_up"
    assert [(each.arm, each.tokens) for each in finished.progress.used_up] == [(AT, ROMA)]


def test_one_hostile_gateway_ends_no_item(deployment, tmp_path):
    """It says at once that all data are used up; an honest one still has them."""
    path = write(tmp_path, roma=OTHERS)
    deployment.up(broker={"limits": {"worker_epsilon": 1000}})
    assert crowdveil("submit", path, *as_requester(deployment)).returncode == 0
    files = deployment.pki.issue("gateway/20001-20010")
    with (deployment.requester() as requester,
          Session(deployment.broker.address, files.ca, files.cert, files.key) as liar):
        liar.arrive([20001], credit=1)  # before the honest one, which may soon have given all that is wanted
        honest = gateways(deployment, path, [(1, 20000)])
        while True:
            kind, message = liar.next()
            if kind == "assign":
                break
        liar.decline(1, "none left", used_up=True, arms=range(len(MEANS)))
        liar.decline(0, "none left", ticket=message.ticket, used_up=True)
        finished = requester.watch(1)
    assert end_name(finished.progress.end) in ("complete", "tokens")
    assert finished.progress.used_up_arms == 0
    honest[0].stop()


def test_the_requester_learns_why_nobody_comes(deployment, tmp_path):
    path = write(tmp_path)
    path.write_text(path.read_text().replace("idle: 120s", "idle: 3s"))
    deployment.up(broker={"limits": {"worker_epsilon": 1000}})
    link = as_requester(deployment)
    gateway = deployment.start_worker("gateway/1-100", path, {"accept": {"epsilon": .5}})
    gateway.wait_for("connected as")  # so that it declines at once
    assert crowdveil("submit", path, *link).returncode == 0
    done = crowdveil("watch", *link)
    assert done.returncode == 1
    assert ("declined by 1 connection: epsilon 1.000000 is not accepted here; expected at most 0.500000, which is "
            "accept.epsilon") in done.stdout


def test_a_cancel_of_an_ended_campaign_says_how_it_ended(deployment, tmp_path):
    path = write(tmp_path)
    path.write_text(path.read_text().replace("idle: 120s", "idle: 1s"))
    deployment.up()
    link = as_requester(deployment)
    assert crowdveil("submit", path, *link).returncode == 0
    with deployment.requester() as requester:
        requester.watch(1)
    done = crowdveil("cancel", "1", *link)
    assert done.returncode == 0, done.stderr
    assert "campaign 1 has ended: no workers" in done.stdout


# --- rows are left, but nobody may give them


def of_persons(folder, persons, tokens_per_worker, more=""):
    """Each person has a row of each item."""
    draw = random.Random(3)
    rows = [(item, person, int(draw.random() < mean)) for person in range(persons) for item, mean in MEANS.items()]
    (folder / "rows.csv").write_text("item,who,score\n" + "".join(f"{a},{b},{c}\n" for a, b, c in rows))
    path = folder / "rows.yaml"
    path.write_text("campaign: test\n"
                    "items: {source: csv, path: rows.csv, item: item, worker: who, score: score, scale: [0, 1]}\n"
                    "policy: {name: ppar, alpha: .15, tokens_per_round: 20}\n"
                    f"privacy: {{epsilon: 1, tokens_per_worker: {tokens_per_worker}, share_names: true}}\n"
                    f"limits: {{tokens: 100000, idle: 3s{more}}}\n")
    return path


@pytest.mark.parametrize("tokens_per_worker, accepts, says", [
    (2, {}, "tokens_per_worker: whoever has rows left has given 2; expected a larger one, or other workers"),
    (3, {"tokens": 1}, "accept.tokens: whoever has rows left has given 1; expected a larger one, or other workers"),
    (4, {}, None)])
def test_data_are_not_said_to_be_used_up_where_a_limit_keeps_them_back(deployment, tmp_path, tokens_per_worker, accepts,
                                                                       says):
    path = of_persons(tmp_path, 60, tokens_per_worker)
    deployment.up(broker={"limits": {"worker_epsilon": 1000, "release_tokens": 1}})
    link = as_requester(deployment)
    assert crowdveil("submit", path, *link).returncode == 0
    gateway = deployment.start_worker("gateway/1-60", path, {"accept": {"epsilon": 1, **accepts},
                                                             "state": deployment.state("worker-state")})
    done = crowdveil("watch", "--file", path, *link)
    if says is None:
        assert "data used up: " in done.stdout and "_per_worker" not in done.stdout, done.stdout
        gateway.wait_for("no more scores of arm 1: the data of this arm are used up")
    else:
        assert "\ndata used up" not in done.stdout and "no more scores: " in done.stdout, done.stdout
        assert says in done.stdout
        gateway.wait_for(f"no more scores of arm 1: {says}")


def few(folder, tokens_per_worker=1):
    """Thirty workers with rows for all, who give less than one round takes."""
    path = write(folder, roma=OTHERS)
    path.write_text(path.read_text().replace("tokens_per_worker: 4", f"tokens_per_worker: {tokens_per_worker}")
                    .replace("idle: 120s", "idle: 4s"))
    return path


@pytest.mark.parametrize("tokens_per_worker, epsilon, says", [
    (1, 1000, "nothing more to give by 1 connection: tokens_per_worker: each of 30 workers has given 1;"),
    (4, 2, "nothing more to give by 1 connection: worker_epsilon: 30 of 30 workers have spent theirs at the broker;")])
def test_a_crowd_with_nothing_left_to_give_says_why(deployment, tmp_path, tokens_per_worker, epsilon, says):
    path = few(tmp_path, tokens_per_worker)
    deployment.up(broker={"limits": {"worker_epsilon": epsilon, "epsilon": 1}})
    link = as_requester(deployment)
    assert crowdveil("submit", path, *link).returncode == 0
    deployment.start_worker("gateway/1-30", path, {"accept": {"epsilon": 1}, "exit_when_done": False})
    wait_until(lambda: says in crowdveil("status", *link).stdout, says)
    done = crowdveil("watch", *link)
    assert done.returncode == 1 and says in done.stdout, done.stdout
    # and when it is asked again, also by another broker process
    for _ in range(2):
        assert says.split(": ", 1)[1] in crowdveil("watch", "1", *link).stdout
        address = deployment.broker.address
        assert deployment.broker.stop() == 0
        deployment.start_broker({"limits": {"worker_epsilon": epsilon, "epsilon": 1}, "listen": address})


def write_skewed(folder):
    """The worst of three items has nearly all of the rows."""
    draw = random.Random(11)
    rows = [(item, int(draw.random() < mean)) for item, mean, many in
            (("Good", .93, 60), ("Rare", .66, 50), ("Popular", .3, 3000)) for _ in range(many)]
    draw.shuffle(rows)
    (folder / "skew.csv").write_text("item,score\n" + "".join(f"{item},{score}\n" for item, score in rows))
    path = folder / "skew.yaml"
    path.write_text("campaign: skew\n"
                    "items: {source: csv, path: skew.csv, item: item, score: score, scale: [0, 1]}\n"
                    "policy: {name: ppar, alpha: 0.1, tokens_per_round: 40}\n"
                    "privacy: {mechanism: segments, epsilon: 0.5, share_names: true}\n"
                    "limits: {idle: 60s}\n")
    return path


def test_an_item_is_not_first_because_the_others_ran_out_of_rows(tmp_path):
    done = crowdveil("up", write_skewed(tmp_path), "--json", "--state", tmp_path / "state", cwd=tmp_path)
    result = json.loads(done.stdout)
    assert (done.returncode, result["ended"], result["decided"]) == (1, "scores used up", 0), done.stderr
    assert result["classes"] == [] and result["accuracy"] is None
    assert {name for name, (first, last) in result["class_ranges"].items() if first <= 1 < last} >= {"Good", "Rare"}
    for item, (first, last) in result["class_ranges"].items():
        assert first <= {"Good": 1, "Rare": 2, "Popular": 3}[item] <= last, "what is told is true among all items"
    order = [(item["name"], item["mean"], item["low"], item["high"]) for item in result["best_effort"]]
    assert order[-1][0] == "Popular", "the best estimates are those of the rows"
    assert all(0 <= low <= mean <= high <= 1 for _, mean, low, high in order)
    rows = re.findall(r"^1 to 3 +(\w+) +([\d.]+) ± ([\d.]+) ", done.stderr, re.M)
    assert {name for name, *_ in rows} >= {"Good", "Rare"} and ("0.5000", "0.5000") not in {row[1:] for row in rows}
    [database] = (tmp_path / "state").rglob("thirdparty.db")
    again = crowdveil("replay", database)
    assert again.returncode == 0, again.stdout + again.stderr
