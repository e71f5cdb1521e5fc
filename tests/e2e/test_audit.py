# SPDX-License-Identifier: Apache-2.0
"""The audit log: who did what, on disk before it has any effect, and a command that sees what was changed in it."""
import hashlib
import json
import signal
import subprocess
import threading

import pytest

from client.requester import spec
from crowdveil import Refused
from harness import machine
from harness.commands import crowdveil
from harness.daemon import wait_until
from harness.volume import volume  # noqa: F401  (a fixture)

FEW = {"alpha": .1}
LIMITS = {"submits": 100_000, "kept": 100_000, "campaigns": 1000}  # more than the fastest machine submits here
FORGED = '","outcome":"done"}{"event":"forged","name":"'


def lines_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def serial(files):
    out = subprocess.run(["openssl", "x509", "-in", files.cert, "-noout", "-serial"], check=True, capture_output=True,
                         text=True).stdout
    return out.strip().removeprefix("serial=").lstrip("0")


@pytest.fixture
def log(deployment, tmp_path):
    """A broker with an audit log, which is in a folder of its own: the daemon may write there."""
    (tmp_path / "log").mkdir()
    path = tmp_path / "log/audit"
    deployment.up(broker={"audit": str(path), "limits": LIMITS})
    return path


def restart(deployment, log, changes=None):
    deployment.start_broker({"audit": str(log), "limits": LIMITS} | (changes or {}))


def of(log, event):
    return [line for line in lines_of(log) if line["event"] == event]


def pick(line, *names):
    return tuple(line.get(name) for name in names)


def test_each_act_of_a_requester_has_its_line_with_the_certificate(deployment, log):
    with deployment.requester() as alice, deployment.requester("bob") as bob:
        alice.submit(spec(3, name="tea", epsilon=.5, tokens=1000000, policy_params=FEW))
        for act in (lambda: alice.submit(spec(2, name=FORGED, epsilon=100, policy_params=FEW)),
                    lambda: bob.cancel(1), lambda: bob.purge(1), lambda: alice.purge(1)):
            with pytest.raises(Refused):
                act()
        alice.cancel(1)
        alice.cancel(1)  # confirmed again, but it changes nothing
        deployment.thirdparty.wait_for("campaign 1 is closed")
        alice.watch(1)
        alice.purge(1)
    mine, theirs = (serial(deployment.pki.issue(f"requester/{name}")) for name in ("alice", "bob"))
    submit, forged = of(log, "submit")
    assert pick(submit, "actor", "serial", "campaign", "name", "outcome") == (
        "requester/alice", mine, 1, "tea", "done")
    assert pick(submit, "arms", "tokens", "epsilon_micro", "policy", "mechanism") == (
        3, 1000000, 500000, "ppar", "hybrid")
    assert pick(forged, "actor", "serial", "name", "outcome") == (
        "requester/alice", mine, FORGED, "refused")
    assert "epsilon" in forged["reason"]
    assert [pick(line, "actor", "serial", "campaign", "outcome", "reason") for line in of(log, "cancel")] == [
        ("requester/bob", theirs, 1, "refused", "no campaign 1 of bob"),
        ("requester/alice", mine, 1, "done", None)]
    assert [pick(line, "actor", "campaign", "outcome") for line in of(log, "purge")] == [
        ("requester/bob", 1, "refused"), ("requester/alice", 1, "refused"), ("requester/alice", 1, "done")]
    assert [pick(line, "actor", "campaign", "name", "requester", "end", "tokens") for line in of(log, "end")] == [
        ("crowdveil-broker", 1, "tea", "alice", "cancelled", 0)]
    assert crowdveil("audit", log).returncode == 0


