# SPDX-License-Identifier: Apache-2.0
"""Daemons are killed in the middle of a campaign and started again: the end is the same, bit by bit."""
import random
import shutil
import sqlite3

import pytest

from harness import crashes
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


def test_other_gateways_replace_a_killed_one(deployment, undisturbed):
    run = Run(deployment)
    workers = run.start_workers()
    run.when(3000)
    workers[0].kill()
    crashes.killed("gateway")
    run.check(undisturbed)


def test_any_order_of_starting_will_do(deployment, undisturbed):
    """The broker starts without a third-party; the third-party follows; workers wait for both."""
    run = Run(deployment)
    deployment.thirdparty.kill()
    deployment.broker.kill()
    run.start_workers()
    run.start("broker").address
    run.start("thirdparty").address
    run.check(undisturbed)


def test_an_orderly_stop_and_start_goes_on_where_it_was(deployment, undisturbed):
    run = Run(deployment)
    run.start_workers()
    run.when(6000)
    assert deployment.broker.stop() == 0 and deployment.thirdparty.stop() == 0
    run.start("thirdparty").address
    run.start("broker").address
    run.check(undisturbed)


def test_many_kills_at_random_change_nothing(deployment, undisturbed):
    """Every acknowledged token counts once and no noise is drawn twice: otherwise sums, and so means, would differ."""
    run, chance = Run(deployment), random.Random(5)
    run.start_workers()
    for tokens in sorted(chance.randrange(500, 14_000) for _ in range(12)):
        run.when(tokens)
        run.kill_and_restart(chance.choice(["broker", "thirdparty"]))
    run.check(undisturbed)


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
