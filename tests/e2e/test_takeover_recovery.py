# SPDX-License-Identifier: Apache-2.0
"""The database that brokers share is put back to an earlier time, or lost: it is refused, and recovered safely."""
import json
import subprocess

import pytest

from client.requester import end_name, spec
from client.worker import Session, work
from crowdveil.wire import GRID
from harness.admin import get
from harness.commands import crowdveil
from harness.daemon import PROGRAMS, wait_until, write_config
from harness.shared import Brokers, postgres
from support.address import ANY_PORT, HOST

pytestmark = pytest.mark.skipif(not postgres.is_installed(), reason="postgresql-15 is not installed")

ARMS, TAU, EPSILON = 2, 20, .5
LIMITS = {"limits": {"worker_epsilon": 2.5, "release_tokens": 1}}
# Both arms have the same mean: a campaign that ends before it is stopped is an error, of a probability below delta.
POLICY = {"alpha": .001, "delta": 1e-9, "tokens_per_round": TAU}


@pytest.fixture
def server():
    """One of this test's own: it is replaced by a copy of before."""
    made = postgres.Server().start()
    made.add_store()
    try:
        yield made
    finally:
        made.close()


class Stage:
    """Two brokers; the test gives the tokens."""

    def __init__(self, deployment, server):
        self.deployment, self.server = deployment, server
        self.brokers = Brokers(deployment, server, 2, **LIMITS)
        deployment.start_thirdparty({"listen": ANY_PORT})
        self.brokers.start_all()
        self.campaign = self.submit("one")

    def active(self):
        active = self.brokers.active()
        wait_until(lambda: get(self.brokers.socket(active), "/health")[0] == 200, "the third-party is connected")
        return active

    def requester(self):
        self.deployment.broker = self.brokers.running[self.active()]
        return self.deployment.requester()

    def submit(self, name, tokens_per_worker=2):
        with self.requester() as requester:
            return requester.submit(spec(ARMS, name=name, epsilon=EPSILON, tokens=100_000,
                                         tokens_per_worker=tokens_per_worker, policy_params=POLICY)).campaign

    def give(self, workers, tokens_per_worker=1):
        files = self.deployment.pki.issue("gateway/1-2000")
        address = self.brokers.addresses[self.active()]
        with Session(address, files.ca, files.cert, files.key, timeout=20) as session:
            return work(session, workers, lambda worker, arm, place: GRID // 2, credit=64,
                        tokens_per_worker=tokens_per_worker)

    def statement(self, campaign):
        with self.requester() as requester:
            return requester.ledger(campaign)

    def commits_seen(self):
        """Every anchor is at the last commit or one behind it."""
        self.brokers.follow(self.server.commits() - 1)

    def stop(self):
        for daemon in self.brokers.running:
            if daemon is not None and daemon.process.poll() is None:
                assert daemon.stop() == 0, daemon.text()

    def anchor(self, i):
        return self.brokers.anchor(i)

    def config(self, i):
        return write_config(self.deployment.folder / f"now-{i}.yaml", self.brokers.settings(i))

    def run(self, i, *options):
        return subprocess.run([PROGRAMS["broker-postgresql"], "--config", self.config(i), *map(str, options)],
                              capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)


@pytest.fixture
def stage(deployment, server):
    return Stage(deployment, server)


def put_back(stage, backup):
    """The backup is the server from now on, at the same address."""
    stage.server.stop("immediate")
    stage.server.data = backup
    stage.server.start()


def base_backup(stage):
    """A copy of the running server, which is not started as a replica."""
    server = stage.server
    copy = server.folder / "backup"
    postgres.run(postgres.as_user([postgres.PROGRAMS / "pg_basebackup", "-D", copy, "-X", "stream", "-c", "fast", "-d",
                                   f"host={server.host} port={server.port} user=postgres sslmode=require "
                                   f"passfile={server.folder / 'own-passwords'}", "-w"]))
    return copy


def some_progress(stage):
    """Forty workers, one release of each arm; then a backup; then two more rounds and a campaign, which are lost."""
    stage.give(range(1, 41))
    backup = base_backup(stage)
    verdicts, _ = stage.give(range(101, 181))
    assert verdicts["accepted"] == 80
    assert stage.submit("lost", tokens_per_worker=1) == 2
    stage.commits_seen()
    spent = stage.statement(stage.campaign)
    stage.stop()
    put_back(stage, backup)
    return spent


def is_refused(stage):
    daemon = stage.brokers.start(0)
    daemon.wait_for("warning: standing by: .*the database is older than the anchor")
    assert get(stage.brokers.socket(0), "/active")[0] == 503
    assert daemon.stop() == 0


def test_a_restored_server_is_refused_and_recovered(stage):
    spent = some_progress(stage)
    is_refused(stage)
    assert "the database is older than the anchor of" in stage.run(0, "--examine").stdout
    before = stage.anchor(1).read_text()
    # the anchor of a broker that is left out would stop the next one: that of the other one is given
    done = crowdveil("recover", stage.config(0), "--anchor", stage.anchor(1))
    assert done.returncode == 0, done.stderr
    assert "every worker is charged epsilon 1.5 of" in done.stdout and "1 open campaigns have ended" in done.stdout
    again = crowdveil("recover", stage.config(1), "--anchor", stage.anchor(0))
    assert again.returncode == 0 and "nothing to recover" in again.stdout, again.stderr + again.stdout
    assert stage.server.sql("SELECT count(*) FROM crowdveil.recovery", "crowdveil") == "1"
    stage.anchor(1).write_text(before)  # as if the second command had run on another machine
    stage.brokers.start(1)  # its anchor is taken in, and rewritten
    assert stage.brokers.active() == 1
    stage.brokers.start(0)
    assert stage.anchor(1).read_text() != before
    statement = stage.statement(stage.campaign)
    assert end_name(statement.end) == "recovered"
    assert [account.spent for account in statement.accounts] == [500_000] * ARMS
    assert all(now.spent >= then.spent for now, then in zip(statement.accounts, spent.accounts))
    assert statement.floor_micro == 1_500_000
    # new campaigns have numbers, and so noise, that were never used; no worker exceeds the lifetime epsilon of 2.5
    assert stage.submit("two", tokens_per_worker=3) == 3
    verdicts, accepted = stage.give([101, 5, 900], tokens_per_worker=3)
    assert verdicts["accepted"] == len(accepted)
    assert sorted(worker for worker, _, _ in accepted) == [5, 5, 101, 101, 900, 900]
    stage.stop()
    assert "disputed" not in stage.run(0, "--examine").stdout


