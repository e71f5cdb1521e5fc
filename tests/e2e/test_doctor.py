# SPDX-License-Identifier: Apache-2.0
"""Every fault is planted, found, and reported with advice; a healthy deployment is reported as such."""
import json
import os
import re
import shutil
import sqlite3
import time
from pathlib import Path

import pytest

from client.requester import spec
from harness.commands import crowdveil
from harness.daemon import PROGRAMS, ROOT, Daemon, write_config
from harness.pki import Pki

pytestmark = pytest.mark.usefixtures("worker_program")

CAMPAIGN = """campaign: test
items: {list: [{name: a, mean: 0.9}, {name: b, mean: 0.2}]}
policy: {name: ppar, alpha: 0.2}
privacy: {epsilon: 1}
"""


class Patient:
    """A stopped deployment that has run a campaign."""

    def __init__(self, deployment, pki):
        self.deployment, self.pki = deployment, pki
        deployment.pki = pki
        deployment.up()
        campaign = deployment.folder / "campaign.yaml"
        campaign.write_text(CAMPAIGN)
        with deployment.requester() as requester:
            number = requester.submit(spec(2, epsilon=1, tokens=20_000,
                                           policy_params={"alpha": .2, "tokens_per_round": 500})).campaign
            deployment.start_worker("gateway/1-20000", campaign)
            requester.watch(number)
        deployment.stop()
        self.broker, self.thirdparty = deployment.broker_settings(), deployment.thirdparty_settings()
        self.state, self.anchor = Path(self.broker["state"]), Path(self.broker["anchor"])
        self.other_state = Path(self.thirdparty["state"])

    def doctor(self, *options):
        folder = self.deployment.folder
        configs = [write_config(folder / "broker.yaml", self.broker),
                   write_config(folder / "thirdparty.yaml", self.thirdparty)]
        return crowdveil("doctor", *configs, *options)

    def findings(self):
        done = self.doctor("--json")
        found = [json.loads(line) for line in done.stdout.splitlines()]
        assert all(set(finding) == {"party", "level", "what", "advice"} for finding in found), done.stderr
        bad = [finding for finding in found if finding["level"] in ("warning", "wrong")]
        assert done.returncode == (1 if bad else 0), done.stdout + done.stderr
        return bad


@pytest.fixture
def patient(deployment, tmp_path_factory):
    return Patient(deployment, Pki(tmp_path_factory.mktemp("doctor") / "ca", days=90))


def days(pki, identity, count):
    """A certificate of the identity that is valid for this many days."""
    return pki.issue(identity, days=count, name=f"{identity.replace('/', '-')}-{count}-days").config()


def healthy_certificates(patient):
    pki = patient.pki
    patient.broker["tls"] = days(pki, "broker/main", 80)
    patient.thirdparty["tls"] = days(pki, "thirdparty/ranker", 80)


def change(database, sql):
    with sqlite3.connect(database) as db:
        assert db.execute(sql).rowcount > 0


def add(database, sql):
    with sqlite3.connect(database) as db:
        db.execute(sql)


def older_copy(patient):
    """The broker's state and anchor from before its campaign: the third-party knows more."""
    shutil.rmtree(patient.state)
    patient.state.mkdir(mode=0o700)
    patient.anchor.unlink()
    Path(patient.broker["seal_key"]).unlink()
    patient.deployment.start_broker({"thirdparty": "127.0.0.1:1"})
    assert patient.deployment.broker.stop() == 0


