# SPDX-License-Identifier: Apache-2.0
"""
kill -9 at any moment: the end is the same, no acknowledged token is lost or counted twice, no noise is drawn twice, and
both databases pass an independent audit.
"""
import ctypes
import os
import random
import select
import sqlite3
import tempfile
from pathlib import Path

import pytest

from harness import crashes
from harness.admin import metric
from harness.audit import findings
from harness.campaign import GATEWAYS, Run
from harness.daemon import PROGRAMS, Daemon, wait_until
from harness.exact import ExactRun

pytestmark = pytest.mark.usefixtures("worker_program")


class Everybody:
    """All parties of a Run, each of which can be killed and started again."""

    def __init__(self, run, rate):
        self.run, self.rate, self.serial = run, rate, 0
        self.gateways = {identity: self.gateway(identity) for identity in GATEWAYS}
        self.watcher = self.watch()

    def gateway(self, identity):
        return self.run.start_worker(identity, arrival_rate=self.rate, exit_when_done=False,
                                     broker=self.run.settings["broker"]["listen"])

    def watch(self):
        return self.run.deployment.watch(self.run.deployment.pki.issue("requester/alice"), self.run.campaign,
                                         self.run.settings["broker"]["listen"])

    def kill(self, party):
        if party in ("broker", "thirdparty"):
            self.run.kill(party)
        elif party == "watcher":
            self.watcher.kill()
            crashes.killed("requester")
        else:
            self.gateways[party].kill()
            crashes.killed("gateway")

    def start(self, party):
        if party in ("broker", "thirdparty"):
            self.run.start(party)
        elif party == "watcher":
            self.watcher = self.watch()
        else:
            self.gateways[party] = self.gateway(party)

    def suffer(self, chance, kills):
        """Kills also during a start, and several at once; a killed party stays down for a moment."""
        names = ["broker", "thirdparty", "broker", "thirdparty", *GATEWAYS, "watcher"]
        done = 0
        while done < kills:
            self.run.deployment.clock.sleep(chance.choice([0, .02, .08, .2, .4]) * chance.random())
            victims = set(chance.sample(names, chance.choice([1, 1, 1, 2, 3])))
            for party in sorted(victims):
                self.kill(party)
            for party in chance.sample(sorted(victims), len(victims)):
                self.run.deployment.clock.sleep(chance.choice([0, 0, .05]) * chance.random())
                self.start(party)
            done += len(victims)
        for party in ("broker", "thirdparty"):
            getattr(self.run.deployment, party).address


def suffer_and_compare(deployment, undisturbed, seed, kills):
    run = Run(deployment, tokens_per_worker=20)
    everybody = Everybody(run, rate=1500)
    everybody.suffer(random.Random(seed), kills)
    assert run.when(0).releases < len(undisturbed[1]), "it was over before all kills were done"
    run.finish()
    assert everybody.watcher.wait() == 0, "a watcher that comes back sees the end"
    run.check(undisturbed)
    for gateway in everybody.gateways.values():
        assert gateway.stop() == 0


def test_every_party_is_killed_at_random_moments(deployment, undisturbed):
    suffer_and_compare(deployment, undisturbed, seed=20260, kills=12)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(8))
def test_every_party_is_killed_at_random_moments_many_times(deployment, undisturbed, seed):
    suffer_and_compare(deployment, undisturbed, seed, kills=60)


@pytest.mark.long
def test_what_was_acknowledged_is_what_was_summed(deployment):
    run, chance = ExactRun(deployment), random.Random(3)
    for tokens in sorted(chance.randrange(100, 9000) for _ in range(14)):
        run.when(tokens)
        deployment.clock.sleep(.02 * chance.random())
        program = chance.choice(["broker", "broker", "thirdparty"])
        run.kill(program)
        run.start(program).address
    run.check()
    assert run.crowd.connections > 3, "the kills hardly disturbed the crowd"


