# SPDX-License-Identifier: Apache-2.0
"""Data files in every format: the same rows make the same campaign for requester and gateways, and a bad file is one
line before anything starts."""
import collections
import csv
import gzip
import json
import random
import re
import sqlite3
import struct

import pytest

from harness.commands import as_requester, crowdveil

FILMS = {"Roma": 4.6, "Blue Fish": 3.4, "Casa": 2.2, "Night": 4.4}
RARE = 30


def ratings():
    """Four films with 400 ratings each, 30 films with 3, and gaps; a person gives four."""
    draw = random.Random(7)
    rows = [(film, min(10, max(1, round(draw.gauss(2 * mean, 2)))) / 2) for film, mean in FILMS.items()
            for _ in range(400)]
    rows += [(f"rare {number}", 5.0) for number in range(RARE) for _ in range(3)]
    draw.shuffle(rows)
    rows[10:10] = [("Roma", None)]
    return [(film, stars, f"person {number // 4}", "2024-01-01") for number, (film, stars) in enumerate(rows)]


COLUMNS = ("film", "stars", "who", "day")


def as_csv(rows, delimiter=","):
    lines = [COLUMNS, *((film, "" if stars is None else stars, who, day) for film, stars, who, day in rows)]
    return "".join(delimiter.join(map(str, line)) + "\n" for line in lines).encode()


def as_jsonl(rows):
    return "".join(json.dumps(dict(zip(COLUMNS, row))) + "\n" for row in rows).encode()


def zstd(data):
    """A frame of blocks that are stored as they are: written from RFC 8878, not by the library that reads it."""
    size = 100_000
    blocks = [data[at:at + size] for at in range(0, len(data), size)] or [b""]
    frame = struct.pack("<IBQ", 0xFD2FB528, 0xE0, len(data))
    for number, block in enumerate(blocks):
        frame += struct.pack("<I", len(block) << 3 | (number == len(blocks) - 1))[:3] + block
    return frame


def write_database(path, rows):
    with sqlite3.connect(path) as base:
        base.execute("CREATE TABLE film (id INTEGER PRIMARY KEY, title TEXT)")
        base.execute("CREATE TABLE rating (film INTEGER, stars REAL, who TEXT, day TEXT)")
        numbers = {film: number for number, film in enumerate(sorted({row[0] for row in rows}))}
        base.executemany("INSERT INTO film VALUES (?, ?)", [(number, film) for film, number in numbers.items()])
        base.executemany("INSERT INTO rating VALUES (?, ?, ?, ?)",
                         [(numbers[film], stars, who, day) for film, stars, who, day in rows])
    base.close()


QUERY = ("SELECT title AS film, stars, who, day FROM rating JOIN film ON film.id = rating.film "
         "ORDER BY rating.rowid")


def write(folder, name, rows):
    """The file, and what the campaign says of its format."""
    path = folder / name
    if name.endswith(".db"):
        write_database(path, rows)
        return f"source: sqlite, path: {name}, query: '{QUERY}'"
    data = as_jsonl(rows) if ".jsonl" in name else as_csv(rows, "\t" if ".tsv" in name else ",")
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else zstd(data) if name.endswith(".zst") else data)
    return f"source: {'jsonl' if '.jsonl' in name else 'csv'}, path: {name}"


def campaign(folder, source, more="scale: [0.5, 5], missing: skip, min_rows: 10, replacement: true",
             privacy="epsilon: 4"):
    (folder / "films.yaml").write_text(
        f"campaign: films\nitems: {{{source}, item: film, score: stars, {more}}}\n"
        "policy: {name: ppar, alpha: 0.2, tokens_per_round: 400}\n"
        f"privacy: {{{privacy}, tokens_per_worker: 50, repeat: true}}\nlimits: {{tokens: 200000, idle: 10s}}\n")


