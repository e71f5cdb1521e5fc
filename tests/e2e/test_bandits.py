# SPDX-License-Identifier: Apache-2.0
"""The example campaign of each bandit, from its file to the regret, run by daemons of its own."""
import json
import sqlite3

import pytest

from harness.commands import crowdveil
from harness.daemon import ROOT

GRID = 1 << 20
# name: true means of the arms, the largest round; in each, fewer than one run in 10,000 gives the best arm less than .7
# of the answers (20,000 simulated runs)
CORRUPT = {"klucb-cf": ([.9, .6], 1), "ucb-cf": ([.9, .6], 10), "ts-cf": ([.9, .3, .2], 1), "kl-local": ([.9, .3], 1),
           "posterior-quantile": ([.9, .3], 1)}
ADVERSARIAL = ["exp3", "dp-exp3-lap", "exp3-tau", "tsallis-inf"]


def pulls_of(export):
    return [(want["arm"], want["tokens"]) for plan in export["plans"] for want in plan["wants"]]


@pytest.mark.parametrize("name", CORRUPT)
def test_a_bandit_behind_randomized_response_finds_its_best_arm(example, name):
    means, most = CORRUPT[name]
    result, export, _ = example(name)
    pulls = [sum(tokens for arm, tokens in pulls_of(export) if arm == i) for i in range(len(means))]
    assert sorted((arm["pulls"] for arm in result["arms"]), reverse=True) == sorted(pulls, reverse=True)
    assert result["policy"] == name and result["pulls"] == result["tokens"] == sum(pulls)
    assert all(tokens <= most for _, tokens in pulls_of(export))
    assert pulls[0] > .7 * sum(pulls), "the arm of mean .9, whatever its workers make of it"
    assert result["regret"] == pytest.approx(sum(n * (means[0] - mean) for n, mean in zip(pulls, means)))


# each arm's matrix, none of them symmetric; the first and the third invert answers
P00, P11, MEANS = [.2, .9, .1], [.3, .7, .4], [.9, .6, .3]
TURNED = {"klucb-cf": "klucb-cf, tokens_per_round: 20", "ucb-cf": "ucb-cf, tokens_per_round: 20",
          "ts-cf": "ts-cf, tokens_per_round: 20", "kl-local": "kl-local, tokens_per_round: 20",
          "posterior-quantile": "posterior-quantile, tokens_per_round: 20",
          "ppar": "ppar, alpha: 0.1, tokens_per_round: 1000"}


