# SPDX-License-Identifier: Apache-2.0
"""A campaign over a database whose disk is full or whose clock jumps: the same end as undisturbed."""
import time
from pathlib import Path

import pytest

from harness.daemon import wait_until
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
    made = postgres.Server()
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


@pytest.mark.parametrize("what", LINES)
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
