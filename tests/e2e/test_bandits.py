# SPDX-License-Identifier: Apache-2.0
"""The example campaign of each bandit, from its file to the regret, through daemons of their own."""
import pytest

from harness.commands import crowdveil
from harness.daemon import ROOT

GRID = 1 << 20
# name: true means of the arms, the most a round may ask for
CORRUPT = {"klucb-cf": ([.9, .6], 1), "ucb-cf": ([.9, .6], 10), "ts-cf": ([.9, .6, .3], 1), "kl-local": ([.9, .6], 1)}
ADVERSARIAL = ["exp3", "dp-exp3-lap", "exp3-tau"]


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
    if name != "dp-exp3-lap":  # exact sums: what the workers gave, each told its round, is what the requester counts
        assert sum(sums.values()) / GRID == pytest.approx(result["reward"], abs=len(pulls) / GRID)
    if name == "exp3-tau":
        switches = sum(a != b for a, b in zip(pulls, pulls[1:]))
        assert 0 < switches < len(pulls) / 3 and result["rounds"] < len(pulls) / 3, "it keeps to its choices"


@pytest.mark.parametrize("change, line", [
    (("mechanism: none, third_party: trusted", "mechanism: none"),
     "policy exp3 is given exact gains; expected third_party: trusted"),
    (("mechanism: none,", "mechanism: hybrid, epsilon: 1,"),
     "policy exp3 takes each pull by itself; expected mechanism none, not hybrid"),
    (("count: 4", "count: 4, best: 9"), "items.adversary.best is not for deterministic"),
    (("{name: exp3}", "{name: exp3, gamma: 2}"), "gamma is 2; expected"),
])
def test_what_does_not_fit_is_one_line_before_anything_starts(tmp_path, change, line):
    text = (ROOT / "deploy/campaigns/exp3.yaml").read_text()
    assert change[0] in text
    (tmp_path / "exp3.yaml").write_text(text.replace(*change))
    done = crowdveil("up", tmp_path / "exp3.yaml")
    assert done.returncode == 2 and line in done.stderr and len(done.stderr.strip().split("\n")) == 1, done.stderr
