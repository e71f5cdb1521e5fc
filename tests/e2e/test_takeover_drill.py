# SPDX-License-Identifier: Apache-2.0
"""Brokers over PostgreSQL are set up, and what runs is changed, by the commands that docs/operations.md prints."""
import pytest

from client.requester import spec
from client.worker import Session, work
from crowdveil.wire import GRID
from harness.daemon import wait_until
from harness.printed import Site
from harness.shared import postgres
from harness.takeover import SharedRun

pytestmark = [pytest.mark.usefixtures("worker_program"),
              pytest.mark.skipif(not postgres.is_installed(), reason="postgresql-15 is not installed")]


@pytest.fixture
def site_of(deployment):
    """site_of(settings): the machines, and a third-party."""
    made = []

    def make(**changes):
        made.append(Site(deployment, **changes))
        return made[0]
    yield make
    for site in made:
        site.close()


def test_set_up(deployment, site_of):
    deployment.start_thirdparty()
    site = site_of()
    brokers = site.brokers
    brokers.migrate()
    site.follow("Setting up", slice(-1, None))
    assert site.servers["db1"].sql("SELECT application_name, sync_state FROM pg_stat_replication") == "replica|sync"
    assert brokers.settings(0)["store_durability"] == "replicated"
    deployment.broker = brokers.running[brokers.active()]
    with deployment.requester() as requester:
        requester.submit(spec(2, epsilon=.5, tokens=100_000, tokens_per_worker=1, policy_params={
            "alpha": .001, "delta": 1e-9, "tokens_per_round": 20}))
    files = deployment.pki.issue("gateway/1-2000")
    with Session(deployment.broker.address, files.ca, files.cert, files.key, timeout=20) as session:
        verdicts, _ = work(session, [1], lambda worker, arm, place: GRID // 2, credit=1)
    assert verdicts["accepted"] == 1
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


def test_hand_over_and_switch_the_primary(deployment, site_of, undisturbed):
    site = site_of()
    run = campaign(deployment, site)
    hand_over(site)
    run.go_on()
    title = "Switching the primary"
    before = run.commits()
    site.follow(title, slice(0, 1))
    assert ("db1", "postgresql@15-main") in site.masked, "the old primary could be started again"
    site.follow(title, slice(1, 2))
    assert int(site.servers["db2"].sql("SELECT last_commit FROM crowdveil.meta", "crowdveil")) >= before
    site.follow(title, slice(2, None))
    site.brokers.server = site.servers["db2"]
    run.go_on()
    run.check_end(undisturbed)
