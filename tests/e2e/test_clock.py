# SPDX-License-Identifier: Apache-2.0
"""A test's clock: limits are reached when it says so, at once and in its order, and only on this machine."""
import os
import signal
import socket
import subprocess

import pytest

from client.requester import end_name, spec
from client.worker import Session
from harness.admin import metrics
from harness.clock import Clock
from harness.daemon import wait_until

HOUR_MS, DAY_MS = 3_600_000, 86_400_000


def is_closed(connection):
    """Without waiting."""
    connection.setblocking(False)
    try:
        return connection.recv(1) == b""
    except BlockingIOError:
        return False


def ends(deployment, campaign):
    with deployment.requester() as requester:
        return end_name(requester.watch(campaign).progress.end)


def next_of(session, arms, workers):
    """The place of the next assignment of this arm: the arms are drawn, and an arm's returned places come first."""
    for worker in workers:
        session.arrive([worker], 64)
        assign = session.until("assign")
        if assign.arms == arms:
            return assign.place


def submit(deployment, **limits):
    """A campaign that the broker has opened."""
    with deployment.requester() as requester:
        campaign = requester.submit(spec(2, policy_params={"alpha": .1, "tokens_per_round": 100}, **limits)).campaign
    wait_until(lambda: metrics(deployment.folder / "broker.sock")['crowdveil_campaigns_open{phase="running"}'] ==
               campaign, "it is open")  # the first one, then both
    return campaign


def test_limits_are_reached_in_the_order_of_the_clock(deployment):
    """A lease, a handshake, an hour without a token and a day, within a moment."""
    deployment.up(broker={"lease": "5s", "limits": {"worker_epsilon": 1000}})
    clock, (host, port) = deployment.clock, deployment.broker.address.rsplit(":", 1)
    by_deadline = submit(deployment, deadline_ms=DAY_MS, idle_ms=2 * DAY_MS)
    files, workers = deployment.pki.issue("gateway/1-99"), iter(range(4, 100))
    with clock.hold(), Session(deployment.broker.address, files.ca, files.cert, files.key) as session:
        session.arrive([3], 64)
        assign = session.until("assign")
        with socket.create_connection((host, int(port))) as silent:
            clock.advance(4_900)
            assert next_of(session, assign.arms, workers) != assign.place
            clock.advance(200)
            assert next_of(session, assign.arms, workers) == assign.place, "its lease is over"
            clock.advance(4_700)
            assert not is_closed(silent), "after 9.8 s of 10"
            clock.advance(400)
            wait_until(lambda: is_closed(silent), "the connection without a handshake is closed")
        by_idleness = submit(deployment, idle_ms=HOUR_MS)
        clock.advance(HOUR_MS - 1000)
        with deployment.requester() as requester:
            assert not requester.describe(by_idleness)[1].HasField("finished")
        clock.advance(2000)
        assert ends(deployment, by_idleness) == "idle"
        with deployment.requester() as requester:
            assert not requester.describe(by_deadline)[1].HasField("finished")
        clock.advance(DAY_MS)
        assert ends(deployment, by_deadline) == "deadline"
    assert "UNSAFE: the time is what " in deployment.broker.text()


def test_without_the_clock_s_word_nothing_happens(deployment):
    """However long a machine takes: the clock waits for each daemon, and a daemon for the clock."""
    deployment.up()
    with deployment.clock.hold():
        campaign = submit(deployment, idle_ms=100)
        with deployment.requester() as requester:
            assert not requester.describe(campaign)[1].HasField("finished")
        before = deployment.clock.ms
        deployment.clock.advance(200)
        assert deployment.clock.ms == before + 200
        assert ends(deployment, campaign) == "idle"


def test_it_does_not_wait_for_who_has_ended(tmp_path):
    """Nor for a later process that has the same number."""
    clock = Clock(tmp_path / "clock")
    try:
        with clock.hold():
            follower = subprocess.Popen(["sleep", "1000"])
            clock.file.follower[0].pid = follower.pid
            assert list(clock.late()) == [follower.pid]
            follower.send_signal(signal.SIGSTOP)
            wait_until(lambda: not list(clock.late()), "one that is stopped is not waited for")
            follower.send_signal(signal.SIGCONT)
            wait_until(lambda: list(clock.late()), "one that goes on is")
            follower.kill()
            wait_until(lambda: not list(clock.late()), "it has ended")
            follower.wait()
            clock.file.follower[0].pid = os.getpid()
            assert not list(clock.late())
    finally:
        clock.close()


@pytest.mark.parametrize("party, changes, address", [
    ("broker", {"listen": "0.0.0.0:0"}, "0.0.0.0:0"), ("broker", {"thirdparty": "rank.example:7402"},
                                                       "rank.example:7402"),
    ("thirdparty", {"listen": "[::]:0"}, "[::]:0")])
def test_nobody_on_another_machine_may_depend_on_it(deployment, party, changes, address):
    daemon = getattr(deployment, f"launch_{party}")(changes)
    assert daemon.wait() == 2
    assert f"unsafe_clock with the address {address}; expected loopback addresses only" in daemon.lines[-1]
    assert len(daemon.lines) == 1, daemon.text()


def test_a_file_that_is_no_clock(deployment):
    file = deployment.folder / "short"
    file.write_text("12:00")
    daemon = deployment.launch_thirdparty({"unsafe_clock": str(file)})
    assert daemon.wait() != 0
    assert daemon.lines == [f"crowdveil-thirdparty: {file}: not a test's clock; expected a file of 4096 bytes"]
