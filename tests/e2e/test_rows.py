# SPDX-License-Identifier: Apache-2.0
"""Data files: the charge of a row, which only a party with the file can compute."""
import contextlib
import json
import re
import random
import sqlite3

import pytest

from harness.commands import as_requester, crowdveil

FILMS, LIMIT = 50, 60_000


def write_films(folder, more="", tokens_per_round=300):
    """Fifty films with 20 to 40 ratings each; returns the number of ratings."""
    draw = random.Random(3)
    rows = [(film, draw.randint(1, 5)) for film in range(FILMS) for _ in range(draw.randint(20, 40))]
    (folder / "films.csv").write_text("film,stars\n" + "".join(f"{film},{stars}\n" for film, stars in rows))
    (folder / "films.yaml").write_text(
        f"campaign: films\nitems: {{source: csv, path: films.csv, item: film, score: stars, scale: [1, 5]{more}}}\n"
        f"policy: {{name: ppar, alpha: 0.2, tokens_per_round: {tokens_per_round}}}\nprivacy: {{epsilon: 0.5}}\n"
        f"limits: {{tokens: {LIMIT}, idle: 60s}}\n")
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
    assert "may be used up to 60,000 times (replacement: true)" in start
    assert "60,000 x 0.5 = 30000 for the score of a row" in start
    assert f"one of them {found['uses_most']} times: epsilon up to {found['uses_most']} x {spent / 1e6:g}" in end


def test_rows_are_used_once_unless_the_file_says_otherwise(tmp_path):
    write_films(tmp_path)
    done = crowdveil("up", "films.yaml", cwd=tmp_path)
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert "but the first plan needs 300 of them; expected " in done.stderr
    assert done.stderr.endswith("items.replacement: true or 300 rows of each item\n"), done.stderr


def test_rows_that_do_not_last_for_a_first_plan_are_refused(tmp_path):
    write_films(tmp_path)
    campaign = tmp_path / "films.yaml"
    text = re.sub(r"policy: .*", "policy: {name: ppar-kl, alpha: 0.1}", campaign.read_text())
    campaign.write_text(re.sub(r"privacy: .*", "privacy: {mechanism: segments, epsilon: 0.01}", text))
    done = crowdveil("up", "films.yaml", cwd=tmp_path)
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert re.search(r'films.yaml:\d+: item "[^"]+" has \d+ rows in \S+, but the first plan needs \d+ of them; '
                     r"expected .*items\.replacement: true or \d+ rows of each item\n", done.stderr), done.stderr


ONE = """campaign: one
items: {source: csv, path: one.csv, item: item, score: score, scale: [0, 1]MORE}
policy: POLICY
privacy: PRIVACY
"""


def advised(folder, rows=4, items="A", policy="{name: ppar-kl, alpha: 0.1}",
            privacy="{mechanism: none, third_party: trusted}", more=""):
    """What `check` names as of help; None: nothing is wrong."""
    many = [rows * (10 if len(items) > 1 and i < 2 else 1) for i in range(len(items))]
    (folder / "one.csv").write_text("item,score\n" + "".join(
        f"{item},{i % 2}\n" for item, n in zip(items, many) for i in range(n)))
    (folder / "one.yaml").write_text(ONE.replace("POLICY", policy).replace("PRIVACY", privacy).replace("MORE", more))
    done = crowdveil("check", "one.yaml", cwd=folder)
    if done.returncode == 0:
        return None
    found = re.search(r"the first plan needs \d+ of them; expected (.*) or (\d+ rows of each item)\n$", done.stderr)
    assert done.returncode == 2 and found, done.stderr
    return [*found[1].split(", "), found[2]]


def test_only_what_helps_is_advised(tmp_path):
    """One item without noise: neither a larger epsilon nor fewer items would help."""
    policy, replacement, rows = advised(tmp_path)
    assert policy.startswith("policy ppar with tokens_per_round: ") and replacement == "items.replacement: true"
    name, size = re.match(r"policy (\S+) with (tokens_per_round: \d+)", policy).groups()
    assert advised(tmp_path, policy=f"{{name: {name}, alpha: 0.1, {size}}}") is None
    assert advised(tmp_path, more=", replacement: true") is None
    number = int(rows.split()[0])
    assert advised(tmp_path, rows=number) is None and advised(tmp_path, rows=number - 1) is not None


