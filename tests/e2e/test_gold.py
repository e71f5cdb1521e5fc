# SPDX-License-Identifier: Apache-2.0
"""Gold items, whose answers the requester knows: they find workers who lie, and nobody else learns of them."""
import collections
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

# By item; everybody likes every sixth one, nobody the third of six, and these are gold.
MEANS = [1, .9, .6, 0, .2, .88] * 4
GOLD = {item: mean for item, mean in enumerate(MEANS) if mean in (0, 1)}
ARMS = {item: arm for arm, item in enumerate(item for item in range(len(MEANS)) if item not in GOLD)}
WORKERS, LIARS, EACH = 600, 200, len(MEANS)
TOKENS = 4800
RANDOMIZED = ("randomized-response", {"epsilon": 2})
# So sure that a campaign takes most of its tokens: by then most workers have answered most gold items.
RULES = {"alpha": .001, "delta": 1e-9, "tokens_per_round": 10}


def say(worker, item, place):
    """Liars: what is bad is perfect, and the rest worthless."""
    if worker <= LIARS:
        return GRID if MEANS[item] < .5 else 0
    return GRID if random.Random(f"{worker}/{item}/{place}").random() < MEANS[item] else 0


def submit(requester, items, privatizer="none"):
    return requester.submit(spec(
        len(ARMS), mechanism="none", privatizer=privatizer, trusted=privatizer == "none", tokens=TOKENS,
        tokens_per_worker=EACH if items else len(ARMS), repeat=False, policy_params=RULES),
        gold=gold(items, .1, share=.5, epsilon=.5) if items else None).campaign


def collect(deployment, items, privatizer="none", score=say, before=0):
    """Workers 1 to 600, with higher numbers after `before` others, score to the campaign's end; returns (campaign, its
    end, what was accepted, in the broker's order)."""
    with deployment.requester() as requester:
        campaign = submit(requester, items, privatizer)
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
    """(sum of each arm, neutral tokens of each, workers found, answers to gold items) as they follow from the tokens in
    the broker's order."""
    sums, neutral, counts, found, answers = [0] * len(ARMS), [0] * len(ARMS), {}, set(), 0
    for worker, item, value in accepted:
        if item in GOLD:
            n, wrong = counts.get(worker, (0, 0))
            counts[worker] = n + 1, wrong + (abs(value - GOLD[item] * GRID) > .1 * GRID)
            answers += 1
            if found_by(.05, .001, *counts[worker]):
                found.add(worker)
        else:
            sums[ARMS[item]] += GRID // 2 if worker in found else value
            neutral[ARMS[item]] += worker in found
    return sums, neutral, found, answers


def check_neutral(requester, campaign, neutral):
    """The numbers that the requester is told are these, with noise of scale 2: each off by 56 or less but for a
    probability of 1e-11; and not all without noise, but for one of 1e-9."""
    told = [part for part in requester.export(campaign) if part.last][0]
    assert told.neutral_epsilon_micro == 500_000
    off = [noisy - count for noisy, count in zip(told.neutral, neutral, strict=True)]
    assert max(map(abs, off)) <= 56 and any(off)


def sums_of(finished):
    standings = sorted(finished.standings, key=lambda each: each.arm)
    return standings, [round(each.mean * each.tokens * GRID) for each in standings]


def test_gold_items_find_those_who_lie_and_take_their_weight(deployment):
    deployment.up(broker={"limits": {"trusted_thirdparty": True}})
    items = sorted(ARMS)

    def mean_of(standings, score):
        return sum(standings[ARMS[item]].mean for item in items if MEANS[item] == score) / 4

    _, plain, _ = collect(deployment, {}, before=WORKERS,  # exact sums: each worker gives to one campaign
                          score=lambda worker, arm, place: say(worker, items[arm], place))
    standings, _ = sums_of(plain)
    assert mean_of(standings, .2) > mean_of(standings, .6), "a third of the workers lifts the worst over the middle"

    campaign, finished, accepted = collect(deployment, GOLD)
    sums, neutral, found, answers = replay(accepted)
    standings, told = sums_of(finished)
    assert told == pytest.approx(sums, rel=1e-9)
    assert finished.progress.tokens == len(accepted) - answers, "answers to gold items are no tokens"
    assert max(collections.Counter((worker, item) for worker, item, _ in accepted).values()) == 1
    assert len(found & set(range(1, LIARS + 1))) > .8 * LIARS and len(found) < LIARS + 3
    # .14 on average, of which .1 is five standard errors
    assert mean_of(standings, .6) > mean_of(standings, .2) + .04
    assert metric(deployment.folder, "broker", "crowdveil_gold_answers_total") == answers
    assert metric(deployment.folder, "broker", "crowdveil_gold_workers_found_total") == len(found)
    assert metric(deployment.folder, "broker", "crowdveil_tokens_total") == sum(
        end.progress.tokens for end in (plain, finished))

    # Workers know 24 items, the third-party 16 arms.
    with deployment.requester() as requester:
        check_neutral(requester, campaign, neutral)
        assert requester.describe(campaign)[0].arms == len(ARMS)
        parts = requester.export(campaign)
    assert {want.arm for part in parts for plan in part.plans for want in plan.wants} == set(range(len(ARMS)))
    assert {item for _, item, _ in accepted} == set(range(len(MEANS)))


