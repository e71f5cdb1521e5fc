# SPDX-License-Identifier: Apache-2.0
"""What campaigns with two brokers take, each kind once with all parties as programs and small tasks, and what not."""
import json
import re
import tempfile
from pathlib import Path

import pytest

from harness.commands import crowdveil
from harness.daemon import ROOT
from harness.deployment import missing_programs

MEANS = {"a": .1, "b": .9, "c": .5}
ITEMS = ", ".join(f"{{name: {name}, mean: {mean}}}" for name, mean in MEANS.items())
RARE = "delta: 0.0000001"  # the probability of a wrong result, at most
PPAR = f"{{name: ppar, alpha: 0.2, {RARE}, tokens_per_round: 200}}"


@pytest.fixture
def folder():
    """In memory, if there is space: a recruitment has a hundred plans, each of which three parties sync."""
    absent = missing_programs("broker", "cobroker", "thirdparty", "worker", "crowdveil")
    if absent:
        pytest.fail(f"not built: {', '.join(absent)}")
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as made:
        yield Path(made)


def ranking(policy=PPAR, privacy="", items=f"rewards: bernoulli, list: [{ITEMS}]", more="", tokens=60_000):
    return (f"campaign: kind\nitems: {{{items}}}\npolicy: {policy}\n"
            f"privacy: {{epsilon: 5, brokers: 2, tokens_per_worker: 1{privacy}}}\n"
            f"limits: {{tokens: {tokens}, idle: 30s}}\n{more}")


def recruitment(policy, mechanism="hybrid"):
    workers = ", ".join(f"{{id: {n}, cost: {cost}, quality: {quality}}}"
                        for n, (cost, quality) in enumerate(((2, .4), (4, .6), (5, .8)), 1))
    return (f"campaign: kind\nworkers: [{workers}]\nbudget: 300\npolicy: {policy}\n"
            f"privacy: {{mechanism: {mechanism}, epsilon: 1, brokers: 2}}\nlimits: {{deadline: 5m}}\n")


def run(folder, text, *args):
    (folder / "kind.yaml").write_text(text)
    return crowdveil("up", folder / "kind.yaml", "--json", "--seed", 3, "--state", folder / "state", *args,
                     cwd=folder)


def rows(folder, each):
    """`each` rows an item, of which a share according to its mean has the score 1."""
    lines = [f"{name},{int(k < mean * each)}" for name, mean in MEANS.items() for k in range(each)]
    (folder / "rows.csv").write_text("item,score\n" + "\n".join(lines) + "\n")


FILE = "source: csv, path: rows.csv, item: item, score: score, scale: [0, 1]"
PAIRS = "rewards: pairs, list: [{name: a, mean: 0.1}, {name: b, mean: 0.8}, {name: c, mean: 0.3}]"
RANKINGS = {
    **{f"mechanism {name}": ranking(privacy=f", mechanism: {name}") for name in (
        "hybrid", "kary-blocks", "segments", "doubling", "per-item", "binary", "binary-honaker", "kary")},
    "mechanism batch": ranking(PPAR.replace("200", "3000"), privacy=", mechanism: batch"),
    "score_bits 15": ranking(privacy=", score_bits: 15"),
    "scores between": ranking(items=f"rewards: beta, list: [{ITEMS}]"),
    "ppar-kl": ranking(f"{{name: ppar-kl, alpha: 0.2, {RARE}}}"),
    "full ranking": ranking(f"{{name: ppar, alpha: 0, {RARE}, tokens_per_round: 200}}"),
    "pair-sort": ranking(f"{{name: pair-sort, alpha: 0, {RARE}}}", items=PAIRS, privacy=", mechanism: segments"),
    "randomized response": ranking(privacy=", privatizer: {name: randomized-response, epsilon: 4}"),
    "pairs": ranking(f"{{name: ppar-kl, alpha: 0.1, {RARE}}}", items=PAIRS),
    "rows drawn": ranking(items=f"{FILE}, replacement: true"),
    "rows once": ranking(items=FILE),
}
BANDITS = {
    "best-arm": ranking("{name: best-arm, delta: 0.1}", privacy=", mechanism: segments"),
    "dp-se": ranking("{name: dp-se, delta: 0.1}", privacy=", mechanism: batch"),
    "gap": ranking("{name: gap, delta: 0.1}", privacy=", mechanism: batch"),
    "adap-tt": ranking("{name: adap-tt, delta: 0.1}", privacy=", mechanism: batch"),
    "tsallis-inf": ranking("{name: tsallis-inf}", privacy=", mechanism: batch", tokens=60),
}
RECRUITMENTS = {name: recruitment(f"{{name: {name}}}", mechanism) for name, mechanism in (
    ("dpf", "batch"), ("dpu", "hybrid"), ("dpu-kl", "segments"), ("dp-ucb-bound", "hybrid"), ("eps-greedy", "hybrid"),
    ("cheapest", "hybrid"), ("uniform", "hybrid"))}


