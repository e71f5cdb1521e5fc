# SPDX-License-Identifier: Apache-2.0
"""
Two brokers, their database with a synchronous replica, the third-party and the crowd, each in a network of its own: any
two are cut off from each other without a word to either, and the campaign ends as undisturbed.
"""
from contextlib import ExitStack, closing

import pytest

from harness import machine
from harness.admin import metrics
from harness.daemon import wait_until
from harness.machine import needs
from harness.namespaces import Switch, alone
from harness.shared import Brokers, postgres
from harness.takeover import SharedRun

pytestmark = [pytest.mark.usefixtures("worker_program"), needs(machine.others),
              pytest.mark.skipif(not postgres.is_installed(), reason="postgresql-15 is not installed")]

BROKERS = ("broker-a", "broker-b")
SILENCE = {"silence": "2s"}


class Apart:
    """Everyone at the switch; the first of `servers` is the primary one, the others are replicas of it."""

    def __init__(self, deployment, stack, servers, replicas):
        stack.enter_context(alone())
        self.switch = stack.enter_context(closing(Switch(*BROKERS, *servers, "spare", "rank", "crowd")))
        hosts = self.switch.hosts
        deployment.use_system_clock()
        deployment.prefixes = {"thirdparty": self.switch.inside("rank"), "worker": self.switch.inside("crowd")}
        self.servers = {}
        for name in servers:
            self.add_server(stack, name, self.servers.get(servers[0]), [hosts[other] for other in (*servers, "spare")])
        self.primary = self.servers[servers[0]]
        for server in self.servers.values():
            server.start(wal_retrieve_retry_interval="1s")
            if server is self.primary:
                server.add_store()
        self.primary.reload(synchronous_standby_names=replicas)
        self.brokers = Brokers(
            deployment, self.primary, durability="replicated", servers=self.servers.values(),
            networks=[(self.switch.inside(part), hosts[part]) for part in BROKERS], **SILENCE)
        self.run = SharedRun(deployment, self.brokers, thirdparty={"listen": f"{hosts['rank']}:0", **SILENCE})
        self.run.start_crowd(500, **SILENCE)
        self.run.go_on()

    def add_server(self, stack, name, replica_of, hosts=()):
        server = postgres.Server(replica_of, network=self.switch.names[name], host=self.switch.hosts[name],
                                 name=name, hosts=hosts)
        self.servers[name] = stack.enter_context(closing(server))
        return server

    def metric(self, broker, name):
        return metrics(self.brokers.socket(broker))[name]

    def wait_for_metric(self, broker, name, expected):
        wait_until(lambda: self.metric(broker, name) == expected, f"{name} is {expected}")


@pytest.fixture
def stack():
    with ExitStack() as made:
        yield made


def test_any_two_are_cut_off_from_each_other(deployment, stack, undisturbed):
    world = Apart(deployment, stack, ("primary", "replica"), "replica")
    switch, brokers, run = world.switch, world.brokers, world.run

    def link_is_lost_and_found(part, metric):
        """The active broker stays the active one."""
        active = brokers.active()
        before = world.metric(active, metric)
        switch.cut(BROKERS[active], part)
        world.wait_for_metric(active, metric, 0)
        switch.heal()
        world.wait_for_metric(active, metric, before)
        assert brokers.active() == active
        run.go_on()

    def term_ends(one, other):
        """Whoever is active then cannot go on."""
        daemon = brokers.running[brokers.active()]
        switch.cut(one, other)
        assert daemon.wait() == 1
        assert "the term is over" in daemon.text() or "cannot store" in daemon.text(), daemon.text()

    assert world.metric(brokers.active(), "crowdveil_broker_replica") == 1
    link_is_lost_and_found("rank", "crowdveil_thirdparty_connected")
    link_is_lost_and_found("crowd", 'crowdveil_connections{role="gateway"}')

    active = brokers.active()
    for one, other in (BROKERS, (BROKERS[active], "replica")):  # neither speaks to the other
        switch.cut(one, other)
    run.go_on()
    assert brokers.active() == active
    switch.heal()

    standby = brokers.running[1 - active]
    mark = standby.mark()
    switch.cut(BROKERS[1 - active], "primary")
    standby.wait_for("warning: standing by: ", after=mark)
    run.go_on()
    assert brokers.active() == active and standby.process.poll() is None
    switch.heal()

    term_ends(BROKERS[active], "primary")
    assert brokers.active() == 1 - active
    run.go_on(5)  # while the other one still cannot reach the database
    switch.heal()
    run.go_on()

    term_ends("primary", "replica")
    assert not any(brokers.is_active(i) for i in range(2)), "commits have no replica"
    switch.heal()
    run.go_on()
    run.check_end(undisturbed)


@pytest.mark.long
def test_a_replica_that_lacks_the_last_moments_is_promoted_by_mistake(deployment, stack, undisturbed):
    """Both brokers refuse it by their anchors, also after a restart, and go on with the replica that has everything."""
    world = Apart(deployment, stack, ("primary", "near", "far"), "ANY 1 (near, far)")
    switch, brokers, run = world.switch, world.brokers, world.run
    near, far = world.servers["near"], world.servers["far"]

    def make_primary(server):
        server.promote()
        copy = stack.enter_context(closing(postgres.Server(
            server, network=switch.names["spare"], host=switch.hosts["spare"], name="copy")))
        copy.start()
        server.reload(synchronous_standby_names="copy")
        brokers.server = server

    switch.cut("primary", "far")
    most = run.commits()
    run.go_on()
    brokers.follow(most + 1)  # a standby whose anchor is as old as that replica would begin a term
    acknowledged = run.commits()
    active = brokers.running[brokers.active()]
    world.primary.kill()
    assert active.wait() == 1
    switch.heal()
    make_primary(far)
    assert run.commits() < acknowledged
    for i in range(2):
        assert brokers.running[i].stop() in (0, 1)
        brokers.start(i).wait_for("warning: standing by: .*expected a database with all that was acknowledged")
    assert not any(brokers.is_active(i) for i in range(2))
    far.kill()
    make_primary(near)
    assert run.commits() >= acknowledged
    for i in range(2):  # they would try again by themselves, after 30 s
        assert brokers.running[i].stop() in (0, 1)
    run.go_on()
    run.check_end(undisturbed)