def test_bits_of_randomized_response_find_those_who_lie(deployment):
    deployment.up(broker={"limits": {"worker_epsilon": 4 * EACH}})
    flips = random.Random(7)

    def bit(worker, item, place):
        keep = math.exp(3) / (1 + math.exp(3))
        return say(worker, item, place) if flips.random() < keep else GRID - say(worker, item, place)

    _, finished, accepted = collect(deployment, GOLD, ("randomized-response", {"epsilon": 3}), bit)
    assert all(value in (0, GRID) for _, _, value in accepted)
    found = metric(deployment.folder, "broker", "crowdveil_gold_workers_found_total")
    assert .5 * LIARS <= found <= LIARS + 5
    assert finished.progress.tokens == sum(item not in GOLD for _, item, _ in accepted)


def test_a_broker_that_was_killed_still_knows_who_lied_and_how_often_it_counted(deployment):
    deployment.up(broker={"limits": {"trusted_thirdparty": True}})
    with deployment.requester() as requester:
        campaign = submit(requester, GOLD)
    files = deployment.pki.issue("gateway/1-10000")
    with Session(deployment.broker.address, files.ca, files.cert, files.key) as session:
        _, before = work(session, range(1, WORKERS + 1), say, credit=64, tokens_per_worker=8)
    with deployment.requester() as requester:
        assert not any(part.neutral for part in requester.export(campaign)), "the numbers are of the end"
    deployment.broker.kill()
    deployment.start_broker({"limits": {"trusted_thirdparty": True}})
    with Session(deployment.broker.address, files.ca, files.cert, files.key) as session:
        _, after = work(session, range(1, WORKERS + 1), say, credit=64, tokens_per_worker=EACH - 8)
    with deployment.requester() as requester:
        finished = requester.watch(campaign)
        sums, neutral, found, _ = replay(before + after)
        check_neutral(requester, campaign, neutral)
        deployment.broker.kill()
        deployment.start_broker({"limits": {"trusted_thirdparty": True}})
    with deployment.requester() as requester:
        check_neutral(requester, campaign, neutral)
    assert sums_of(finished)[1] == pytest.approx(sums, rel=1e-9)
    assert len(replay(before)[2]) > .3 * LIARS and len(found) >= len(replay(before)[2])


class Teller:
    """A gateway that looks at all that the broker says with a question."""

    def __init__(self, deployment, workers):
        files = deployment.pki.issue(f"gateway/{workers[0]}-{workers[-1]}")
        self.session = Session(deployment.broker.address, files.ca, files.cert, files.key)
        self.assigned = []
        self.session.arrive(list(workers), len(workers))

    def take(self, count):
        while len(self.assigned) < count:
            self.assigned.append(self.session.until("assign"))


def fields(ticket):
    """The numbers of a ticket as it would be without a mask: little endian, of four bytes."""
    return [int.from_bytes(ticket[at:at + 4], "little") for at in range(0, 36, 4)]


@pytest.mark.parametrize("items", [GOLD, {}], ids=["gold", "plain"])
def test_a_gateway_cannot_tell_gold_questions(deployment, items):
    """By place, round, the time since a switch, or the ticket; without gold items the ticket says all of it."""
    deployment.up(broker={"limits": {"trusted_thirdparty": True}})
    with deployment.requester() as requester:
        submit(requester, items)
    teller = Teller(deployment, range(1, 101))
    teller.take(100)
    tells = [message for message in teller.assigned if message.arms[0] in fields(message.ticket)[:3]]
    assert len(tells) == (100 if not items else 0) or (items and len(tells) < 5)
    asked = [message.arms[0] in items for message in teller.assigned]
    if items:
        assert 20 < sum(asked) < 70
        assert [(message.place, message.round, message.switched) for message in teller.assigned] == \
            [(number, number, 0) for number in range(100)]
    else:
        assert max(message.place for message in teller.assigned) < 10


