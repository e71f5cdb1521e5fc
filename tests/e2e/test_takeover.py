# SPDX-License-Identifier: Apache-2.0
"""
Brokers over PostgreSQL: one is active, another takes over, and the end is the same as without. How long it takes,
tests/bench/takeover.py measures.
"""
import json
import random
import re
import signal
import subprocess

import pytest

from client.requester import spec
from harness import crashes
from harness.admin import get, metrics
from harness.campaign import Run, outcome
from harness.audit import audit
from harness.commands import crowdveil
from harness.daemon import PROGRAMS, wait_until
from harness.receiver import Manager
from harness.shared import Brokers, postgres

pytestmark = [pytest.mark.usefixtures("worker_program"),
              pytest.mark.skipif(not postgres.is_installed(), reason="postgresql-15 is not installed")]


@pytest.fixture
def brokers(deployment, store):
    made = Brokers(deployment, store)
    deployment.start_thirdparty()
    made.start_all()
    return made


def test_one_is_active_and_the_others_say_so(brokers):
    active = brokers.active()
    standby = 1 - active
    wait_until(lambda: get(brokers.socket(standby), "/health")[1].startswith("ok role=standby term=1 "),
               "the standby has seen the first term")
    brokers.running[standby].wait_for(f"standing by: term 1 of main at {brokers.addresses[active]} is active")
    status, text = get(brokers.socket(standby), "/health")
    assert status == 200, text
    assert f"holder=\"main at {brokers.addresses[active]}\"" in text
    status, text = get(brokers.socket(standby), "/active")
    assert status == 503 and text.startswith("role=standby")
    wait_until(lambda: get(brokers.socket(active), "/health")[0] == 200, "the third-party is connected")
    assert get(brokers.socket(active), "/health")[1].startswith("ok role=active term=1 ")
    for i, role in ((active, "active"), (standby, "standby")):
        config = brokers.deployment.folder / f"broker-{i}.yaml"
        done = subprocess.run([PROGRAMS["broker-postgresql"], "--config", config, "--probe"], capture_output=True,
                              text=True, timeout=20)
        assert done.stdout.startswith(f"crowdveil-broker-postgresql: ok role={role} term=1 since="), done
    told = [metrics(brokers.socket(i)) for i in (active, standby)]
    assert [one["crowdveil_broker_active"] for one in told] == [1, 0]
    assert [one["crowdveil_broker_term"] for one in told] == [1, 1]
    assert [one["crowdveil_broker_replica"] for one in told] == [0, 0]  # this server has none
    assert all(0 <= brokers.deployment.clock.wall_ms / 1000 - one["crowdveil_broker_since_seconds"] < 60
               for one in told)
    for daemon in brokers.running:
        assert daemon.stop() == 0


@pytest.mark.long
def test_a_broker_that_only_answers_keeps_its_term(deployment, store, brokers):
    """A batch without rows is no commit: the broker beats beside such batches."""
    active = brokers.active()
    deployment.broker = brokers.running[active]
    until = deployment.clock.ms + 4000  # twice what a standby grants a session that stands still
    with deployment.requester() as requester:
        while deployment.clock.ms < until:
            requester.status()
    assert store.sql("SELECT max(number) FROM crowdveil.term", "crowdveil") == "1"
    assert brokers.active() == active


def test_a_read_that_waits_for_the_server_does_not_hold_the_loop(deployment, store, brokers):
    """What is stored waits for it; connections are made, and operators are answered."""
    active, waiting = brokers.active(), "SELECT count(*) FROM pg_locks WHERE NOT granted"
    deployment.broker = brokers.running[active]
    with deployment.requester() as requester:
        campaign = requester.submit(spec(2, policy_params={"alpha": .2, "tokens_per_round": 500})).campaign
        requester.ask(cancel={"campaign": campaign})
        assert requester.answer().accepted.campaign == campaign
        requester.watch(campaign)
        with store.locked("crowdveil.release", "crowdveil"):
            requester.ask(export={"campaign": campaign})
            wait_until(lambda: store.sql(waiting) == "1", "the broker reads", every=.01)
            assert metrics(brokers.socket(active))["crowdveil_broker_active"] == 1
            with deployment.requester("bob"):
                assert store.sql(waiting) == "1", "answered too late"
        while not requester.answer().part.last:
            pass
    assert brokers.active() == active


def test_another_takes_over_from_one_that_is_killed(brokers):
    for term in (2, 3):
        active = brokers.active()
        brokers.running[active].kill()
        crashes.killed("broker")
        wait_until(lambda: brokers.is_active(1 - active), "the other one is active", every=.01)
        assert metrics(brokers.socket(1 - active))["crowdveil_broker_term"] == term
        brokers.start(active)


