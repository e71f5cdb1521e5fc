# SPDX-License-Identifier: Apache-2.0
"""`crowdveil plan`: what a campaign will take, said before it runs, and what then came of it."""
import json
import os
import random
import re
import resource
import subprocess

import pytest

from harness.commands import crowdveil
from harness.daemon import PROGRAMS, ROOT
from harness.lab import lab

EXAMPLES = ROOT / "deploy/campaigns"
FILMS = """campaign: films
items: {source: csv, path: films.csv, item: film, score: stars, scale: [0.5, 5], replacement: REPLACEMENT}
policy: {name: POLICY, alpha: 0.1, delta: 0.1}
privacy: {mechanism: hybrid, epsilon: 0.25}
limits: {tokens: 1000000}
"""
PEOPLE = """campaign: canteen
items: {list: [{name: Roma}, {name: Golden Wok}, {name: Corner Grill}]}
policy: {name: ppar-kl, alpha: 0.2}
privacy: {mechanism: segments, epsilon: 1, tokens_per_worker: 3, repeat: true}
limits: {tokens: 30000, deadline: DEADLINE, idle: IDLE}
"""


def plan(path, *args):
    done = crowdveil("plan", path, "--json", *args)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def films(folder, films=50, rows=400, policy="ppar", replacement="true"):
    """Films as the fifty most rated ones of a known data set: half stars, means close together around .7 to .85."""
    draws = random.Random(1)
    lines = ["film,person,stars"]
    for film in range(films):
        stars = .5 + 4.5 * (.7 + .15 * film / (films - 1))
        lines += [f"film {film + 1},{film * rows + i},{min(5, max(.5, round(2 * draws.gauss(stars, .9)) / 2))}"
                  for i in range(rows)]
    (folder / "films.csv").write_text("\n".join(lines) + "\n")
    path = folder / "films.yaml"
    path.write_text(FILMS.replace("POLICY", policy).replace("REPLACEMENT", replacement))
    return path


# --- what it says


def left_of(told):
    """Items that are undecided, or ranked as of one class or the next."""
    return told["undecided"]["median"] + told["parked"]["median"]


def test_films_that_a_million_tokens_cannot_rank_are_named_before(tmp_path):
    path = films(tmp_path)
    told = plan(path, "--seconds", "60")  # enough for all runs, so that it always says the same
    left = left_of(told)
    assert left >= 10 and told["tokens"]["high"] <= 1_000_000
    assert re.search(rf"; {50 - left:.0f} of 50 items will be ranked .*: raise .*alpha to about", told["conclusion"])
    assert .1 < told["advice"]["alpha"] <= .5 and f"alpha to about {told['advice']['alpha']:g}" in told["conclusion"]
    sure = [item for item in told["items"] if item["undecided"] + item["parked"] == 1]
    assert len(sure) >= left / 2
    assert any(item["why"] == "too close to a boundary" and item["distance"] <= item["interval"] for item in sure)
    assert all(item["why"] is None for item in told["items"] if item["undecided"] == item["parked"] == 0)
    # all of this in the text, the conclusion first
    text = crowdveil("plan", path, "--seconds", "2").stdout
    assert " of 50 items will be ranked" in text.split("\n")[0]
    assert "too close to a boundary" in text and "what if" in text and "a row of films.csv will be used about" in text
    # what it recommends helps
    path.write_text(path.read_text().replace("alpha: 0.1", f"alpha: {told['advice']['alpha']}"))
    assert left_of(plan(path, "--seconds", "60")) == 0


def test_a_larger_limit_that_it_recommends_suffices(tmp_path):
    path = tmp_path / "campaign.yaml"
    path.write_text((EXAMPLES / "ppar-kl.yaml").read_text().replace("tokens: 5000000", "tokens: 60000"))
    told = plan(path)
    assert left_of(told) > 0 and told["advice"]["tokens"] > 60000
    path.write_text(path.read_text().replace("tokens: 60000", f"tokens: {told['advice']['tokens']}"))
    told = plan(path)
    assert left_of(told) == 0 and "all 20 items will be ranked" in told["conclusion"]