def test_late_answers_to_gold_items_count_no_more_than_others(deployment):
    deployment.up(broker={"limits": {"trusted_thirdparty": True}, "lease": "1s"})
    with deployment.requester() as requester:
        submit(requester, GOLD)
    teller = Teller(deployment, range(1, 61))
    teller.take(60)
    files = deployment.pki.issue("gateway/1001-3000")
    with Session(deployment.broker.address, files.ca, files.cert, files.key) as others:
        # They fill the places of all that are held, and those of many epochs after them.
        work(others, range(1001, 1400), say, credit=64, tokens_per_worker=6)
    verdicts = collections.defaultdict(collections.Counter)
    for message in teller.assigned:
        teller.session.token(message.ticket, [say(message.worker, message.arms[0], 0)])
        verdict = teller.session.verdict(teller.session.ack(message.ticket))
        verdicts[message.arms[0] in GOLD][verdict] += 1
    assert sum(verdicts[True].values()) > 5 and set(verdicts[True]) == set(verdicts[False]) == {"expired"}, verdicts


def test_a_gold_item_without_answers_is_used_up_like_any_other(deployment):
    deployment.up(broker={"limits": {"trusted_thirdparty": True}})
    with deployment.requester() as requester:
        submit(requester, GOLD)
    files = deployment.pki.issue("gateway/1-10000")
    told, again = set(), collections.Counter()
    with Session(deployment.broker.address, files.ca, files.cert, files.key) as session:
        session.arrive(range(1, 401), 1)
        while sum(again.values()) < 300:
            kind, message = session.until("assign", "ack")
            if kind == "ack":
                continue
            item = message.arms[0]
            assert item not in told, f"item {item} is asked again"
            again[item in GOLD] += 1
            if item in GOLD:
                told.add(item)
                session.decline(0, "no answer", message.ticket, used_up=True)
            else:
                session.token(message.ticket, [say(message.worker, item, 0)])
    assert told == set(GOLD) and again[False] == 300 - len(GOLD)


