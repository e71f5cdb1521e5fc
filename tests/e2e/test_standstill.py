# SPDX-License-Identifier: Apache-2.0
"""
A party that is stopped (SIGSTOP): the others hold back within their bounds, or work without it, and go on when it
continues.
"""
import time

import pytest

from client.worker import Session
from harness.admin import metric, metrics
from harness.campaign import TAU, Run
from harness.daemon import wait_until
from harness.standstill import resident_kib, stopped

pytestmark = pytest.mark.usefixtures("worker_program")


def flood(deployment, seconds, queue):
    """More and more workers arrive; returns how many a connection sent back."""
    files = deployment.pki.issue("gateway/200001-300000")
    arrived, sent_back, batch = 0, 0, queue // 4
    end = time.monotonic() + seconds
    with Session(deployment.broker.address, files.ca, files.cert, files.key) as session:
        first = 200_001
        while time.monotonic() < end:
            session.arrive(list(range(first, first + batch)), credit=64)
            first = first + batch if first + 2 * batch < 300_000 else 200_001
            arrived += batch
            while sent_back < arrived - queue:
                backoff = session.until("backoff")
                assert backoff.delay_ms > 0 and "queue of this connection is full" in backoff.why, backoff
                sent_back += len(backoff.workers)
            time.sleep(.02)
    return sent_back


def is_filled(deployment):
    """Everything that was asked for was given and released, and that remains so after the crowd had time to give
    more."""
    def seen():
        now = metrics(deployment.folder / "broker.sock")
        return now["crowdveil_tokens_total"], TAU * now["crowdveil_releases_total"]
    before = seen()
    time.sleep(.2)
    return len({*before, *seen()}) == 1


def third_party_stands_still(deployment, undisturbed, seconds, queue, broker):
    run = Run(deployment, broker={"limits": {"queue": queue}, **broker})
    run.start_workers()
    run.when(6000)
    with stopped(deployment.thirdparty):
        wait_until(lambda: is_filled(deployment), "a plan is filled, and no other follows")
        tokens = metric(deployment.folder, "broker", "crowdveil_tokens_total")
        memory = resident_kib(deployment.broker)
        assert flood(deployment, seconds, queue) > 0, "no worker is told to come later"
        grown = resident_kib(deployment.broker) - memory
        assert metric(deployment.folder, "broker", "crowdveil_tokens_total") == tokens, "tokens that were not asked for"
        assert grown < 8 * 1024, f"the broker has grown by {grown} KiB"
    run.check(undisturbed)


def test_the_broker_holds_back_while_the_third_party_stands_still(deployment, undisturbed):
    third_party_stands_still(deployment, undisturbed, 3, queue=1000, broker={"silence": "1s", "lease": "500ms"})


@pytest.mark.long
def test_the_broker_holds_back_for_minutes(deployment, undisturbed):
    third_party_stands_still(deployment, undisturbed, 150, queue=16_384, broker={})


def broker_stands_still(deployment, undisturbed, seconds, idle_ms, **settings):
    deployment.use_system_clock()  # which alone tells that a process has stood still
    run = Run(deployment, broker=settings, idle_ms=idle_ms)
    wait_until(lambda: metric(deployment.folder, "broker", "crowdveil_plans_total") == 1, "places are open")
    with stopped(deployment.broker):
        run.start_workers()  # none of their tokens is in flight
        time.sleep(seconds)
    run.when(9000)
    with stopped(deployment.broker):
        time.sleep(seconds)
    run.check(undisturbed)


def test_a_broker_that_stood_still_goes_on(deployment, undisturbed):
    """For longer than a lease, and than the time after which a crowd counts as idle: the crowd was not to blame."""
    broker_stands_still(deployment, undisturbed, 3, idle_ms=2500, lease="300ms")


@pytest.mark.long
def test_a_broker_that_stood_still_for_minutes_goes_on(deployment, undisturbed):
    broker_stands_still(deployment, undisturbed, 100, idle_ms=30_000)


def test_other_gateways_replace_a_stopped_one(deployment, undisturbed):
    """Its assignments are given to other workers; its later answers come too late and do not count."""
    run = Run(deployment, broker={"lease": "300ms"})
    workers = run.start_workers()
    workers[0].wait_for(r"broker/\w+: connected to")
    run.when(3000)
    with stopped(workers[0]):
        finished, _ = run.finish()
        assert finished.progress.workers == 3, "it is still connected"
    assert workers[0].wait() == 0 and workers[1].wait() == 0
    run.check(undisturbed)