@pytest.mark.parametrize("policy", ["{name: ppar, alpha: 0.1}", "{name: ppar-kl, alpha: 0.1}"])
@pytest.mark.parametrize("privacy", [
    "{mechanism: hybrid, epsilon: 0.02}", "{mechanism: segments, epsilon: 1}",
    "{mechanism: none, privatizer: {name: randomized-response, epsilon: 0.1}}"])
def test_each_advice_helps(policy, privacy, tmp_path):
    for advice in advised(tmp_path, 10, "ABCDEFGH", policy, privacy) or []:
        changed = {"policy": policy, "privacy": privacy, "rows": 10, "more": ""}
        key, _, value = advice.partition(": ")
        if key == "policy.tokens_per_round":
            changed["policy"] = policy.replace("}", f", tokens_per_round: {value}}}")
        elif key.startswith("policy "):
            name = key.split()[1]
            changed["policy"] = re.sub("name: [^,}]*", f"name: {name}", policy)
            if value:
                changed["policy"] = changed["policy"].replace("}", f", tokens_per_round: {value}}}")
        elif key.endswith(".epsilon"):
            changed["privacy"] = re.sub(r"epsilon: [\d.]+", f"epsilon: {value}", privacy)
        elif key.startswith("items."):
            changed["more"] = f", {key[6:]}: {value}"
        else:
            changed["rows"] = int(advice.split()[0])
        rest = {name: changed[name] for name in ("policy", "privacy", "more")}
        assert advised(tmp_path, changed["rows"], "ABCDEFGH", **rest) is None, advice


@pytest.mark.parametrize("more, why", [
    ("", "or 300 rows of each item"),
    ("graph: {p: 0.2, seed: 7}\n",
     "expected items with simulated scores, since a privatizer randomizes each row once")])
def test_no_advice_to_draw_rows_again_behind_a_privatizer(tmp_path, more, why):
    write_films(tmp_path)
    campaign = tmp_path / "films.yaml"
    privacy = "privacy: {mechanism: none, privatizer: {name: randomized-response, epsilon: 1}}"
    campaign.write_text(re.sub(r"privacy: .*", privacy, campaign.read_text()) + more)
    done = crowdveil("up", "films.yaml", cwd=tmp_path)
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert done.stderr.endswith(f"{why}\n") and "replacement: true" not in done.stderr, done.stderr


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
    assert both.returncode == 2 and "--file cannot be used with --plan" in both.stderr


PEOPLE, FILMS_SEEN = 40, 4
PERSONS = """campaign: films
items: {source: csv, path: people.csv, item: film, score: stars, worker: who, scale: [1, 5]}
policy: {name: ppar, alpha: 0.2, delta: 0.0001, tokens_per_round: 10, tails: chernoff}
privacy: {epsilon: 0.5, tokens_per_worker: EACH}
limits: {tokens: 1000, idle: IDLE}
"""


def write_people(folder, each=FILMS_SEEN, idle="60s"):
    """Forty persons with a rating of each of four films: every film can fill four rounds."""
    draw = random.Random(5)
    rows = [(film, draw.randint(1, 5), f"guest {who}") for who in range(PEOPLE) for film in range(FILMS_SEEN)]
    draw.shuffle(rows)
    (folder / "people.csv").write_text("film,stars,who\n" + "".join(f"{f},{s},{w}\n" for f, s, w in rows))
    (folder / "people.yaml").write_text(PERSONS.replace("EACH", str(each)).replace("IDLE", idle))


def given(folder):
    """Scores by worker, and the rows, that the workers' programs of a state folder have given."""
    scores, rows = {}, []
    for path in sorted(folder.glob("*/given.db")):
        with contextlib.closing(sqlite3.connect(path)) as db:
            scores.update(db.execute("SELECT worker, scores FROM given"))
            rows += [row for row, in db.execute("SELECT row FROM used_row")]
    return scores, rows


def test_a_person_is_one_worker_and_is_charged_for_its_rows(tmp_path):
    write_people(tmp_path)
    done = crowdveil("up", "people.yaml", "--json", "--state", tmp_path / "state", cwd=tmp_path)
    assert done.returncode == 1, done.stderr  # the rows are used up: no item has a class
    result = json.loads(done.stdout)
    found, (scores, rows) = result["data"], given(tmp_path / "state")
    assert (found["persons"], found["person_rows_most"], found["uses_most"]) == (PEOPLE, FILMS_SEEN, 1)
    assert len(set(rows)) == len(rows) == sum(scores.values()) == result["tokens"] == PEOPLE * FILMS_SEEN
    assert scores == {worker: FILMS_SEEN for worker in range(1, PEOPLE + 1)}
    # What a person is charged is its rows times what a token is.
    assert found["person_most_micro"] == max(scores.values()) * result["epsilon_spent_micro"]
    assert "each of 40 persons is a worker" in done.stderr
    for path in (tmp_path / "state").rglob("*"):
        assert not path.is_file() or b"guest" not in path.read_bytes(), f"{path} names a person"