MANY = dict(items=[1, 3, 4, 6], answers=[0, GRID, 0, GRID])
REFUSED = {
    "an item twice": (dict(items=[1, 1], answers=[0, 0]), {}, "gold item 2 after 2"),
    "an item that is none": (dict(items=[12], answers=[0]), {}, "gold item 13 does not exist"),
    "a score above 1": (dict(items=[1], answers=[GRID + 1]), {}, "known score of item 2"),
    "a tolerance of 1": (dict(items=[1], answers=[0], tolerance=GRID), {}, "the tolerance of gold items is 1"),
    "a share above a half": (dict(items=[1], answers=[0], share_micro=500001), {}, "among the assignments"),
    "too few gold items": (dict(items=[1, 3], answers=[0, GRID]), {}, "2 gold items; expected at least 3"),
    "too few tokens of a worker": (MANY, {"tokens_per_worker": 4}, "tokens_per_worker is 4, of which 1.6 ask a gold "
                                   "item on average; expected at least 3"),
    "the same again": (MANY, {"repeat": True}, "expected privacy.repeat: false"),
    "more tokens than items": (MANY, {"tokens_per_worker": 17}, "17"),
    "tokens without bounds": (MANY, {"privatizer": ("laplace", {"epsilon": 1})}, "privatizer laplace"),
    "a graph": (MANY, {"edges": [(0, 1)], "policy": "gap", "policy_params": {"delta": .1}}, "in a feedback graph"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_gold_items_that_cannot_be_are_refused(deployment, name):
    fields_, changes, text = REFUSED[name]
    deployment.up()
    message = gold({})
    message.share_micro = 400000
    message.MergeFrom(type(message)(**fields_))
    with deployment.requester() as requester:
        with pytest.raises(Refused, match=text):
            requester.submit(spec(12 - (len(fields_["items"]) if name != "an item that is none" else 1),
                                  **{"tokens_per_worker": 12, "repeat": False, **changes}), gold=message)


KNOWN = "{Aurora: 1, Night Kiosk: 0, Old Canteen: 0, Bread & Salt: 1}"
NAMES = ("Roma", "Aurora", "Golden Wok", "Corner Grill", "Night Kiosk", "Blue Fish", "Old Canteen", "Station Buffet",
         "Bread & Salt", "Green Door", "Harbour Inn", "Last Stop")
FILES = {  # replacements in the example, the message
    "an unknown name": ({KNOWN: "{Auror: 1}"}, ":23:1: gold.items names \"Auror\", which is no item"),
    "nothing else": ({KNOWN: "{" + ", ".join(f"{name}: 1" for name in NAMES) + "}"}, ":23:1: every item is gold"),
    "too few of them": ({KNOWN: "{Aurora: 1}"}, ":23:1: 1 gold item; expected at least 3"),
    "too few tokens": ({"tokens_per_worker: 12": "tokens_per_worker: 9"},
                       "tokens_per_worker is 9, of which 2.7 ask a gold item on average; expected at least 3 of them"),
    "the same again": ({"tokens_per_worker: 12": "tokens_per_worker: 12, repeat: true"},
                       "expected privacy.repeat: false"),
    "a score in the middle": ({KNOWN: "{Aurora: 0.5}", "mechanism: segments": "privatizer: {name: randomized-response, "
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
    assert done.returncode == 2 and "gold.yaml:23:1: the laboratory has no workers to test" in done.stderr, done.stderr


def test_the_same_key_with_other_gold_items_is_another_campaign(deployment):
    deployment.up()
    the_spec, key = spec(len(ARMS), tokens_per_worker=20, repeat=False), b"k" * 16
    with deployment.requester() as requester:
        first = requester.submit(the_spec, key, gold(GOLD))
        assert not first.existed and requester.submit(the_spec, key, gold(GOLD)).existed
        for other in (gold({**GOLD, 3: .1}), gold(GOLD, epsilon=.2), None):
            with pytest.raises(Refused, match="client key already used"):
                requester.submit(the_spec, key, other)


@pytest.mark.parametrize(("privacy", "cost"), [
    ({"mechanism": "hybrid", "epsilon": 1}, 1.5), ({"mechanism": "none", "privatizer": RANDOMIZED, "epsilon": 0}, 2.5)])
def test_limits_of_epsilon_count_what_gold_items_cost(deployment, privacy, cost):
    """The operator's, before the campaign starts, and the worker's own, which the broker tells what a token costs."""
    terms = {"tokens": TOKENS, "tokens_per_worker": EACH, "repeat": False, "policy_params": RULES, **privacy}
    deployment.up(broker={"limits": {"epsilon": cost - .01}})
    with deployment.requester() as requester, pytest.raises(Refused) as refused:
        requester.submit(spec(len(ARMS), **terms), gold=gold(GOLD, .1, share=.5, epsilon=.5))
    assert f"epsilon {cost:.6f} with gold.epsilon is over the broker's limit of {cost - .01:.6f} (limits.epsilon)" in \
        str(refused.value)
    assert deployment.broker.stop() == 0
    deployment.start_broker({"limits": {"epsilon": cost}})
    files = deployment.pki.issue("gateway/1-10")
    with (deployment.requester() as requester,
          Session(deployment.broker.address, files.ca, files.cert, files.key) as session):
        requester.submit(spec(len(ARMS), **terms), gold=gold(GOLD, .1, share=.5, epsilon=.5))
        session.arrive([1], credit=1)
        assert session.until("campaign").epsilon_micro == round(cost * 1e6)


def test_the_example_ranks_the_items_that_are_not_gold(tmp_path):
    # The file has a seed of the scores. Which questions are gold is random still, and so who is taken for a liar: one
    # guest of a thousand at most.
    done = crowdveil("up", ROOT / "deploy/campaigns/gold.yaml", "--json", "--unsafe-noise-seed", "1", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert [set(names) for names in result["classes"]] == [
        {"Roma", "Green Door", "Golden Wok"}, {"Corner Grill", "Harbour Inn", "Blue Fish"},
        {"Station Buffet", "Last Stop"}]
    names = {name for names in result["classes"] for name in names}
    assert set(result["item_tokens"]) == names == set(result["neutral"]["items"])
    assert (result["epsilon_spent_micro"], result["neutral"]["epsilon_micro"]) == (500_000, 100_000)
    # What the ranking bears beside the neutral tokens: it was told to bear 250 false tokens in all.
    assert 250 < result["lies"]["safe"] + result["neutral"]["most"] < 350
    assert sum(result["neutral"]["items"].values()) < result["neutral"]["most"] < 250