def test_a_requester_is_told_which_one_is_active(deployment, brokers):
    files = deployment.pki.issue("requester/alice")
    deployment.broker_for = lambda party: ",".join(brokers.addresses)
    words = ["status", "--broker", deployment.broker_for("requester"), "--broker-name", "main", "--patience", "30s",
             "--tls-ca", files.ca, "--tls-cert", files.cert, "--tls-key", files.key]
    for term in (1, 2):
        active = brokers.active()
        line = f"broker main at {brokers.addresses[active]}, active in term {term} for [0-9]+ s\n"
        assert re.match(line, crowdveil(*words).stdout)
        told = json.loads(crowdveil(*words, "--json").stdout)
        assert (told["address"], told["term"]) == (brokers.addresses[active], term)
        since = metrics(brokers.socket(active))["crowdveil_broker_since_seconds"]
        assert told["uptime_ms"] / 1000 <= deployment.clock.wall_ms / 1000 - since + 1
        with deployment.requester_in_python() as requester:
            assert requester.status().term == term
        assert brokers.running[active].stop() == 0


@pytest.fixture
def managers(tmp_path):
    """A service manager for each of two brokers."""
    made = [Manager(tmp_path / f"manager-{i}") for i in range(2)]
    yield made
    for one in made:
        one.close()


def says(manager, begin, end):
    manager.wait_for(lambda one: one.get("STATUS", "").startswith(begin) and one["STATUS"].endswith(end),
                     f"STATUS={begin}...{end}")


def test_a_broker_that_is_stopped_hands_over(deployment, store, managers):
    """A service manager hears that a standby is ready, too, who is active, and no drain."""
    brokers, quiet = Brokers(deployment, store), "connections of workers: 0, of requesters: 0; third-party connected"
    deployment.start_thirdparty()
    brokers.migrate()
    for i, one in enumerate(managers):
        brokers.start(i, env=one.environment())
        one.hears("READY", "1")
    active = brokers.active()
    leaves, follows = managers[active], managers[1 - active]
    says(leaves, "role=active term=1 ", f"; campaigns open: 0; {quiet}")
    says(follows, "role=standby term=1 ", " replica=unknown")
    brokers.running[active].signal(signal.SIGTERM)
    wait_until(lambda: brokers.is_active(1 - active), "the other one is active", every=.01)
    assert brokers.running[active].wait() == 0
    leaves.hears("STATUS", "ending: another process serves on")
    leaves.hears("STOPPING", "1")
    says(follows, "role=active term=2 ", quiet)
    assert [sum("READY" in one for one in manager.got) for manager in managers] == [1, 1]
    assert not any("draining" in one.get("STATUS", "") for one in leaves.got)
    assert not any("STOPPING" in one for one in follows.got)


def test_a_frozen_broker_is_replaced_and_ends_when_it_goes_on(brokers):
    active = brokers.active()
    frozen = brokers.running[active]
    began = brokers.deployment.clock.ms
    frozen.signal(signal.SIGSTOP)
    try:
        brokers.deployment.clock.until(lambda: brokers.is_active(1 - active), "the other one is active")
    finally:
        frozen.signal(signal.SIGCONT)
    assert 2000 <= brokers.deployment.clock.ms - began
    assert frozen.wait() == 1
    assert len(re.findall(r"error: .*the term is over|error: cannot store", frozen.text())) == 1, frozen.text()
    assert brokers.active() == 1 - active


@pytest.mark.long
def test_a_restart_of_the_server_is_a_new_term(brokers, store):
    store.stop("immediate")
    for daemon in brokers.running:
        if "active: term" in daemon.text():
            assert daemon.wait() == 1
    store.start()
    for i, daemon in enumerate(brokers.running):
        if daemon.process.poll() is not None:
            brokers.start(i)
    assert metrics(brokers.socket(brokers.active()))["crowdveil_broker_term"] == 2


@pytest.mark.long
def test_kills_change_nothing(deployment, store, undisturbed):
    """One broker, which is killed again and again in a campaign: the same end as in a file, and a good audit."""
    brokers = Brokers(deployment, store, 1)
    brokers.migrate()
    run = Run(deployment, broker={**brokers.changes, "listen": brokers.addresses[0]})
    run.start_workers(arrival_rate=1500)
    chance = random.Random(18)
    for _ in range(12):
        deployment.clock.sleep(.4 * chance.random())
        run.kill("broker")
        run.start("broker")
    run.when(0)
    finished, export = run.finish()
    assert outcome(finished, export) == undisturbed
    assert deployment.broker.stop() == 0 and deployment.thirdparty.stop() == 0
    brokers.save(f"{deployment.state('broker-state')}/broker.db")
    audit(deployment, run.campaign, export, finished)
