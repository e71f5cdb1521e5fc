# SPDX-License-Identifier: Apache-2.0
"""SIGTERM while tokens are in flight: exit 0 within a lease, databases closed, no acknowledged token lost."""
import os
import random
import signal
import socket
import threading

import pytest

from harness.campaign import Run
from harness.exact import ExactRun
from harness.standstill import stopped

pytestmark = pytest.mark.usefixtures("worker_program")

LEASE_S = 1
SLACK_S = 3  # for closing connections, which linger for a second


def stop_in_time(deployment, program, within=LEASE_S + SLACK_S):
    daemon = getattr(deployment, program)
    with open(f"/proc/{daemon.pid}/task/{daemon.pid}/children") as children:
        assert children.read() == "", "a daemon has no children"
    begun = deployment.clock.ms
    assert daemon.stop() == 0
    took = (deployment.clock.ms - begun) / 1000
    assert took < within, f"{program} took {took:.1f} s to stop"
    folder = deployment.state(f"{program}-state")
    assert sorted(os.listdir(folder)) == [f"{program}.db"], "its database is closed: no log beside it"


def test_stops_in_mid_campaign_lose_no_acknowledged_token(deployment):
    """The crowd counts the acknowledgements it received; the sums are exact."""
    run, chance = ExactRun(deployment, lease=f"{LEASE_S}s"), random.Random(4)
    for tokens in sorted(chance.randrange(100, 9000) for _ in range(6)):
        run.when(tokens)
        for program in chance.choice([("broker",), ("thirdparty",), ("thirdparty", "broker")]):
            stop_in_time(deployment, program)
            run.start(program).address
    run.check()


def test_parties_that_stand_still_delay_no_stop_beyond_a_lease(deployment, undisturbed):
    """A gateway has assignments; it, the third-party and a requester do not close."""
    run = Run(deployment, broker={"lease": f"{LEASE_S}s"})
    workers = run.start_workers()
    files = deployment.pki.issue("requester/alice")
    watcher = deployment.watch(files, run.campaign)
    workers[0].wait_for(r"broker/\w+: connected to")
    run.when(3000)
    with stopped(workers[0]), stopped(deployment.thirdparty), stopped(watcher):
        stop_in_time(deployment, "broker")
    run.start("broker").address
    run.check(undisturbed)


@pytest.mark.parametrize("program", ["broker", "thirdparty"])
def test_strangers_that_say_nothing_delay_no_stop(deployment, program):
    deployment.up()
    host, port = getattr(deployment, program).address.rsplit(":", 1)
    strangers = [socket.create_connection((host, int(port))) for _ in range(5)]
    try:
        stop_in_time(deployment, program, within=SLACK_S)
    finally:
        for stranger in strangers:
            stranger.close()


def test_a_second_signal_does_not_kill_a_daemon_that_is_closing(deployment, undisturbed):
    """A launcher that dies sends it, or an impatient person: the daemon may hurry, but closes the database."""
    run = Run(deployment)
    workers = run.start_workers()
    run.when(3000)
    for daemon in (deployment.broker, deployment.thirdparty, *workers):
        over = threading.Event()

        def insist(daemon=daemon, over=over):
            while not over.wait(.002):
                daemon.signal(signal.SIGTERM)
        impatient = threading.Thread(target=insist, daemon=True)
        impatient.start()
        try:
            assert daemon.wait(10) == 0
        finally:
            over.set()
            impatient.join()
    for program in ("broker", "thirdparty"):
        assert os.listdir(deployment.state(f"{program}-state")) == [f"{program}.db"]
        run.start(program).address
    run.start_workers()
    run.check(undisturbed)


def test_a_third_party_stops_while_its_broker_stands_still(deployment, undisturbed):
    run = Run(deployment)
    run.start_workers()
    run.when(3000)
    with stopped(deployment.broker):
        stop_in_time(deployment, "thirdparty")
    run.start("thirdparty").address
    run.check(undisturbed)


def test_a_worker_leaves_at_once_and_its_places_go_to_others(deployment, undisturbed):
    run = Run(deployment, broker={"lease": "1h"})
    workers = run.start_workers()
    workers[0].wait_for(r"broker/\w+: connected to")
    run.when(3000)
    begun = deployment.clock.ms
    workers[0].signal(signal.SIGTERM)
    assert workers[0].wait() == 0
    assert deployment.clock.ms - begun < SLACK_S * 1000
    run.check(undisturbed)  # which an assignment that waits for an hour would not let it
