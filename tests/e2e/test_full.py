# SPDX-License-Identifier: Apache-2.0
"""
Full and read-only file systems: one line that says what and where, nothing is acknowledged that is not stored, and once
there is space again, the same result.
"""
import contextlib
import re
import shutil
import sqlite3

import pytest

from client.requester import spec
from harness.campaign import Run
from harness.volume import Ext4, volume  # noqa: F401  (a fixture)

pytestmark = pytest.mark.usefixtures("worker_program")


def errors(daemon):
    """Its lines except warnings, notes and the ready line."""
    return [line for line in daemon.text().split("\n") if not re.search(r" (info|warning): |ready on", line)]


@pytest.mark.parametrize("program", ["broker", pytest.param("thirdparty", marks=pytest.mark.long)])
def test_a_full_disk_stops_a_daemon_and_nothing_is_lost(deployment, undisturbed, volume, tmp_path, program):
    """In the middle of a campaign; a start while it is still full reports it again and does no harm."""
    disk = volume(tmp_path / f"{program}-state")
    run = Run(deployment)
    run.start_workers()
    run.when(5000)
    disk.fill()
    daemon = getattr(deployment, program)
    assert daemon.wait() == 1
    database = tmp_path / f"{program}-state/{program}.db"
    line, = errors(daemon)
    assert f"cannot store: {database}: " in line and "disk is full" in line and "nothing that was acknowledged" in line

    again = run.start(program)
    again.wait_for("ready on|disk is full")
    if "ready on" in again.text():
        again.wait_for("disk is full", timeout=60)  # at its next commit
    assert again.wait() == 1
    assert len(errors(again)) == 1, errors(again)

    disk.make_room()
    run.start(program).address
    run.check(undisturbed)


def test_a_full_disk_under_the_anchor_alone_stops_nothing(deployment, undisturbed, volume, tmp_path):
    """The anchor's space is allocated at the start, and it never grows."""
    disk = volume(tmp_path / "away", mib=1)
    deployment.anchor = str(tmp_path / "away/anchor")
    run = Run(deployment)
    run.start_workers()
    run.when(3000)
    disk.fill()
    run.when(7000)
    run.kill_and_restart("broker")
    run.check(undisturbed)


@pytest.mark.parametrize("where", [pytest.param("broker-state", marks=pytest.mark.long), "thirdparty-state", "away"])
def test_a_disk_that_breaks_down_stops_a_daemon_and_nothing_is_lost(deployment, undisturbed, volume, tmp_path, where):
    """The kernel makes the file system read-only in the middle of a campaign; `away` has the anchor alone."""
    disk = volume(tmp_path / where, kind=Ext4)
    deployment.anchor = str(tmp_path / (where if where == "away" else "") / "anchor")
    run = Run(deployment)
    run.start_workers()
    run.when(5000)
    disk.break_down()
    program = "thirdparty" if where == "thirdparty-state" else "broker"
    daemon = getattr(deployment, program)
    assert daemon.wait() == 1
    line, = errors(daemon)
    assert f"cannot store: {tmp_path}/{where}/" in line and "nothing that was acknowledged is lost" in line
    disk.repair()
    run.start(program).address
    run.check(undisturbed)


def test_a_worker_that_cannot_remember_gives_nothing(deployment, volume, tmp_path):
    """Tokens are stored as given before they leave: 200,000 workers of one token, on a disk that cannot hold them
    all. The first plan needs more than they could give, so that no result ends the campaign before."""
    volume(tmp_path / "given", mib=1)
    (tmp_path / "campaign.yaml").write_text(
        "campaign: test\nitems: {list: [{name: a, mean: 0.5}, {name: b, mean: 0.5}]}\n"
        "policy: {name: ppar, alpha: 0}\nprivacy: {epsilon: 1}\n")
    deployment.up()
    with deployment.requester() as requester:
        campaign = requester.submit(
            spec(2, tokens=1_000_000, policy_params={"alpha": 0, "tokens_per_round": 500_000})).campaign
        worker = deployment.start_worker("gateway/1-200000", tmp_path / "campaign.yaml",
                                         {"accept": {"tokens": 1}, "state": str(tmp_path / "given")})
        assert worker.wait() == 1
        line, = [line for line in errors(worker) if "error" in line]
        assert re.search(r"given/given\.db: .*full; stopping", line), line
        requester.cancel(campaign)
        counted = requester.watch(campaign).progress.tokens
    kept = tmp_path / "kept"
    shutil.copytree(tmp_path / "given", kept)
    with contextlib.closing(sqlite3.connect(kept / "given.db")) as db:
        assert 0 < counted <= db.execute("SELECT sum(scores) FROM given").fetchone()[0] < 200_000


def test_a_new_broker_on_a_full_or_read_only_disk_says_where(deployment, volume, tmp_path):
    """It leaves nothing behind that prevents a start once there is space."""
    state, away = volume(tmp_path / "broker-state", mib=1), volume(tmp_path / "away", mib=1)
    deployment.anchor = str(tmp_path / "away/anchor")
    deployment.start_thirdparty()
    cases = ((state, state.fill, state.make_room, "broker-state/broker.db"),
             (state, state.read_only, lambda: state.read_only(False), "broker-state/broker.db"),
             (away, away.fill, away.make_room, "away/anchor"),
             (away, away.read_only, lambda: away.read_only(False), "away/anchor"))
    for disk, spoil, mend, where in cases:
        spoil()
        broker = deployment.launch_broker()
        assert broker.wait() in (1, 2)
        line, = errors(broker)
        assert where in line and re.search("full|No space left|[Rr]ead-only", line), line
        mend()
    deployment.start_broker()
    assert deployment.broker.stop() == 0


def test_a_new_third_party_on_a_full_or_read_only_disk_says_where(deployment, volume, tmp_path):
    disk = volume(tmp_path / "thirdparty-state", mib=1)
    for spoil, mend in ((disk.fill, disk.make_room), (disk.read_only, lambda: disk.read_only(False))):
        spoil()
        thirdparty = deployment.launch_thirdparty()
        assert thirdparty.wait() in (1, 2)
        line, = errors(thirdparty)
        assert "thirdparty-state/thirdparty.db" in line and re.search("full|No space left|[Rr]ead-only", line), line
        mend()
    deployment.start_thirdparty()
    assert deployment.thirdparty.stop() == 0
