# SPDX-License-Identifier: Apache-2.0
"""What a service manager hears of a daemon, through a socket of the test's: its start, reload and end, and that it is
alive only while its loop and its storage both go on."""
import os
import shutil
import signal
import threading
import time
import uuid

import pytest

from client.requester import spec
from harness.admin import get
from harness.intruder import DETACH, INTERRUPT, SEIZE, ptrace
from harness.machine import needs, tracing
from harness.receiver import Manager

pytestmark = pytest.mark.usefixtures("worker_program")

CAMPAIGN = """campaign: test
items: {list: [{name: a, mean: 0.9}, {name: b, mean: 0.2}]}
policy: {name: ppar, alpha: 0.2}
privacy: {epsilon: 1}
"""
RULES = {"alpha": .2, "tokens_per_round": 500}
PARTIES = ("broker", "thirdparty", "worker")
INTERVAL_S = 2
WATCHED = {"WATCHDOG_USEC": str(INTERVAL_S * 1_000_000)}


def is_sign(message):
    return message == {"WATCHDOG": "1"}


@pytest.fixture(params=["file", "abstract"])
def address(request, tmp_path):
    return tmp_path / "notify" if request.param == "file" else f"@crowdveil-test-{uuid.uuid4()}"


@pytest.fixture
def manager(tmp_path):
    made = Manager(tmp_path / "manager")
    yield made
    made.close()


def start(deployment, name, manager, changes=None, **more):
    """The party under the manager."""
    env = manager.environment(**more)
    if name == "worker":
        campaign = deployment.folder / "campaign.yaml"
        campaign.write_text(CAMPAIGN)
        deployment.up()
        return deployment.start_worker("gateway/1-9", campaign, {"exit_when_done": False, **(changes or {})}, env=env)
    return getattr(deployment, f"launch_{name}")(changes, env=env)


@pytest.mark.parametrize("name", PARTIES)
def test_start_reload_and_end_are_told(deployment, address, name):
    """Also from inside the sandbox to an abstract address, which Landlock closes to new connections."""
    manager = Manager(address)
    try:
        daemon = start(deployment, name, manager, {"sandbox": "on"})
        manager.hears("READY", "1")
        status = manager.hears("STATUS")["STATUS"]
        assert status.startswith("campaigns"), status
        daemon.wait_for("sandbox: ")
        mark, before_us = manager.mark(), time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
        daemon.signal(signal.SIGHUP)
        reloading = manager.hears("RELOADING", "1", after=mark)
        assert before_us <= int(reloading["MONOTONIC_USEC"]) <= time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
        manager.hears("READY", "1", after=mark)
        assert daemon.stop() == 0
        stopping = manager.hears("STOPPING", "1")
        assert int(stopping["EXTEND_TIMEOUT_USEC"]) > 0
        order = [next(iter(one)) for one in manager.got if "STATUS" not in one]
        assert order == ["READY", "RELOADING", "READY"] + ["STOPPING"] * (len(order) - 3), order
    finally:
        manager.close()


def test_a_start_that_fails_is_not_ready(deployment, manager):
    daemon = start(deployment, "broker", manager, {"seal_key": "/nowhere/key"})
    assert daemon.wait() == 1
    assert not any("READY" in one for one in manager.got)


def test_a_start_that_waits_for_files_asks_for_time(deployment, manager):
    late = deployment.folder / "late.pem"
    daemon = start(deployment, "broker", manager, {"wait_for_files": "500s", "tls": {"cert": str(late)}})
    assert int(manager.hears("EXTEND_TIMEOUT_USEC")["EXTEND_TIMEOUT_USEC"]) > 500_000_000
    daemon.wait_for("waiting up to 500 s")
    shutil.copy(deployment.pki.issue("broker/main").cert, late)
    manager.hears("READY", "1")


def test_the_status_says_what_there_is_to_do(deployment, manager):
    deployment.start_thirdparty()
    start(deployment, "broker", manager).address
    quiet = "campaigns open: 0; connections of workers: 0, of requesters: 0; third-party connected"
    manager.hears("STATUS", quiet)
    with deployment.requester() as requester:
        requester.submit(spec(2, policy_params=RULES))
        manager.hears("STATUS", quiet.replace("open: 0", "open: 1").replace("requesters: 0", "requesters: 1"))
    deployment.broker.signal(signal.SIGTERM)
    manager.hears("STATUS", "draining: open work is finished, nothing new begins")


@pytest.mark.parametrize("name", PARTIES)
def test_a_process_that_stands_still_gives_no_sign_of_life(deployment, manager, name):
    daemon, mark, times = start(deployment, name, manager, **WATCHED), 0, []
    for _ in range(4):
        manager.wait_for(is_sign, "a sign of life", after=mark)
        mark = manager.mark()
        times.append(time.monotonic())
    # a busy machine can only make a pause longer
    assert min(after - before for before, after in zip(times, times[1:])) < INTERVAL_S
    daemon.signal(signal.SIGSTOP)
    assert manager.none_for(1.5 * INTERVAL_S, is_sign)
    mark = manager.mark()
    daemon.signal(signal.SIGCONT)
    manager.wait_for(is_sign, "a sign of life", after=mark)


def test_signs_of_life_of_another_process_are_not_given(deployment, manager):
    start(deployment, "broker", manager, WATCHDOG_PID="1", **WATCHED)
    manager.hears("READY")
    assert manager.none_for(INTERVAL_S, is_sign)


class Frozen:
    """The threads of a program but its first, each stopped by itself: its storage hangs, its loop goes on."""

    def __init__(self, pid):
        self.threads = [int(task) for task in os.listdir(f"/proc/{pid}/task") if int(task) != pid]
        assert self.threads, "no commit has run on a storage thread yet"
        for thread in self.threads:
            ptrace(SEIZE, thread)
            ptrace(INTERRUPT, thread)
            os.waitpid(thread, 0x40000000)  # __WALL

    def release(self):
        for thread in self.threads:
            ptrace(DETACH, thread)


@needs(tracing)
def test_a_storage_that_hangs_gives_no_sign_of_life(deployment, manager):
    """The loop still answers, so only the storage tells."""
    deployment.start_thirdparty()
    start(deployment, "broker", manager, {"log_level": "debug"}, **WATCHED)
    broker, sock = deployment.broker, deployment.folder / "broker.sock"
    with deployment.requester() as requester:
        requester.submit(spec(2, name="first", policy_params=RULES))
        broker.wait_for("commit: .* on the storage thread")
        frozen, second = Frozen(broker.pid), spec(2, name="second", policy_params=RULES)
        try:
            submitting = threading.Thread(target=requester.submit, args=(second,), daemon=True)
            submitting.start()
            broker.wait_for("the storage stands still: the service manager will restart this program")
            assert manager.none_for(1.5 * INTERVAL_S, is_sign)
            assert get(sock, "/health") == (200, "ok\n")
            manager.hears("STATUS", "the storage stands still")
        finally:
            frozen.release()
        mark = manager.mark()
        manager.wait_for(is_sign, "a sign of life", after=mark)
        submitting.join(30)
        assert not submitting.is_alive()
    manager.wait_for(lambda one: "campaigns open: 2" in one.get("STATUS", ""), "both campaigns are open", after=mark)
