# SPDX-License-Identifier: Apache-2.0
"""Any two parties are cut off from each other: with resets, silently, in one direction only; afterwards the campaign
goes on."""
import random
import time

import pytest

from harness import machine
from harness.admin import metric
from harness.campaign import FINISHER, GATEWAYS, Run
from harness.daemon import wait_until
from harness.machine import needs
from harness.namespaces import namespaces  # noqa: F401  (a fixture)
from harness.proxy import Relay
from harness.sockets import connections_of, unread_by

pytestmark = [pytest.mark.usefixtures("worker_program"), needs(machine.others)]


class Relayed(Run):
    """Each connection goes through a relay."""

    def __init__(self, deployment, **broker):
        deployment.start_thirdparty()
        self.relays = {"rank": Relay(deployment.thirdparty.address)}
        deployment.thirdparty.stop()
        super().__init__(deployment, thirdparty={"listen": deployment.thirdparty_address},
                         broker={"thirdparty": self.relays["rank"].address, **broker})
        self.relays.update({party: Relay(deployment.broker.address) for party in (*GATEWAYS, FINISHER)})

    def start_worker(self, identity, **settings):
        return super().start_worker(identity, broker=self.relays[identity].address, **settings)

    def close(self):
        for relay in self.relays.values():
            relay.close()


@pytest.fixture
def relayed(deployment):
    made = []

    def make(**broker):
        made.append(Relayed(deployment, **broker))
        return made[-1]
    yield make
    for run in made:
        run.close()


@pytest.mark.long
def test_connections_are_reset_again_and_again(deployment, undisturbed, relayed):
    run, chance = relayed(), random.Random(9)
    run.start_workers(arrival_rate=3000)
    run.when(1)
    before = len(connections_of(deployment.broker))
    for tokens in sorted(chance.randrange(500, 13_000) for _ in range(20)):
        run.when(tokens)
        for relay in chance.sample(sorted(run.relays), chance.choice([1, 1, 2, 4])):
            run.relays[relay].reset()
    run.finish()
    wait_until(lambda: len(connections_of(deployment.broker)) <= before,
               "the broker lets go of connections that are gone")
    run.check(undisturbed)


def has_settled(deployment):
    """The broker has read everything, and what it has read is counted."""
    def seen():
        return metric(deployment.folder, "broker", "crowdveil_tokens_total"), unread_by(deployment.broker)
    before = seen()
    time.sleep(.1)
    return before == seen() and before[1] == 0


@pytest.mark.long
def test_links_stall_for_longer_than_a_lease(deployment, undisturbed, relayed):
    """All at once, and nothing is closed: places are returned and given again, late answers do no harm."""
    run = relayed(lease="200ms")
    run.start_workers()
    for tokens, ways in (1000, ["to"]), (4000, ["from"]), (8000, ["to", "from"]):
        run.when(tokens)
        for relay in run.relays.values():
            relay.hold(*ways)
        time.sleep(.5)  # leases have run out twice
        wait_until(lambda: has_settled(deployment), "data in flight has arrived")
        before = metric(deployment.folder, "broker", "crowdveil_tokens_total")
        time.sleep(.4)
        assert metric(deployment.folder, "broker", "crowdveil_tokens_total") == before, "something got through"
        for relay in run.relays.values():
            relay.release()
    run.check(undisturbed)


# --- black holes: packets vanish without an error


SILENCE_S, SLACK_S = 2, 25  # a busy machine; without the setting it is 40 s


@pytest.fixture
def apart(deployment, namespaces):  # noqa: F811
    """A Run whose parties live in namespaces of their own."""
    deployment.use_system_clock()
    deployment.prefixes = {"thirdparty": namespaces.inside("rank"), "broker": namespaces.inside("broker"),
                           "worker": namespaces.inside("crowd")}
    deployment.hosts = {"worker": "10.213.1.1", "requester": "10.213.3.1"}

    def make(silence):
        return Run(deployment, {"listen": "10.213.2.2:0", "silence": silence},
                   {"listen": "0.0.0.0:0", "silence": silence})
    return make


WAYS = {"to the broker": (("crowd", "broker"), ("rank", "broker"), ("host", "broker")),
        "from the broker": (("broker", "crowd"), ("broker", "rank"), ("broker", "host"))}
WAYS["both ways"] = WAYS["to the broker"] + WAYS["from the broker"]


def cut(deployment, run, namespaces, workers, ways, silence_s):  # noqa: F811
    """Cuts the links, waits until every party has detected that, within the documented time, and heals them."""
    everybody = [deployment.broker, deployment.thirdparty, *workers]
    with deployment.requester() as bystander:
        bystander.ask(watch={"campaign": run.campaign})
        bystander.answer()
        for way in ways:
            namespaces.mute(*way)
        wait_until(lambda: not any(connections_of(daemon) for daemon in everybody), "every party noticed",
                   timeout=2 * silence_s + SLACK_S)
        namespaces.heal()


@pytest.mark.parametrize("way", [way if way == "both ways" else pytest.param(way, marks=pytest.mark.long)
                                 for way in sorted(WAYS)])
def test_silent_partitions_are_noticed_and_healed(deployment, undisturbed, namespaces, apart, way):  # noqa: F811
    """All three links at once, within the documented time: twice `silence`."""
    run = apart(f"{SILENCE_S}s")
    workers = run.start_workers(silence=f"{SILENCE_S}s")
    run.when(3000)
    cut(deployment, run, namespaces, workers, WAYS[way], SILENCE_S)
    run.check(undisturbed)


@pytest.mark.long
@pytest.mark.parametrize("way", sorted(WAYS))
def test_silent_partitions_with_the_usual_settings(deployment, undisturbed, namespaces, apart, way):  # noqa: F811
    run = apart("20s")
    workers = run.start_workers()
    run.when(3000)
    cut(deployment, run, namespaces, workers, WAYS[way], 20)
    run.check(undisturbed)