@pytest.mark.parametrize("name", TURNED)
def test_answers_that_each_arm_corrupts_in_its_own_way_are_taken_back(tmp_path, name):
    """Tokens follow the matrices, asymmetric and inverting; decisions follow the truth."""
    items = ", ".join(f"{{name: i{arm}, mean: {mean}}}" for arm, mean in enumerate(MEANS))
    limit = 100_000 if name == "ppar" else 2000
    (tmp_path / "turned.yaml").write_text(
        f"campaign: turned\nitems: {{seed: 1, list: [{items}]}}\npolicy: {{name: {TURNED[name]}}}\n"
        f"privacy: {{mechanism: none, privatizer: {{name: randomized-response, p00: {P00}, p11: {P11}}}}}\n"
        f"limits: {{tokens: {limit}}}\n")
    done = crowdveil("up", "turned.yaml", "--json", "--state", tmp_path / "state", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    with sqlite3.connect(tmp_path / "state/thirdparty/thirdparty.db") as db:
        seen = {arm: (tokens, total / GRID / tokens) for arm, tokens, total in
                db.execute("SELECT arm, max(tokens), noisy_sum FROM release GROUP BY arm")}
    feedback = [1 - p00 + (p00 + p11 - 1) * mean for p00, p11, mean in zip(P00, P11, MEANS)]
    assert feedback[0] < feedback[1], "taken as they are, the answers make a worse arm look better"
    for arm, (tokens, mean) in seen.items():
        assert mean == pytest.approx(feedback[arm], abs=5 * (feedback[arm] * (1 - feedback[arm]) / tokens) ** .5)
    if name == "ppar":
        assert result["classes"] == [["i0"], ["i1"], ["i2"]]
        return
    pulls = {arm["name"]: arm["pulls"] for arm in result["arms"]}
    assert pulls["i0"] > .5 * sum(pulls.values()), pulls
    told = next(arm for arm in result["arms"] if arm["name"] == "i0")
    assert told["mean"] == pytest.approx(.9, abs=5 * .5 / .5 / pulls["i0"] ** .5)


@pytest.mark.parametrize("name", ADVERSARIAL)
def test_a_bandit_s_regret_against_an_adversary_is_that_of_its_rounds(example, name):
    result, export, sums = example(name)
    pulls = [arm for arm, tokens in pulls_of(export) for _ in range(tokens)]
    assert result["pulls"] == result["tokens"] == len(pulls)
    if name != "exp3-tau":  # the deterministic one, again
        gains = [[.38, t % 2 == 0, t % 3 == 0, 0] for t in range(1, len(pulls) + 1)]
        reward = sum(gain[arm] for arm, gain in zip(pulls, gains))
        assert result["reward"] == pytest.approx(reward)
        assert result["regret"] == pytest.approx(max(map(sum, zip(*gains))) - reward)
    if name not in ("dp-exp3-lap", "tsallis-inf"):  # exact sums: the requester counts what the workers gave
        assert sum(sums.values()) / GRID == pytest.approx(result["reward"], abs=len(pulls) / GRID)
    if name == "exp3-tau":
        switches = sum(a != b for a, b in zip(pulls, pulls[1:]))
        assert 0 < switches < len(pulls) / 3 and result["rounds"] < len(pulls) / 3, "it keeps to its choices"


MEMORY = """
campaign: memory
items: {adversary: {name: deterministic, count: 3, memory: 5}}
policy: {name: exp3-tau, tau: 2, gamma: 0.7}
privacy: {mechanism: none, third_party: trusted}
limits: {tokens: 2400, idle: 30s}
"""


def test_an_adversary_s_memory_reaches_back_over_several_plans(tmp_path):
    """Workers are told how long ago another arm was pulled: here three plans of two pulls without one are enough."""
    (tmp_path / "memory.yaml").write_text(MEMORY)
    state = tmp_path / "state"
    done = crowdveil("up", "memory.yaml", "--json", "--state", state, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    with sqlite3.connect(state / "thirdparty/thirdparty.db") as db:
        rows = db.execute("SELECT number, arm, tokens, noisy_sum FROM release ORDER BY number").fetchall()
    total, pulls, before = 0, [], {}
    for _, arm, tokens, noisy_sum in rows:
        count, known = before.get(arm, (0, 0))
        pulls += [arm] * (tokens - count)
        total += noisy_sum - known
        before[arm] = tokens, noisy_sum
    assert len(pulls) == 2400
    gains = [[.38, t % 2 == 0, t % 3 == 0] for t in range(1, 2401)]
    kept = [all(a == pulls[t] for a in pulls[max(0, t - 5):t]) for t in range(2400)]
    assert 50 < sum(kept) < 1200, "long runs of one arm, and changes"  # about 300, with a standard deviation of 35
    reward = sum(gain[arm] for gain, arm, keeps in zip(gains, pulls, kept) if keeps)
    assert total / GRID == pytest.approx(reward, abs=1e-3), "what the workers gave"
    assert json.loads(done.stdout)["reward"] == pytest.approx(reward), "what the requester says"


@pytest.mark.parametrize("change, line", [
    (("mechanism: none, third_party: trusted", "mechanism: none"),
     "policy exp3 receives exact gains; expected third_party: trusted"),
    (("mechanism: none,", "mechanism: hybrid, epsilon: 1,"),
     "policy exp3 needs the exact sum of each pull; expected mechanism none, not hybrid"),
    (("count: 4", "count: 4, best: 9"), "items.adversary.best does not apply to deterministic"),
    (("{name: exp3}", "{name: exp3, gamma: 2}"), "gamma is 2; expected"),
])
def test_what_does_not_fit_is_one_line_before_anything_starts(tmp_path, change, line):
    text = (ROOT / "deploy/campaigns/exp3.yaml").read_text()
    assert change[0] in text
    (tmp_path / "exp3.yaml").write_text(text.replace(*change))
    done = crowdveil("up", tmp_path / "exp3.yaml")
    assert done.returncode == 2 and line in done.stderr and len(done.stderr.strip().split("\n")) == 1, done.stderr