@pytest.mark.parametrize("kind", RANKINGS)
def test_a_ranking_is_complete_and_right(folder, kind):
    rows(folder, 4000)
    done = run(folder, RANKINGS[kind])
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["ended"] == "complete"
    assert [set(group) for group in result["classes"]] == [set(group) for group in result["truth"]]


@pytest.mark.parametrize("policy", BANDITS)
def test_a_bandit_pulls_the_best_most(folder, policy):
    """With seeded noise, so that each but tsallis-inf, which draws what it asks for, has one outcome."""
    done = run(folder, BANDITS[policy], "--unsafe-noise-seed", 7)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["policy"] == policy and 0 < result["tokens"] == sum(arm["pulls"] for arm in result["arms"])
    if policy != "tsallis-inf":  # which has too few tokens here
        best, = [arm for arm in result["arms"] if arm["active"]]
        assert best["name"] == "b" and best["pulls"] == max(arm["pulls"] for arm in result["arms"])


@pytest.mark.parametrize("policy", RECRUITMENTS)
def test_a_recruitment_spends_its_budget(folder, policy):
    done = run(folder, RECRUITMENTS[policy])
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["policy"] == policy and 300 - 2 < result["spent"] <= 300


def test_workers_of_their_own_give_shares(folder):
    done = run(folder, ranking(), "--worker-processes", 3)
    assert done.returncode == 0 and json.loads(done.stdout)["ended"] == "complete", done.stderr


# ---- what is refused, before anything starts

EXACT = ("klucb-cf", "ucb-cf", "ts-cf", "kl-local", "exp3", "exp3-tau", "dp-exp3-lap", "aae", "alpha-sample",
         "posterior-quantile")
REFUSED = {
    "laplace": (ranking(privacy=", privatizer: {name: laplace, epsilon: 1}"), "privatizer laplace with two brokers"),
    "a graph": (ranking("{name: gap, delta: 0.1}", privacy=", mechanism: batch", more="graph: {edges: [[1, 2]]}\n"),
                "two brokers with a feedback graph; expected no graph"),
    "no mechanism": (ranking("{name: ppar-kl, alpha: 0.2}", privacy=", mechanism: none, third_party: trusted"),
                     "mechanism none with two brokers; expected one whose noise protects every token"),
    "gold": (ranking(more="gold: {tolerance: 0.2, items: {a: 0}}\n"), "gold.*two brokers"),
    "three brokers": (ranking().replace("brokers: 2", "brokers: 3"), "brokers is 3|brokers.*expected.*1 to 2"),
    "bits of pairs": (ranking(items=PAIRS, privacy=", score_bits: 15"), "score_bits is 15, but each token is one bit"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_has_no_shares_is_refused_in_one_line(folder, kind):
    text, says = REFUSED[kind]
    done = run(folder, text)
    line, = done.stderr.strip().split("\n")
    assert done.returncode == 2 and re.search(says, line), line
    assert not (folder / "state").exists()


@pytest.mark.parametrize("policy", EXACT)
def test_a_policy_without_noise_is_refused_in_one_line(folder, policy):
    """Its example, whose mechanism gives exact sums; and with a mechanism, which it does not take."""
    done = crowdveil("up", ROOT / f"deploy/campaigns/{policy}.yaml", "--brokers", 2, "--state", folder / "state")
    line, = done.stderr.strip().split("\n")
    assert done.returncode == 2 and re.search("two brokers", line), line
    assert not (folder / "state").exists()