def up(folder, *more):
    done = crowdveil("up", "films.yaml", "--json", "--seed", "5", "--unsafe-noise-seed", "6", *more, cwd=folder)
    assert done.returncode in (0, 1), done.stderr
    assert (done.returncode == 1) == ("\nended       scores used up, " in done.stderr), done.stderr
    return json.loads(done.stdout), done.stderr


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plain")
    campaign(folder, write(folder, "r.csv", ratings()))
    return up(folder)[0]


@pytest.mark.parametrize("name", ["r.csv.gz", "r.tsv.zst", "r.jsonl", "r.jsonl.gz", "r.db"])
def test_every_format_makes_the_same_campaign(tmp_path, plain, name):
    campaign(tmp_path, write(tmp_path, name, ratings()))
    result, told = up(tmp_path)
    same = ("classes", "truth", "undecided", "item_tokens", "tokens", "unit", "epsilon_spent_micro")
    assert {key: result[key] for key in same} == {key: plain[key] for key in same}
    assert {film for films in result["truth"] for film in films} == set(FILMS)
    place = "row 11" if name.endswith(".db") else "line 11" if "jsonl" in name else "line 12"
    rows = 4 * 400 + 3 * RARE
    assert (f"{name}: 1 of {rows + 1} rows without a score are skipped, the first at {place}\n"
            f"{name}: 30 of 34 items are left out, and with them 90 of {rows} rows (min_rows: 10)\n"
            f"{name}: columns not used: who, day\n") in told


@pytest.mark.parametrize("name", ["r.csv.zst", "r.jsonl", "r.db"])
def test_the_persons_of_every_format_are_workers(tmp_path, name):
    """A row of a person goes to the gateway that has the person: both must have read the same persons."""
    rows = [row for row in ratings() if row[1] is not None]
    campaign(tmp_path, write(tmp_path, name, rows), "worker: who, scale: [0.5, 5], top: 4, replacement: false")
    text = (tmp_path / "films.yaml").read_text().replace("400}", "100}").replace("tokens: 200000", "tokens: 800")
    (tmp_path / "films.yaml").write_text(text)
    result, told = up(tmp_path)
    persons = {who for film, _, who, _ in rows if film in FILMS}
    assert result["data"]["persons"] == len(persons)
    assert result["tokens"] >= 400 and f"{len(persons)} persons is a worker" in told.replace(",", "")


