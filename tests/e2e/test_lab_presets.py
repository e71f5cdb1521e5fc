# SPDX-License-Identifier: Apache-2.0
"""The papers' figures, as a researcher runs them: results that are known otherwise, or must not depend on the way."""
import math

import pytest

from harness.lab import lab, rows_of
from test_taxi import drivers, invented


def run(name, *args, cwd):
    """The results of a preset, or a file: {(series, x, metric): row}."""
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
    # Another policy's gain differs, but gain and regret have the same sum: what the best arm gives in that game.
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


def test_a_game_goes_on_after_the_rounds_that_its_adversary_was_made_for(tmp_path):
    texts = [ADVERSARY.replace("ADVERSARY, ", f"stochastic, rounds: {rounds}, ") for rounds in (100, 1200, 5000)]
    files = [write(tmp_path, f"game{i}.yaml", text) for i, text in enumerate(texts)]
    shorter, equal, longer = (lab("run", file, "--json", cwd=tmp_path) for file in files)
    assert equal.returncode == 0 and equal.stdout.count("\n") == 3 * 3 * 2
    assert shorter.stdout == equal.stdout == longer.stdout


def test_a_game_that_no_memory_holds_is_one_line(tmp_path):
    text = ADVERSARY.replace("ADVERSARY", "stochastic").replace("{tokens: 1200}", "{tokens: 100000000}")
    done = lab("run", write(tmp_path, "game.yaml", text), cwd=tmp_path)
    assert done.returncode == 1 and done.stdout == "" and done.stderr.count("\n") == 1
    assert "100000000 rounds and 4 arms" in done.stderr


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
    # After 10,000 pulls, 600 runs of an independent program.
    row = corrupt[name][policy, 10000, "regret"]
    assert abs(row["mean"] - mean) < 4 * math.hypot(row["se"], error)


def test_a_game_is_the_same_for_any_number_of_jobs(tmp_path):
    file = write(tmp_path, "game.yaml", ADVERSARY.replace("ADVERSARY", "oblivious"))
    one, two = (lab("run", file, "--replicates", 9, "--json", "--jobs", jobs, cwd=tmp_path).stdout for jobs in (1, 2))
    assert one == two and one.count("\n") == 3 * 3 * 2


