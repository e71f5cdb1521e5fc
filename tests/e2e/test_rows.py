# SPDX-License-Identifier: Apache-2.0
"""Data files: what a row of one is charged, which only who has the file can say."""
import json
import random

import pytest

from harness.commands import as_requester, crowdveil

FILMS, LIMIT = 50, 60_000


def write_films(folder, more="", tokens_per_round=300):
    """Fifty films with 20 to 40 ratings each; returns how many ratings there are."""
    draw = random.Random(3)
    rows = [(film, draw.randint(1, 5)) for film in range(FILMS) for _ in range(draw.randint(20, 40))]
    (folder / "films.csv").write_text("film,stars\n" + "".join(f"{film},{stars}\n" for film, stars in rows))
    (folder / "films.yaml").write_text(
        f"campaign: films\nitems: {{source: csv, path: films.csv, item: film, score: stars, scale: [1, 5]{more}}}\n"
        f"policy: {{name: ppar, alpha: 0.2, tokens_per_round: {tokens_per_round}}}\nprivacy: {{epsilon: 0.5}}\n"
        f"limits: {{tokens: {LIMIT}, idle: 5s}}\n")
    return len(rows)


def test_a_row_that_is_drawn_again_and_again_is_charged_for_each_time(tmp_path):
    rows = write_films(tmp_path, ", replacement: true")
    done = crowdveil("up", "films.yaml", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    found, spent = result["data"], result["epsilon_spent_micro"]
    assert found["rows"] == rows and found["replacement"] and found["uses_counted"]
    assert 1 < result["tokens"] / rows <= found["uses_mean"] < found["uses_most"]
    assert found["row_most_micro"] == found["uses_most"] * spent
    start, end = [line for line in done.stderr.split("\n") if "a row of films.csv" in line]
    assert "may be used up to 60,000 times (replacement: true)" in start and "60,000 x 0.5 = 30000 for a row" in start
    assert f"one of them {found['uses_most']} times: epsilon up to {found['uses_most']} x {spent / 1e6:g}" in end


def test_rows_are_used_once_unless_the_file_says_otherwise(tmp_path):
    write_films(tmp_path)
    done = crowdveil("up", "films.yaml", cwd=tmp_path)
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert "but a round needs tokens_per_round = 300 of them; expected a smaller round or replacement: true" in done.stderr


@pytest.mark.usefixtures("worker_program")
def test_a_ledger_with_the_file_at_hand_speaks_of_rows(deployment, tmp_path):
    rows = write_films(tmp_path, ", replacement: true")
    deployment.up()
    link, file = as_requester(deployment), tmp_path / "films.yaml"
    plan = crowdveil("ledger", "--plan", file, *link)
    assert plan.returncode == 0, plan.stderr
    assert "Row level: a row of films.csv may be used up to 60,000 times" in plan.stdout
    assert crowdveil("submit", file, *link).returncode == 0
    found = json.loads(crowdveil("ledger", "--json", "--file", file, *link).stdout)["data"]
    assert (found["rows"], found["uses_most"], found["row_most_micro"]) == (rows, 0, 0)
    assert "data" not in json.loads(crowdveil("ledger", "--json", *link).stdout)
    both = crowdveil("ledger", "--plan", file, "--file", file, *link)
    assert both.returncode == 2 and "--file does not go with --plan" in both.stderr