def test_the_last_persons_may_have_programs_of_their_own(tmp_path):
    write_people(tmp_path)
    file = tmp_path / "people.yaml"
    file.write_text(file.read_text().replace("scale:", "first_worker: 101, scale:"))
    state = tmp_path / "state"
    done = crowdveil("up", file, "--json", "--worker-processes", "2", "--state", state, cwd=tmp_path)
    assert done.returncode == 1, done.stderr  # the scores are used up
    assert "38 workers on 2 gateways and 2 on their own" in done.stderr
    assert sorted(path.parent.name for path in state.glob("*/given.db")) == [
        "gateway-1", "gateway-2", "worker-139", "worker-140"]
    scores, rows = given(state)
    assert scores == {worker: FILMS_SEEN for worker in range(101, 101 + PEOPLE)}
    assert len(set(rows)) == len(rows) == json.loads(done.stdout)["tokens"] == PEOPLE * FILMS_SEEN
    assert f"{FILMS_SEEN} rows of 1 persons given, each once" in (state / "worker-140.log").read_text()


def test_rows_beyond_tokens_per_worker_are_said_to_be_unused(tmp_path):
    write_people(tmp_path, each=3)
    done = crowdveil("up", "people.yaml", "--json", "--state", tmp_path / "state", cwd=tmp_path)
    assert done.returncode == 1, done.stderr  # the scores are used up
    assert "tokens_per_worker leaves 40 of its 160 rows unused" in done.stderr
    assert max(given(tmp_path / "state")[0].values()) == 3 and json.loads(done.stdout)["tokens"] <= 120


@pytest.mark.usefixtures("worker_program")
def test_a_gateway_remembers_the_rows_it_has_given(deployment, tmp_path):
    """It is there before each campaign, which a crowd that does not come would end."""
    write_people(tmp_path, idle="3s")
    deployment.clock.rate = 3
    # With other noise the ranking may be complete before the last round.
    seeded = {"unsafe_noise_seeded": True, "unsafe_noise_seed": 1}
    deployment.up(broker={"limits": {"worker_epsilon": 1000}, **seeded})
    config = {"state": str(tmp_path / "gateway-1"), "accept": {"epsilon": 1}}
    (tmp_path / "gateway-1").mkdir()
    without = deployment.start_worker(f"gateway/1-{PEOPLE}", tmp_path / "people.yaml", {"accept": {"epsilon": 1}})
    assert without.wait() != 0
    without.wait_for("missing state; expected a state folder for the rows given")
    link = as_requester(deployment)
    gateway = deployment.start_worker(f"gateway/1-{PEOPLE}", tmp_path / "people.yaml", config)
    gateway.wait_for("connected as")
    assert crowdveil("submit", tmp_path / "people.yaml", *link).returncode == 0
    assert crowdveil("watch", *link).returncode == 1  # no person is left that could fill another round
    assert gateway.wait() == 0
    rows = given(tmp_path)[1]
    assert len(rows) == PEOPLE * FILMS_SEEN
    # The same campaign once more: every row has been given.
    again = deployment.start_worker(f"gateway/1-{PEOPLE}", tmp_path / "people.yaml", {
        **config, "exit_when_done": False})
    again.wait_for("connected as")
    assert crowdveil("submit", tmp_path / "people.yaml", *link).returncode == 0
    assert crowdveil("watch", *link).returncode == 1
    again.stop()
    assert given(tmp_path)[1] == rows
    # With a changed file the stored rows cannot be attributed.
    text = (tmp_path / "people.csv").read_text().split("\n")
    (tmp_path / "people.csv").write_text("\n".join([text[0], *text[2:-1], text[1], ""]))
    changed = deployment.start_worker(f"gateway/1-{PEOPLE}", tmp_path / "people.yaml", config)
    assert changed.wait() != 0
    changed.wait_for('the stored rows of .*people.csv belong to another data set')
