# SPDX-License-Identifier: Apache-2.0
"""A broker's database is rolled back, damaged or lost: that is detected, and recovered from safely."""
import json
import shutil
import signal
import sqlite3
import subprocess
from pathlib import Path

import pytest

from client.requester import end_name, spec
from client.worker import Session, work
from crowdveil import Refused
from crowdveil.wire import GRID
from harness.commands import crowdveil
from harness.daemon import PROGRAMS, Daemon, write_config
from harness.deployment import merged
from support.address import ANY_PORT

ARMS, TAU, EPSILON = 2, 20, .5
LIMITS = {"limits": {"worker_epsilon": 1.5, "release_tokens": 1}}
# Both arms have the same mean: a campaign that ends before it is stopped is an error, of a probability below delta.
POLICY = {"alpha": .001, "delta": 1e-9, "tokens_per_round": TAU}


class Stage:
    """Tokens are given by the test, which knows each worker's tokens before and after the copy."""

    def __init__(self, deployment):
        self.deployment = deployment
        self.state, self.anchor = Path(deployment.state("broker-state")), Path(deployment.anchor)
        deployment.up(broker=LIMITS)
        self.campaign = self.submit()

    def submit(self, name="one", tokens_per_worker=2):
        with self.deployment.requester() as requester:
            return requester.submit(spec(ARMS, name=name, epsilon=EPSILON, tokens=100_000,
                                         tokens_per_worker=tokens_per_worker, policy_params=POLICY)).campaign

    def give(self, workers, tokens_per_worker=1):
        """(verdicts, accepted) of these workers, each giving this many tokens."""
        files = self.deployment.pki.issue("gateway/1-2000")
        with Session(self.deployment.broker.address, files.ca, files.cert, files.key, timeout=20) as session:
            return work(session, workers, lambda worker, arm, place: GRID // 2, credit=64,
                        tokens_per_worker=tokens_per_worker)

    def stop(self):
        assert self.deployment.broker.stop() == 0 and self.deployment.thirdparty.stop() == 0

    def copy(self, name, anchor=False):
        """A copy of the stopped broker's state."""
        folder = self.deployment.folder / name
        shutil.copytree(self.state, folder)
        if anchor:
            shutil.copy(self.anchor, folder / "anchor")

    def put_back(self, name, anchor=False):
        shutil.rmtree(self.state)
        shutil.copytree(self.deployment.folder / name, self.state)
        (self.state / "anchor").unlink(missing_ok=True)
        if anchor:
            shutil.copy(self.deployment.folder / name / "anchor", self.anchor)

    def restart(self):
        listen = {"listen": ANY_PORT}
        self.deployment.start_thirdparty(listen)
        self.deployment.start_broker(LIMITS)

    def run(self, program, *options):
        config = write_config(self.deployment.folder / f"{program}-now.yaml",
                              merged(getattr(self.deployment, f"{program}_settings")(),
                                     LIMITS if program == "broker" else {}))
        return subprocess.run([PROGRAMS[program], "--config", config, *map(str, options)], capture_output=True,
                              text=True, timeout=60, stdin=subprocess.DEVNULL)

    def config(self, program):
        self.run(program, "--check-config")
        return self.deployment.folder / f"{program}-now.yaml"

    def recover(self, *options, thirdparty=False):
        words = ["--thirdparty", self.config("thirdparty")] if thirdparty else []
        return crowdveil("recover", self.config("broker"), *words, *options)

    def refused(self):
        """The broker's reason for refusing to start."""
        done = self.run("broker")
        assert done.returncode == 1 and len(done.stderr.strip().split("\n")) == 1, done.stderr
        return done.stderr

    def statement(self, campaign):
        with self.deployment.requester() as requester:
            return requester.ledger(campaign)

    def floor(self):
        with self.deployment.requester() as requester:
            return requester.ledger(self.campaign).floor_micro


@pytest.fixture
def stage(deployment):
    return Stage(deployment)


def some_progress(stage):
    """Forty workers, one release of each arm; then a copy is made; then two more rounds, which are lost."""
    stage.give(range(1, 41))
    stage.stop()
    stage.copy("older", anchor=True)
    stage.restart()
    verdicts, _ = stage.give(range(101, 181))
    assert verdicts["accepted"] == 80
    stage.stop()