@pytest.mark.long
def test_a_ticket_of_a_later_term_gives_another_broker_time(stage):
    """A broker whose own anchor is as old as the backup begins a term; the first ticket of the lost time ends it."""
    stage.give(range(1, 41))
    active = stage.active()
    stage.commits_seen()
    backup = base_backup(stage)
    older = stage.anchor(1 - active).read_text()
    with stage.requester() as requester:
        requester.cancel(stage.campaign)
    assert stage.submit("lost") == 2
    files = stage.deployment.pki.issue("gateway/1-2000")
    with Session(stage.brokers.addresses[active], files.ca, files.cert, files.key, timeout=20) as session:
        session.arrive([900], credit=8)
        ticket = session.until("assign").ticket
    stage.stop()
    put_back(stage, backup)
    stage.anchor(1 - active).write_text(older)
    daemon = stage.brokers.start(1 - active)
    assert stage.brokers.active() == 1 - active
    with Session(stage.brokers.addresses[1 - active], files.ca, files.cert, files.key, timeout=20) as session:
        session.token(ticket, [GRID])
        daemon.wait_for("error: the term is over: a worker has a ticket that only a later term can have made")
    daemon.wait_for("warning: resting for 30 s: another broker may have the term")
    assert stage.server.sql("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'") == "0"
    assert daemon.process.poll() is None
    daemon.process.terminate()
    assert daemon.process.wait(10) != 0


def test_recovery_needs_a_store_without_an_active_broker(stage):
    for word in (["--recover"], ["--recover", "--lost"]):
        done = stage.run(0, *word)
        assert done.returncode == 1 and "a broker is active; expected it to be stopped first" in done.stdout
    done = stage.run(0, "--examine")
    assert "a broker is active" in done.stdout and "wrong\tdatabase" not in done.stdout
    stage.stop()


def test_a_lost_server_is_recovered_from_the_anchors(stage):
    stage.give(range(1, 41))
    stage.commits_seen()
    stage.stop()
    stage.server.sql("DROP DATABASE crowdveil")
    stage.server.add_store()
    stage.brokers.migrate()
    anchors = [stage.anchor(i).read_text() for i in range(2)]
    done = stage.run(0, "--recover", "--recover-anchor", stage.anchor(1))
    assert done.returncode == 1 and "or its loss accepted with --lost" in done.stdout, done.stdout
    assert [stage.anchor(i).read_text() for i in range(2)] == anchors
    done = stage.run(0, "--recover", "--lost", "--recover-anchor", stage.anchor(1))
    assert done.returncode == 0 and "every worker is charged epsilon 1 of" in done.stdout, done.stdout
    stage.brokers.start(1)
    assert stage.brokers.active() == 1
    assert stage.submit("two", tokens_per_worker=4) == 2
    _, accepted = stage.give([5], tokens_per_worker=4)
    assert len(accepted) == 3  # of its 2.5 one is charged
    stage.stop()


def test_a_base_backup_is_named_in_place_of_a_copy(stage):
    done = crowdveil("backup", stage.config(stage.active()), "--to", stage.deployment.folder / "copy")
    assert done.returncode == 1 and "expected a base backup of the server" in done.stderr, done.stderr
    assert len(done.stderr.strip().split("\n")) == 1


def test_the_command_makes_the_tables(stage):
    words = ["store", "migrate", stage.config(0), "--owner", stage.server.uri(postgres.OWNER)]
    done = crowdveil(*words)
    assert done.returncode == 1 and "a broker is active" in done.stderr, done.stderr
    stage.stop()
    done = crowdveil(*words)
    assert done.returncode == 0 and "tables of version 1 for role crowdveil; before: 1" in done.stdout, done.stderr
    assert {"message": done.stdout.strip()} == json.loads(crowdveil(*words, "--json").stdout)


def test_an_anchor_that_is_none(stage, tmp_path):
    stage.stop()
    for path, line in ((tmp_path / "missing", "no anchor; expected the anchor of a broker of this store"),
                       (stage.config(0), "not an anchor of a broker")):
        done = stage.run(0, "--recover", "--recover-anchor", path)
        assert done.returncode == 1 and line in done.stdout, done.stdout


def test_the_master_key_is_replaced(stage):
    active = stage.active()
    live = crowdveil("seal", "rotate", stage.config(active))
    assert live.returncode == 0, live.stderr
    stage.stop()
    for words in (["rotate"], ["status"]):
        done = crowdveil("seal", *words, stage.config(0))
        assert done.returncode == 0, done.stderr
    assert f"PostgreSQL at {HOST}" in done.stdout and "stored keys" in done.stdout
    stage.brokers.start(0)
    assert stage.brokers.active() == 0
    stage.stop()