def test_each_act_of_the_operator_has_its_line(deployment, log, tmp_path):
    """Start, reload with a revocation and a new certificate, reload that fails, stop by a signal."""
    files, new = deployment.pki.issue("broker/main"), deployment.pki.issue("broker/main", name="broker-renewed")
    before, after = serial(files), serial(new)
    denied = tmp_path / "denied"
    denied.write_text("AB12\n")
    deployment.broker.stop()
    own = {"tls": files.config() | {"denied": str(denied)}}
    restart(deployment, log, own)
    kept = {name: open(getattr(files, name)).read() for name in ("cert", "key")}
    try:
        denied.write_text("CD34\nEF56\n")
        for name in kept:
            open(getattr(files, name), "w").write(open(getattr(new, name)).read())
        deployment.broker.signal(signal.SIGHUP)
        deployment.broker.wait_for("certificates reloaded")
        denied.write_text("not a number\n")
        deployment.broker.signal(signal.SIGHUP)
        deployment.broker.wait_for("keeping the old certificates")
    finally:
        for name, text in kept.items():
            open(getattr(files, name), "w").write(text)
    assert deployment.broker.stop() == 0
    starts = of(log, "start")
    assert [pick(line, "actor", "identity", "identity_serial") for line in starts] == [
        ("operator", "broker/main", before)] * 2
    done, refused = of(log, "certificates")
    assert pick(done, "serial_before", "serial_after", "denied_added", "denied_removed", "outcome") == (
        before, after, 2, 1, "done")
    assert refused["outcome"] == "refused" and "denied:1: expected one serial number" in refused["reason"]
    assert [line["reason"] for line in of(log, "stop")] == ["signal 15"] * 2
    assert crowdveil("audit", log).returncode == 0


def test_who_turns_the_log_up_or_down_is_recorded(deployment, log):
    deployment.broker.signal(signal.SIGUSR1)
    deployment.broker.wait_for("log level: debug")
    deployment.broker.signal(signal.SIGUSR1)
    deployment.broker.wait_for("log level: info")
    assert deployment.broker.stop() == 0
    assert [pick(line, "actor", "from", "to") for line in of(log, "log_level")] == [
        ("operator", "info", "debug"), ("operator", "debug", "info")]


def test_a_copy_of_the_database_is_recorded(deployment, log, tmp_path):
    copy = tmp_path / "copy"
    copy.mkdir()
    done = crowdveil("backup", tmp_path / "broker.yaml", "--to", copy / "broker.db")
    assert done.returncode == 0, done.stderr
    assert [pick(line, "actor", "outcome") for line in of(log, "backup")] == [("operator", "done")]


def test_third_party_and_worker_have_logs_of_their_own(deployment, worker_program, tmp_path):
    for name in ("third", "work"):
        (tmp_path / name).mkdir()
    (tmp_path / "campaign.yaml").write_text("campaign: test\nitems: {list: [{name: a, mean: 0.9}]}\n"
                                            "policy: {name: ppar, alpha: 0.2}\nprivacy: {epsilon: 1}\n")
    deployment.up(thirdparty={"audit": str(tmp_path / "third/audit")})
    worker = deployment.start_worker("gateway/1-10", tmp_path / "campaign.yaml",
                                     {"audit": str(tmp_path / "work/audit"), "exit_when_done": False})
    worker.wait_for("connected as")
    assert worker.stop() == 0 and deployment.thirdparty.stop() == 0
    for name, identity in (("third", "thirdparty/ranker"), ("work", "gateway/1-10")):
        assert [line["event"] for line in lines_of(tmp_path / name / "audit")] == ["start", "stop"]
        assert lines_of(tmp_path / name / "audit")[0]["identity"] == identity


def test_no_accepted_campaign_is_without_its_line_when_the_broker_is_killed(deployment, log):
    """Killed again and again while requests are answered: what a requester was told is on disk."""
    accepted, stop = [], threading.Event()
    for _ in range(6):
        stop.clear()

        def ask():
            try:
                with deployment.requester() as requester:
                    while not stop.is_set():
                        campaign = requester.submit(spec(2, policy_params=FEW)).campaign
                        accepted.append(campaign)
                        requester.cancel(campaign)
            except OSError:
                pass
        count, asking = len(accepted), threading.Thread(target=ask)
        asking.start()
        wait_until(lambda: len(accepted) > count + 5, "campaigns")
        deployment.broker.kill()
        stop.set()
        asking.join(30)
        restart(deployment, log)
    done = {line["campaign"] for line in of(log, "submit") if line["outcome"] == "done"}
    assert len(accepted) > 30 and set(accepted) <= done
    assert crowdveil("audit", log).returncode == 0


def test_a_full_disk_under_the_audit_log_stops_the_broker(deployment, volume, tmp_path):
    """An act that cannot be recorded is not done: the requester gets no answer, the campaign does not exist."""
    disk = volume(tmp_path / "log", mib=1)
    log = tmp_path / "log/audit"
    deployment.up(broker={"audit": str(log)})
    with deployment.requester() as requester:
        requester.submit(spec(2, policy_params=FEW))
        disk.fill()
        with pytest.raises(OSError):
            for _ in range(15):  # what is left of the page
                requester.submit(spec(2, policy_params=FEW))
        told = len(of_whole(log))
    assert deployment.broker.wait() == 1
    line, = [line for line in deployment.broker.text().splitlines() if "cannot store" in line]
    assert f"audit: {log}: cannot write: No space left" in line and "nothing that was acknowledged is lost" in line
    disk.make_room()
    restart(deployment, log)
    with deployment.requester() as requester:
        assert len(requester.status().campaigns) <= told
        assert requester.submit(spec(2, policy_params=FEW)).campaign > 1
    done = crowdveil("audit", log)
    assert done.returncode == 0, done.stderr


