# SPDX-License-Identifier: Apache-2.0
"""`crowdveil pki make`: all certificates of a deployment with one command that may be run again at any time."""
import re
import shutil
import signal
from pathlib import Path

import pytest

from client.requester import end_name
from harness.campaign import Run
from harness.commands import crowdveil
from harness.made import FILES, Made
from harness.pki import Files, der, fingerprint, served

@pytest.fixture
def made(deployment, tmp_path):
    pki = Made(tmp_path)
    deployment.pki = pki
    return pki


def test_its_files_run_a_deployment(deployment, made):
    (made.folder / "ca").mkdir()  # a volume that is mounted, and empty
    (made.folder / "broker").mkdir()
    assert made.made() == {identity: f"made in {folder}" for identity, folder in made.of.items()}
    for folder in made.of.values():
        assert sorted(path.name for path in folder.iterdir()) == sorted(FILES)
        assert [(folder / name).stat().st_mode & 0o777 for name in FILES] == [0o644, 0o644, 0o644, 0o600]
    before = made.bytes()
    again = made.made()
    assert set(again) == set(made.of)
    assert all(re.fullmatch(r"there already, until \d{4}-\d\d-\d\d", text) for text in again.values()), again
    assert made.bytes() == before, "nothing has changed"
    run = Run(deployment)
    person = run.start_worker("worker/400001", exit_when_done=False)
    person.wait_for("connected as worker/400001")
    finished, _ = run.finish()
    assert end_name(finished.progress.end) == "complete"
    crowdveil_doctor = crowdveil("doctor", deployment.folder / "broker.yaml")
    assert "identity broker/main: key, CA and role match" in crowdveil_doctor.stdout


def test_a_key_of_a_ca_that_others_may_know_is_refused(tmp_path):
    key = tmp_path / "ca/ca.key"
    assert crowdveil("pki", "ca", "--dir", key.parent).returncode == 0
    issue = ("pki", "issue", "worker/1", "--dir", key.parent, "--out", tmp_path / "one")
    key.chmod(0o644)
    done = crowdveil(*issue)
    assert done.returncode != 0 and f"{key} is open to others than its owner; expected mode 0600" in done.stderr
    key.chmod(0o600)
    assert crowdveil(*issue).returncode == 0


def test_a_running_broker_takes_the_renewed_pair(deployment, made):
    made.made()
    run = Run(deployment)
    workers = run.start_workers()
    run.when(1000)
    address, alice = deployment.broker.address, made.issue("requester/alice")
    old = der(made.issue("broker/main"))
    assert served(address, alice, "broker") == old
    assert set(made.made("--renew").values()) == {"renewed"}
    assert der(made.issue("broker/main")) != old
    for daemon in (deployment.broker, deployment.thirdparty, *workers):
        since = daemon.mark()
        daemon.signal(signal.SIGHUP)
        daemon.wait_for("certificates reloaded", after=since)
    assert served(address, made.issue("requester/alice"), "broker") == der(made.issue("broker/main"))
    finished, _ = run.finish()
    assert end_name(finished.progress.end) == "complete"


def test_a_renewal_that_was_interrupted_is_repaired(deployment, made):
    """The new key has its name, the new certificate has not: a daemon keeps its old pair, and the next run repairs
    the files."""
    made.made()
    deployment.up()
    folder, alice = made.of["broker/main"], made.issue("requester/alice")
    old = der(made.issue("broker/main"))
    shutil.copy(made.of["thirdparty/ranker"] / "key.pem", folder / "key.pem")
    deployment.broker.signal(signal.SIGHUP)
    deployment.broker.wait_for("keeping the old certificates: .*the key does not belong to")
    assert served(deployment.broker.address, alice, "broker") == old
    said = made.made()
    assert said.pop("broker/main").startswith("renewed with a new key")
    assert all(text.startswith("there already") for text in said.values())
    since = deployment.broker.mark()
    deployment.broker.signal(signal.SIGHUP)
    deployment.broker.wait_for("certificates reloaded", after=since)
    assert served(deployment.broker.address, alice, "broker") == der(made.issue("broker/main")) != old


def test_what_has_expired_is_renewed(made):
    made.made()
    word = f"worker/400001={made.of['worker/400001']}"
    assert made.made("--renew", "--seconds", "-60", words=[word]) == {"worker/400001": "renewed"}
    said = made.made()
    assert said.pop("worker/400001") == "renewed" and all(text.startswith("there already") for text in said.values())
    assert made.made(words=[word])["worker/400001"].startswith("there already")