def test_results_are_in_the_unit_of_the_file_too(tmp_path, plain):
    unit = plain["unit"]
    assert (unit["score"], unit["low"], unit["high"]) == ("stars", .5, 5)
    means = collections.defaultdict(list)
    for film, stars, _, _ in ratings():
        means[film] += [] if stars is None else [stars]
    for film in FILMS:
        found = unit["items"][film]
        assert abs(found["mean"] - sum(means[film]) / len(means[film])) < found["radius"] < 2
    campaign(tmp_path, write(tmp_path, "r.csv", ratings()), "scale: [0.5, 5], missing: skip, top: 4, replacement: true")
    done = crowdveil("up", "films.yaml", "--seed", "5", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    heading, *lines = done.stdout[done.stdout.index("class  item"):].split("\n")
    at = heading.index("stars")
    for line in lines[:4]:
        assert .5 <= float(line[at:].split()[0]) <= 5.5


def with_one_of(rows, stars):
    return [*rows[:4], (rows[4][0], stars, *rows[4][2:]), *rows[5:]]


def refused(folder, privacy, more="missing: skip, top: 4"):
    more += "" if "privatizer" in privacy else ", replacement: true"
    campaign(folder, write(folder, "r.csv", with_one_of(ratings(), 1e9)), more, privacy)
    for command in ("up", "check", "plan"):
        done = crowdveil(command, "films.yaml", cwd=folder)
        assert done.returncode == 2 and done.stdout == "" and done.stderr.count("\n") == 1
    return done.stderr


@pytest.mark.parametrize("privacy", ["epsilon: 4", "mechanism: auto, epsilon: 4",
                                     "mechanism: none, privatizer: {name: laplace, epsilon: 2}"])
def test_the_range_of_the_rows_is_never_the_scale_of_what_has_to_stay_private(tmp_path, privacy):
    assert "r.csv: items.scale is missing: 99.88 % of the scores go from 0.5 to 5, but that of line 6 is 1000000000; " \
        "write scale: [0.5, 5] if that is the range of the question" in refused(tmp_path, privacy)
    assert "r.csv:6: stars 1000000000 is outside 0.5..5, the campaign's scale" in \
        refused(tmp_path, privacy, "scale: [0.5, 5], missing: skip")


def test_one_row_moves_one_token_only(tmp_path):
    """The rest of the results are the same, as the noise is: the row is clamped, which the file's owner alone reads."""
    outcomes = []
    for stars in (5, 1e9):
        campaign(tmp_path, write(tmp_path, "r.csv", with_one_of(ratings(), stars)),
                 "scale: [0.5, 5], outside: clamp, missing: skip, top: 4")
        outcomes.append(up(tmp_path))
    (plain, _), (clamped, told) = outcomes
    assert {key: value for key, value in plain.items() if "second" not in key} == \
        {key: value for key, value in clamped.items() if "second" not in key}
    assert "r.csv: 1 of 1690 scores are outside the scale and count as its nearer end, the first at line 6" in told


def test_without_any_protection_the_rows_may_choose_the_scale(tmp_path):
    campaign(tmp_path, write(tmp_path, "r.csv", with_one_of(ratings(), 1e308)),
             "missing: skip, top: 4, replacement: true", "mechanism: none, third_party: trusted")
    told = json.loads(crowdveil("check", "films.yaml", "--json", cwd=tmp_path).stdout)
    assert "r.csv: line 6 stretches the scale: its stars is 1e+308, but 99.88 % of the rows lie in 0.5 to 5" in \
        told["notes"][1]


@pytest.mark.usefixtures("worker_program")
@pytest.mark.parametrize("own, why", [
    ("scale: [0, 10]", "the campaign's scale is 0.5 to 5; expected 0 to 10, as in the worker's campaign file"),
    ("top: 4", "the worker's campaign file has no items.scale; expected that of the campaign")])
def test_a_gateway_with_another_scale_gives_nothing(deployment, tmp_path, own, why):
    deployment.up()
    source = write(tmp_path, "r.csv", ratings())
    campaign(tmp_path, source, f"{own}, missing: skip, min_rows: 10", "mechanism: none, third_party: trusted")
    (tmp_path / "films.yaml").rename(tmp_path / "own.yaml")
    campaign(tmp_path, source)
    assert crowdveil("submit", "films.yaml", *as_requester(deployment), cwd=tmp_path).returncode == 0
    gateway = deployment.start_worker("gateway/1-9000", tmp_path / "own.yaml",
                                      {"accept": {"epsilon": 4}, "exit_when_done": False})
    gateway.wait_for(f"declined.*: {re.escape(why)}")
    seen = crowdveil("watch", "1", *as_requester(deployment), cwd=tmp_path)
    assert why in seen.stdout + seen.stderr and "tokens      0 of" in seen.stdout


def test_submit_says_on_its_other_stream_what_was_decided(deployment, tmp_path):
    deployment.up()
    campaign(tmp_path, write(tmp_path, "r.jsonl.gz", ratings()))
    done = crowdveil("submit", "films.yaml", *as_requester(deployment), cwd=tmp_path)
    assert done.returncode == 0 and done.stdout.startswith("campaign ") and done.stdout.count("\n") == 1
    assert "r.jsonl.gz: columns not used: who, day\n" in done.stderr


CUT = gzip.compress(as_csv(ratings()))[:3000]

BAD = {
    "cut": ("r.csv.gz", CUT, "csv", "missing: skip", "r.csv.gz: the file ends in the middle, after"),
    "damaged": ("r.csv.gz", CUT[:1500] + b"\xff" * 8 + CUT[1508:], "csv", "missing: skip", "r.csv.gz: damaged after"),
    "a tail": ("r.csv.gz", gzip.compress(b"film,stars\na,1\nb,5\n") + bytes(512), "csv", "",
               "r.csv.gz: damaged: at byte 40, where a gzip stream has ended, no whole other one begins"),
    "no gzip": ("r.csv.gz", b"film,stars\na,1\n", "csv", "", "r.csv.gz: not a gzip file; expected one"),
    "no zstd": ("r.csv.zst", b"film,stars\na,1\n", "csv", "", "r.csv.zst: not a zstd file; expected one"),
    "no JSON": ("r.jsonl", b'{"film": "a", "stars": 1}\n{film: "a"}\n', "jsonl", "",
                "r.jsonl:2: not JSON, string or '}' expected near 'film'; expected one object a line"),
    "no object": ("r.jsonl", b"[]\n", "jsonl", "", "r.jsonl:1: not a JSON object; expected one object a line"),
    "a gap": ("r.jsonl", b'{"film": "a", "stars": null}\n', "jsonl", "",
              'r.jsonl:1: stars "null" is no score; expected a number, or items.missing: skip to leave such rows out'),
    "no database": ("r.db", b"film,stars\na,1\n", "sqlite", "query: 'SELECT film, stars FROM r', scale: [1, 5]",
                    "r.db: not an SQLite database"),
    "no query": ("r.db", b"", "sqlite", "", "films.yaml:2:8: missing items.query; expected one SELECT"),
}


@pytest.mark.parametrize("what", BAD)
@pytest.mark.parametrize("command", ["up", "check"])
def test_a_bad_file_is_one_line(tmp_path, what, command):
    name, data, source, more, expected = BAD[what]
    (tmp_path / name).write_bytes(data)
    campaign(tmp_path, f"source: {source}, path: {name}", more or "replacement: true")
    done = crowdveil(command, "films.yaml", cwd=tmp_path)
    assert done.returncode == 2 and done.stdout == "" and done.stderr.count("\n") == 1
    assert expected in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["films.yaml", name])