def of_whole(log):
    """The submits of whole lines."""
    return [line for line in log.read_text(errors="replace").splitlines() if '"submit"' in line and line.endswith("}")]


def test_after_a_rotation_the_new_file_goes_on(deployment, log):
    """By SIGHUP, inside the sandbox, as logrotate does it."""
    old = log.with_name("audit.1")
    with deployment.requester() as requester:
        requester.submit(spec(2, policy_params=FEW))
        log.rename(old)
        deployment.broker.signal(signal.SIGHUP)
        deployment.broker.wait_for("certificates reloaded")
        wait_until(log.exists, "a new file")
        requester.submit(spec(2, policy_params=FEW))
    assert [line["campaign"] for line in of(old, "submit")] == [1]
    assert [line["campaign"] for line in of(log, "submit")] == [2]
    assert log.stat().st_mode & 0o777 == 0o600
    done = crowdveil("audit", old, log)
    assert done.returncode == 0 and "in one chain" in done.stdout, done.stderr
    done = crowdveil("audit", log, old)
    assert done.returncode == 1 and "the files are not in order" in done.stderr
    deployment.broker.stop()
    restart(deployment, log)
    assert crowdveil("audit", old, log).returncode == 0


def test_what_is_changed_in_a_log_is_seen(deployment, log, tmp_path):
    with deployment.requester() as requester:
        for _ in range(4):
            requester.submit(spec(2, policy_params=FEW))
    deployment.broker.stop()
    lines = log.read_text().splitlines(keepends=True)
    done = crowdveil("audit", log)
    last = hashlib.sha256(lines[-1].rstrip("\n").encode()).hexdigest()
    assert done.stdout == (f"{len(lines)} lines, number 1 to {len(lines)}, in one chain; "
                           f"the last has the SHA-256 {last}\n")
    copy = tmp_path / "copy"

    def check(changed, status, words, *options):
        copy.write_text("".join(changed))
        done = crowdveil("audit", copy, *options)
        assert done.returncode == status and words in done.stdout + done.stderr, done
        assert len(done.stderr.splitlines()) == (status != 0), done.stderr
    check(lines[:2] + lines[3:], 1, f"{copy}:3: number 4 after 2; lines between them were removed")
    check(lines[:2] + [lines[2].replace("alice", "bob")] + lines[3:], 1,
          f"{copy}:4: the line before this one was changed")
    check([lines[1], lines[0]], 1, f"{copy}:2: number 1 after 2; the files are not in order")
    check(["listen: 127.0.0.1:0\n"], 1, f"{copy}:1: not a line of an audit log")
    check([], 1, f"{copy}: no lines")
    # the end is what a chain cannot vouch for: a digest that was kept elsewhere does
    check(lines[:-1], 0, "in one chain")
    check(lines[:-1], 1, "the log was cut or replaced", "--has", last)
    check(lines, 0, "in one chain", "--has", last)
    check(lines, 2, "expected 64 hexadecimal digits", "--has", "last")
    check(lines[:-1] + [lines[-1][:40]], 0, f"{copy}:{len(lines)}: not complete")
    assert crowdveil("audit", tmp_path / "nothing").returncode == 2


@pytest.mark.parametrize("path,words", [
    ("nowhere/audit", "nowhere/audit: cannot open: No such file or directory"),
    ("broker.yaml", "broker.yaml: its last line is not of an audit log"),
    ("broker-state", "broker-state: cannot open: Is a directory"),
])
def test_a_wrong_path_is_one_line_and_leaves_nothing(deployment, tmp_path, path, words):
    broker = deployment.launch_broker({"audit": str(tmp_path / path)})
    assert broker.wait() in (1, 2)
    line, = broker.text().splitlines()
    assert words in line
    assert not (tmp_path / "broker-state/broker.db").exists()


@machine.needs(machine.landlock)
def test_the_sandbox_names_the_folder_of_the_log(deployment, log):
    assert f", appends in {log.parent}" in deployment.broker.wait_for("sandbox: ").string
