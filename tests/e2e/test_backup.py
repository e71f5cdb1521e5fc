# SPDX-License-Identifier: Apache-2.0
"""Copies of running daemons' databases."""
import contextlib
import http.client
import os
import shutil
import signal
import socket
import sqlite3
import stat
import threading
from pathlib import Path

import pytest

from client.requester import spec
from client.worker import Session, work
from crowdveil.wire import GRID
from harness import admin
from harness.commands import crowdveil
from harness.daemon import PROGRAMS, Daemon, wait_until, write_config
from harness.deployment import merged
from harness.volume import volume  # noqa: F401  (a fixture)

LIMITS = {"limits": {"worker_epsilon": 1000, "release_tokens": 1}}
ITEMS = "items: {list: [{name: a, mean: .5}]}\npolicy: {name: ppar, alpha: 0.3}\nprivacy: {epsilon: 1}\n"


@pytest.fixture
def running(deployment):
    """A deployment with an open campaign, some of whose tokens are given."""
    deployment.up(broker=LIMITS)
    with deployment.requester() as requester:
        requester.submit(spec(2, name="one", epsilon=.5, tokens=100_000,
                              policy_params={"alpha": .001, "tokens_per_round": 20}))
    give(deployment, range(1, 61))
    return deployment


def give(deployment, workers):
    files = deployment.pki.issue("gateway/1-100000")
    with Session(deployment.broker.address, files.ca, files.cert, files.key, timeout=20) as session:
        verdicts, _ = work(session, workers, lambda worker, arm, place: GRID // 2, credit=64)
    assert verdicts["accepted"] == len(workers), verdicts


def back_up(deployment, party, to):
    return crowdveil("backup", deployment.folder / f"{party}.yaml", "--to", to)


def kept(deployment, party, to):
    """The connection to a copy that must have succeeded."""
    done = back_up(deployment, party, to)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith(f"{to}: {to.stat().st_size} bytes") and done.stderr == ""
    assert stat.S_IMODE(to.stat().st_mode) == 0o600
    return contextlib.closing(sqlite3.connect(f"file:{to}?mode=ro", uri=True)), done.stdout


def refused(done, line, status=1):
    assert done.returncode == status and done.stdout == "", done.stdout + done.stderr
    assert done.stderr.count("\n") == 1 and line in done.stderr, done.stderr


def commit_of(db):
    return db.execute("SELECT last_commit FROM meta").fetchone()[0]


def test_a_copy_is_the_database_of_one_commit(running, tmp_path):
    first, line = kept(running, "broker", tmp_path / "first.db")
    give(running, range(61, 121))
    second, _ = kept(running, "broker", tmp_path / "second.db")
    with first as early, second as late:
        assert line.endswith(f", commit {commit_of(early)}\n")
        assert 0 < commit_of(early) < commit_of(late)
        for db in (early, late):
            assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            assert db.execute("PRAGMA journal_mode").fetchone() == ("delete",)
            assert db.execute("SELECT count(*) FROM campaign").fetchone() == (1,)
    assert not list(tmp_path.glob("*.part-*")) and not list(tmp_path.rglob("backup.tmp*"))
    assert "backup: a copy of the database" in running.broker.text()
    assert set(running.stop().values()) == {0}
    # the last copy lacks nothing that was committed before it: the stopped database has the same rows
    with contextlib.closing(sqlite3.connect(tmp_path / "broker-state/broker.db")) as end:
        with contextlib.closing(sqlite3.connect(tmp_path / "second.db")) as late:
            rows = "SELECT campaign, number, image FROM release ORDER BY campaign, number"
            assert late.execute(rows).fetchall() == end.execute(rows).fetchall() != []


def test_tokens_are_taken_while_copies_are_made(running, tmp_path):
    """Every copy has the codes of all its rows, which the program compares, although commits fall into it. Tokens are
    given until there are copies of three commits, however long a copy takes."""
    commits = []

    def give_on():
        for first in range(1001, 60_001, 1000):
            if first < 9001 or len(set(commits)) < 3:
                give(running, range(first, first + 1000))
    giver = threading.Thread(target=give_on)
    giver.start()
    while giver.is_alive():
        copy, _ = kept(running, "broker", tmp_path / f"{len(commits)}.db")
        with copy as db:
            commits.append(commit_of(db))
    giver.join()
    assert commits == sorted(commits) and len(set(commits)) >= 3, commits
    assert admin.metrics(tmp_path / "broker.sock")["crowdveil_tokens_total"] >= 8000


def test_the_third_party_and_a_worker_are_copied(running, tmp_path, worker_program):
    (tmp_path / "campaign.yaml").write_text("campaign: other\n" + ITEMS)
    settings = {"state": running.state("worker-state"), "accept": {"tokens": 1}, "exit_when_done": False,
                "admin": str(tmp_path / "worker.sock")}
    worker = running.start_worker("gateway/200001-200100", tmp_path / "campaign.yaml", settings)
    worker.wait_for("connected as gateway/200001-200100")
    with running.requester() as requester:
        campaign = requester.submit(spec(1, name="other", epsilon=1, tokens=30, policy_params={
            "alpha": .3, "tokens_per_round": 30})).campaign
        assert requester.watch(campaign).progress.tokens == 30
    copy, line = kept(running, "gateway-200001-200100", tmp_path / "given.db")
    with copy as db:
        assert db.execute("SELECT count(*), min(scores) FROM given").fetchone() == (30, 1)
    assert "commit" not in line
    copy, _ = kept(running, "thirdparty", tmp_path / "ranks.db")
    with copy as db:
        assert db.execute("SELECT count(*) FROM ranking").fetchone()[0] > 0
    done = crowdveil("replay", tmp_path / "ranks.db")
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_worker_without_state_says_so(running, tmp_path, worker_program):
    (tmp_path / "campaign.yaml").write_text("campaign: other\n" + ITEMS)
    running.start_worker("gateway/200001-200100", tmp_path / "campaign.yaml",
                         {"exit_when_done": False, "admin": str(tmp_path / "worker.sock")}).wait_for("connected as")
    refused(back_up(running, "gateway-200001-200100", tmp_path / "none.db"), "its configuration has no `state`")
    assert not (tmp_path / "none.db").exists()


def test_wrong_usage_leaves_nothing(running, tmp_path):
    there = tmp_path / "there.db"
    there.write_text("precious")
    refused(back_up(running, "broker", there), "there.db: exists already")
    assert there.read_text() == "precious"
    refused(back_up(running, "broker", tmp_path / "no/folder.db"), "cannot create", 2)
    refused(crowdveil("backup", tmp_path / "none.yaml", "--to", tmp_path / "x.db"), "none.yaml", 2)
    refused(crowdveil("backup", tmp_path / "broker.yaml"), "to", 2)
    (tmp_path / "other.yaml").write_text("listen: 127.0.0.1:0\n")
    refused(crowdveil("backup", tmp_path / "other.yaml", "--to", tmp_path / "x.db"), "not a party's configuration", 2)
    settings = running.broker_settings()
    del settings["admin"]
    write_config(tmp_path / "closed.yaml", merged(settings, LIMITS))
    refused(crowdveil("backup", tmp_path / "closed.yaml", "--to", tmp_path / "x.db"), "missing setting admin", 2)
    assert set(running.stop().values()) == {0}
    refused(back_up(running, "broker", tmp_path / "x.db"), "start it first, or copy the state folder")
    assert not list(tmp_path.glob("x.db*"))


def ask(path):
    """A connection that has asked for a copy and reads nothing."""
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(str(path))
    connection.sendall(b"POST /backup HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n")
    return connection


def grow(path, megabytes):
    """Makes a stopped broker's database larger, by a table that the broker does not know."""
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE ballast (bytes BLOB)")
        db.executemany("INSERT INTO ballast VALUES (randomblob(1048000))", [()] * megabytes)
        db.commit()


def test_one_copy_at_a_time_and_a_client_that_leaves_frees_it(running, tmp_path):
    assert running.broker.stop() == 0
    grow(tmp_path / "broker-state/broker.db", 24)
    running.start_broker(LIMITS)
    first = ask(tmp_path / "broker.sock")
    assert first.recv(15) == b"HTTP/1.1 200 OK"
    refused(back_up(running, "broker", tmp_path / "second.db"), "a backup is running already")
    assert admin.get(tmp_path / "broker.sock", "/metrics")[0] == 200, "other requests are answered meanwhile"
    first.close()
    wait_until(lambda: back_up(running, "broker", tmp_path / "third.db").returncode == 0, "a copy after the first")
    # a client that leaves before its copy is made
    ask(tmp_path / "broker.sock").close()
    wait_until(lambda: back_up(running, "broker", tmp_path / "fourth.db").returncode == 0, "a copy after that")
    assert (tmp_path / "third.db").stat().st_size > 24 << 20


def test_a_daemon_stops_while_a_copy_is_made_and_while_it_is_read(running, tmp_path):
    assert running.broker.stop() == 0
    grow(tmp_path / "broker-state/broker.db", 24)
    running.start_broker(LIMITS)
    with contextlib.closing(ask(tmp_path / "broker.sock")):
        assert running.broker.stop() == 0
    running.start_broker(LIMITS)
    with contextlib.closing(ask(tmp_path / "broker.sock")) as client:
        assert client.recv(15) == b"HTTP/1.1 200 OK"
        assert running.broker.stop() == 0
    assert not list(tmp_path.rglob("backup.tmp*"))


def test_a_copy_leaves_the_daemon_room_on_its_disk(deployment, volume, tmp_path):
    """The copy is refused before it fills the disk, where the next commit would stop the daemon."""
    disk = volume(tmp_path / "broker-state", mib=160)
    deployment.up(broker=LIMITS)
    assert deployment.broker.stop() == 0
    grow(tmp_path / "broker-state/broker.db", 32)
    deployment.start_broker(LIMITS)
    kept(deployment, "broker", tmp_path / "fits.db")  # 32 and 32 and 64 of 160 MiB
    disk.filler.write_bytes(bytes(48 << 20))
    refused(back_up(deployment, "broker", tmp_path / "none.db"), "broker.db: not enough space for a copy beside it")
    assert not list(tmp_path.glob("none.db*")) and "backup: " in deployment.broker.text()
    with deployment.requester() as requester:
        requester.submit(spec(2, name="goes on", epsilon=.5, tokens=100))
    disk.make_room()
    kept(deployment, "broker", tmp_path / "again.db")


@pytest.mark.long
def test_a_client_that_reads_nothing_is_cut_off(running, tmp_path):
    assert running.broker.stop() == 0
    grow(tmp_path / "broker-state/broker.db", 24)
    running.start_broker(LIMITS)
    with contextlib.closing(ask(tmp_path / "broker.sock")) as client:
        assert client.recv(15) == b"HTTP/1.1 200 OK"
        wait_until(lambda: back_up(running, "broker", tmp_path / "next.db").returncode == 0, "the first is cut off", 90)
        rest = 0
        while more := client.recv(1 << 20):
            rest += len(more)
        assert rest < 24 << 20


class FakeDaemon:
    """An admin socket that answers with given bytes."""

    def __init__(self, path, answer):
        Path(path).unlink(missing_ok=True)
        self.server, self.asked = socket.socket(socket.AF_UNIX), threading.Event()
        self.server.bind(str(path))
        self.server.listen()
        self.answer, self.hold = answer, threading.Event()
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        with contextlib.suppress(OSError):
            client, _ = self.server.accept()
            with client:
                client.recv(4096)
                self.asked.set()
                client.sendall(self.answer)
                if not self.answer:
                    self.hold.wait(30)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.hold.set()
        self.server.close()


def answer(body, length=None, status="200 OK"):
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body) if length is None else length}\r\n\r\n".encode() + body


