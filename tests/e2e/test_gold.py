# SPDX-License-Identifier: Apache-2.0
"""Gold items, whose answers the requester knows: they find workers who lie, and nobody else learns of them."""
import json
import math
import random

import pytest

from client.requester import end_name, gold, spec
from client.worker import Session, work
from crowdveil import Refused
from crowdveil.wire import GRID
from harness.admin import metric
from harness.commands import crowdveil
from harness.daemon import ROOT
from harness.lab import lab

# By item: the arms' means are those at 1, 2 and 4; everybody likes item 0, nobody item 3.
MEANS, GOLD, ARMS = [1, .9, .6, 0, .2], {0: 1, 3: 0}, {1: 0, 2: 1, 4: 2}
WORKERS, LIARS, EACH = 120, 40, 100
TOKENS = 6000
# So sure that a campaign takes most of its tokens: each worker has answered 15 gold items or more by then, on average.
RULES = {"alpha": .001, "delta": 1e-9, "tokens_per_round": 100}


def say(worker, item, place):
    """Liars: what is bad is perfect, and the rest worthless."""
    if worker <= LIARS:
        return GRID if item in (3, 4) else 0
    return GRID if random.Random(f"{worker}/{item}/{place}").random() < MEANS[item] else 0


def collect(deployment, items, privatizer="none", score=say, before=0):
    """Workers 1 to 120, with higher numbers after `before` others, score to the campaign's end; returns (campaign, its
    end, what was accepted, in the broker's order)."""
    with deployment.requester() as requester:
        campaign = requester.submit(spec(
            3, mechanism="none", privatizer=privatizer, trusted=privatizer == "none", tokens=TOKENS,
            tokens_per_worker=EACH, policy_params=RULES),
            gold=gold(items) if items else None).campaign
        files = deployment.pki.issue("gateway/1-10000")
        with Session(deployment.broker.address, files.ca, files.cert, files.key) as session:
            _, accepted = work(session, range(before + 1, before + WORKERS + 1),
                               lambda worker, item, place: score(worker - before, item, place), credit=64,
                               tokens_per_worker=EACH)
        finished = requester.watch(campaign)
    assert end_name(finished.progress.end) in ("tokens", "complete")
    return campaign, finished, [(worker - before, item, value) for worker, item, value in accepted]


def found_by(error, level, answers, wrong):
    """The average likelihood ratio of 16 alternatives to honest answers reaches 1/level."""
    at = [error + (1 - error) * (i + .5) / 16 for i in range(16)]
    ratios = [math.prod([p / error] * wrong + [(1 - p) / (1 - error)] * (answers - wrong)) for p in at]
    return sum(ratios) / 16 >= 1 / level


def replay(accepted):
    """(sum of each arm, workers found, answers to gold items) as they follow from the tokens in the broker's order."""
    sums, counts, found, answers = [0, 0, 0], {}, set(), 0
    for worker, item, value in accepted:
        if item in GOLD:
            n, wrong = counts.get(worker, (0, 0))
            counts[worker] = n + 1, wrong + (abs(value - GOLD[item] * GRID) > .3 * GRID)
            answers += 1
            if found_by(.05, .001, *counts[worker]):
                found.add(worker)
        else:
            sums[ARMS[item]] += GRID // 2 if worker in found else value
    return sums, found, answers