def test_an_older_copy_is_refused_and_recovered(stage):
    some_progress(stage)
    stage.put_back("older")
    assert "expected the database not to be older than its anchor" in stage.refused()
    done = stage.recover()
    assert done.returncode == 0, done.stderr
    assert "every worker is charged epsilon 1" in done.stdout and "1 open campaigns have ended" in done.stdout
    stage.restart()
    # the campaign has ended, every arm is charged all that it could have released
    statement = stage.statement(stage.campaign)
    assert end_name(statement.end) == "recovered"
    assert [account.spent for account in statement.accounts] == [500_000] * ARMS
    assert all(0 < account.lost <= 500_000 for account in statement.accounts)
    assert statement.floor_micro == 1_000_000
    # the third-party has closed it, and keeps its records
    stage.deployment.thirdparty.wait_for("campaign 1 is closed")
    # new campaigns run; no worker exceeds the lifetime epsilon of 1.5, whenever it gave
    second = stage.submit("two", tokens_per_worker=3)
    verdicts, accepted = stage.give([101, 5, 900], tokens_per_worker=3)
    given = [worker for worker, _, _ in accepted]
    # 101 can have given both of its tokens, 5 had given one before and can have given the other
    assert verdicts["accepted"] == len(given) and sorted(given) == [5, 101, 900]
    assert second == 2


def test_tickets_of_before_are_void(stage):
    stage.stop()
    stage.copy("older")
    stage.restart()
    files = stage.deployment.pki.issue("gateway/1-2000")
    with Session(stage.deployment.broker.address, files.ca, files.cert, files.key) as session:
        session.arrive([7], credit=8)
        ticket = session.until("assign").ticket
    stage.give([8])
    stage.stop()
    stage.put_back("older")
    assert stage.recover().returncode == 0
    stage.restart()
    with Session(stage.deployment.broker.address, files.ca, files.cert, files.key) as session:
        session.token(ticket, [GRID])
        ack = session.ack(ticket)
        assert session.verdict(ack) == "refused" and "not issued by this broker" in ack.why


def test_the_third_partys_numbers_charge_what_an_older_anchor_does_not_know(stage):
    some_progress(stage)
    stage.put_back("older", anchor=True)
    assert stage.recover().stdout.count("nothing to recover") == 1, "database and anchor agree, both are old"
    done = stage.recover(thirdparty=True)
    assert done.returncode == 0, done.stderr
    assert "every worker is charged epsilon 1 of" in done.stdout
    stage.restart()
    statement = stage.statement(stage.campaign)
    assert [account.spent for account in statement.accounts] == [500_000] * ARMS
    assert end_name(statement.end) == "recovered" and statement.floor_micro == 1_000_000
    # a repetition with the same numbers charges nothing more
    stage.stop()
    assert "nothing to recover" in stage.recover(thirdparty=True).stdout
    stage.restart()
    assert stage.floor() == 1_000_000


def test_a_campaign_that_froze_is_charged_afterwards(stage):
    """Both copies are old, and the broker runs: the third-party is ahead."""
    some_progress(stage)
    stage.put_back("older", anchor=True)
    since = 0
    stage.restart()
    stage.deployment.broker.wait_for("campaign 1 .* is frozen", after=since)
    assert stage.floor() == 0
    stage.stop()
    done = stage.recover(thirdparty=True)
    assert done.returncode == 0 and "every worker is charged epsilon 1 of" in done.stdout, done.stderr
    stage.restart()
    statement = stage.statement(stage.campaign)
    assert end_name(statement.end) == "recovered"
    assert [account.spent for account in statement.accounts] == [500_000] * ARMS


@pytest.mark.parametrize("thirdparty", [False, True])
def test_campaigns_that_are_forgotten_are_closed_and_charged(stage, thirdparty):
    """Campaign 2 was made after the copy: its number is not used again. It may have cost a worker 0.5, unless the
    anchor shows that no token was given."""
    stage.stop()
    stage.copy("older", anchor=True)
    stage.restart()
    assert stage.submit("two", tokens_per_worker=1) == 2
    stage.deployment.thirdparty.wait_for(r"campaign 2 \(two\) is open")
    stage.stop()
    stage.put_back("older", anchor=thirdparty)
    done = stage.recover(thirdparty=thirdparty)
    assert done.returncode == 0 and "1 are forgotten" in done.stdout, done.stdout + done.stderr
    stage.restart()
    stage.deployment.thirdparty.wait_for("campaign 2 is closed")
    assert stage.submit("three") == 3
    assert stage.floor() >= 500_000 if thirdparty else stage.floor() == 0