PLANTED = {
    "a database that is cut": (
        lambda p: os.truncate(p.state / "broker.db", 5000), "wrong", "broker.db", "crowdveil recover"),
    "a database that is gone": (
        lambda p: (p.state / "broker.db").unlink(), "wrong", "missing, but its anchor", "crowdveil recover"),
    "an anchor that is gone": (lambda p: p.anchor.unlink(), "wrong", "anchor .*: missing", "restore it"),
    "an anchor that is ahead": (
        lambda p: p.anchor.write_text(p.anchor.read_text().replace(" 0000000000000000", " 0000000000000009", 1)),
        "wrong", "an older copy", "crowdveil recover"),
    "a ledger that covers too little": (
        lambda p: change(p.state / "broker.db", "DELETE FROM ledger WHERE arm = 0"), "wrong",
        "table ledger, campaign 1: 1 rows; expected the 2 that were stored", "restore a copy"),
    "a release that is gone": (
        lambda p: change(p.state / "broker.db", "DELETE FROM release WHERE number = 1"), "wrong",
        "table release, campaign 1: ", "restore a copy"),
    "an account of workers that is gone": (
        lambda p: change(p.state / "broker.db", "DELETE FROM chunk WHERE campaign = 0"), "wrong",
        "table chunk, campaign 0: 0 rows; expected the ", "restore a copy"),
    "a byte of an ended campaign's noisy sum": (  # which is random: two other bytes, of which one is not there yet
        lambda p: change(p.state / "broker.db", "UPDATE release SET image = CAST(substr(image, 1, 24) || CASE"
                         " substr(image, 25, 1) WHEN x'55' THEN x'54' ELSE x'55' END || substr(image, 26) AS BLOB)"
                         " WHERE number = 2"), "wrong",
        "table release, row campaign 1, number 2: not as it was stored", "restore a copy"),
    "a trigger": (
        lambda p: add(p.state / "broker.db", "CREATE TRIGGER planted AFTER INSERT ON release BEGIN SELECT 1; END"),
        "warning", "trigger planted on release; expected nothing besides", "find out who did"),
    "a table": (
        lambda p: add(p.state / "broker.db", "CREATE TABLE planted (x)"), "warning", "broker.db: table planted;",
        "find out who did"),
    "an index": (
        lambda p: add(p.state / "broker.db", "CREATE INDEX planted ON plan (image)"), "warning",
        "index planted on plan;", "find out who did"),
    "a view of the third-party's": (
        lambda p: add(p.other_state / "thirdparty.db", "CREATE VIEW planted AS SELECT 1"), "warning",
        "thirdparty.db: view planted;", "find out who did"),
    "a table's own form": (
        lambda p: add(p.other_state / "thirdparty.db", "ALTER TABLE campaign RENAME COLUMN note TO remark"), "wrong",
        "thirdparty.db: .*remark|thirdparty.db: .*note", ""),
    "a key that others can read": (
        lambda p: Path(p.broker["seal_key"]).chmod(0o644), "wrong", "key .*0644", "mode 0600"),
    "another key": (
        lambda p: Path(p.broker["seal_key"]).write_bytes(b"x" * 31), "wrong", "31 bytes", "restore it"),
    "a folder that others can write": (lambda p: p.state.chmod(0o777), "wrong", "mode 0777", "chmod go-w"),
    "an anchor in the state folder": (
        lambda p: p.broker.update(anchor=str(shutil.copy(p.anchor, p.state / "anchor"))), "warning",
        "in the state folder", "another file system"),
    "a decision that was changed": (
        lambda p: change(p.other_state / "thirdparty.db", "UPDATE decision SET mean = mean + 1"), "wrong",
        "table decision, campaign 1: a row was changed", "restore a backup"),
    "a decision that was changed with its codes removed": (
        lambda p: (change(p.other_state / "thirdparty.db", "UPDATE decision SET mean = mean + 1"),
                   change(p.other_state / "thirdparty.db", "DELETE FROM proof")), "wrong",
        "table proof: no codes of the rows", "restore a backup"),
    "a third-party's database that is cut": (
        lambda p: os.truncate(p.other_state / "thirdparty.db", 5000), "wrong", "thirdparty.db",
        "send all their records again"),
    "a broker that has gone back": (older_copy, "wrong", "the third-party has it, the broker does not",
                                    "--thirdparty"),
    "an expired certificate": (
        lambda p: p.broker.update(tls=days(p.pki, "broker/main", -1)), "wrong", "expired on", "crowdveil pki renew"),
    "a certificate that soon expires": (
        lambda p: p.thirdparty.update(tls=days(p.pki, "thirdparty/ranker", 5)), "warning", "expires in [45] days",
        "crowdveil pki renew"),
    "a certificate of another role": (
        lambda p: p.broker.update(tls=days(p.pki, "requester/eve", 90)), "wrong", "broker|role", "crowdveil pki"),
    "a certificate of another CA": (
        lambda p: p.broker["tls"].update(ca=Pki(p.deployment.folder / "other-ca").ca), "wrong", "CA", "crowdveil pki"),
    "a key that does not fit": (
        lambda p: p.broker["tls"].update(key=p.thirdparty["tls"]["key"]), "wrong", "key", "crowdveil pki"),
    "a certificate that is no file": (
        lambda p: p.broker["tls"].update(cert="/no/such.pem"), "wrong", "/no/such.pem", "correct the path"),
    "a clock that went back": (
        lambda p: os.utime(p.state, (time.time() + 9000,) * 2), "warning", "in the future", "set the clock"),
    "noise that is seeded": (
        lambda p: p.broker.update(unsafe_noise_seeded=True), "wrong", "protects no worker", "unsafe_noise_seeded"),
    "a configuration with a word it should not have": (
        lambda p: p.broker.update(lisen="127.0.0.1:0"), "wrong", "refused", "correct it"),
}