def test_the_table_of_other_settings(tmp_path):
    told = plan(EXAMPLES / "demo.yaml")
    rows = {row["what"]: row for row in told["what_if"]}
    assert list(rows) == ["alpha 0.2", "alpha 0.05", "epsilon 0.5", "epsilon 0.125", "tokens_per_round 12000",
                          "tokens_per_round 3000"]
    less, more = (rows[what]["tokens"]["median"] for what in ("epsilon 0.5", "epsilon 0.125"))
    assert less < told["tokens"]["median"] < more
    assert [row["token_micro"] for row in told["what_if"]] == [250_000] * 2 + [500_000, 125_000] + [250_000] * 2
    assert told["token_micro"] == told["worker_micro"] == 250_000
    text = crowdveil("plan", EXAMPLES / "demo.yaml").stdout
    assert all(f"\n{what} " in text for what in rows) and "\nas it is" in text


VOTE = """campaign: excursion
items: {list: [{name: Zoo}, {name: Museum}, {name: Climbing}, {name: Cinema}]}
policy: {name: ppar-kl, alpha: 0.1}
privacy: {mechanism: hybrid, epsilon: 1, tokens_per_worker: TIMES}
limits: {deadline: 30m}
GOLD"""


def vote(folder, times=4, gold=""):
    path = folder / "vote.yaml"
    path.write_text(VOTE.replace("TIMES", str(times)).replace("GOLD", gold))
    return path


@pytest.mark.parametrize("name, args", [("vote", ()), ("vote", ("--runs", "9")), ("vote", ("--seconds", "1", "--runs",
                         "10000")), ("laplace", ("--seconds", "2")), ("graph-ucb", ()), ("dpu", ())])
def test_settings_are_compared_by_the_same_number_of_runs(name, args, tmp_path):
    path = vote(tmp_path) if name == "vote" else EXAMPLES / f"{name}.yaml"
    told = plan(path, *args)
    assert {row["runs"] for row in told["what_if"]} <= {told["runs"], 0}
    if name == "vote":
        assert all(row["runs"] > 0 for row in told["what_if"])
    for row in told["what_if"]:
        if row["runs"] == 0:
            continue
        ratio = row["token_ratio"]
        assert ratio["low"] <= ratio["median"] <= ratio["high"]
        assert abs(ratio["median"] * told["tokens"]["median"] - row["tokens"]["median"]) < 1e-6 * told["tokens"]["high"]
        assert isinstance(row["difference"], bool)


def test_a_smaller_epsilon_is_not_said_to_be_cheaper(tmp_path):
    """Guessed qualities differ so much between runs that 20 runs of one setting say nothing beside 100 of another."""
    path = vote(tmp_path)
    for seed in range(5):
        rows = {row["what"]: row for row in plan(path, "--seed", str(seed))["what_if"]}
        assert rows["epsilon 0.5"]["token_ratio"]["high"] >= 1 >= rows["epsilon 2"]["token_ratio"]["low"]
        assert not rows["tokens_per_round 10"]["difference"], "rounds grow: the first one hardly matters"
    text = crowdveil("plan", path, "--seed", "0").stdout
    assert re.search(r"\ntokens_per_round 10 .* no difference seen\n", text), text
    # known means differ by nothing but chance, and there the difference is seen
    rows = {row["what"]: row for row in plan(EXAMPLES / "demo.yaml")["what_if"]}
    assert rows["epsilon 0.5"]["token_ratio"]["high"] < 1 < rows["epsilon 0.125"]["token_ratio"]["low"]
    assert all(rows[f"epsilon {value}"]["difference"] for value in (.5, .125))


def test_too_few_runs_compare_nothing(tmp_path):
    told = plan(vote(tmp_path), "--runs", "5")
    assert all(row["runs"] == told["runs"] == 5 and row["difference"] is row["token_ratio"] is None
               for row in told["what_if"])
    text = crowdveil("plan", vote(tmp_path), "--runs", "5").stdout
    assert text.count("too few runs to compare: 5 of at least 8") == 6


def test_people_answer_each_item_once_and_gold_items_too(tmp_path):
    """Where one item needs most of the answers, it needs as many people; gold items take a part of what each gives."""
    told = plan(vote(tmp_path), "--people-per-hour", "60")
    assert told["people"]["median"] > 1.3 * told["tokens"]["median"] / 4, told["people"]
    assert abs(told["seconds"]["median"] - 60 * told["people"]["median"]) < 61
    assert "if each gives 4 scores (tokens_per_worker), of each item one\n" in crowdveil("plan", vote(tmp_path)).stdout
    once = plan(vote(tmp_path, times=1))
    assert once["people"]["median"] == once["tokens"]["median"]
    gold = (EXAMPLES / "gold.yaml").read_text()
    (tmp_path / "gold.yaml").write_text(gold)
    told = plan(tmp_path / "gold.yaml")
    each = int(re.search(r"tokens_per_worker: (\d+)", gold)[1])
    share = float((re.search(r"share: ([.\d]+)", gold) or [0, .1])[1])
    assert told["people"]["median"] >= told["tokens"]["median"] / (each * (1 - share)) - 1


