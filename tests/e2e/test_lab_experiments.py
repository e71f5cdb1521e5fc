# SPDX-License-Identifier: Apache-2.0
"""A user's own experiments, valid and invalid; and the figures of the ranking paper with few replicates."""
import csv
import math
import re

import pytest

from conftest import ROOT
from harness.lab import lab, rows_of
from test_lab_presets import run


def run_few(preset, *options, cwd, replicates=20):
    return run(preset, "--replicates", replicates, *options, cwd=cwd)


def agree(a, b, errors=4):
    """Two means that are independent and have standard errors."""
    return abs(a["mean"] - b["mean"]) <= errors * math.hypot(a["se"], b["se"]) + 1e-12


EXPERIMENT = """campaign: mine
items: {synthetic: {count: 4, mean: 0.5, variance: 10}}
policy: {name: ppar, alpha: 0.2, tokens_per_round: 100}
privacy: {mechanism: hybrid, epsilon: 1}
limits: {tokens: 100000}
experiment:
  replicates: 5
  x: {vary: policy.alpha, values: [0.1, 0.2]}
  series:
    - {name: one}
    - {name: two, policy.radius: printed}
  metrics: [accuracy, pulls]
"""


def changed(before, after):
    assert before in EXPERIMENT
    return EXPERIMENT.replace(before, after)


BAD = {
    "a grid over what is no parameter": (changed("vary: policy.alpha", "vary: policy.alfa"),
                                         'mine.yaml:8:35: unknown key "alfa"'),
    "a key that no section has": (changed("policy.radius: printed", "privacy.epsilom: 1"),
                                  r'mine.yaml:11:36: unknown key "epsilom" in privacy; did you mean "epsilon"\?'),
    "a value that is refused": (changed("[0.1, 0.2]", "[0.1, -2]"),
                              r"mine.yaml:8:41: alpha is -2; expected a number of at least 0"),
    "a way through a value": (changed("policy.radius: printed", "policy.alpha.x: 1"),
                              r'mine.yaml:11:35: unknown path "policy.alpha.x"'),
    "an unknown metric": (changed("[accuracy, pulls]", "[acuracy]"), r"mine.yaml:12:13: .*acuracy.*expected accuracy"),
    "two series of one name": (changed("name: two", "name: one"), 'two series have the name "one"'),
    "no experiment": (EXPERIMENT.split("experiment:")[0], "mine.yaml:1:1: missing experiment"),
    "values and pulls": (changed("x: {vary", "x: {pulls: 3, vary"), "expected either vary and values, or pulls"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_experiment_is_one_clear_line(tmp_path, case):
    text, expected = BAD[case]
    (tmp_path / "mine.yaml").write_text(text)
    done = lab("run", "mine.yaml", cwd=tmp_path)
    assert done.returncode == 2 and done.stdout == "" and done.stderr.count("\n") == 1
    assert re.search(expected, done.stderr), done.stderr


def test_a_preset_with_a_typo_is_guessed(tmp_path):
    done = lab("run", "ppar-fg4", cwd=tmp_path)
    assert done.returncode == 2 and 'did you mean "ppar-fig4"?' in done.stderr


def test_every_preset_is_listed_and_checks_out(tmp_path):
    listed = [line.split()[0] for line in lab("list", cwd=tmp_path).stdout.splitlines()]
    assert {"ppar-fig4", "ppar-fig5", "ppar-fig6", "ppar-fig7", "ppar-fig8", "ppar-fig9", "ppar-fig10"} <= set(listed)


def test_a_users_own_experiment(tmp_path):
    """Series that differ in nothing give the same numbers; jobs change nothing."""
    (tmp_path / "mine.yaml").write_text(changed("policy.radius: printed", "policy.radius: sound"))
    one, two = (lab("run", "mine.yaml", "--json", "--jobs", jobs, cwd=tmp_path) for jobs in (1, 2))
    assert one.stdout == two.stdout
    rows = rows_of(one)
    assert len(rows) == 8 and {row["preset"] for row in rows} == {"mine"} and {row["n"] for row in rows} == {5}
    by_series = [[{**row, "series": ""} for row in rows if row["series"] == name] for name in ("one", "two")]
    assert by_series[0] == by_series[1]


# --- ranking


def test_ranking_is_right_however_tokens_are_drawn(tmp_path):
    at_once = run_few("ppar-fig4", cwd=tmp_path)
    each = run_few("ppar-fig4", "--token-level", cwd=tmp_path)
    assert at_once.keys() == each.keys() and at_once != each
    for key, row in at_once.items():
        # rounds and pulls depend heavily on the instances' gaps: both use the same instances
        assert agree(row, each[key]), (row, each[key])
        if key[0] == "sound" and key[2] == "misplaced":
            assert row["mean"] == 0


@pytest.mark.parametrize("measure", ["campaign", "classes", "qualities", "noise", "leakage", "same-arms"])
def test_every_metric_is_defined(tmp_path, measure):
    text = changed("[accuracy, pulls]", "[nothing]").replace("experiment:", f"experiment:\n  measure: {measure}")
    (tmp_path / "mine.yaml").write_text(text)
    done = lab("run", "mine.yaml", cwd=tmp_path)
    assert done.returncode == 2
    known = re.split(", | or ", re.search("expected (.*)$", done.stderr.strip())[1])
    section = (ROOT / "docs/lab.md").read_text().split("## Metrics\n")[1].split("\n## ")[0]
    assert known and [name for name in known if f"`{name}`" not in section] == []


def test_where_nothing_is_decided_accuracy_is_no_number(tmp_path):
    """Two items that tie, at a limit of tokens that decides nothing: the paper's measure counts the empty classes."""
    text = EXPERIMENT.replace("synthetic: {count: 4, mean: 0.5, variance: 10}",
                              "list: [{name: a, mean: 0.5}, {name: b, mean: 0.5}]").replace("100000", "200")
    (tmp_path / "mine.yaml").write_text(text.replace("[accuracy, pulls]", "[accuracy, decided-share, ppar-accuracy]"))
    rows = run("mine.yaml", cwd=tmp_path)
    assert ("one", .2, "accuracy") not in rows
    assert rows["one", .2, "decided-share"]["mean"] == 0 and rows["one", .2, "ppar-accuracy"]["mean"] == .8


def test_ranking_of_data_needs_data(tmp_path, data):
    done = lab("run", "ppar-fig10", cwd=tmp_path)
    assert done.returncode == 2 and done.stderr == "crowdveil-lab run: ppar-fig10 needs data; expected --data FILE\n"
    path = data("obd/slim_bts_men.csv")
    with path.open() as file:
        items = {row["item_id"] for row in csv.DictReader(file)}
    rows = run_few("ppar-fig10", "--data", path, cwd=tmp_path, replicates=2)
    assert rows["sound", .2, "accuracy"]["mean"] == 1
    assert rows["sound without replacement", .1, "undecided"]["mean"] == len(items)