def test_a_healthy_deployment_is_well_and_nothing_is_changed(patient):
    healthy_certificates(patient)
    done = patient.doctor()
    assert done.returncode == 0 and "agree about 1 campaigns" in done.stdout and "no problems found" in done.stdout
    assert patient.findings() == []
    before = {path: path.read_bytes() for path in (patient.state / "broker.db", patient.anchor)}
    patient.doctor()
    assert before == {path: path.read_bytes() for path in before}
    # and each planted fault is found, with its advice
    for what, (plant, level, pattern, advice) in PLANTED.items():
        keep = patient.deployment.folder / "kept"
        shutil.rmtree(keep, ignore_errors=True)
        keep.mkdir()
        for name, path in (("state", patient.state), ("other", patient.other_state)):
            shutil.copytree(path, keep / name)
        shutil.copy(patient.anchor, keep / "anchor")
        shutil.copy2(patient.broker["seal_key"], keep / "key")
        settings = json.dumps([patient.broker, patient.thirdparty])
        mtime = patient.state.stat().st_mtime
        plant(patient)
        hits = [finding for finding in patient.findings()
                if finding["level"] == level and re.search(pattern, finding["what"]) and advice in finding["advice"]]
        assert hits, f"{what}: {patient.findings()}"
        assert ("is outdated" in str(patient.findings())) == (plant == older_copy), "recovering costs campaigns"
        patient.broker, patient.thirdparty = json.loads(settings)
        for name, path in (("state", patient.state), ("other", patient.other_state)):
            shutil.rmtree(path)
            shutil.copytree(keep / name, path)
            path.chmod(0o700)
        os.utime(patient.state, (mtime, mtime))
        shutil.copy(keep / "anchor", patient.anchor)
        shutil.copy2(keep / "key", patient.broker["seal_key"])
    assert patient.findings() == [], "what was planted is gone again"


def test_a_folder_of_up_is_examined_live_and_stopped(tmp_path):
    state = tmp_path / "state"
    command = [PROGRAMS["crowdveil"], "up", ROOT / "deploy/campaigns/first.yaml", "--keep", "--state", state]
    daemon = Daemon("up", command, tmp_path / "up.log")
    try:
        daemon.wait_for("accuracy|undecided")
        done = crowdveil("doctor", state)
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stdout.count("running and healthy") == 2 and "no problems found" in done.stdout
        assert daemon.stop() == 0
    finally:
        daemon.kill()
    done = crowdveil("doctor", state)
    assert done.returncode == 0 and "agree about 1 campaigns" in done.stdout, done.stdout + done.stderr
    assert "gateway-1.yaml" in done.stdout


def test_usage_errors_are_one_line(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "odd.yaml").write_text("colour: blue\n")
    for word, text in ((tmp_path / "nowhere", "No such file"), (tmp_path / "empty", "no broker.yaml"),
                       (tmp_path / "odd.yaml", "not a party's configuration")):
        done = crowdveil("doctor", word)
        assert done.returncode == 2 and text in done.stderr and len(done.stderr.strip().split("\n")) == 1, done.stderr
    assert crowdveil("doctor").returncode == 2