def test_items_that_may_be_in_many_classes_are_not_said_to_be_between_two(tmp_path):
    path = films(tmp_path, films=40, rows=60, policy="ppar", replacement="false")
    path.write_text(path.read_text().replace("delta: 0.1}", "delta: 0.1, tokens_per_round: 30}"))
    told = plan(path, "--runs", "20")
    assert told["widest"]["high"] > 8, told["widest"]
    widest = max(item["last"] - item["class"] + 1 for item in told["items"] if item["class"] is not None)
    assert f" as of one of up to {told['widest']['high']:.0f} classes" in told["conclusion"]
    assert widest >= told["widest"]["high"]
    text = crowdveil("plan", path, "--runs", "20").stdout
    assert "one class or the next" not in text and re.search(r"\nfilm \d+ .* 1 to \d+ ", text), text


def test_rows_that_run_out_are_named_with_their_number(tmp_path):
    told = plan(films(tmp_path, films=6, rows=400, policy="ppar-kl", replacement="false"))
    assert "data used up in 100 of 100 runs: film " in told["conclusion"] and "after 400 of " in told["conclusion"]
    assert "expected more rows, or replacement: true" in told["conclusion"]
    assert max(item["used_up"] for item in told["items"]) > .9
    assert told["tokens"]["high"] <= 6 * 400
    assert told["data"]["row_most_micro"] == 250_000


def test_what_a_row_is_charged_is_as_up_says(tmp_path):
    path = films(tmp_path, films=4, rows=50)
    told = plan(path, "--seed", "3")
    done = crowdveil("up", path, "--json", "--seed", "3")
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout)["data"]
    assert told["data"]["rows"] == data["rows"] == 200
    for what in ("uses_mean", "uses_most"):
        assert 1 / 3 < told["data"][what] / data[what] < 3
    assert told["data"]["uses_counted"] and data["uses_counted"]
    # a campaign that ends early has not spent all of its epsilon
    assert told["data"]["row_most_micro"] == told["data"]["uses_most"] * told["token_micro"]
    assert 0 < data["row_most_micro"] <= data["uses_most"] * told["token_micro"]


def test_hires_and_payments_of_a_recruitment(tmp_path):
    told = plan(EXAMPLES / "dpu.yaml", "--seed", "1")
    done = json.loads(crowdveil("up", EXAMPLES / "dpu.yaml", "--json", "--seed", "1").stdout)
    assert .95 * told["paid"]["low"] <= done["spent"] <= done["budget"] and told["paid"]["high"] <= done["budget"]
    assert .7 * told["tokens"]["low"] <= done["pulls"] <= 1.3 * told["tokens"]["high"]
    assert abs(sum(item["paid"] for item in told["items"]) - told["paid"]["median"]) < .02 * done["budget"]
    text = crowdveil("plan", EXAMPLES / "dpu.yaml", "--seed", "1").stdout
    assert "hires" in text.split("\n")[0] and "of the budget of 600 will be paid" in text and "\nworker 1 " in text
    drawn = plan(EXAMPLES / "dpu.yaml")
    assert drawn["drawn"] and "paid" not in drawn["items"][0], "each run has workers of its own"


def test_tokens_and_regret_of_a_bandit():
    told = plan(EXAMPLES / "klucb-cf.yaml")
    assert told["tokens"] == {"low": 400, "median": 400, "high": 400} and told["regret"]["median"] > 0
    assert told["conclusion"].startswith("Expect 400 tokens and ") and "with a regret of about" in told["conclusion"]