@pytest.mark.parametrize("query", ["DELETE FROM rating RETURNING film, stars",
                                   "SELECT film, stars FROM rating; DROP TABLE rating",
                                   "PRAGMA table_info(rating)", "ATTACH 'other.db' AS other",
                                   "SELECT load_extension('x') AS film, 1 AS stars"])
def test_a_query_that_does_more_than_read_changes_nothing(tmp_path, query):
    write_database(tmp_path / "r.db", ratings())
    before = (tmp_path / "r.db").read_bytes()
    quoted = query.replace("'", "''")
    campaign(tmp_path, f"source: sqlite, path: r.db, query: '{quoted}'", "replacement: true")
    done = crowdveil("up", "films.yaml", cwd=tmp_path)
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert "r.db: items.query has " in done.stderr and "expected one SELECT" in done.stderr
    assert (tmp_path / "r.db").read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["films.yaml", "r.db"]


def test_real_ratings_from_a_packed_file_keep_the_lecturers_with_most_of_them(tmp_path, data):
    path = data("ratings/insteval_lme4.csv")
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    counts = collections.Counter(row["item"] for row in rows)
    # equally many: the smaller number first
    most = sorted(counts, key=lambda name: (-counts[name], int(name)))[:5]
    (tmp_path / "r.csv.gz").write_bytes(gzip.compress(path.read_bytes()))
    (tmp_path / "films.yaml").write_text(
        "campaign: lectures\n"
        "items: {source: csv, path: r.csv.gz, item: item, score: score, scale: [1, 5], top: 5, replacement: true}\n"
        "policy: {name: ppar, alpha: 0.3, tokens_per_round: 2000}\n"
        "privacy: {epsilon: 2, tokens_per_worker: 100, repeat: true}\nlimits: {tokens: 500000}\n")
    result, told = up(tmp_path)
    assert set(result["unit"]["items"]) == set(most)
    assert f"r.csv.gz: {len(counts) - 5} of {len(counts)} items are left out" in told
