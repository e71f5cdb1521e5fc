# SPDX-License-Identifier: Apache-2.0
"""The papers' figures as a researcher runs them: what comes out is known by other means, or must not depend on how."""
import math

import pytest

from test_lab import lab, rows_of


def run(name, *args, cwd):
    """What a preset, or a file, finds: {(series, x, metric): row}."""
    rows = rows_of(lab("run", name, *args, "--json", cwd=cwd))
    found = {(row["series"], row["x"], row["metric"]): row for row in rows}
    assert found and len(found) == len(rows)
    return found


def write(folder, name, text):
    (folder / name).write_text(text)
    return f"./{name}"


# ---- bandits: corrupted feedback, and adversaries ----

ADVERSARY = """
campaign: game
items: {adversary: {name: ADVERSARY, count: 4}}
policy: exp3
privacy: {mechanism: none, third_party: trusted}
limits: {tokens: 1200}
experiment:
  replicates: 4
  x: {pulls: [1, 600, 1200]}
  series:
    - {name: one, policy: {name: exp3, gamma: 0.1}}
    - {name: other, policy: {name: exp3, gamma: 0.1}}
    - {name: blind, policy: {name: exp3, gamma: 1}}
  metrics: [reward, regret]
"""


@pytest.mark.parametrize("adversary", ["stochastic", "fully-oblivious", "oblivious", "switching"])
def test_series_that_differ_in_nothing_find_the_same_against_an_adversary(tmp_path, adversary):
    found = run(write(tmp_path, "game.yaml", ADVERSARY.replace("ADVERSARY", adversary)), cwd=tmp_path)
    for (series, x, metric), row in found.items():
        if series == "one":
            assert row["mean"] == found["other", x, metric]["mean"], (x, metric)
    # What another policy gains differs, and with its regret it comes to the same: what the best arm gives in that game.
    assert found["blind", 1200, "reward"]["mean"] != found["one", 1200, "reward"]["mean"]
    best = [found[series, 1200, "reward"]["mean"] + found[series, 1200, "regret"]["mean"]
            for series in ("one", "blind")]
    assert math.isclose(*best, rel_tol=1e-12)


def test_blind_play_against_the_deterministic_adversary_is_known_by_hand(tmp_path):
    found = run(write(tmp_path, "game.yaml", ADVERSARY.replace("ADVERSARY", "deterministic")), "--replicates", 400,
                cwd=tmp_path)
    # Uniform choice gets (.38 + 1/2 + 1/3)/4 a round, the best arm 1/2 a round; its variance a round is below .25.
    row = found["blind", 1200, "regret"]
    assert abs(row["mean"] - 1200 * (1 / 2 - (.38 + 1 / 2 + 1 / 3) / 4)) < 3 * math.sqrt(.25 * 1200 / 400) + .01
    # In the first round the first arm's .38 is the most that there is.
    assert abs(found["blind", 1, "reward"]["mean"] + found["blind", 1, "regret"]["mean"] - .38) < 1e-6


@pytest.fixture(scope="module")
def corrupt(tmp_path_factory):
    return {name: run(name, "--replicates", 150, cwd=tmp_path_factory.mktemp("corrupt"))
            for name in ("corrupt-fig1a", "corrupt-fig1a-mirrored")}


def test_tokens_one_by_one_and_sums_give_the_same_regret(tmp_path, corrupt):
    one_by_one = run("corrupt-fig1a-mirrored", "--replicates", 150, "--token-level", cwd=tmp_path)
    for policy in ("klucb-cf", "ucb-cf", "kl-local"):
        a, b = (found[policy, 10000, "regret"] for found in (corrupt["corrupt-fig1a-mirrored"], one_by_one))
        assert a["mean"] != b["mean"] and abs(a["mean"] - b["mean"]) < 3 * math.hypot(a["se"], b["se"]), policy


@pytest.mark.parametrize("name, policy, mean, error", [
    ("corrupt-fig1a", "klucb-cf", 10.6, .2), ("corrupt-fig1a", "kl-local", 8.6, .3),
    ("corrupt-fig1a-mirrored", "klucb-cf", 523, 8), ("corrupt-fig1a-mirrored", "kl-local", 183, 4.5)])
def test_what_corrupt_bandits_lose_is_what_others_have_found(corrupt, name, policy, mean, error):
    # After 10,000 pulls, 600 runs of a program that shares nothing with this one.
    row = corrupt[name][policy, 10000, "regret"]
    assert abs(row["mean"] - mean) < 4 * math.hypot(row["se"], error)


def test_a_game_is_the_same_for_any_number_of_jobs(tmp_path):
    file = write(tmp_path, "game.yaml", ADVERSARY.replace("ADVERSARY", "oblivious"))
    one, two = (lab("run", file, "--replicates", 9, "--json", "--jobs", jobs, cwd=tmp_path).stdout for jobs in (1, 2))
    assert one == two and one.count("\n") == 3 * 3 * 2


@pytest.mark.parametrize("old, new, said", [
    ("metrics: [reward, regret]", "metrics: [reward, loss]", "expected "),
    ("  metrics:", "  grid: {policy.gama: [0.1]}\n  metrics:", "gama"),
    ("name: ADVERSARY", "name: devil", "devil"),
    ("x: {pulls: [1, 600, 1200]}", "x: {pulls: [1, 1300]}", "limits.tokens"),
])
def test_a_game_with_a_slip_is_refused_in_one_line_with_its_place(tmp_path, old, new, said):
    file = write(tmp_path, "game.yaml", ADVERSARY.replace(old, new).replace("ADVERSARY", "stochastic"))
    done = lab("run", file, cwd=tmp_path)
    assert done.returncode == 2 and done.stdout == "" and done.stderr.count("\n") == 1
    at = (tmp_path / "game.yaml").read_text().index(new)
    line = 1 + (tmp_path / "game.yaml").read_text()[:at].count("\n")
    assert f"game.yaml:{line}:" in done.stderr and said in done.stderr, done.stderr
