# SPDX-License-Identifier: Apache-2.0
"""The commands that a person types: the demo campaign, certificates, meaningful exit statuses."""
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess

import pytest

from client.requester import classes, end_name, spec
from crowdveil.wire import Connection, context
from harness.commands import crowdveil
from harness.daemon import BUILD, PROGRAMS, ROOT, Daemon
from harness.pki import Files
from harness.rows import mechanisms, privatizers
from harness.truth import true_classes

# With a seed of the scores as well, the option's or the file's, a campaign without a privatizer always ends the same:
# else a ranking is wrong, or not complete, with a probability that delta bounds.
SAME = ("--unsafe-noise-seed", "1")


@pytest.mark.parametrize("seed", [1, 7])
def test_the_demo_campaign_is_ranked_right(tmp_path, seed):
    (tmp_path / "tmp").mkdir()
    done = crowdveil("up", ROOT / "deploy/campaigns/demo.yaml", "--json", "--seed", seed, *SAME, cwd=tmp_path,
                     env=dict(os.environ, TMPDIR=str(tmp_path / "tmp")))
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert [set(group) for group in result["classes"]] == [set(group) for group in result["truth"]]
    assert result["undecided"] == [] and result["accuracy"] == 1.0
    assert result["campaign"] == "demo" and result["policy"] == "ppar"
    assert 0 < result["epsilon_spent_micro"] <= 250_000
    assert result["tokens"] > 0 and result["tokens"] % 6000 == 0 and result["seconds"] > 0
    assert sum(len(group) for group in result["classes"]) == 20
    assert not list((tmp_path / "tmp").iterdir()), "a temporary folder was left behind"


