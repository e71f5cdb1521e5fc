# SPDX-License-Identifier: Apache-2.0
"""Databases of earlier versions: every program opens them, gives the same answers, and goes on."""
import json
import shutil
import sqlite3

import pytest

from client.requester import end_name
from client.worker import GRID, Session, work
from harness.commands import crowdveil
from harness.daemon import ROOT, write_config
from harness.lab import lab

VERSIONS = sorted(path.name for path in (ROOT / "tests/data").iterdir() if path.is_dir())
LIMITS = {"limits": {"worker_epsilon": 1000, "release_tokens": 1}}
TRANSIENT = ("elapsed_ms", "thirdparty_connected")


@pytest.fixture(params=VERSIONS)
def before(request):
    return ROOT / "tests/data" / request.param


def said(before):
    return json.loads((before / "said.json").read_text())


def put(before, name, folder, mode=0o600):
    """A writable copy."""
    shutil.copyfile(before / name, folder / name)
    (folder / name).chmod(mode)
    return folder / name


def holds(old, new, where):
    """Every earlier answer is still given; there may be more."""
    if isinstance(old, dict):
        for key, value in old.items():
            if key not in TRANSIENT:
                assert key in new, f"{where}.{key} is not said any more"
                holds(value, new[key], f"{where}.{key}")
    elif isinstance(old, list):
        assert len(old) == len(new), where
        for number, pair in enumerate(zip(old, new)):
            holds(*pair, f"{where}[{number}]")
    else:
        assert old == new, where


def test_daemons_say_the_same_and_go_on(deployment, before):
    from google.protobuf.json_format import MessageToDict

    def check(old, message, where):
        holds(old, MessageToDict(message, preserving_proto_field_name=True), where)
    put(before, "broker.db", deployment.folder / deployment.state("broker-state"))
    put(before, "thirdparty.db", deployment.folder / deployment.state("thirdparty-state"))
    for name in ("anchor", "seal.key"):
        put(before, name, deployment.folder)
    deployment.up(broker=LIMITS)
    told = said(before)
    for daemon in (deployment.broker, deployment.thirdparty):
        assert daemon.text().count("added codes to") == (before.name == "0.1.0"), daemon.text()
    with deployment.requester() as requester:
        for kind, campaign in told["campaigns"].items():
            number = campaign["campaign"]
            spec, then = requester.describe(number)
            check(campaign["spec"], spec, f"{kind}.spec")
            check(campaign["then"], then, f"{kind}.then")
            for old, part in zip(campaign["export"], requester.export(number), strict=True):
                check(old, part, f"{kind}.export")
            check(campaign["ledger"], requester.ledger(number), f"{kind}.ledger")
        running = told["campaigns"]["running"]["campaign"]
        had = int(told["campaigns"]["running"]["then"]["progress"]["releases"])
        files = deployment.pki.issue("gateway/1-2000")
        with Session(deployment.broker.address, files.ca, files.cert, files.key) as session:
            verdicts, _ = work(session, range(201, 261), lambda worker, arm, place: GRID // 2)
        assert verdicts == {"accepted": 60}
        seen = requester.watch(running, until=lambda progress: progress.tokens == 44 + 60)
        assert seen.DESCRIPTOR.name == "Progress" and seen.releases > had
        requester.cancel(running)
        assert end_name(requester.watch(running).progress.end) == "cancelled"
    assert set(deployment.stop().values()) == {0}
    replay = crowdveil("replay", deployment.folder / "thirdparty-state/thirdparty.db")
    assert replay.returncode == 0, replay.stdout + replay.stderr
    # once; afterwards rows without codes are refused
    deployment.up(broker=LIMITS)
    assert set(deployment.stop().values()) == {0}
    assert "added codes" not in deployment.broker.text() + deployment.thirdparty.text()
    put(before, "broker.db", deployment.folder / "broker-state")
    broker = deployment.launch_broker(LIMITS)
    assert broker.wait() == 1
    if before.name == "0.1.0":
        assert "schema version 1; expected 2, the last known version" in broker.text()
        done = crowdveil("recover", deployment.folder / "broker.yaml")
        assert done.returncode == 1 and "the last known version" in done.stdout + done.stderr
    else:
        assert "expected the database not to be older than its anchor" in broker.text()


def test_a_wrong_key_changes_nothing(deployment, before):
    """Rows without codes do not get any under a key that opens none of them: the right key fits afterwards."""
    put(before, "broker.db", deployment.folder / deployment.state("broker-state"))
    for name in ("anchor", "seal.key"):
        put(before, name, deployment.folder)
    right = (deployment.folder / "seal.key").read_bytes()
    (deployment.folder / "seal.key").write_bytes(bytes(32))
    broker = deployment.launch_broker(LIMITS)
    assert broker.wait() == 1 and "check seal_key first" in broker.text()
    deployment.daemons.remove(broker)
    (deployment.folder / "seal.key").write_bytes(right)
    deployment.up(broker=LIMITS)
    assert set(deployment.stop().values()) == {0}


def test_replay_says_the_same(before, tmp_path):
    done = crowdveil("replay", put(before, "thirdparty.db", tmp_path))
    assert done.returncode == 0 and done.stdout.splitlines() == said(before)["replay"]


def test_doctor_finds_nothing_wrong(deployment, before):
    """In databases that no current daemon has opened."""
    put(before, "broker.db", deployment.folder / deployment.state("broker-state"))
    put(before, "thirdparty.db", deployment.folder / deployment.state("thirdparty-state"))
    for name in ("anchor", "seal.key"):
        put(before, name, deployment.folder)
    configs = [write_config(deployment.folder / f"{name}.yaml", settings) for name, settings in
               (("broker", deployment.broker_settings()), ("thirdparty", deployment.thirdparty_settings()))]
    done = crowdveil("doctor", *configs, "--json")
    assert done.stdout, done.stderr
    assert [line for line in map(json.loads, done.stdout.splitlines()) if line["level"] == "wrong"] == []


def test_what_a_worker_has_given_stays(deployment, before):
    """Each worker has given all that it may: the daemon starts, knows that, and gives no more."""
    told = {int(worker): scores for worker, scores in said(before)["given"].items()}
    state = deployment.folder / deployment.state("worker-state")
    put(before, "given.db", state)
    deployment.up(broker=LIMITS)
    path = deployment.folder / "campaign.yaml"
    path.write_text("campaign: test\nitems: {list: [{name: a, mean: .5}]}\npolicy: {name: ppar, alpha: 0.3}\n"
                    "privacy: {epsilon: 1}\n")
    worker = deployment.start_worker("gateway/1001-2000", path, {"accept": {"tokens": 1}, "state": str(state)})
    assert worker.wait() == 0, worker.text()
    with sqlite3.connect(state / "given.db") as db:
        assert dict(db.execute("SELECT worker, scores FROM given")) == told and min(told.values()) > 0
    db.close()


def test_results_are_read_merged_and_gone_on_with(before, tmp_path):
    results = put(before, "results.db", tmp_path)
    told = said(before)["trials"]

    def trials(path):
        done = lab("export", path, "--trials", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()
    assert trials(results) == told
    done = lab("merge", "merged.db", results, cwd=tmp_path)
    assert done.returncode == 0 and trials("merged.db") == told, done.stderr
    (tmp_path / "out").mkdir()
    shutil.copyfile(results, tmp_path / "out/small.db")
    shutil.copyfile(before / "experiment.yaml", tmp_path / "experiment.yaml")
    done = lab("run", "experiment.yaml", "--out", "out", "--resume", "--replicates", "7", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert set(told) < set(trials("out/small.db"))