def test_gold_items_find_those_who_lie_and_take_their_weight(deployment):
    deployment.up(broker={"limits": {"trusted_thirdparty": True}})
    _, plain, _ = collect(deployment, {}, before=WORKERS,  # exact sums: each worker gives to one campaign
                          score=lambda worker, arm, place: say(worker, [1, 2, 4][arm], place))
    means = [standing.mean for standing in sorted(plain.standings, key=lambda each: each.arm)]
    assert means[2] > means[1] - .05, "a third of the workers lifts the worst item to the middle one"

    campaign, finished, accepted = collect(deployment, GOLD)
    sums, found, answers = replay(accepted)
    standings = sorted(finished.standings, key=lambda each: each.arm)
    assert [round(each.mean * each.tokens * GRID) for each in standings] == pytest.approx(sums, rel=1e-9)
    assert finished.progress.tokens == len(accepted) - answers, "answers to gold items are no tokens"
    assert len(found & set(range(1, LIARS + 1))) > .9 * LIARS and len(found) < LIARS + 3
    # .2 on average, of which .1 is seven standard errors
    assert standings[1].mean > standings[2].mean + .1
    assert metric(deployment.folder, "broker", "crowdveil_gold_answers_total") == answers
    assert metric(deployment.folder, "broker", "crowdveil_gold_workers_found_total") == len(found)
    assert metric(deployment.folder, "broker", "crowdveil_tokens_total") == sum(
        end.progress.tokens for end in (plain, finished))
    assert .25 < answers / len(accepted) < .35

    # Workers know five items, the third-party three arms.
    with deployment.requester() as requester:
        assert requester.describe(campaign)[0].arms == 3
        parts = requester.export(campaign)
    assert {want.arm for part in parts for plan in part.plans for want in plan.wants} == {0, 1, 2}
    assert {item for _, item, _ in accepted} == set(range(5))


def test_bits_of_randomized_response_find_those_who_lie(deployment):
    deployment.up(broker={"limits": {"worker_epsilon": 3 * EACH}})
    flips = random.Random(7)

    def bit(worker, item, place):
        keep = math.exp(3) / (1 + math.exp(3))
        return say(worker, item, place) if flips.random() < keep else GRID - say(worker, item, place)

    _, finished, accepted = collect(deployment, GOLD, ("randomized-response", {"epsilon": 3}), bit)
    assert all(value in (0, GRID) for _, _, value in accepted)
    found = metric(deployment.folder, "broker", "crowdveil_gold_workers_found_total")
    assert .9 * LIARS <= found <= LIARS + 3
    assert finished.progress.tokens == sum(item not in GOLD for _, item, _ in accepted)