@pytest.mark.parametrize("old, new, said", [
    ("metrics: [reward, regret]", "metrics: [reward, loss]", "expected "),
    ("metrics: [reward, regret]", "metrics: [reward, accuracy]",
     'series "one" has policy exp3, which has no metric accuracy; expected pulls, rounds, reward, regret, seconds, '
     'capped or decided-after'),
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

# ---- recruitment ----

HIRING = """
campaign: hiring
workers:
  rewards: truncated-normal
  spread: 0.000001
  list: [{id: 1, cost: 2, quality: 0.4}, {id: 2, cost: 4, quality: 0.6}, {id: 3, cost: 5, quality: 0.8}]
budget: 20
policy: {name: dpf, epsilon: 0.5}
privacy: {mechanism: none, third_party: trusted}
experiment:
  replicates: 2
  series:
    - {name: dpf}
    - {name: dpu, policy: dpu}
    - {name: dpu-kl, policy: dpu-kl}
    - {name: half, policy: cheapest, scale: {budget: 0.5}}
    - {name: cheapest, policy: cheapest}
    - {name: opt, policy: opt}
    - {name: anybody, policy: uniform}
    - {name: again, policy: uniform}
  metrics: [reward, reward-share, regret, regret-share, pulls]
"""


def test_hiring_without_chance_is_known_by_hand(tmp_path):
    found = run(write(tmp_path, "hiring.yaml", HIRING), cwd=tmp_path)
    # DPF explores with 10: 1, 2 (not 3, which costs 5, and 4 are left), 1, 1; then 1 is densest: five times.
    # The densest is the cheapest here, and DPU-KL finds no reason to hire another. DPU's numbers are those of the first
    # three and of the worker that it draws.
    known = {"dpf": (8 * .4 + .6, 9), "cheapest": (4, 10), "opt": (4, 10), "half": (2, 5),
             "dpu-kl": (4, 10)}
    for series, (reward, pulls) in known.items():
        budget = 10 if series == "half" else 20
        for metric, value in {"reward": reward, "regret": .2 * budget - reward, "pulls": pulls,
                              "regret-share": .2 - reward / budget, "reward-share": reward / (.2 * budget)}.items():
            assert math.isclose(found[series, None, metric]["mean"], value, abs_tol=1e-5), (series, metric)
    assert 0 < found["dpu", None, "regret"]["mean"] < 2
    assert all(found["again", x, metric]["mean"] == row["mean"]
               for (series, x, metric), row in found.items() if series == "anybody")


def test_all_recruitment_policies_see_the_same_workers(tmp_path):
    found = run("recruit-fig6", "--replicates", 1, cwd=tmp_path)
    budgets = range(1000, 10001, 1000)
    assert {x for _, x, _ in found} == set(budgets)
    for budget in budgets:
        worth = found["opt", budget, "reward"]["mean"]
        for (series, x, metric), row in found.items():
            if x == budget and metric == "regret":
                # The optimum is the same for all, and no policy exceeds it.
                assert math.isclose(row["mean"], worth - found[series, x, "reward"]["mean"], abs_tol=1e-6)
                assert row["mean"] > 0 or series.startswith("opt")


def test_hires_one_by_one_and_in_sums_earn_the_same(tmp_path):
    file = write(tmp_path, "hiring.yaml", HIRING.replace("0.000001", "0.5").replace("budget: 20", "budget: 200"))
    for name, replicates, metric in ((file, 300, "reward"), ("recruit-fig9", 5, "pulls")):
        sums = run(name, "--replicates", replicates, cwd=tmp_path)
        one_by_one = run(name, "--replicates", replicates, "--token-level", cwd=tmp_path)
        differ = 0
        for key, row in sums.items():
            other = one_by_one[key]
            differ += row["mean"] != other["mean"]
            assert key[2] != metric or abs(row["mean"] - other["mean"]) <= 3 * math.hypot(row["se"], other["se"]), key
        assert differ >= 4, "the scores are drawn in another way"


def test_the_cheapest_driver_of_a_trace_is_hired_until_money_or_trips_run_out(tmp_path):
    found = run("recruit-fig4", "--data", invented(tmp_path), "--replicates", 1, cwd=tmp_path)
    known = drivers(tmp_path / "trips.csv", 8)[:100]
    cost, trips = min(3 * miles for _, _, miles in known), sum(count for _, count, _ in known)
    expected = {budget: min(trips, budget / cost) for budget in range(1000, 10001, 1000)}
    assert expected[1000] < trips == expected[10000], "both ends are of interest"
    for budget, pulls in expected.items():
        assert found["cheapest", budget, "pulls"]["mean"] == math.floor(pulls + 1e-9)
        assert all(row["mean"] <= trips for (_, x, metric), row in found.items() if (x, metric) == (budget, "pulls"))


def test_data_that_are_not_read_are_refused(tmp_path):
    done = lab("run", "recruit-fig6", "--data", invented(tmp_path), cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr == "crowdveil-lab run: recruit-fig6 reads no data; expected no --data\n"


LEAK = """
campaign: leak
workers:
  rewards: truncated-normal
  spread: 0.000001
  list: [{id: 1, cost: 1, quality: 0.4}, {id: 2, cost: 1, quality: 0.6}]
budget: 20
policy: {name: dpf, epsilon: 0.1}
privacy: {mechanism: batch, epsilon: 1}
experiment:
  replicates: 150
  x: {vary: privacy.epsilon, values: [0.5, 1, 3]}
  series:
    - {name: dpf}
  measure: leakage
  metrics: [leakage, leakage-most, leakage-worst]
"""


def test_what_leaks_of_two_workers_is_known_by_hand(tmp_path):
    found = run(write(tmp_path, "leak.yaml", LEAK), cwd=tmp_path)
    for delta in (.5, 1, 3):
        # One hire of each, then the one with the better result. 0.4 becomes 1, or 0.6 becomes 0, from .2 behind
        # to .4 ahead. The difference of two Laplaces exceeds x with probability exp(-x)(2 + x)/4.
        p, q = (math.exp(-x * delta) * (2 + x * delta) / 4 for x in (.2, .4))
        q = 1 - q
        leaks = p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q))
        row = found["dpf", delta, "leakage-most"]
        assert abs(row["mean"] - leaks) < 4 * row["se"] + .01 * leaks
        # These are the records that matter most; a largest estimate is a little too large.
        worst = found["dpf", delta, "leakage-worst"]["mean"]
        assert .99 * leaks < worst < 1.1 * leaks
        assert abs(found["dpf", delta, "leakage"]["mean"]) < 1e-9, "the same score again tells nothing"


@pytest.mark.parametrize("old, new, said", [
    ("rewards: truncated-normal\n  spread: 0.000001", "rewards: bernoulli", "rewards that are not bernoulli"),
    ("policy: {name: dpf, epsilon: 0.1}", "policy: {name: dpf, noise: printed}", "expected policy.noise sound"),
    ("privacy: {mechanism: batch,", "privacy: {mechanism: none, third_party: trusted,", "a mechanism that has noise"),
    ("    - {name: dpf}\n", "    - {name: dpf}\n    - {name: blind, policy: cheapest}\n",
     'series "blind" has policy cheapest, which has no metric leakage; expected'),
])
def test_what_cannot_leak_is_not_measured(tmp_path, old, new, said):
    done = lab("run", write(tmp_path, "leak.yaml", LEAK.replace(old, new)), cwd=tmp_path)
    assert done.returncode == 2 and done.stdout == "" and done.stderr.count("\n") == 1 and said in done.stderr


def test_what_leaks_is_the_same_for_any_number_of_jobs(tmp_path):
    one, two = (lab("run", "recruit-fig8", "--replicates", 2, "--json", "--jobs", jobs, cwd=tmp_path).stdout
                for jobs in (1, 2))
    assert one == two and one.count("\n") == 10 * 4 * 2


@pytest.mark.parametrize("old, new, said", [
    ("scale: {budget: 0.5}", "scale: {budget: half}", "scale is \"half\"; expected the number to multiply by"),
    ("scale: {budget: 0.5}", "scale: {money: 0.5}", "\"money\" is not a number in this campaign"),
    ("scale: {budget: 0.5}", "scale: [budget]", "at most 4 keys of the campaign with factors"),
    ("metrics: [reward, ", "metrics: [earnings, ", "a metric is \"earnings\"; expected "),
    ("  metrics:", "  grid: {policy.espilon: [0.1]}\n  metrics:", "espilon"),
])
def test_a_slip_in_a_recruitment_is_one_line_with_its_place(tmp_path, old, new, said):
    file = write(tmp_path, "hiring.yaml", HIRING.replace(old, new))
    done = lab("run", file, cwd=tmp_path)
    assert done.returncode == 2 and done.stdout == "" and done.stderr.count("\n") == 1
    text = HIRING.replace(old, new)
    line = 1 + text[:text.index(new)].count("\n")
    assert f"hiring.yaml:{line}:" in done.stderr and said in done.stderr, done.stderr


# ---- feedback graphs ----

GRAPH = """
campaign: graph
items: {ladder: {count: 10, mean: 0.9, best: 2, distance: 0.1, step: 0.05, rewards: truncated-normal, spread: 0.1}}
graph: {p: 0.2}
policy: {name: gap}
privacy: {mechanism: batch, epsilon: 0.05, third_party: trusted}
limits: {tokens: 100000}
experiment:
  replicates: 40
  x: {pulls: [40000, 100000]}
  series:
    - {name: one}
    - {name: other, policy: {name: gap}}
    - {name: alone, policy.name: dp-se, graph.p: 0}
  grid: {graph.p: [0.2, 0.3]}
  metrics: [regret]
"""


def truncated_mean(mean, spread):
    """Of a normal score on condition that it lies in [0, 1]."""
    a, b = -mean / spread, (1 - mean) / spread
    density = [math.exp(-x * x / 2) / math.sqrt(2 * math.pi) for x in (a, b)]
    inside = (math.erf(b / math.sqrt(2)) - math.erf(a / math.sqrt(2))) / 2
    return mean + spread * (density[0] - density[1]) / inside


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    folder = tmp_path_factory.mktemp("graph")
    return run(write(folder, "graph.yaml", GRAPH), "--jobs", 2, cwd=folder)


def test_a_series_that_sets_a_key_of_the_grid_itself_is_run_once(graph):
    assert {series for series, _, _ in graph} == {"one, p 0.2", "other, p 0.2", "one, p 0.3", "other, p 0.3", "alone"}


def test_playing_all_items_in_turn_loses_what_their_means_say(graph):
    # The first phase of DP-SE has 10 x 4864 plays: no item is dropped before 40,000, and each was played 4000 times.
    means = [.9, .9] + [.9 - .1 - .05 * i for i in range(8)]
    truth = [truncated_mean(mean, .1) for mean in means]
    row = graph["alone", 40000, "regret"]
    assert math.isclose(row["mean"], 4000 * sum(max(truth) - mean for mean in truth), rel_tol=1e-9) and row["se"] < 1e-6


def test_series_that_differ_in_nothing_find_the_same_on_a_drawn_graph(graph):
    for x in (40000, 100000):
        assert graph["one, p 0.2", x, "regret"]["mean"] == graph["other, p 0.2", x, "regret"]["mean"]
    assert graph["one, p 0.3", 100000, "regret"]["mean"] != graph["one, p 0.2", 100000, "regret"]["mean"]


@pytest.mark.parametrize("policy, mean, error", [("gap", 9068, 49), ("gapu", 10011, 46)])
def test_what_graph_bandits_lose_is_what_others_have_found(tmp_path, policy, mean, error):
    # 2000 runs of an independent program that uses an item's mean for each of its scores.
    text = GRAPH.replace("spread: 0.1", "spread: 0.01").replace("name: gap", "name: gap, noise: printed")
    text = text[:text.index("  series:")] + "  metrics: [regret]\n"
    text = text.replace("name: gap,", f"name: {policy},").replace("x: {pulls: [40000, 100000]}", "")
    row = run(write(tmp_path, "graph.yaml", text), "--replicates", 250, cwd=tmp_path)[policy, None, "regret"]
    assert abs(row["mean"] - mean) < 4 * math.hypot(row["se"], error)


def test_on_a_graph_tokens_one_by_one_and_sums_give_the_same_regret(graph, tmp_path):
    one_by_one = run(write(tmp_path, "graph.yaml", GRAPH), "--token-level", cwd=tmp_path)
    pairs = [(graph[key], one_by_one[key]) for key in graph]
    assert any(a["mean"] != b["mean"] for a, b in pairs)
    for a, b in pairs:
        assert abs(a["mean"] - b["mean"]) <= 3 * math.hypot(a["se"], b["se"]), a


def test_the_graph_figures_are_the_same_for_any_number_of_jobs(tmp_path):
    one, two = (lab("run", "graph-fig3", "--replicates", 3, "--json", "--jobs", jobs, cwd=tmp_path).stdout
                for jobs in (1, 2))
    assert one == two and '"gap as printed, epsilon 0.2"' in one


SAME = """
campaign: same
items: {ladder: {count: COUNT, mean: 0.9, distance: 0.1}}
policy: {name: POLICY}
privacy: {mechanism: MECHANISM, epsilon: 0.05, third_party: trusted}
limits: {tokens: 1000}
experiment:
  replicates: 400
  measure: same-arms
  metrics: [same-noise, fresh-noise, all-fresh, shown]
"""


@pytest.mark.parametrize("policy, mechanism, count", [("dp-se", "batch", 10), ("aae", "none", 10), ("exp3", "none", 2)])
def test_how_often_one_score_matters(tmp_path, policy, mechanism, count):
    text = SAME.replace("POLICY", policy).replace("MECHANISM", mechanism).replace("COUNT", str(count))
    found = run(write(tmp_path, "same.yaml", text), cwd=tmp_path)
    same, fresh, shown = (found[policy, None, metric] for metric in ("same-noise", "fresh-noise", "shown"))
    if policy == "dp-se":  # its first phase is longer than the run, so nothing is released and nothing can matter
        assert same["mean"] == fresh["mean"] == 1 and shown["mean"] == 0
        return
    # Each round shows one arm of them, any of them; and without noise there is none to draw again.
    assert abs(shown["mean"] - 1 / count) < 3 * shown["se"] and same["mean"] == fresh["mean"]
    # Two radii are more than .8 after 100 looks: no arm is dropped. EXP3 weighs every gain.
    expected = 1 if policy == "aae" else .9
    assert same["mean"] >= 1 - shown["mean"] and (same["mean"] == 1) == (expected == 1) and same["mean"] <= expected


def test_with_fresh_noise_fewer_runs_are_the_same(tmp_path):
    found = run("graph-table1", "--replicates", 4, cwd=tmp_path)
    share = {metric: [row["mean"] for key, row in found.items() if key[2] == metric]
             for metric in ("same-noise", "fresh-noise", "all-fresh", "shown")}
    assert [len(values) for values in share.values()] == [54] * 4
    assert all(a >= 1 - b for a, b in zip(share["same-noise"], share["shown"]))
    assert sum(share["all-fresh"]) < sum(share["fresh-noise"]) < sum(share["same-noise"]) and sum(share["shown"]) > 0


@pytest.mark.parametrize("old, new, said", [
    ("name: POLICY", "name: ppar, alpha: 0.1", "has policy ppar, which has no metric same-noise; expected"),
    ("{ladder: {count: COUNT, mean: 0.9, distance: 0.1}}", "{adversary: {name: stochastic}}", "no adversary"),
    ("  measure:", "  x: {pulls: 5}\n  measure:", "no x: {pulls: ...}"),
])
def test_what_has_no_value_for_each_round_is_refused(tmp_path, old, new, said):
    text = SAME.replace(old, new).replace("POLICY", "exp3").replace("MECHANISM", "none").replace("COUNT", "4")
    done = lab("run", write(tmp_path, "same.yaml", text), cwd=tmp_path)
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and said in done.stderr, done.stderr


@pytest.mark.parametrize("old, new, said", [
    ("graph.p: [0.2, 0.3]", "graph.q: [0.2, 0.3]", '"q"'),
    ("graph.p: [0.2, 0.3]", "graph.p: [0.2, 1.5]", "0 to 1"),
    ("distance: 0.1,", "distance: 0.6,", "below 0"),
    ("[regret]", "[regret, shame]", "expected "),
])
def test_a_graph_with_a_slip_is_refused_in_one_line_with_its_place(tmp_path, old, new, said):
    text = GRAPH.replace(old, new)
    done = lab("run", write(tmp_path, "graph.yaml", text), cwd=tmp_path)
    line = 1 + text[:text.index(new)].count("\n")
    assert done.returncode == 2 and done.stdout == "" and done.stderr.count("\n") == 1
    assert f"graph.yaml:{line}:" in done.stderr and said in done.stderr, done.stderr
