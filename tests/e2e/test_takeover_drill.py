# SPDX-License-Identifier: Apache-2.0
"""Brokers over PostgreSQL are set up, and what runs is changed, by the commands that docs/operations.md prints."""
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from client.requester import end_name, spec
from client.worker import Session, work
from crowdveil.wire import GRID
from harness.daemon import PROGRAMS, wait_until
from harness.printed import BROKERS, Site
from harness.shared import postgres
from harness.takeover import SharedRun

pytestmark = [pytest.mark.usefixtures("worker_program"),
              pytest.mark.skipif(not postgres.is_installed(), reason="postgresql-15 is not installed")]


@pytest.fixture
def site(deployment):
    made = Site(deployment)
    yield made
    made.close()


def one_token(deployment):
    """Of a new campaign."""
    with deployment.requester() as requester:
        requester.submit(spec(2, epsilon=.5, tokens=100_000, tokens_per_worker=1, policy_params={
            "alpha": .001, "delta": 1e-9, "tokens_per_round": 20}))
    files = deployment.pki.issue("gateway/300001-302000")
    with Session(deployment.broker.address, files.ca, files.cert, files.key, timeout=20) as session:
        verdicts, _ = work(session, [300001], lambda worker, arm, place: GRID // 2, credit=1)
    assert verdicts["accepted"] == 1


def test_set_up(deployment, site):
    deployment.start_thirdparty()
    brokers = site.brokers
    brokers.migrate()
    site.follow("Setting up", slice(-1, None))
    assert site.servers["db1"].sql("SELECT application_name, sync_state FROM pg_stat_replication") == "replica|sync"
    assert brokers.settings(0)["store_durability"] == "replicated"
    deployment.broker = brokers.running[brokers.active()]
    one_token(deployment)
    assert tokens(site.servers["db2"]) == 1, "the replica lacks the token"


def tokens(server):
    wait_until(lambda: server.sql("SELECT tokens FROM crowdveil.meta", "crowdveil") != "0", "tokens are counted")
    return int(server.sql("SELECT tokens FROM crowdveil.meta", "crowdveil"))


def campaign(deployment, site, rate=1500):
    run = SharedRun(deployment, site.brokers)
    run.start_crowd(rate)
    run.go_on()
    return run


def hand_over(site, title="Handing over", part=slice(None)):
    """From the broker that is active."""
    active = site.brokers.active()
    site.follow(title, part, swapped=active == 1)
    assert site.brokers.active() == 1 - active


def test_hand_over_and_switch_the_primary(deployment, site, undisturbed):
    run = campaign(deployment, site)
    hand_over(site)
    run.go_on()
    title = "Switching the primary"
    before = run.commits()
    site.follow(title, slice(0, 1))
    assert ("db1", "postgresql@15-main") in site.masked, "the old primary could be started again"
    site.follow(title, slice(1, 2))
    assert site.servers["db2"].commits() >= before
    site.follow(title, slice(2, None))
    site.brokers.server = site.servers["db2"]
    run.go_on()
    run.check_end(undisturbed)


@pytest.fixture
def archived(deployment, site):
    """(site, run): a campaign goes on, with a base backup from its beginning."""
    run = campaign(deployment, site)
    site.follow("Archiving")
    run.go_on(5)
    return site, run


def restore(site, moment):
    """After the brokers and the servers have been stopped, up to the start of the brokers."""
    (folder,) = (site.servers["db1"].folder / "backup").iterdir()
    site.follow("Restoring to a point in time", slice(2, -1), values={
        "2026-11-27 13:45:00+00": moment, "/srv/backup/2026-11-27": folder})


def test_a_restore_to_a_point_in_time_that_lacks_nothing(archived, undisturbed):
    site, run = archived
    title, server = "Restoring to a point in time", site.servers["db1"]
    site.follow(title, slice(0, 1), swapped=site.brokers.active() == 1)
    before, moment = run.commits(), server.sql("SELECT clock_timestamp()")
    server.sql("CREATE DATABASE mistake")
    site.follow(title, slice(1, 2))
    restore(site, moment)
    assert server.sql("SELECT count(*) FROM pg_database WHERE datname = 'mistake'") == "0"
    assert run.commits() == before
    site.follow(title, slice(-1, None))
    run.go_on()
    run.check_end(undisturbed)


def test_a_restore_to_a_point_in_time_that_lacks_commits(archived, deployment):
    """The brokers refuse it by their anchors, and a recovery accepts it: at least what they had charged is charged."""
    site, run = archived
    title, server, brokers = "Restoring to a point in time", site.servers["db1"], site.brokers
    moment, most = server.sql("SELECT clock_timestamp()"), run.commits()
    run.go_on()
    brokers.follow(most + 1)  # a standby whose anchor is as old as the restored database would begin a term
    deployment.broker = brokers.running[brokers.active()]
    with deployment.requester() as requester:
        spent = [account.spent for account in requester.ledger(run.campaign).accounts]
    site.follow(title, slice(2), swapped=brokers.active() == 1)
    restore(site, moment)
    site.follow(title, slice(-1, None))
    for daemon in brokers.running:
        daemon.wait_for("warning: standing by: .*expected a database with all that was acknowledged")
    assert server.sql("SELECT disputed FROM crowdveil.meta", "crowdveil")
    assert not any(brokers.is_active(i) for i in range(2))
    title = "Back to an earlier time"
    site.follow(title, slice(3))
    assert "1 open campaigns have ended" in site.said
    site.follow(title, slice(3, None))
    deployment.broker = brokers.running[brokers.active()]
    with deployment.requester() as requester:
        statement = requester.ledger(run.campaign)
    assert end_name(statement.end) == "recovered" and statement.floor_micro > 0
    assert all(now.spent >= then for now, then in zip(statement.accounts, spent, strict=True))
    one_token(deployment)


@pytest.fixture
def of_before(site, monkeypatch, tmp_path):
    """A site where everything is of the earlier version that tests/run before names."""
    folder = os.environ.get("CROWDVEIL_BEFORE")
    if folder is None:
        pytest.skip("no CROWDVEIL_BEFORE: tests/run before names the earlier version")
    # a copy, as both may be the same program
    program = Path(shutil.copy(Path(folder) / "broker/crowdveil-broker-postgresql", tmp_path))
    monkeypatch.setitem(PROGRAMS, "before", program)
    site.installed = dict.fromkeys(BROKERS, "before")

    def make_tables():
        done = subprocess.run([program, "--config", site.deployment.folder / "broker-0.yaml", "--migrate",
                               site.servers["db1"].uri(postgres.OWNER)], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
    site.make_tables = make_tables
    return site


@pytest.mark.before
def test_a_rolling_upgrade_and_the_way_back(deployment, of_before, undisturbed):
    """One broker after the other, then the tables, in the middle of a campaign; and one after the other back."""
    site, title = of_before, "Upgrading the brokers"
    run = campaign(deployment, site)

    def runs(program):
        run.go_on()
        for daemon in site.brokers.running:
            assert Path(os.readlink(f"/proc/{daemon.pid}/exe")) == PROGRAMS[program].resolve()
    runs("before")
    hand_over(site, title, slice(4))
    runs("broker-postgresql")
    site.follow(title, slice(4, None))
    runs("broker-postgresql")
    site.packages = "before"
    hand_over(site, title, slice(4))
    runs("before")
    run.check_end(undisturbed)