def test_people_take_time_and_may_come_too_late(tmp_path):
    path = tmp_path / "people.yaml"
    path.write_text(PEOPLE.replace("DEADLINE", "30d").replace("IDLE", "1d"))
    told = plan(path, "--people-per-hour", "60")
    assert told["guess"] == {"mean": .5, "spread": .3} and told["drawn"]
    assert told["conclusion"].startswith("With guessed qualities expect about ")
    assert abs(told["seconds"]["median"] - told["people"]["median"] * 60) < 1
    assert abs(told["people"]["median"] * 3 - told["tokens"]["median"]) < 3
    assert told["worker_micro"] == 3 * told["token_micro"] == 3_000_000 and told["caution"] == ""
    path.write_text(PEOPLE.replace("DEADLINE", "1h").replace("IDLE", "30s"))
    told = plan(path, "--people-per-hour", "60")
    caution = told["caution"]
    # the time of the first line, with its range, and nothing else
    time, = re.findall(r" tokens \([^)]*\) and ([^;]*);", told["conclusion"])
    late, runs = re.findall(r"limits.deadline of 3600 s ends the campaign before that in (\d+) of (\d+) runs: expected "
                            + re.escape(time), caution)[0]
    assert 1 < int(late) <= int(runs) == told["runs"]
    assert "limits.idle of 30 s ends the campaign as soon as nobody comes for so long" in caution
    assert "A guess: nobody knows the qualities" in crowdveil("plan", path).stdout


def test_two_brokers_take_longer_for_a_token():
    one, two = plan(EXAMPLES / "demo.yaml"), plan(EXAMPLES / "two-brokers.yaml")
    assert two["tokens_per_second"] < one["tokens_per_second"] / 3
    assert two["seconds"]["median"] > 3 * one["seconds"]["median"]
    text = crowdveil("plan", EXAMPLES / "two-brokers.yaml").stdout
    assert "at 100,000 tokens a second" in text and "measured on two cores" in text


def test_a_rate_of_one_s_own():
    usual, own = plan(EXAMPLES / "demo.yaml"), plan(EXAMPLES / "demo.yaml", "--rate", "1000")
    assert own["tokens"] == usual["tokens"] and own["tokens_per_second"] == 1000
    assert own["seconds"]["median"] > own["tokens"]["median"] / 1000 > 100 * usual["seconds"]["median"]
    text = crowdveil("plan", EXAMPLES / "demo.yaml", "--rate", "1000").stdout
    assert "at 1,000 tokens a second" in text and "(--rate)" in text


def test_a_guess_replaces_means_and_says_so(tmp_path):
    near, far = (plan(EXAMPLES / "first.yaml", "--guess", words) for words in (".5,.01", ".5,.45"))
    assert near["guess"] == {"mean": .5, "spread": .01} and near["items"][0]["distance"] is None
    assert near["tokens"]["median"] != far["tokens"]["median"]


def test_time_runs_out(tmp_path):
    """Fewer runs than asked, and it says how many; not even one, and it says so."""
    told = plan(EXAMPLES / "ppar-kl.yaml", "--runs", "10000", "--seconds", "1")
    assert 1 <= told["runs"] < 10000
    path = tmp_path / "long.yaml"
    path.write_text("campaign: long\nitems: {list: [{name: a, mean: 0.5}, {name: b, mean: 0.5}]}\n"
                    "policy: {name: ppar, alpha: 0, tokens_per_round: 1}\nprivacy: {epsilon: 0.01}\n"
                    "limits: {tokens: 1000000000000}\n")
    told = plan(path, "--seconds", "1")
    assert told["runs"] == 0 and told["conclusion"].startswith("No simulated campaign ended within ")
    assert told["conclusion"].endswith("--seconds gives more time")


def test_the_same_seed_says_the_same():
    said = [crowdveil("plan", EXAMPLES / "first.yaml", "--seed", "4", "--runs", "5").stdout for _ in range(2)]
    assert said[0] == said[1] and "range" in said[0]


# --- wrong input


@pytest.mark.parametrize("words, pattern", [
    (("first.yaml", "--runs", "0"), '--runs is "0"; expected a whole number from 1'),
    (("first.yaml", "--seconds", "0"), '--seconds is "0"; expected'),
    (("first.yaml", "--rate", "0"), '--rate is "0"; expected a number'),
    (("first.yaml", "--rate", "fast"), '--rate is "fast"; expected a number'),
    (("first.yaml", "--people-per-hour", "-1"), '--people-per-hour is "-1"; expected a number'),
    (("first.yaml", "--guess", ".5"), '--guess is ".5"; expected MEAN,SPREAD'),
    (("first.yaml", "--guess", ".5,2"), '--guess is ".5,2"; expected MEAN,SPREAD'),
    (("first.yaml", "--guess", ",.2"), '--guess is ",.2"; expected MEAN,SPREAD'),
    (("exp3.yaml", "--guess", ".5,.2"), "exp3.yaml:6: --guess is for items without known scores; expected"),
    (("taxi.yaml", "--guess", ".5,.2"), "taxi.yaml:5: --guess is for items without known scores; expected"),
    (("nothing.yaml",), "nothing.yaml: "),
    ((), "usage: crowdveil plan FILE"),
    (("first.yaml", "second.yaml"), "usage: crowdveil plan FILE"),
])
def test_bad_input_is_one_line(words, pattern):
    done = crowdveil("plan", *words, cwd=EXAMPLES)
    assert done.returncode == 2 and done.stdout == "" and done.stderr.count("\n") == 1, done.stderr
    assert pattern in done.stderr, done.stderr