def test_the_demo_tells_its_options_and_builds_nothing(tmp_path):
    copy = tmp_path / "deploy/demo"
    copy.parent.mkdir()
    shutil.copy(ROOT / "deploy/demo", copy)
    done = subprocess.run([copy, "--help"], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stderr == ""
    assert done.stdout.startswith("Usage: deploy/demo") and "--campaign FILE" in done.stdout
    up = crowdveil("up", "--help").stdout
    for option in re.findall(r"^  (--[a-z-]+)", done.stdout, re.MULTILINE):
        assert option in ("--campaign", "--policy") or f"  {option}" in up, option
    assert list(tmp_path.iterdir()) == [copy.parent]


def test_all_programs_are_installed():
    listed = subprocess.run(["meson", "introspect", "--installed", BUILD], capture_output=True, text=True, check=True)
    installed = {os.path.basename(path) for path in json.loads(listed.stdout)}
    assert {"crowdveil", "crowdveil-broker", "crowdveil-thirdparty", "crowdveil-worker", "crowdveil-lab"} <= installed


def test_the_demo_command_on_a_built_tree(tmp_path):
    if (ROOT / "build").resolve() != BUILD:
        pytest.skip("deploy/demo builds into build/, and this run tests another folder")
    done = subprocess.run([ROOT / "deploy/demo", "--json", "--seed", "2", "--workers", "300000", *SAME], cwd=tmp_path,
                          capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout.strip().split("\n")[-1])
    assert result["campaign"] == "demo" and result["accuracy"] == 1.0


def demo(*args, **more):
    return subprocess.Popen([ROOT / "deploy/demo", *args], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, **more)


@pytest.mark.parametrize("args, expected", [
    (["--policy", "nonesuch"], 'unknown policy "nonesuch"; expected ppar-kl'),
    (["--policy=randomized-response"], 'unknown policy "randomized-response"; expected ppar-kl'),
    (["--policy", "ppar-kl", "--keep"], "option --keep is for one campaign; expected --policy without it"),
    (["--state=x", "--policy", "ppar-kl"], "option --state is for one campaign; expected --policy without it"),
    (["--policy"], "option --policy has no value; expected --policy NAME"),
    (["--policy="], "option --policy has no value; expected --policy NAME"),
    (["--policy", "ppar-kl", "--campaign", "nope.yaml"], "nope.yaml: cannot be read"),
    (["--campaign", ROOT / "deploy/campaigns/first.yaml", "--policy", "ppar-kl"],
     f"--policy ppar-kl: no file in deploy/campaigns/ ranks the items of {ROOT}/deploy/campaigns/first.yaml at its "
     "alpha, delta and epsilon"),
])
def test_a_policy_that_the_demo_cannot_compare(tmp_path, args, expected):
    out, err = (process := demo(*args, cwd=tmp_path)).communicate(timeout=30)
    assert (process.returncode, out, err) == (2, "", f"demo: {expected}\n")
    assert not list(tmp_path.iterdir())


def test_the_demo_compares_two_policies(tmp_path):
    if (ROOT / "build").resolve() != BUILD:
        pytest.skip("deploy/demo builds into build/, and this run tests another folder")
    process = demo("--policy", "ppar-kl", "--seed", "2", *SAME, cwd=tmp_path,
                   env=dict(os.environ, TMPDIR=str(tmp_path)))
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    assert not list(tmp_path.iterdir()), "a temporary folder was left behind"
    assert re.findall(r"policy (\S+), mechanism \S+ with epsilon (\S+), seed (\d+)", err) == \
        [("ppar", "0.25", "2"), ("ppar-kl", "0.25", "2")]
    assert max(map(len, out.splitlines())) <= 80
    assert re.match(r"item +truth  ppar +tokens  ppar-kl +tokens\n", out)
    rows = re.findall(r"^item \d+ +(\d+) +(\d+)  (\w+) +([\d,]+) +(\d+)  (\w+) +([\d,]+)$", out, re.M)
    assert len(rows) == 20
    for truth, one, first, _, other, second, _ in rows:
        assert (first, second) == tuple("right" if found == truth else "wrong" for found in (one, other))
    # the tokens that it says are those that the two campaigns took
    taken = re.findall(r"^tokens +([\d,]+) of", err, re.M)
    assert re.findall(r"^tokens +([\d,]+) +([\d,]+)$", out, re.M) == [tuple(taken)]
    ratio = int(taken[0].replace(",", "")) / int(taken[1].replace(",", ""))
    assert out.endswith(f"\nppar took {ratio:.2f} times the tokens of ppar-kl\n") and ratio > 1


def test_a_stopped_demo_leaves_nothing_behind(tmp_path):
    if (ROOT / "build").resolve() != BUILD:
        pytest.skip("deploy/demo builds into build/, and this run tests another folder")
    process = demo("--policy=ppar-kl", "--json", cwd=tmp_path, env=dict(os.environ, TMPDIR=str(tmp_path)))
    for line in process.stderr:
        if " tokens " in line:
            break
    process.terminate()
    out, err = process.communicate(timeout=60)
    assert process.returncode == 143 and out == "", err
    assert "crowdveil up: stopped by signal: Terminated" in err
    assert not list(tmp_path.iterdir()), "a folder was left behind"


def test_results_that_cannot_be_compared(tmp_path):
    names = ["Roma", "Golden Wok"]
    good = {"campaign": "food", "policy": "ppar", "classes": [[name] for name in names], "undecided": [],
            "truth": [names], "accuracy": .5, "wrong": [names[1]], "item_tokens": dict.fromkeys(names, 10),
            "lies": None, "tokens": 20, "rounds": 1, "epsilon_spent_micro": 250000, "seconds": 1}
    other = json.loads(json.dumps(good).replace("Roma", "Napoli"))
    files = {"good": json.dumps(good), "text": "ranked\n", "empty": "", "list": "[]", "other": json.dumps(other),
             "fewer": json.dumps({**good, "classes": [["Roma"]], "truth": None, "item_tokens": {"Roma": 1}}),
             "means": json.dumps({**good, "truth": [[name] for name in names]}),
             "bandit": json.dumps({"campaign": "food", "policy": "exp3", "arms": [], "pulls": 0})}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    for name, expected in (
            ("none", "none: cannot be read: No such file or directory"),
            (".", ".: cannot be read: Is a directory"),
            ("text", "text:1:6: '[' or '{' expected near 'ranked'"),
            ("empty", "empty:1:0: '[' or '{' expected near end of file"),
            ("list", "list: campaign is missing or wrong; expected a short text"),
            ("bandit", "bandit: policy exp3 does not rank; expected the result of a ranking"),
            ("fewer", "good has 2 items and fewer has 1; expected results of the same items"),
            ("other", 'good has item "Roma" where other has "Napoli"; expected results of the same items'),
            ("means", 'true class of item "Golden Wok": 1 in good, 2 in means; expected results of the same means and '
                      "alpha")):
        done = crowdveil("compare", "good", name, cwd=tmp_path)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == f"crowdveil compare: {expected}\n"
    done = crowdveil("compare", "good", "good", "--json", cwd=tmp_path)
    assert done.returncode == 0 and json.loads(done.stdout)["right"] == [1, 1]


def test_a_bandits_result_is_not_compared(tmp_path):
    """And the real thing: what `up --json` prints is what compare reads."""
    done = crowdveil("up", ROOT / "deploy/campaigns/exp3.yaml", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (tmp_path / "exp3.json").write_text(done.stdout)
    done = crowdveil("compare", "exp3.json", "exp3.json", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "crowdveil compare: exp3.json: policy exp3 does not rank; expected the result of a ranking\n"


def test_the_truth_it_reports_is_the_truth(tmp_path):
    means = {"Roma": .90, "Golden Wok": .84, "Corner Grill": .60, "Blue Fish": .55, "Station Buffet": .20}
    done = crowdveil("up", ROOT / "deploy/campaigns/first.yaml", "--json", "--seed", "3", *SAME, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    names = list(means)
    truth = [{names[arm] for arm in group} for group in true_classes(list(means.values()), .1)]
    result = json.loads(done.stdout)
    assert [set(group) for group in result["truth"]] == truth == [set(group) for group in result["classes"]]


def test_alpha_0_ranks_fully(tmp_path):
    campaign = ROOT / "deploy/campaigns/full-ranking.yaml"
    done = crowdveil("up", campaign, "--json", "--seed", "1", *SAME, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    names = re.findall(r"name: ([\w ]+), mean", campaign.read_text())
    assert result["classes"] == result["truth"] == [[name] for name in names], "one item each, the best first"
    assert result["undecided"] == [] and result["accuracy"] == 1.0
    assert "ended       complete, every item is ranked\n" in done.stderr
    rows = re.findall(r"^ +(\d+)  ([\w ]+?)  .* hit$", done.stderr, re.M)
    assert rows == [(str(place), name) for place, name in enumerate(names, 1)]


def test_alpha_0_names_those_that_tie(tmp_path):
    path = tmp_path / "tie.yaml"
    text = (ROOT / "deploy/campaigns/full-ranking.yaml").read_text()
    path.write_text(text.replace("Mill, mean: 0.33", "Mill, mean: 0.51").replace("tokens: 1000000", "tokens: 40000"))
    done = crowdveil("up", path, "--json", "--seed", "1", *SAME, cwd=tmp_path)
    assert done.returncode == 0, "a tie is no failure" + done.stderr
    result = json.loads(done.stdout)
    assert result["classes"] == [["Roma"], ["Golden Wok"], ["Corner Grill"]]
    assert set(result["undecided"]) == {"Blue Fish", "Old Mill", "Station Buffet"}
    assert result["class_ranges"] == {"Blue Fish": [4, 5], "Old Mill": [4, 5], "Station Buffet": [5, 6]}
    assert {(item["class"], item["class_last"], item["held"]) for item in result["parked"]} == {(4, 5, "boundary")}
    order = [item["name"] for item in result["best_effort"]]
    assert set(order[:2]) == {"Blue Fish", "Old Mill"} and order[2:] == ["Station Buffet"]
    assert 0 < result["best_effort"][0]["swapped"] <= 0.5 and result["best_effort"][2]["swapped"] is None
    assert result["accuracy"] == 1 and result["ended"] == "complete"
    assert result["truth"][3:] == [["Blue Fish", "Old Mill"], ["Station Buffet"]] or \
        result["truth"][3:] == [["Old Mill", "Blue Fish"], ["Station Buffet"]]
    assert done.stderr.count("3 of 6 items decided, 2 on a boundary, 1 undecided\n") == 2, "first and at the end"


def test_the_ladder_of_the_readme_completes(tmp_path):
    path = tmp_path / "ladder.yaml"
    text = (ROOT / "deploy/campaigns/first.yaml").read_text()
    ladder = re.search(r"`(items: \{ladder: .*?\})`", (ROOT / "README.md").read_text())[1]
    path.write_text(re.sub(r"^items:\n(?: .*\n)+", ladder + "\n", text, flags=re.M))
    done = crowdveil("up", path, "--json", "--seed", "3", *SAME, "--state", tmp_path / "state", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["ended"] == "complete" and result["tokens"] < 1_000_000
    assert [sorted(names) for names in result["classes"]] == [["item 1", "item 2"], ["item 4"]]
    assert [(item["name"], item["class"], item["class_last"], item["held"]) for item in result["parked"]] == \
        [("item 3", 1, 2, "boundary"), ("item 6", 2, 3, "boundary"), ("item 9", 3, 5, "boundary")]
    assert {name: result["class_ranges"][name] for name in ("item 5", "item 7", "item 8")} == \
        {"item 5": [2, 3], "item 7": [3, 4], "item 8": [3, 4]}, "one lower, if the boundary above opens a class"
    assert max(result["item_tokens"].values()) < 400_000, "no item eats the half of the limit"
    [database] = (tmp_path / "state").rglob("thirdparty.db")
    again = crowdveil("replay", database)
    assert again.returncode == 0, again.stdout + again.stderr
    with sqlite3.connect(database) as connection:
        asked = "SELECT arm, class, last_class, held FROM ranking WHERE held IS NOT NULL ORDER BY arm"
        parked = connection.execute(asked)
        found = parked.fetchall()
        assert found[:-1] == [(2, 1, 2, "boundary"), (4, 2, 3, "undecided"), (5, 2, 3, "boundary"),
                              (6, 3, 4, "undecided"), (7, 3, 4, "undecided"), (8, 3, 5, "boundary")]
        assert found[-1][:2] == (9, 4) and found[-1][3] == "undecided"


# the most that each may spend, in micro-epsilon; with two guarantees the smaller one
EXAMPLES = {name: 500_000 for name in mechanisms() + privatizers()
            if name not in ("none", "hybrid", "hybrid-printed")} | {"randomized-response": 2_000_000}


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_example_of_each_mechanism_and_privatizer_is_ranked_right(tmp_path, name):
    path = ROOT / f"deploy/campaigns/{name}.yaml"
    if name in privatizers():  # whose random answers no option seeds: a ranking is wrong with probability delta at most
        text = path.read_text()
        assert "delta: 0.1," in text
        path = tmp_path / f"{name}.yaml"
        path.write_text(text.replace("delta: 0.1,", "delta: 0.0000001,"))
    done = crowdveil("up", path, "--json", *SAME, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert [set(group) for group in result["classes"]] == [set(group) for group in result["truth"]]
    assert result["undecided"] == [] and result["accuracy"] == 1.0
    assert 0 < result["epsilon_spent_micro"] <= EXAMPLES[name]
    assert (result["epsilon_spent_micro"] == 2_000_000) == (name == "randomized-response")


def test_the_printed_hybrid_runs_only_on_an_unsafe_broker(tmp_path):
    campaign = ROOT / "deploy/campaigns/hybrid-printed.yaml"
    done = crowdveil("up", campaign, "--json", cwd=tmp_path)
    assert done.returncode == 1
    assert re.search("mechanism hybrid-printed discloses more .* a broker that runs with --unsafe-mechanisms",
                     done.stderr)
    done = crowdveil("up", campaign, "--json", "--unsafe-mechanisms", *SAME, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["accuracy"] == 1.0
    assert result["rounds"] < 4 or result["epsilon_spent_micro"] > 500_000, "it costs more than it says, and that shows"


def test_a_start_may_take_its_time(tmp_path):
    """A party that is slow to get ready is told of, and waited for."""
    copy, go = tmp_path / "bin/crowdveil", tmp_path / "go"
    copy.parent.mkdir()
    shutil.copy(PROGRAMS["crowdveil"], copy)
    slow = copy.with_name("crowdveil-thirdparty")
    slow.write_text(f"#!/bin/sh\necho reading >&2\nuntil [ -e {go} ]; do sleep .05; done\n"
                    f"exec {PROGRAMS['thirdparty']} \"$@\"\n")
    slow.chmod(0o755)
    path = ":".join(str(PROGRAMS[party].parent) for party in ("broker", "worker"))
    up = Daemon("up", [copy, "up", ROOT / "deploy/campaigns/first.yaml", "--state", tmp_path / "state", *SAME],
                tmp_path / "up.log", env=dict(os.environ, PATH=f"{path}:{os.environ['PATH']}"))
    try:
        up.wait_for(f"crowdveil up: thirdparty is not ready after 5 s, still waiting; its log "
                    f"{tmp_path / 'state/thirdparty.log'} says: reading")
        go.touch()
        assert up.wait() == 0, up.text()
        assert "accuracy" in up.text()
    finally:
        up.kill()


def test_an_interrupt_ends_it_all_and_leaves_nothing(tmp_path):
    (tmp_path / "tmp").mkdir()
    command = [PROGRAMS["crowdveil"], "up", ROOT / "deploy/campaigns/first.yaml", "--keep"]
    daemon = Daemon("up", command, tmp_path / "up.log", env=dict(os.environ, TMPDIR=str(tmp_path / "tmp")))
    try:
        daemon.wait_for("accuracy|undecided")
        with open(f"/proc/{daemon.pid}/task/{daemon.pid}/children") as children:
            programs = [int(pid) for pid in children.read().split()]
        assert len(programs) >= 2, "with --keep the daemons go on"
        daemon.signal(signal.SIGINT)
        assert daemon.wait() == 0
        assert not [pid for pid in programs if os.path.exists(f"/proc/{pid}")], "a daemon outlived its launcher"
        assert not list((tmp_path / "tmp").iterdir())
    finally:
        daemon.kill()


class LauncherPki:
    """The harness's certificates, by `crowdveil pki`."""

    def __init__(self, folder):
        self.folder = folder / "pki"
        done = crowdveil("pki", "--dir", self.folder, "ca", cwd=folder)
        assert done.returncode == 0, done.stderr

    def command(self, identity, *options):
        if identity.startswith(("broker/", "thirdparty/")):
            options = ("--host", "localhost,127.0.0.1", *options)
        return crowdveil("pki", "--dir", self.folder, "issue", identity, *options, cwd=self.folder)

    def issue(self, identity, *options):
        stem = self.folder / identity.replace("/", "-")
        if not stem.with_suffix(".pem").exists():
            done = self.command(identity, *options)
            assert done.returncode == 0, done.stderr
        return Files(str(self.folder / "ca.pem"), f"{stem}.pem", f"{stem}.key")


def test_certificates_of_crowdveil_pki_run_a_deployment(deployment, tmp_path):
    deployment.pki = LauncherPki(tmp_path)
    deployment.up()
    campaign = tmp_path / "campaign.yaml"
    campaign.write_text("campaign: test\nitems: {list: [{name: a, mean: 0.9}, {name: b, mean: 0.2}]}\n"
                        "policy: {name: ppar, alpha: 0.2}\nprivacy: {epsilon: 1}\n")
    with deployment.requester() as requester:
        number = requester.submit(spec(2, tokens=20_000,
                                       policy_params={"alpha": .2, "tokens_per_round": 500})).campaign
        worker = deployment.start_worker("gateway/1-20000", campaign)
        finished = requester.watch(number)
    assert end_name(finished.progress.end) == "complete" and classes(finished) == ({1: [0], 2: [1]}, [])
    assert worker.wait() == 0
    # and openssl, which did not make them, accepts them
    files = deployment.pki.issue("gateway/1-20000")
    verified = subprocess.run(["openssl", "verify", "-CAfile", files.ca, "-purpose", "sslclient", files.cert],
                              capture_output=True, text=True)
    assert verified.returncode == 0, verified.stderr


def test_an_expired_certificate_of_crowdveil_pki_is_refused(deployment, tmp_path):
    deployment.pki = LauncherPki(tmp_path)
    deployment.up()
    since = deployment.broker.mark()
    files = deployment.pki.issue("worker/9", "--seconds", "-60")
    with pytest.raises(Exception, match="expired|alert"):
        Connection(deployment.broker.address, context(files.ca, files.cert, files.key)).receive()
    deployment.broker.wait_for("expired", after=since)


def test_pki_refuses_what_would_let_two_vouch_for_one(tmp_path):
    pki = LauncherPki(tmp_path)
    pki.issue("gateway/10-20")
    for identity in ("worker/15", "gateway/20-30", "gateway/1-10", "gateway/12-13", "gateway/10-20"):
        before = sorted(pki.folder.iterdir())
        done = pki.command(identity)
        assert done.returncode == 1 and len(done.stderr.strip().split("\n")) == 1, done.stderr
        assert re.search("10-20|exists", done.stderr)
        assert sorted(pki.folder.iterdir()) == before
    for identity in ("worker/0", "worker/x", "gateway/9-1", "gateway/1", "king/arthur", "broker/a b"):
        assert pki.command(identity).returncode == 2
    assert pki.command("worker/9").returncode == 0
    for path in pki.folder.glob("*.key"):
        assert path.stat().st_mode & 0o777 == 0o600


def test_pki_overwrites_no_ca(tmp_path):
    pki = LauncherPki(tmp_path)
    before = {path.name: path.read_bytes() for path in pki.folder.iterdir()}
    done = crowdveil("pki", "--dir", pki.folder, "ca", cwd=tmp_path)
    assert done.returncode == 1 and re.search("exist|already", done.stderr)
    assert {path.name: path.read_bytes() for path in pki.folder.iterdir()} == before


def test_replay_of_a_third_partys_decisions_agrees(deployment, tmp_path):
    """The decisions that the third-party stored follow from the releases that it stored."""
    campaign = tmp_path / "campaign.yaml"
    campaign.write_text("campaign: test\nitems: {list: [{name: a, mean: 0.9}, {name: b, mean: 0.2}]}\n"
                        "policy: {name: ppar, alpha: 0.2}\nprivacy: {epsilon: 1}\n")
    deployment.up()
    with deployment.requester() as requester:
        number = requester.submit(spec(2, tokens=20_000,
                                       policy_params={"alpha": .2, "tokens_per_round": 500})).campaign
        deployment.start_worker("gateway/1-20000", campaign)
        requester.watch(number)
    deployment.stop()
    database = tmp_path / "thirdparty-state/thirdparty.db"
    done = crowdveil("replay", database, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    # a changed decision does not pass
    subprocess.run(["/usr/bin/python3", "-c", TAMPER, database], check=True)
    done = crowdveil("replay", database, cwd=tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr


TAMPER = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
tables = db.execute("select name from sqlite_master where type = 'table' and name like '%decision%'")
(table,), *_ = tables.fetchall()
columns = [row[1] for row in db.execute(f"pragma table_info({table})")]
column = next(name for name in columns if name in ("mean", "radius", "reference", "rank_class", "class"))
db.execute(f"update {table} set {column} = {column} + 1")
db.commit()
"""
