# SPDX-License-Identifier: Apache-2.0
"""
Rankings of a file whose ratings drift: over a person's rows, over the persons, over time. Each row that leaves is a
uniform draw among those that are left, so that the ranking is right as often as it says.
"""
import json
import random

import pytest

from harness.commands import crowdveil

MEANS = {"good": .65, "bad": .35}
CAMPAIGN = """campaign: drift
items: {source: csv, path: rows.csv, item: item, score: score, worker: who, scale: [0, 1]}
policy: POLICY
privacy: {mechanism: segments, epsilon: 4, tokens_per_worker: EACH, repeat: REPEAT, share_names: true}
limits: {tokens: 100000, idle: 60s}
"""
POLICIES = {"ppar-kl": "{name: ppar-kl, alpha: 0.15, delta: 0.1, arms_per_plan: 2}",
            "ppar": "{name: ppar, alpha: 0.15, delta: 0.1, tokens_per_round: 60}"}


def drifting(mean, at):
    """The probability of a 1 at `at`, from 0 to 1: at first the other way round, in the middle the mean."""
    return min(1, max(0, mean + (mean - .5) * (4.6 * at - 2.3)))


def within(seed):
    """A hundred persons, each with twenty rows of each item, the early ones misleading."""
    draw = random.Random(seed)
    return [(item, who, int(draw.random() < drifting(mean, (nth + .5) / 20)))
            for who in range(100) for nth in range(20) for item, mean in MEANS.items()]


def over_time(seed):
    """The same by time: everybody's first row of each item, then everybody's second."""
    rows = within(seed)
    return [row for nth in range(20) for at, row in enumerate(rows) if at // len(MEANS) % 20 == nth]


def over_persons(seed):
    """Two thousand persons, each with a row of each item, the early ones misleading."""
    draw = random.Random(seed)
    return [(item, who, int(draw.random() < drifting(mean, int(who >= 1000))))
            for who in range(2000) for item, mean in MEANS.items()]


def one_of_several(seed):
    """Two thousand persons with four rows of each item, of which each gives one."""
    draw = random.Random(seed)
    return [(item, who, int(draw.random() < drifting(mean, nth / 3)))
            for who in range(2000) for nth in range(4) for item, mean in MEANS.items()]


KINDS = {"within": (within, 40, "true"), "over time": (over_time, 40, "true"),
         "over persons": (over_persons, 2, "false"), "one of several": (one_of_several, 2, "false")}


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_ranking_of_drifting_rows_is_right(tmp_path, kind, policy):
    """Three runs: with delta .1 all of them are wrong once in a thousand times, and were always."""
    rows, each, repeat = KINDS[kind]
    (tmp_path / "drift.yaml").write_text(
        CAMPAIGN.replace("POLICY", POLICIES[policy]).replace("EACH", str(each)).replace("REPEAT", repeat))
    right = 0
    for seed in range(3):
        (tmp_path / "rows.csv").write_text(
            "item,who,score\n" + "".join(f"{item},p{who},{score}\n" for item, who, score in rows(seed)))
        done = crowdveil("up", "drift.yaml", "--json", "--state", tmp_path / f"state{seed}", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        result = json.loads(done.stdout)
        assert result["ended"] == "complete"
        assert result["truth"] == [["good"], ["bad"]]
        right += result["classes"] == result["truth"]
    assert right > 0, result
