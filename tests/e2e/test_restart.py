# SPDX-License-Identifier: Apache-2.0
"""Daemons are killed in the middle of a campaign and started again: the end is the same, bit by bit."""
import shutil
import sqlite3

import pytest

from harness.campaign import Run
from harness.commands import crowdveil

pytestmark = pytest.mark.usefixtures("worker_program")

@pytest.mark.quick
@pytest.mark.parametrize("program", ["broker", "thirdparty"])
def test_a_kill_in_the_middle_changes_nothing(deployment, undisturbed, program):
    run = Run(deployment)
    run.start_workers()
    for tokens in (1000, 5000, 11_000):
        run.when(tokens)
        run.kill_and_restart(program)
    run.check(undisturbed)


def test_an_orderly_stop_and_start_goes_on_where_it_was(deployment, undisturbed):
    run = Run(deployment)
    run.start_workers()
    run.when(6000)
    assert deployment.broker.stop() == 0 and deployment.thirdparty.stop() == 0
    run.start("thirdparty").address
    run.start("broker").address
    run.check(undisturbed)


@pytest.mark.long
def test_a_lost_thirdparty_database_is_rebuilt(deployment, undisturbed):
    run = Run(deployment)
    run.start_workers()
    run.when(9000)
    run.kill("thirdparty")
    shutil.rmtree(deployment.state("thirdparty-state"))
    run.start("thirdparty").address
    run.check(undisturbed)
    with sqlite3.connect(f"{deployment.state('thirdparty-state')}/thirdparty.db") as db:
        assert db.execute("SELECT count(*) FROM release").fetchone() == (len(undisturbed[1]),)
    done = crowdveil("replay", f"{deployment.state('thirdparty-state')}/thirdparty.db")
    assert done.returncode == 0 and "every decision agrees" in done.stdout, done.stdout + done.stderr