def test_a_few_lost_tokens_charge_no_more_than_they_can_have_cost(stage):
    """Ten tokens, in a campaign that allows a worker sixty thousand."""
    with stage.deployment.requester() as requester:
        requester.cancel(stage.campaign)
        requester.watch(stage.campaign)
        stage.campaign = requester.submit(spec(ARMS, name="many", epsilon=.01, tokens=1_000_000,
                                               tokens_per_worker=60_000, policy_params=POLICY)).campaign
    stage.give(range(1, 5))
    stage.stop()
    stage.copy("older")
    stage.restart()
    verdicts, _ = stage.give(range(101, 111))
    assert verdicts["accepted"] == 10
    stage.stop()
    stage.put_back("older")
    assert "every worker is charged epsilon 0.1 of its 1.5" in stage.recover().stdout
    stage.restart()
    assert stage.floor() == 100_000


def damage(path, how):
    data = bytearray(path.read_bytes())
    if how == "truncated":
        path.write_bytes(data[:len(data) // 2])
    elif how == "flipped":
        for at in range(4096, len(data), 512):
            data[at] ^= 0x40
        path.write_bytes(data)
    else:
        path.write_bytes(b"")


@pytest.mark.parametrize("how", ["truncated", "flipped", "empty", "gone"])
def test_a_damaged_database_needs_a_copy_or_a_confirmation(stage, how):
    stage.give(range(1, 41))
    stage.stop()
    database = stage.state / "broker.db"
    if how == "gone":
        database.unlink()
    else:
        damage(database, how)
    assert "broker.db" in stage.refused() or how == "gone"
    done = stage.recover()
    assert done.returncode == 1 and "--lost" in done.stderr and len(done.stderr.strip().split("\n")) == 1, done.stderr
    done = stage.recover("--lost")
    assert done.returncode == 0, done.stderr
    # the accounts are gone: every worker is charged all that any campaign could cost
    assert "every worker is charged epsilon 1 of its 1.5" in done.stdout
    stage.restart()
    with stage.deployment.requester() as requester:
        with pytest.raises(Refused, match="no campaign 1"):
            requester.ledger(1)
    stage.campaign = stage.submit("again")
    assert stage.campaign == 2 and stage.floor() == 1_000_000
    verdicts, _ = stage.give([1, 1500], tokens_per_worker=2)
    assert verdicts["accepted"] == 2, "half an epsilon is left to each"


def test_the_wrong_key_and_a_lost_key(stage):
    stage.give(range(1, 41))
    stage.stop()
    key = stage.deployment.folder / "seal.key"
    right = key.read_bytes()
    key.write_text(f"crowdveil seal keys 1\n1 0 {'0' * 64}\n")
    done = stage.recover()
    assert done.returncode == 1 and "key" in done.stderr and (stage.state / "broker.db").exists()
    key.unlink()
    done = stage.recover()
    assert done.returncode == 1 and "seal.key" in done.stderr
    key.write_bytes(right)
    key.chmod(0o600)
    assert "nothing to recover" in stage.recover().stdout
    key.unlink()
    done = stage.recover("--lost")
    assert done.returncode == 0, done.stderr
    assert list(stage.state.glob("broker.db.damaged-*")), "what cannot be read is kept"
    stage.restart()
    assert stage.submit("new key") == 2


def test_a_missing_and_a_foreign_anchor(stage):
    stage.give(range(1, 41))
    stage.stop()
    kept = stage.anchor.read_text()
    stage.anchor.unlink()
    assert "its anchor" in stage.refused()
    stage.anchor.unlink(missing_ok=True)
    done = stage.recover()
    assert done.returncode == 1 and "missing anchor" in done.stderr
    stage.anchor.write_text(kept.replace(kept.split()[2], "00" * 16))
    assert "another database" in stage.refused()
    assert stage.recover().returncode == 1
    stage.anchor.write_text("nonsense\n")
    assert stage.recover().returncode == 1
    done = stage.recover("--lost")
    assert done.returncode == 0, done.stderr
    stage.restart()
    assert stage.floor() == 1_000_000
    assert end_name(stage.statement(stage.campaign).end) == "recovered"


def test_a_recovery_is_in_the_audit_log_before_it_is_in_the_database(stage, tmp_path):
    """What it charges, once; and not at all where the log cannot be written, which leaves the database as it was."""
    some_progress(stage)
    stage.put_back("older")
    (tmp_path / "log").mkdir()
    log = tmp_path / "log/audit"
    config = stage.config("broker")
    text = config.read_text()

    def recover(audit):
        config.write_text(json.dumps(json.loads(text) | {"audit": str(audit)}))
        return crowdveil("recover", config)
    done = recover(tmp_path / "nowhere/audit")
    assert done.returncode == 1 and "nowhere/audit: cannot open" in done.stdout + done.stderr
    assert "older" in stage.refused() or "anchor" in stage.refused()
    for _ in range(2):
        assert recover(log).returncode == 0
    line, = [json.loads(line) for line in log.read_text().splitlines()]
    assert (line["event"], line["actor"], line["outcome"]) == ("recover", "operator", "done")
    assert line["campaigns_ended"] == 1 and line["every_worker_micro"] == 1_000_000
    assert line["anchored"] > line["commit"]
    assert crowdveil("audit", log).returncode == 0


def test_recover_refuses_a_running_broker(stage):
    stage.give(range(1, 41))
    before = stage.floor()
    done = stage.recover("--lost")
    assert done.returncode == 1 and "in use by a running program" in done.stderr
    verdicts, _ = stage.give(range(41, 61))
    assert verdicts["accepted"] == 20 and stage.floor() == before


@pytest.mark.long
def test_recover_twice_charges_once(stage):
    some_progress(stage)
    stage.put_back("older")
    assert stage.recover().returncode == 0
    done = stage.recover()
    assert done.returncode == 0 and "nothing to recover" in done.stdout
    stage.restart()
    assert stage.floor() == 1_000_000


@pytest.mark.long
def test_the_copy_from_before_is_behind_again_after_a_recovery(stage):
    some_progress(stage)
    stage.put_back("older")
    assert stage.recover().returncode == 0
    stage.put_back("older")
    assert "older than its anchor" in stage.refused()
    assert stage.recover().returncode == 0
    stage.restart()
    assert stage.floor() >= 1_000_000
    assert [a.spent for a in stage.statement(stage.campaign).accounts] == [500_000] * ARMS


@pytest.mark.long
def test_a_recovery_that_is_killed_can_be_repeated(stage):
    """Killed at its first write, after the commit, before the anchor: the end is the same each time."""
    some_progress(stage)
    config = stage.config("broker")
    for point in (1, 2, 3, 4, 6, 8, 12, 16, 24):
        stage.put_back("older")
        command = ["strace", "-f", "-qq", "-e", "trace=pwrite64,fdatasync,fsync",
                   "-e", f"inject=pwrite64,fdatasync,fsync:signal=KILL:when={point}",
                   PROGRAMS["broker"], "--config", config, "--recover"]
        if shutil.which("strace") is None:
            daemon = Daemon("recover", command[7:], stage.deployment.folder / "recover.log")
            daemon.signal(signal.SIGKILL)
            daemon.wait()
        else:
            subprocess.run([str(part) for part in command], capture_output=True, timeout=60)
        done = stage.recover()
        assert done.returncode == 0, done.stderr
        assert stage.run("broker", "--examine").returncode == 0
    stage.restart()
    assert stage.floor() >= 1_000_000


def test_a_replay_agrees_after_a_recovery(stage):
    some_progress(stage)
    stage.put_back("older")
    assert stage.recover().returncode == 0
    stage.restart()
    stage.deployment.thirdparty.wait_for("campaign 1 is closed")
    stage.stop()
    database = Path(stage.deployment.state("thirdparty-state")) / "thirdparty.db"
    done = crowdveil("replay", database)
    assert done.returncode == 0, done.stderr
    with sqlite3.connect(database) as db:
        assert db.execute("SELECT closed FROM campaign").fetchall() == [(1,)]