TAMPERINGS = {
    "a release is gone": ("broker", "DELETE FROM release WHERE number = 3"),
    "the ledger says less": (
        "broker", "UPDATE ledger SET image = CAST(substr(image, 1, 4) || zeroblob(16) AS BLOB) WHERE arm = 1"),
    "a release has another sum": ("thirdparty", "UPDATE release SET noisy_sum = noisy_sum + 1 WHERE number = 4"),
    "a release has another mean": ("thirdparty", "UPDATE release SET mean = mean + 0.001 WHERE number = 4"),
    "a plan wants more": ("thirdparty", "UPDATE plan_want SET tokens = tokens + 1 WHERE plan = 1 AND position = 0"),
    "the noise is another": ("thirdparty", "UPDATE release_noise SET scale = 4 WHERE release = 2"),
    "a decision is gone": ("thirdparty", "DELETE FROM decision WHERE number = 1"),
    "a decision is another": ("thirdparty", "UPDATE decision SET class = class + 1 WHERE number = 2"),
    "a standing is another": ("thirdparty", "UPDATE standing SET class = 1 WHERE arm = 0"),
    "a row without its campaign": ("thirdparty", "INSERT INTO item VALUES (99, 1, 'x')"),
    "a hash is another": ("thirdparty", "UPDATE campaign SET releases_hash = zeroblob(32)"),
    "the broker's commits are others": ("broker", "UPDATE meta SET last_commit = last_commit + 1"),
    "a sealed row is left": ("broker", "INSERT INTO journal VALUES (1, 1, 1, x'00')"),
}


def test_the_audit_notices(deployment):
    """Each of these changes to a good pair of databases is found; without a change nothing is."""
    run = Run(deployment)
    run.start_workers(arrival_rate=0)
    finished, export = run.finish()
    deployment.stop()
    assert list(findings(deployment, run.campaign, export, finished)) == []
    for what, (party, sql) in TAMPERINGS.items():
        path = f"{deployment.state(f'{party}-state')}/{party}.db"
        with open(path, "rb") as file:
            good = file.read()
        db = sqlite3.connect(path)
        assert db.execute(sql).rowcount > 0, what
        db.commit()
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        db.close()
        assert list(findings(deployment, run.campaign, export, finished)), f"not found: {what}"
        with open(path, "wb") as file:
            file.write(good)
    assert list(findings(deployment, run.campaign, export, finished)) == []


@pytest.fixture
def short_path():
    """For sockets, whose paths have to be short."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def test_a_killed_launcher_leaves_no_process_behind(tmp_path, short_path, orphans):
    """Its parties end by themselves, in order, and close their databases."""
    state = short_path / "state"
    campaign = tmp_path / "campaign.yaml"
    campaign.write_text("campaign: test\nitems: {list: [{name: a, mean: 0.9}, {name: b, mean: 0.899}]}\n"
                        "policy: {name: ppar, alpha: 0.0001}\nprivacy: {epsilon: 1}\n"
                        "limits: {tokens: 50000000}\n")
    launcher = Daemon("up", [PROGRAMS["crowdveil"], "up", campaign, "--state", state], tmp_path / "up.log")
    try:
        launcher.wait_for("tokens")
        wait_until(lambda: metric(state / "broker", "broker", 'crowdveil_connections{role="gateway"}') == 2, "gateways")
        with open(f"/proc/{launcher.pid}/task/{launcher.pid}/children") as children:
            parties = {int(pid): name_of(pid) for pid in children.read().split()}
        assert len(parties) >= 4
        launcher.kill()
        crashes.killed("launcher")
        assert {name: orphans(pid) for pid, name in parties.items()} == dict.fromkeys(parties.values(), 0)
    finally:
        launcher.kill()
    for party in ("broker", "thirdparty"):
        assert (state / party / f"{party}.db").exists()
        assert not (state / party / f"{party}.db-wal").exists(), f"{party} did not close its database"


def name_of(pid):
    with open(f"/proc/{pid}/comm") as comm:
        return f"{comm.read().strip()} {pid}"


@pytest.fixture
def orphans():
    """orphans(pid) waits for the child of a dead parent; returns its exit status, negative for a signal."""
    prctl, set_child_subreaper = ctypes.CDLL(None).prctl, 36
    assert prctl(set_child_subreaper, 1, 0, 0, 0) == 0

    def wait(pid, timeout=15):
        pidfd = os.pidfd_open(pid)
        ready, _, _ = select.select([pidfd], [], [], timeout)
        os.close(pidfd)
        assert ready, f"{name_of(pid)} lives on {timeout} s after its launcher"
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    yield wait
    prctl(set_child_subreaper, 0, 0, 0, 0)