def test_a_copy_that_is_damaged_on_its_way_is_not_kept(running, tmp_path):
    kept(running, "broker", tmp_path / "good.db")
    good = (tmp_path / "good.db").read_bytes()
    with contextlib.closing(sqlite3.connect(tmp_path / "good.db")) as db:
        image = db.execute("SELECT image FROM release LIMIT 1").fetchone()[0]
    at = good.index(image)
    flipped = good[:at] + bytes([good[at] ^ 1]) + good[at + 1:]
    kept(running, "thirdparty", tmp_path / "other.db")
    assert running.broker.stop() == 0
    cases = {"release": answer(flipped), "broke off after": answer(good[:-4096], len(good)),
             "expected 0x43564252": answer((tmp_path / "other.db").read_bytes()),
             "not a database that a daemon has copied": answer(good[:18] + b"\2\2" + good[20:]),
             "more bytes than stated": answer(good, 8192), "expected HTTP": b"SSH-2.0-x\r\n\r\n",
             "closed without an answer": b"HTTP/1.1 200 OK\r\n", "without its length": b"HTTP/1.1 200 OK\r\n\r\n",
             "no more space": answer(b"no more space\n", status="503 Service Unavailable"),
             "unknown path": answer(b"unknown path\n", status="404 Not Found"),
             "too long": b"HTTP/1.1 200 OK\r\nX: " + b"x" * 10_000}
    for line, sent in cases.items():
        with FakeDaemon(tmp_path / "broker.sock", sent):
            refused(back_up(running, "broker", tmp_path / "bad.db"), line)
        assert not list(tmp_path.glob("bad.db*")), line
    with FakeDaemon(tmp_path / "broker.sock", answer(good)):
        assert back_up(running, "broker", tmp_path / "again.db").returncode == 0, "the control"


def test_an_interrupted_command_leaves_nothing(running, tmp_path):
    assert running.broker.stop() == 0
    with FakeDaemon(tmp_path / "broker.sock", b"") as fake:
        command = Daemon("backup", [PROGRAMS["broker"], "--config", tmp_path / "broker.yaml", "--backup",
                                    tmp_path / "half.db"], tmp_path / "backup.log")
        assert fake.asked.wait(30) and list(tmp_path.glob("half.db.part-*"))
        os.kill(command.pid, signal.SIGINT)
        assert command.wait() == 128 + signal.SIGINT
    assert not list(tmp_path.glob("half.db*"))
