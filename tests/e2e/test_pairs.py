# SPDX-License-Identifier: Apache-2.0
"""Campaigns of pairs: who is compared with whom, what is summed and charged, files of comparisons."""
import json
import os
import random
import shutil
import sqlite3
import subprocess
from collections import Counter

import pytest

from client.requester import end_name, spec
from client.worker import Session
from conftest import ROOT
from crowdveil.wire import GRID
from harness.commands import as_requester, crowdveil

ARMS = 4


def beats(strengths, a, b):
    return strengths[a] / (strengths[a] + strengths[b])


def borda(strengths):
    n = len(strengths)
    return [sum(beats(strengths, a, b) for b in range(n) if b != a) / (n - 1) for a in range(n)]


# An error, which is also an interval without its true mean, has a probability of at most delta.
RARE = "delta: 0.0000001"


def test_the_example_ranks_by_borda_scores(example, tmp_path):
    """The classes and the intervals are those of the example with a smaller delta."""
    result, export, _ = example("pairs")
    assert list(map(set, result["truth"])) == [{"Nougat"}, {"Toffee"}, {"Fudge", "Caramel"}, {"Licorice"}]
    assert export["spec"]["pairs"] is True
    assert not any("opponent" in want for plan in export["plans"] for want in plan["wants"])
    text = (ROOT / "deploy/campaigns/pairs.yaml").read_text()
    assert "alpha: 0.05}" in text
    (tmp_path / "rare.yaml").write_text(text.replace("alpha: 0.05}", f"alpha: 0.05, {RARE}}}"))
    done = crowdveil("up", "rare.yaml", "--json", "--state", tmp_path / "state", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["accuracy"] == 1
    with sqlite3.connect(tmp_path / "state/thirdparty/thirdparty.db") as db:
        standings = db.execute("SELECT arm, mean, radius FROM standing ORDER BY arm").fetchall()
    assert [arm for arm, _, _ in standings] == list(range(5))
    for (_, mean, radius), true in zip(standings, borda([.8, .4, .2, .2, .1])):
        assert mean == pytest.approx(true, abs=radius + 1e-9)


class Crowd:
    """Workers of the test: one bit each, drawn by strengths; what each assignment showed is kept."""

    def __init__(self, deployment, strengths, seed):
        self.strengths, self.rng = strengths, random.Random(seed)
        self.shown, self.won, self.asked = Counter(), Counter(), Counter()
        files = deployment.pki.issue("gateway/1-100000")
        self.session = Session(deployment.broker.address, files.ca, files.cert, files.key)
        self.terms = None

    def bit(self, assign):
        arm, = assign.arms
        assert 1 <= assign.opponent <= len(self.strengths) and assign.opponent != arm + 1
        return GRID if self.rng.random() < beats(self.strengths, arm, assign.opponent - 1) else 0

    def work(self, workers):
        """Answers until the campaign is done."""
        self.session.arrive(workers, 64)
        while True:
            kind, message = self.session.until("campaign", "assign", "ack", "done")
            if kind == "campaign":
                self.terms = message
            elif kind == "assign":
                value = self.bit(message)
                arm = message.arms[0]
                self.shown[arm, message.opponent - 1] += 1
                self.asked[arm] += 1
                self.won[arm] += value // GRID
                self.session.token(message.ticket, [value])
            elif kind == "ack":
                assert self.session.verdict(message) == "accepted"
            elif kind == "done":
                return


def test_sums_are_what_was_answered_against_uniform_opponents(deployment):
    deployment.up(broker={"limits": {"trusted_thirdparty": True}})
    with deployment.requester() as requester:
        campaign = requester.submit(spec(ARMS, policy="ppar", pairs=True, mechanism="none", trusted=True, epsilon=1,
                                         policy_params={"alpha": .02, "tokens_per_round": 1000},
                                         tokens=12_000)).campaign
        crowd = Crowd(deployment, [8, 4, 2, 1], "sums")
        crowd.work(range(1, 13_000))
        finished = requester.watch(campaign)
    assert crowd.terms.pairs
    assert deployment.broker.stop() == 0 and deployment.thirdparty.stop() == 0
    with sqlite3.connect(f"{deployment.state('thirdparty-state')}/thirdparty.db") as db:
        released = {arm: (tokens, total) for arm, tokens, total in
                    db.execute("SELECT arm, max(tokens), noisy_sum FROM release GROUP BY arm")}
    assert released == {arm: (crowd.asked[arm], crowd.won[arm] * GRID) for arm in range(ARMS)}
    assert sum(crowd.asked.values()) == finished.progress.tokens
    for (arm, opponent), shown in crowd.shown.items():
        assert arm != opponent
        expected = crowd.asked[arm] / (ARMS - 1)
        assert abs(shown - expected) < 6 * (expected * 2 / 3) ** .5, "an opponent is drawn too often or too rarely"


def test_declining_does_not_change_the_opponent(deployment):
    deployment.up()
    with deployment.requester() as requester:
        requester.submit(spec(ARMS, policy="ppar", pairs=True, policy_params={"alpha": .1, "tokens_per_round": 50},
                              tokens=50_000, idle_ms=0))
        files = deployment.pki.issue("gateway/1-1000")
        with Session(deployment.broker.address, files.ca, files.cert, files.key) as session:
            seen = {}
            for worker in range(1, 401):
                session.arrive([worker], 1)
                assign = session.until("assign")
                place = assign.arms[0], assign.place
                assert seen.setdefault(place, assign.opponent) == assign.opponent, "another opponent for the same place"
                session.decline(0, "not this one", assign.ticket)
            assert max(Counter(arm for arm, _ in seen).values()) < 100, "places come again"


def test_an_answer_that_is_no_bit_is_refused(deployment):
    deployment.up()
    with deployment.requester() as requester:
        requester.submit(spec(ARMS, policy="ppar", pairs=True, policy_params={"alpha": .1, "tokens_per_round": 50},
                              tokens=50_000, idle_ms=0))
        files = deployment.pki.issue("gateway/1-10")
        with Session(deployment.broker.address, files.ca, files.cert, files.key) as session:
            for worker, value in ((1, GRID // 2), (2, 1), (3, GRID + 1), (4, -GRID)):
                session.arrive([worker], 1)
                ticket = session.until("assign").ticket
                session.token(ticket, [value])
                ack = session.ack(ticket)
                assert session.verdict(ack) == "refused" and ack.why == "the value is out of range"


def test_another_opponent_in_the_record_is_found(example, tmp_path):
    _, export, _ = example("pair-sort")
    plan = export["plans"][0]
    pivot = plan["wants"][0]["opponent"]
    assert all(want["opponent"] == pivot != want["arm"] for want in plan["wants"]), "the first plan has one pivot"
    changed = json.loads(json.dumps(export))
    want = changed["plans"][0]["wants"][0]
    want["opponent"] = next(arm for arm in range(6) if arm not in (pivot, want["arm"]))
    (tmp_path / "changed.json").write_text(json.dumps(changed))
    done = crowdveil("verify", tmp_path / "changed.json", cwd=tmp_path)
    assert done.returncode == 1
    asked, other = want["arm"] + 1, want["opponent"] + 1  # text counts arms from 1
    assert f"plan 1 compares arm {asked} with arm {other}; recomputed: arm {pivot + 1}" in done.stderr
    del want["opponent"]
    (tmp_path / "changed.json").write_text(json.dumps(changed))
    done = crowdveil("verify", tmp_path / "changed.json", cwd=tmp_path)
    assert done.returncode == 1
    assert f"compares arm {asked} with drawn arms; recomputed: arm {pivot + 1}" in done.stderr


def test_opponents_survive_kills_and_replay(deployment, tmp_path):
    """pair-sort over a broker and a third-party that are killed: the record replays."""
    path = tmp_path / "campaign.yaml"
    path.write_text((ROOT / "deploy/campaigns/pair-sort.yaml").read_text())
    deployment.up()
    with deployment.requester() as requester:
        number = requester.submit(spec(6, name="sweets", policy="pair-sort", pairs=True, mechanism="segments",
                                       policy_params={"delta": 1e-7, "tie": .05}, tokens=100_000)).campaign
    deployment.start_worker("gateway/1-100000", path, {"accept": {"mechanisms": "segments"}})
    with deployment.requester() as requester:
        requester.watch(number, until=lambda progress: progress.plans >= 4)
    deployment.thirdparty.kill()
    deployment.broker.kill()
    deployment.up()
    deployment.start_worker("gateway/100001-200000", path, {"accept": {"mechanisms": "segments"}})
    with deployment.requester() as requester:
        finished = requester.watch(number)
    assert end_name(finished.progress.end) == "complete"
    classes = {s.arm: s.rank_class for s in finished.standings}
    assert [classes[arm] for arm in range(6)] == [1, 2, 3, 3, 4, 5]
    done = crowdveil("export", number, *as_requester(deployment), cwd=tmp_path)
    (tmp_path / "export.json").write_text(done.stdout)
    assert crowdveil("verify", tmp_path / "export.json", cwd=tmp_path).returncode == 0
    deployment.stop()
    done = crowdveil("replay", tmp_path / "thirdparty-state/thirdparty.db", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("section, policy, message", [
    ("items: {rewards: pairs, list: [{name: a, mean: 1}]}", "{name: ppar-kl, alpha: .1}",
     "1 items are compared in pairs; expected 2 to 8192"),
    ("items: {rewards: pairs, list: [{name: a, mean: 1}, {name: b, mean: 1}]}\ngraph: {edges: [[1, 2]]}",
     "{name: gap}", "a campaign of pairs has a feedback graph; expected none"),
    ("items: {rewards: pairs, list: [{name: a, mean: 1}, {name: b, mean: 1}, {name: c, mean: 1}]}\n"
     "gold: {items: {a: 1}, tolerance: .1}", "{name: ppar-kl, alpha: .1}",
     "gold items in a campaign of pairs, where the answer depends on the opponent"),
    ("workers: {rewards: pairs, list: [{id: 1, cost: 1, quality: .5}]}\nbudget: 5", "dpu",
     'unknown reward model "pairs"; expected one of bernoulli'),
    ("items: {list: [{name: a, mean: 1}, {name: b, mean: 0}]}", "pair-sort",
     "policy pair-sort needs items that are compared in pairs; expected rewards: pairs"),
])
def test_what_pairs_do_not_go_with_is_said(tmp_path, section, policy, message):
    (tmp_path / "campaign.yaml").write_text(f"campaign: x\n{section}\npolicy: {policy}\n"
                                            "privacy: {mechanism: segments, epsilon: 1, tokens_per_worker: 300, "
                                            "repeat: true}\n")
    done = crowdveil("up", "campaign.yaml", cwd=tmp_path)
    assert done.returncode == 2 and message in done.stderr, done.stderr
    assert done.stderr.count("\n") == 1


FILE = "items: {source: csv, path: duels.csv, item: a, versus: b, score: won, replacement: true}"


def compare(folder, rows, section=FILE, header="a,b,won"):
    (folder / "duels.csv").write_text("\n".join([header, *rows, ""]))
    (folder / "campaign.yaml").write_text(f"campaign: duels\n{section}\n"
                                          f"policy: {{name: ppar-kl, alpha: 0.05, {RARE}}}\n"
                                          "privacy: {mechanism: segments, epsilon: 1}\nlimits: {tokens: 50000}\n")
    return crowdveil("up", "campaign.yaml", "--json", cwd=folder)


def test_a_file_of_comparisons(tmp_path):
    """Rows count for both items, ties for a half each; the truth is the Borda score of the rows."""
    rows = ["x,y,1"] * 8 + ["y,x,1"] * 2 + ["x,z,1"] * 9 + ["z,x,0.5"] * 2 + ["y,z,1"] * 3 + ["z,y,1"]
    done = compare(tmp_path, rows)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["classes"] == result["truth"] == [["x"], ["y"], ["z"]]
    # x: .8 against y, 10 of 11 against z; y: .2 and .75; z: 1/11 and .25
    for name, mean in (("x", (.8 + 10 / 11) / 2), ("y", (.2 + .75) / 2), ("z", (1 / 11 + .25) / 2)):
        line = next(line for line in done.stderr.splitlines() if line.split()[1:2] == [name])
        assert f"  {mean:.4f}  " in line


def sort(folder, won, tie):
    """Ranks a, b and c by duels; `won` says how many of 100 the first one of each pair won."""
    folder.mkdir()
    rows = [f"{a},{b},{int(i < won[a + b])}" for a, b in ("ab", "ac", "bc") for i in range(100)]
    (folder / "duels.csv").write_text("\n".join(["a,b,won", *rows, ""]))
    (folder / "campaign.yaml").write_text(f"campaign: duels\n{FILE}\npolicy: {{name: pair-sort, tie: {tie}, {RARE}}}\n"
                                          "privacy: {mechanism: segments, epsilon: 1}\nlimits: {tokens: 60000}\n")
    done = crowdveil("up", "campaign.yaml", "--json", "--seed", "1", cwd=folder)
    assert done.returncode == 0, done.stderr
    (folder / "result.json").write_text(done.stdout)
    lines = [line.split() for line in done.stderr.splitlines()]
    return json.loads(done.stdout), {words[1]: words[-1] for words in lines if words[-1:] in (["hit"], ["miss"])}


def test_items_that_tie_are_right_in_one_class(tmp_path):
    """Duels are judged by what is claimed of them. a and b win 51 and 49 of 100 against each other."""
    result, seen = sort(tmp_path / "tie", {"ab": 51, "ac": 80, "bc": 79}, .05)
    assert [set(names) for names in result["classes"]] == [{"a", "b"}, {"c"}]
    assert result["accuracy"] == 1 and result["wrong"] == []
    assert result["truth"] == [["a"], ["b"], ["c"]], "the order by wins"
    assert seen == {"a": "hit", "b": "hit", "c": "hit"}
    apart, _ = sort(tmp_path / "apart", {"ab": 51, "ac": 80, "bc": 79}, .2)
    assert apart["accuracy"] == 1
    compared = crowdveil("compare", tmp_path / "tie/result.json", tmp_path / "apart/result.json")
    assert compared.returncode == 0 and "3 of 3" in compared.stdout and "wrong" not in compared.stdout


def test_a_cycle_has_no_right_order(tmp_path):
    """Whoever beats the item that it stands below, and that item, are misses: the order is not what it claims to be."""
    result, seen = sort(tmp_path / "cycle", {"ab": 80, "ac": 20, "bc": 80}, .05)
    first, second, third = (names[0] for names in result["classes"])
    assert seen == {first: "miss", second: "hit", third: "miss"}
    assert set(result["wrong"]) == {first, third} and result["accuracy"] == pytest.approx(1 / 3)


@pytest.mark.parametrize("rows, section, message", [
    (["x,y,1", "y,z,1", "x,y,0"], FILE, 'duels.csv: "x" and "z" never met; expected a row of every two items'),
    (["x,y,1", "y,z,1"], FILE, "duels.csv: 3 items in 2 rows; expected at least two items, and a row of every two"),
    (["x,y,1", "y,y,1"], FILE, 'duels.csv:3: "y" is compared with itself; expected two items'),
    (["x,y,1", "x,y,2"], FILE, 'duels.csv:3: won is "2"; expected a number from 0, the item lost, to 1, it won'),
    (["x,y,"], FILE, 'duels.csv:2: won is ""; expected a number from 0'),
    (["x,,1"], FILE, 'duels.csv:2: b "" is not a valid name; expected 1 to 255 bytes'),
    (["x,y,1"], FILE.replace(", replacement: true", ""), "items.versus without replacement; expected replacement: t"),
    (["x,y,1"], FILE.replace("versus: b", "versus: a"), "items.versus is the column of the items; expected one that"),
    (["x,y,1"], FILE.replace("replacement", "worker: b, replacement"), "expected no persons with comparisons"),
    (["x,y,1"], FILE.replace("versus: b", "versus: c"), "c"),
])
def test_a_wrong_file_of_comparisons_is_one_line(tmp_path, rows, section, message):
    done = compare(tmp_path, rows, section)
    assert done.returncode == 2 and message in done.stderr, done.stderr
    assert done.stderr.count("\n") == 1


BASEBALL = """
data(baseball, package = "BradleyTerry2")
rows <- function(times, score) {
  i <- rep(seq_len(nrow(baseball)), times)
  data.frame(a = baseball$home.team[i], b = baseball$away.team[i], won = rep(score, length(i)))
}
write.csv(rbind(rows(baseball$home.wins, 1), rows(baseball$away.wins, 0)),
          "duels.csv", row.names = FALSE, quote = FALSE)
"""


def test_a_real_league(tmp_path):
    """Baseball 1987 (Agresti), of the package r-cran-bradleyterry2; R_LIBS may name another folder that has it."""
    if shutil.which("Rscript") is None:
        pytest.skip("no Rscript, which reads the data set")
    made = subprocess.run(["Rscript", "-e", BASEBALL], cwd=tmp_path, capture_output=True, text=True, env=os.environ)
    if made.returncode != 0:
        pytest.skip("no data set baseball: package r-cran-bradleyterry2 is not there, nor in R_LIBS")
    header, *rows = (tmp_path / "duels.csv").read_text().splitlines()
    done = compare(tmp_path, rows, header=header)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    # the season's league table, by games won: 13 games against each of the six others, so Borda scores are 1/78 of them
    assert result["truth"][0][0] == "Milwaukee" and result["truth"][-1] == ["Baltimore"]
    assert "0.2308" in done.stderr, "Baltimore won 18 of 78"