def test_a_full_device(tmp_path):
    with open("/dev/full", "w") as full:
        done = subprocess.run([PROGRAMS["crowdveil"], "plan", EXAMPLES / "first.yaml"], stdout=full,
                              stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1 and done.stderr.count("\n") == 1
    assert done.stderr.endswith(": standard output: No space left on device\n")


def test_items_without_means_are_for_people_only(tmp_path):
    path = tmp_path / "people.yaml"
    path.write_text(PEOPLE.replace("DEADLINE", "30d").replace("IDLE", "1d"))
    done = crowdveil("up", path)
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert "people.yaml:2: the items have no means, so only people can give scores; expected a mean" in done.stderr
    path.write_text(path.read_text().replace("{name: Golden Wok}", "{name: Golden Wok, mean: 0.5}"))
    done = crowdveil("plan", path)
    assert done.returncode == 2 and "item \"Golden Wok\" has a mean, but the items before have none" in done.stderr
    (tmp_path / "lab.yaml").write_text(
        PEOPLE.replace("DEADLINE", "30d").replace("IDLE", "1d") +
        "experiment: {about: x, series: [{name: a}], metrics: [rounds], figure: {y: rounds}}\n")
    done = lab("run", "lab.yaml", cwd=tmp_path)
    assert done.returncode == 2 and "the items have no means" in done.stderr, done.stderr


# --- what then happens


NAMES = ["first", "demo", "segments", "kary", "randomized-response", "aae", "best-arm", "adap-tt", "gap", "dpu-kl",
         "gold"]


def test_real_campaigns_end_within_what_was_said():
    """Two campaigns of each, with seeds of their own: nine in ten lie within the range, so with probability 1 - 2.5e-7
    at least half."""
    outside, several = [], 0
    for name in NAMES:
        for seed in ("101", "102"):
            told = plan(EXAMPLES / f"{name}.yaml", "--seed", seed)
            done = crowdveil("up", EXAMPLES / f"{name}.yaml", "--json", "--seed", seed)
            assert done.returncode == 0, done.stderr
            result = json.loads(done.stdout)
            several += told["tokens"]["low"] < told["tokens"]["high"]
            if not told["tokens"]["low"] <= result["tokens"] <= told["tokens"]["high"]:
                outside.append((name, seed, result["tokens"], told["tokens"]))
    assert several > len(NAMES) and len(outside) <= len(NAMES), outside


def test_campaigns_of_the_laboratory_take_as_much_as_was_said(tmp_path):
    (tmp_path / "many.yaml").write_text((EXAMPLES / "first.yaml").read_text() + """
experiment:
  about: tokens to the end
  replicates: 300
  series: [{name: a}]
  metrics: [decided-after]
  figure: {y: tokens}
""")
    told = plan(EXAMPLES / "first.yaml", "--runs", "300")
    done = lab("run", "many.yaml", "--json", "--seed", "9", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    mean, = [row["mean"] for row in map(json.loads, done.stdout.splitlines()) if "series" in row]
    assert abs(sum(item["tokens"] for item in told["items"]) / mean - 1) < .1


CORES = len(os.sched_getaffinity(0))


def computed_s():
    """Processor time of the programs that have ended, which a busy machine does not change."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_example_is_planned_in_time(path):
    start = computed_s()
    told = plan(path)
    assert told["runs"] > 0 and computed_s() - start < 12 * CORES  # 8 s by the clock
    assert told["tokens"]["low"] <= told["tokens"]["median"] <= told["tokens"]["high"] <= told["tokens_limit"]
    assert told["conclusion"].startswith("Expect ")


def test_a_million_rows_are_planned_in_time(tmp_path):
    path = films(tmp_path, rows=20_000)
    start = computed_s()
    told = plan(path)
    assert told["runs"] > 0 and computed_s() - start < 12 * CORES
