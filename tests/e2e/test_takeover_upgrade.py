# SPDX-License-Identifier: Apache-2.0
"""
Brokers over PostgreSQL are upgraded one by one in mid-campaign, as docs/operations.md says. `tests/run before` builds
the earlier version from the repository's history and names its folder in CROWDVEIL_BEFORE_POSTGRESQL.
"""
import os
from pathlib import Path

import pytest

from harness.admin import get
from harness.daemon import PROGRAMS, wait_until
from harness.shared import Brokers, postgres
from harness.takeover import SharedRun

PROGRAM = "broker-postgresql"
NOW = PROGRAMS[PROGRAM]

pytestmark = [pytest.mark.before, pytest.mark.usefixtures("worker_program"),
              pytest.mark.skipif(not postgres.is_installed(), reason="postgresql-15 is not installed")]


@pytest.fixture(scope="module")
def before():
    folder = os.environ.get("CROWDVEIL_BEFORE_POSTGRESQL")
    if folder is None:
        pytest.skip("no CROWDVEIL_BEFORE_POSTGRESQL: tests/run before builds the earlier version")
    return Path(folder) / NOW.parent.name / NOW.name


@pytest.fixture
def server():
    made = postgres.Server().start()
    made.add_store()
    try:
        yield made
    finally:
        made.close()


def test_brokers_are_upgraded_one_by_one(deployment, server, before, undisturbed, monkeypatch):
    monkeypatch.setitem(PROGRAMS, PROGRAM, before)
    brokers = Brokers(deployment, server)
    run = SharedRun(deployment, brokers)
    run.start_crowd(1500)
    run.go_on()

    def stands_by(i, version):
        """Where a broker stands by, the other version is started."""
        brokers.running[i].stop()
        monkeypatch.setitem(PROGRAMS, PROGRAM, version)
        brokers.start(i).wait_for("standing by on")
        wait_until(lambda: get(brokers.socket(i), "/health")[1].startswith("ok role=standby term="),
                   "the new process stands by")

    def hand_over():
        active = brokers.active()
        assert brokers.running[active].stop() == 0
        assert brokers.active() == 1 - active
        run.go_on(skip=[active])
        return active

    # to this version, back to the earlier one, and again to this one
    for version in (NOW, before, NOW):
        standby = 1 - brokers.active()
        stands_by(standby, version)
        stands_by(hand_over(), version)
    hand_over()
    for daemon in brokers.running:
        daemon.stop()
    assert "tables of version 1 " in brokers.migrate()
    run.go_on()
    run.check_end(undisturbed)