def test_a_broker_that_was_killed_still_knows_who_lied(deployment):
    deployment.up(broker={"limits": {"trusted_thirdparty": True}})
    seen = []

    def score(worker, item, place):
        seen.append(item)
        return say(worker, item, place)

    with deployment.requester() as requester:
        campaign = requester.submit(spec(
            3, mechanism="none", trusted=True, tokens=TOKENS, tokens_per_worker=EACH,
            policy_params=RULES), gold=gold(GOLD)).campaign
    files = deployment.pki.issue("gateway/1-10000")
    with Session(deployment.broker.address, files.ca, files.cert, files.key) as session:
        _, before = work(session, range(1, WORKERS + 1), score, credit=64, tokens_per_worker=EACH // 4)
    deployment.broker.kill()
    deployment.start_broker({"limits": {"trusted_thirdparty": True}})
    with Session(deployment.broker.address, files.ca, files.cert, files.key) as session:
        _, after = work(session, range(1, WORKERS + 1), score, credit=64, tokens_per_worker=EACH // 2)
    with deployment.requester() as requester:
        finished = requester.watch(campaign)
    sums, found, _ = replay(before + after)
    standings = sorted(finished.standings, key=lambda each: each.arm)
    assert [round(each.mean * each.tokens * GRID) for each in standings] == pytest.approx(sums, rel=1e-9)
    assert len(replay(before)[1]) > .5 * LIARS and len(found) >= len(replay(before)[1])


REFUSED = {
    "an item twice": (dict(items=[1, 1], answers=[0, 0]), {}, "gold item 2 after 2"),
    "an item that is none": (dict(items=[4], answers=[0]), {}, "gold item 5 does not exist"),
    "a score above 1": (dict(items=[1], answers=[GRID + 1]), {}, "known score of item 2"),
    "a tolerance of 1": (dict(items=[1], answers=[0], tolerance=GRID), {}, "the tolerance of gold items is 1"),
    "a share above a half": (dict(items=[1], answers=[0], share_micro=500001), {}, "among the assignments"),
    "too few tokens of a worker": (dict(items=[1], answers=[0]), {"tokens_per_worker": 1}, "expected 8 to 32767"),
    "tokens without bounds": (dict(items=[1], answers=[0]), {"privatizer": ("laplace", {"epsilon": 1})},
                              "privatizer laplace"),
    "a graph": (dict(items=[1], answers=[0]), {"edges": [(0, 1)], "policy": "gap", "policy_params": {"delta": .1}},
                "in a feedback graph"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_gold_items_that_cannot_be_are_refused(deployment, name):
    fields, changes, text = REFUSED[name]
    deployment.up()
    message = gold({})
    message.share_micro = 400000
    message.MergeFrom(type(message)(**fields))
    with deployment.requester() as requester:
        with pytest.raises(Refused, match=text):
            requester.submit(spec(3, **{"tokens_per_worker": 100, **changes}), gold=message)


BOTH = "{Aurora: 1, Night Kiosk: 0}"
FILES = {  # replacements in the example, the message
    "an unknown name": ({BOTH: "{Auror: 1}"}, ":17:1: gold.items names \"Auror\", which is no item"),
    "nothing else": ({BOTH: "{Roma: 1, Aurora: 1, Golden Wok: 1, Corner Grill: 1, Night Kiosk: 0, Blue Fish: 0, "
                            "Station Buffet: 0}"}, ":17:1: every item is gold"),
    "too few tokens": ({"tokens_per_worker: 60": "tokens_per_worker: 10"},
                       "tokens_per_worker is 10; expected 30 to 32767"),
    "a score in the middle": ({BOTH: "{Aurora: 0.5}", "mechanism: segments": "privatizer: {name: randomized-response, "
                               "epsilon: 0.1}, mechanism: none"}, "may be wrong with probability"),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_whose_gold_items_cannot_be_is_refused(tmp_path, name):
    changes, message = FILES[name]
    text = (ROOT / "deploy/campaigns/gold.yaml").read_text()
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    (tmp_path / "campaign.yaml").write_text(text)
    done = crowdveil("up", tmp_path / "campaign.yaml", cwd=tmp_path)
    assert done.returncode == 2 and message in done.stderr and done.stderr.count("\n") == 1, done.stderr


def test_the_laboratory_has_no_workers_to_test(tmp_path):
    text = (ROOT / "deploy/campaigns/gold.yaml").read_text()
    (tmp_path / "gold.yaml").write_text(
        text + "experiment: {about: x, series: [{name: a, policy: ppar-kl}], metrics: [rounds], figure: {y: rounds}}\n")
    done = lab("run", "gold.yaml", cwd=tmp_path)
    assert done.returncode == 2 and "gold.yaml:17:1: the laboratory has no workers to test" in done.stderr, done.stderr


def test_the_same_key_with_other_gold_items_is_another_campaign(deployment):
    deployment.up()
    the_spec, key = spec(3, tokens_per_worker=100), b"k" * 16
    with deployment.requester() as requester:
        first = requester.submit(the_spec, key, gold(GOLD))
        assert not first.existed and requester.submit(the_spec, key, gold(GOLD)).existed
        for other in (gold({0: 1, 3: .1}), None):
            with pytest.raises(Refused, match="client key already used"):
                requester.submit(the_spec, key, other)


def test_the_example_ranks_the_items_that_are_not_gold(tmp_path):
    # The file has a seed of the scores. Which questions are gold is random still, and so who is taken for a liar: one
    # run in twenty has such a guest, of hundreds, one in five million four of them; they change no class.
    done = crowdveil("up", ROOT / "deploy/campaigns/gold.yaml", "--json", "--unsafe-noise-seed", "1", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["classes"] == [["Roma", "Golden Wok"], ["Corner Grill", "Blue Fish"], ["Station Buffet"]]
    assert set(result["item_tokens"]) == {name for names in result["classes"] for name in names}
