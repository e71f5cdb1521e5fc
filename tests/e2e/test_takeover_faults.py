# SPDX-License-Identifier: Apache-2.0
"""A campaign over a database whose disk is full or whose clock jumps: the same end as undisturbed."""
import time
from pathlib import Path

import pytest

from harness.daemon import wait_until
from harness.proxy import Relay
from harness.shared import Brokers, postgres
from harness.takeover import SharedRun
from harness.volume import Volume

pytestmark = [pytest.mark.usefixtures("worker_program"),
              pytest.mark.skipif(not postgres.is_installed(), reason="postgresql-15 is not installed")]

FAKETIME = Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1")
LINES = {"tables": "No space left on device",
         "log": "the server has ended the session without a word; its log says why|because of crash of another"}


@pytest.fixture
def server():
    made = postgres.Server(in_memory=True)
    try:
        yield made
    finally:
        made.close()


@pytest.fixture
def disk(server):
    made = Volume(server.folder / "disk", 160)
    server.own(made.folder)
    try:
        yield made
    finally:
        server.stop("immediate")
        made.close()


@pytest.mark.parametrize("what", ["tables", pytest.param("log", marks=pytest.mark.long)])
def test_a_full_disk_under_the_database(deployment, server, disk, undisturbed, what):
    if what == "log":
        server.wal = disk.folder / "wal"
    else:
        server.data = disk.folder / "data"
    server.start(min_wal_size="32MB" if what == "tables" else "2MB").add_store()
    run = SharedRun(deployment, Brokers(deployment, server, 1))
    run.start_crowd(1500)
    run.go_on()
    disk.fill()
    broker = run.brokers.running[0]
    assert broker.wait() == 1
    broker.wait_for(f"error: .*({LINES[what]})")
    disk.make_room()
    server.stop("immediate")
    server.start()
    run.go_on()
    run.check_end(undisturbed)


@pytest.mark.skipif(not FAKETIME.exists(), reason="libfaketime is not installed")
def test_a_clock_of_the_database_that_jumps(deployment, server, undisturbed):
    clock = server.write("clock", "+0\n")
    server.prefix = ["env", f"LD_PRELOAD={FAKETIME}", f"FAKETIME_TIMESTAMP_FILE={clock}", "FAKETIME_NO_CACHE=1",
                     "FAKETIME_DONT_FAKE_MONOTONIC=1"]
    server.start().add_store()
    run = SharedRun(deployment, Brokers(deployment, server, 2))
    run.start_crowd(1500)
    for seconds in (3600, 0, -3600, 0):
        clock.write_text(f"{seconds:+d}\n")
        wait_until(lambda: abs(float(server.sql("SELECT extract(epoch FROM clock_timestamp())")) - time.time() -
                               seconds) < 60, "the clock has jumped")
        run.go_on()
    run.check_end(undisturbed)


@pytest.mark.long
def test_a_replica_is_promoted_while_the_old_primary_still_runs(deployment, server, undisturbed):
    """Nothing more is acknowledged until the old one is fenced off; then the brokers go on with the new one."""
    server.start().add_store()
    replica = postgres.Server(replica_of=server, in_memory=True)
    further = postgres.Server(replica_of=replica, in_memory=True)
    try:
        replica.start()
        server.reload(synchronous_standby_names="replica")
        run = SharedRun(deployment, Brokers(deployment, server, 2, durability="replicated", servers=[server, replica]))
        run.start_crowd(1500)
        run.go_on()
        active = run.brokers.active()
        replica.promote()
        assert run.brokers.running[active].wait() == 1
        run.brokers.running[1 - active].wait_for("standing by: .*the last commit waits for a synchronous replica")
        before = replica.commits()
        assert run.commits() == before, "a commit is visible that no replica has"
        server.kill()
        further.start()
        replica.reload(synchronous_standby_names="replica")
        run.brokers.server = replica
        run.go_on()
        run.check_end(undisturbed)
    finally:
        further.close()
        replica.close()


class RelayedBrokers(Brokers):
    """Each has a network of its own to the database."""

    def __init__(self, deployment, server, count):
        super().__init__(deployment, server, count)
        self.relays = [Relay(f"{server.host}:{server.port}") for _ in range(count)]

    def settings(self, i):
        settings = super().settings(i)
        own = f"{self.server.host}:{self.server.port}"
        return {**settings, "store": settings["store"].replace(own, self.relays[i].address)}


@pytest.mark.parametrize("ways", [pytest.param(("to", "from"), marks=pytest.mark.long), ("from",)],
                         ids=("both", "answers"))
def test_the_active_broker_is_cut_off_from_its_database(deployment, server, undisturbed, ways):
    """Another one takes over meanwhile, also while commits still arrive and only their answers are lost."""
    server.start().add_store()
    brokers = RelayedBrokers(deployment, server, 2)
    try:
        run = SharedRun(deployment, brokers)
        run.start_crowd(1500)
        for _ in ways:
            run.go_on()
            active = brokers.active()
            brokers.relays[active].hold(*ways)
            with deployment.clock.fast():
                assert brokers.running[active].wait() == 1
            assert "the term is over" in brokers.running[active].text() or \
                "cannot store" in brokers.running[active].text()
            assert brokers.active() == 1 - active
            brokers.relays[active].release()
        run.go_on()
        run.check_end(undisturbed)
    finally:
        for relay in brokers.relays:
            relay.close()
