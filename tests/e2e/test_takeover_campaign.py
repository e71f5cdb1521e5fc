# SPDX-License-Identifier: Apache-2.0
"""Campaigns over brokers that take over from each other: the same end as undisturbed, and nothing acknowledged lost."""
import asyncio
import random
import shutil
import signal

import crowdveil
import pytest

from harness import crashes, standstill
from harness.admin import metrics
from harness.campaign import MEANS, TOKENS, outcome
from harness.daemon import wait_until
from harness.page import Page
from harness.shared import Brokers, postgres
from harness.takeover import SharedRun

pytestmark = [pytest.mark.usefixtures("worker_program"),
              pytest.mark.skipif(not postgres.is_installed(), reason="postgresql-15 is not installed")]


def killed(brokers, broker):
    brokers.running[broker].kill()
    crashes.killed("broker")


def stopped(brokers, broker):
    assert brokers.running[broker].stop() == 0


def frozen(brokers, _):
    with brokers.frozen():
        pass  # it goes on while its successor is at work


def requesters(brokers):
    return metrics(brokers.socket(brokers.active()))['crowdveil_connections{role="requester"}']


def test_clients_leave_a_broker_that_stays_frozen(deployment, store, undisturbed):
    """Gateways, a worker and requesters: to the end of the campaign with a connection that nobody closes."""
    brokers = Brokers(deployment, store, 2)
    run = SharedRun(deployment, brokers)
    run.start_crowd(1500)
    crowd = [*run.gateways, run.start_worker("worker/500000", arrival_rate=100, exit_when_done=False)]
    for process in crowd:
        process.wait_for("broker/main: connected to ")
    files, addresses = deployment.pki.issue("requester/alice"), ",".join(brokers.addresses)
    before = requesters(brokers)
    watching = deployment.watch(files, str(run.campaign), addresses)
    wait_until(lambda: requesters(brokers) > before, "the requester that watches is connected")
    with crowdveil.Requester(addresses, files, "main", timeout=60) as requester:
        seen = requester.watch(run.campaign)
        assert next(one for one in seen if one.tokens >= 500).tokens < TOKENS
        with brokers.frozen():
            for process in crowd:
                process.wait_for(": silent, while ")
            run.hurry()
            assert next(one for one in seen if isinstance(one, crowdveil.Result)).end == crowdveil.End.COMPLETE
            assert watching.wait() == 0
    run.check_end(undisturbed)


def test_the_page_shows_the_takeover(deployment, store, undisturbed):
    brokers = Brokers(deployment, store, 2)
    run = SharedRun(deployment, brokers, thirdparty={"page": "127.0.0.1:0"})
    page = Page(deployment.thirdparty)
    stream = page.events()

    def links(seen):
        return [event["data"] for event in seen if event["event"] == "link"]

    def wait_for(*expected):
        stream.wait_for(lambda seen: [(link["connected"], link["term"]) for link in links(seen)] == list(expected),
                        f"the links {expected}")
    wait_for((True, 1))
    run.start_crowd(1500)
    run.when(100)
    active = brokers.active()
    with standstill.stopped(brokers.running[1 - active]):  # otherwise a slow reader sees the next term alone
        killed(brokers, active)
        wait_for((True, 1), (False, 1))
    wait_for((True, 1), (False, 1), (True, 2))
    brokers.start(active)
    since = [link["since"] for link in links(stream.seen)]
    assert since == sorted(since) and 0 <= deployment.clock.wall_ms - since[-1] < 60_000
    assert page.campaign()["link"] == {"connected": True, "term": 2, "since": since[-1]}
    run.check_end(undisturbed)


def test_a_gateway_in_python_leaves_a_broker_that_stays_frozen(deployment, store):
    brokers = Brokers(deployment, store, 2)
    run = SharedRun(deployment, brokers)
    accept = crowdveil.Accept(["alice"], epsilon=5, tokens=0)
    gateway = crowdveil.Gateway(brokers.addresses, deployment.pki.issue("gateway/1-400000"), range(1, 400_001),
                                lambda worker, arm: MEANS[arm], "test", accept, broker_name="main")

    async def work():
        working = asyncio.ensure_future(gateway.serve())
        await asyncio.to_thread(run.when, 500)
        frozen = brokers.frozen()
        await asyncio.to_thread(frozen.__enter__)
        try:
            return await working
        finally:
            await asyncio.to_thread(frozen.__exit__, None, None, None)
    counts = asyncio.run(asyncio.wait_for(work(), 240))
    assert counts.accepted > 500 and not counts.refused


@pytest.mark.parametrize("how, times, rate", [(killed, 3, 1500), (stopped, 3, 1500), (frozen, 1, 1500), *(
    pytest.param(*each, marks=pytest.mark.long) for each in ((killed, 100, 250), (stopped, 10, 1500),
                                                             (frozen, 3, 1500)))])
def test_a_campaign_goes_on_with_the_next_broker(deployment, store, undisturbed, how, times, rate):
    run = SharedRun(deployment, Brokers(deployment, store, 2))
    run.start_crowd(rate)
    chance = random.Random(7)
    for _ in range(times):
        deployment.clock.sleep(.3 * chance.random())
        run.disturb(how)
    run.brokers.active()
    run.when(0)  # it was not over before
    run.check_end(undisturbed)


@pytest.mark.long
def test_the_clone_of_a_machine_takes_over(deployment, store, undisturbed):
    """It has the anchor that the active broker had some time before."""
    brokers = Brokers(deployment, store, 3)
    run = SharedRun(deployment, brokers)
    clone = (brokers.active() + 1) % 3
    brokers.running[clone].wait_for("standing by on ")
    assert brokers.running[clone].stop() == 0
    run.start_crowd(1500)
    run.go_on(skip=[clone])
    original = brokers.active()
    shutil.copy(brokers.anchor(original), brokers.anchor(clone))
    run.go_on(skip=[clone])
    brokers.start(clone).wait_for("standing by: term .* is active")
    for i in (3 - clone - original, original):
        killed(brokers, i)
    assert brokers.active() == clone
    run.go_on()
    run.check_end(undisturbed)