@pytest.mark.parametrize("word, status, says", [
    ("broker/x", 2, r'"broker/x": expected IDENTITY\[@HOST\[,HOST\]...\]=FOLDER'),
    ("king/arthur={}/x", 2, "unknown role, expected requester"),
    ("gateway/9-1={}/x", 2, "expected gateway/FIRST-LAST"),
    ("broker/x={}/x", 2, "broker/x: no host; expected each host name or IP address that others dial"),
    ("broker/x@a_b={}/x", 2, "host 'a_b' is neither an IP address nor a DNS name"),
    ("broker/x@={}/x", 2, "host '' is neither"),
    ("broker/x@h={}/no/x", 2, "no/x: parent folder: No such file or directory; expected an existing folder"),
    ("broker/x@h={}/ca", 2, "is the folder of the CA; expected another"),
    ("broker/x@h={}/broker/../new", 2, "is also the folder of requester/new; expected one folder for each party"),
    ("requester/new={}/x", 2, "requester/new is given twice; expected each party once"),
    ("broker/x@h={}/broker", 1, "cert.pem: the certificate is of broker/main; expected one of broker/x, or no file"),
    ("worker/7={}/x", 1, "worker/7: overlaps gateway/1-100000, which has a certificate already"),
])
def test_a_wrong_word_changes_nothing(made, word, status, says):
    made.made()
    before = made.bytes()
    new = f"requester/new={made.folder / 'new'}"
    done = made.make("--renew", words=[new, word.format(made.folder)])
    assert done.returncode == status and done.stdout == ""
    assert re.fullmatch(f"crowdveil pki: .*{says}.*\n", done.stderr), done.stderr
    assert made.bytes() == before and not (made.folder / "new").exists()


def test_another_ca_is_named(made):
    made.made()
    before = made.bytes()
    shutil.rmtree(made.folder / "ca")
    done = made.make()
    assert done.returncode == 1 and re.fullmatch("crowdveil pki: .*cert.pem: issued by another CA .*\n", done.stderr)
    assert not (made.folder / "ca").exists()
    assert {path: data for path, data in before.items() if path.parent.name != "ca"} == made.bytes()


def test_how_many_parties(tmp_path):
    words = [f"worker/{number}={tmp_path}/{number}" for number in range(1, 258)]
    done = crowdveil("pki", "make", "--dir", tmp_path / "ca", *words)
    assert done.returncode == 2 and "unexpected argument" in done.stderr and not list(Path(tmp_path).iterdir())
    done = crowdveil("pki", "make", "--dir", tmp_path / "ca", *words[:256])
    assert done.returncode == 0 and len(done.stdout.splitlines()) == 256
    assert crowdveil("pki", "make", "--dir", tmp_path / "ca2").returncode == 2


def test_a_fingerprint_stays_until_a_new_key_is_asked_for(tmp_path):
    words = ["pki", "make", "--dir", tmp_path / "ca", f"cobroker/second@localhost={tmp_path}/co"]
    cert = tmp_path / "co/cert.pem"

    def key():
        return fingerprint(Files("", cert, ""))
    assert crowdveil(*words).returncode == 0
    first = crowdveil("pki", "fingerprint", cert).stdout.strip()
    assert first == key()
    kept = crowdveil(*words, "--renew")
    assert kept.returncode == 0 and kept.stderr == "" and key() == first
    done = crowdveil(*words, "--renew", "--new-key")
    second = key()
    assert second != first and done.returncode == 0
    ends = "its open campaigns with two brokers end; .*\n"
    says = f"cobroker/second: renewed with a new key, fingerprint {second}: {ends}"
    assert re.fullmatch(says, done.stdout) and done.stderr == "", done.stdout
    one = ["pki", "renew", "--dir", tmp_path / "ca", "--out", tmp_path / "co", "cobroker/second"]
    assert crowdveil(*one).stderr == "" and key() == second
    done = crowdveil(*one, "--new-key")
    says = f"crowdveil pki: cobroker/second has a new key, fingerprint {key()}: {ends}"
    assert re.fullmatch(says, done.stderr) and done.returncode == 0, done.stderr


def test_a_co_broker_needs_a_host(tmp_path):
    done = crowdveil("pki", "make", "--dir", tmp_path / "ca", f"cobroker/second={tmp_path}/co")
    assert done.returncode == 2 and not (tmp_path / "co").exists()
    assert "cobroker/second: no host; expected each host name or IP address that others dial" in done.stderr


@pytest.mark.parametrize("words, status, says", [
    (["fingerprint"], 2, 'missing arguments of "fingerprint"; usage: crowdveil pki fingerprint CERT.PEM'),
    (["fingerprint", "--dir", "ca", "x.pem"], 2, "fingerprint does not take --dir"),
    (["fingerprint", "/nowhere.pem"], 1, "/nowhere.pem: No such file; expected a certificate"),
    (["fingerprint", "/etc/passwd"], 1, "/etc/passwd: not a certificate in PEM form"),
    (["list"], 2, r"missing option --dir \(folder of the CA\); usage: crowdveil pki list"),
    (["issue", "--dir", "ca", "--new-key", "worker/1"], 2, "issue does not take --new-key"),
])
def test_wrong_words_of_fingerprints(words, status, says):
    done = crowdveil("pki", *words)
    assert done.returncode == status and done.stdout == ""
    assert re.fullmatch(f"crowdveil pki: {says}.*\n", done.stderr), done.stderr
