# SPDX-License-Identifier: Apache-2.0
"""The seal key is replaced: under load, at rest, killed at any step; and what opens with which key afterwards."""
import hashlib
import json
import re
import shutil
import sqlite3
import subprocess
import threading

import pytest

from client.requester import spec
from client.worker import Session, work
from crowdveil.wire import GRID
from harness.admin import get, post
from harness.campaign import Run
from harness.commands import crowdveil
from harness.daemon import PROGRAMS, ROOT, write_config
from harness.deployment import merged
from harness.secrets import Secrets

# Both arms have the same mean: the probability that a campaign ends by itself is below delta.
POLICY = {"alpha": .01, "delta": 1e-9, "tokens_per_round": 10}
HEAD = "crowdveil seal keys 1"


def name_of(key):
    """How messages call a key."""
    return hashlib.sha256(b"crowdveil key id\0" + key).hexdigest()[:8]


def keys_of(path):
    """[(number, seconds, key)] of a key file."""
    head, *lines = path.read_text().splitlines()
    assert head == HEAD
    return [(int(number), int(seconds), bytes.fromhex(key)) for number, seconds, key in map(str.split, lines)]


class Vault:
    """A deployment with a running campaign, its key file, and the commands on it."""

    def __init__(self, deployment):
        self.deployment, self.key = deployment, deployment.folder / "seal.key"
        self.state = deployment.folder / deployment.state("broker-state")
        self.config = deployment.folder / "broker.yaml"
        deployment.up()
        self.campaign = self.submit()

    def submit(self, **changes):
        with self.deployment.requester() as requester:
            return requester.submit(spec(2, **{"policy_params": POLICY, **changes})).campaign

    def give(self, workers):
        files = self.deployment.pki.issue("gateway/1-2000")
        with Session(self.deployment.broker.address, files.ca, files.cert, files.key) as session:
            verdicts, _ = work(session, workers, lambda worker, arm, place: GRID // 2)
        assert verdicts == {"accepted": len(workers)}

    def seal(self, action, *options):
        return crowdveil("seal", action, self.config, *options)

    def rotate(self):
        done = self.seal("rotate")
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def up(self):
        self.deployment.up()

    def stop(self):
        statuses = set(self.deployment.stop().values())
        self.deployment.daemons.clear()
        assert statuses == {0}

    def masters(self):
        """{id of a master key: number of keys that it wraps}; the broker must be stopped."""
        with sqlite3.connect(self.state / "broker.db") as db:
            found = {master.hex()[:8]: n for master, n in
                     db.execute("SELECT master, count(*) FROM wrapped_key GROUP BY master")}
        db.close()
        return found

    def refused(self):
        """What a broker says that does not start."""
        broker = self.deployment.launch_broker()
        assert broker.wait() in (1, 2)
        self.deployment.daemons.remove(broker)
        return broker.text()


@pytest.fixture
def vault(deployment):
    return Vault(deployment)


def test_a_rotation_under_load_changes_nothing(deployment, undisturbed, worker_program):
    """Three times, and the broker is killed after one of them: the same releases as without."""
    run = Run(deployment)
    run.start_workers()
    seen = {keys_of(deployment.folder / "seal.key")[0][2]}
    for tokens in (1000, 5000, 9000):
        run.when(tokens)
        done = crowdveil("seal", "rotate", deployment.folder / "broker.yaml")
        assert done.returncode == 0, done.stderr
        [(_, _, key)] = keys_of(deployment.folder / "seal.key")
        assert key not in seen
        deployment.broker.wait_for(f"seal key {name_of(key)} has taken over")
        seen.add(key)
        if tokens == 5000:
            run.kill_and_restart("broker")
    run.check(undisturbed)


@pytest.mark.parametrize("running", [True, False])
def test_the_old_key_opens_nothing_afterwards(vault, running):
    vault.give(range(1, 31))
    [(number, _, old)] = keys_of(vault.key)
    before = vault.key.read_bytes()
    if not running:
        vault.stop()
    said = vault.rotate()
    [(now, _, new)] = keys_of(vault.key)
    assert (number, now) == (1, 2) and new != old
    assert name_of(old) in said and name_of(new) in said and "destroy its other copies" in said
    assert vault.key.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in vault.key.parent.iterdir() if path.name.startswith("seal")] == ["seal.key"]
    if running:
        vault.stop()
    # campaign, accounts, codes, tickets
    assert vault.masters() == {name_of(new): 4}
    after = vault.key.read_bytes()
    vault.key.write_bytes(before)
    line = vault.refused()
    assert f"its keys are wrapped by seal key {name_of(new)}; the file of seal_key has {name_of(old)}" in line
    done = crowdveil("doctor", vault.config)
    assert done.returncode == 1 and name_of(new) in done.stdout
    vault.key.write_bytes(after)
    vault.up()
    vault.give(range(31, 61))
    vault.stop()


def test_no_key_is_in_any_file_but_its_own(vault):
    """Neither an old master key nor a new one, nor a part of the file, in state, logs or answers."""
    vault.give(range(1, 31))
    [(_, _, old)] = keys_of(vault.key)
    said = vault.rotate()
    [(_, _, new)] = keys_of(vault.key)
    secrets = Secrets(blobs=[old, new])
    status = vault.seal("status").stdout
    places = {"rotate": said.encode(), "status": status.encode(),
              "admin": get(vault.deployment.folder / "broker.sock", "/seal")[1].encode()}
    files = [path for path in vault.deployment.folder.rglob("*") if path.is_file() and path.suffix != ".pem"]
    places |= {f"{path.name}, live": path.read_bytes() for path in files if path != vault.key}
    vault.stop()
    places |= {path.name: path.read_bytes() for path in files if path != vault.key and path.exists()}
    assert "broker.db" in places and name_of(new) in status
    assert {name: hits for name, data in places.items() if (hits := secrets.find(data))} == {}
    assert secrets.find(vault.key.read_bytes())


def test_tickets_stay_valid_over_a_rotation_and_a_restart(vault):
    """A worker that was asked before answers after."""
    files = vault.deployment.pki.issue("gateway/1-2000")
    vault.rotate()
    with Session(vault.deployment.broker.address, files.ca, files.cert, files.key) as session:
        token, held = session.token, []

        def hold(ticket, values):
            """Rotates when the first answer is ready, and sends it afterwards."""
            if not held:
                vault.rotate()
            held.append(ticket)
            token(ticket, values)
        session.token = hold
        verdicts, _ = work(session, range(1, 21), lambda worker, arm, place: GRID // 2)
    assert verdicts == {"accepted": 20}


def test_status_says_what_wraps_what(vault):
    vault.give(range(1, 11))
    [(_, _, key)] = keys_of(vault.key)
    live = vault.seal("status")
    assert live.returncode == 0
    assert f"key 1 ({name_of(key)}), made 20" in live.stdout and "0 days ago, current" in live.stdout
    assert f"in use by a running broker, which wraps its keys by key {name_of(key)}" in live.stdout
    vault.stop()
    still = vault.seal("status", "--json")
    lines = [json.loads(line) for line in still.stdout.splitlines()]
    assert {line["level"] for line in lines} == {"ok"}
    assert any(f"key {name_of(key)} wraps 4 of 4 stored keys" in line["what"] for line in lines), lines
    assert key.hex() not in live.stdout + still.stdout


def test_an_old_copy_opens_with_the_old_key_added(vault):
    """The line of the old key at the end of the file; a rotation afterwards removes it again."""
    vault.give(range(1, 31))
    vault.stop()
    shutil.copytree(vault.state, vault.deployment.folder / "older")
    old = vault.key.read_text().splitlines()[1]
    vault.up()
    vault.rotate()
    vault.give(range(31, 41))
    vault.stop()
    now = vault.key.read_text()
    shutil.rmtree(vault.state)
    shutil.copytree(vault.deployment.folder / "older", vault.state)
    done = crowdveil("recover", vault.config)
    assert done.returncode == 1 and name_of(bytes.fromhex(old.split()[2])) in done.stderr
    assert "expected that key in the file" in done.stderr and len(done.stderr.strip().splitlines()) == 1
    vault.key.write_text(now + old + "\n")
    done = crowdveil("recover", vault.config)
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in crowdveil("doctor", vault.config, "--json").stdout.splitlines()]
    assert any(line["level"] == "note" and "2 keys" in line["what"] for line in found), found
    assert not [line for line in found if line["level"] == "wrong"]
    vault.rotate()
    assert vault.key.read_text() == now, "it finishes with the keys that are there"
    vault.up()
    assert vault.submit(name="after") > vault.campaign
    vault.stop()


def test_a_purged_campaign_has_no_key(vault):
    vault.give(range(1, 31))
    with vault.deployment.requester() as requester:
        requester.cancel(vault.campaign)
        requester.watch(vault.campaign)
    vault.stop()
    with sqlite3.connect(vault.state / "broker.db") as db:
        assert db.execute("SELECT campaign, use FROM wrapped_key ORDER BY 1, 2").fetchall() == [(0, 1), (0, 2), (0, 3)]
    db.close()


def test_the_audit_log_has_each_rotation(deployment, tmp_path):
    """With the names of both keys, of a broker that runs and has nothing else to do, and of one that is stopped."""
    (tmp_path / "log").mkdir()
    log, key, config = tmp_path / "log/audit", deployment.folder / "seal.key", deployment.folder / "broker.yaml"
    deployment.up(broker={"audit": str(log)})
    names = [name_of(keys_of(key)[0][2])]
    for running in (True, False):
        if not running:
            assert set(deployment.stop().values()) == {0}
        done = crowdveil("seal", "rotate", config)
        assert done.returncode == 0, done.stderr
        names.append(name_of(keys_of(key)[0][2]))
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    said = [(line["actor"], line["from"], line["to"]) for line in lines if line["event"] == "seal"]
    assert said == [("operator", names[0], names[1]), ("operator", names[1], names[2])]
    done = crowdveil("audit", log)
    assert done.returncode == 0, done.stdout + done.stderr


# --- killed

CALLS = ("openat", "write", "pwrite64", "fsync", "fdatasync", "rename", "unlink", "close", "sendto")


def killed(config, call, point):
    """A rotation that gets SIGKILL at call number `point` of this system call; False if it has fewer."""
    command = ["strace", "-f", "-qq", "-e", f"trace={call}", "-e", f"inject={call}:signal=KILL:when={point}",
               PROGRAMS["broker"], "--config", config, "--seal", "rotate"]
    done = subprocess.run([str(part) for part in command], capture_output=True, timeout=120)
    assert done.returncode in (0, 137, -9), done.stdout + done.stderr
    return done.returncode != 0


def kills(config):
    """Kills a rotation at each call; those before the program's own work begins are the libraries'."""
    for call in CALLS:
        point = 40 if call in ("openat", "close") else 1
        while killed(config, call, point):
            yield f"{call} {point}"
            point += 1


@pytest.mark.parametrize("running", [pytest.param(True, marks=pytest.mark.long), False])
def test_a_rotation_that_is_killed_anywhere_can_be_repeated(vault, running):
    """At every step the file that is there opens the database; a repetition ends with one key that wraps all."""
    if shutil.which("strace") is None:
        pytest.skip("needs strace")
    vault.give(range(1, 31))
    if not running:
        vault.stop()
    points, states = [], set()
    for where in kills(vault.config):
        points.append(where)
        # what the file has now is enough
        done = vault.seal("status")
        assert done.returncode == 0, f"killed at {where}: {done.stderr}"
        states.add((len(keys_of(vault.key)), (vault.key.parent / "seal.key.new").exists()))
        if running and len(points) % 4 == 0:
            vault.deployment.broker.kill()
            vault.deployment.daemons.remove(vault.deployment.broker)
            vault.deployment.start_broker()
        vault.rotate()
        assert len(keys_of(vault.key)) == 1 and not (vault.key.parent / "seal.key.new").exists()
    assert states == {(1, True), (2, False), (2, True), (1, False)}, f"{points}: {states}"
    if running:
        vault.stop()
    assert vault.masters() == {name_of(keys_of(vault.key)[0][2]): 4}
    vault.up()
    vault.give(range(31, 61))
    vault.stop()


def test_two_rotations_at_once_do_one_after_the_other_or_refuse(vault):
    """One line each; the end is one key that fits."""
    done = []
    threads = [threading.Thread(target=lambda: done.append(vault.seal("rotate"))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert any(one.returncode == 0 for one in done)
    for one in done:
        assert one.returncode == 0 or "another program is changing the key file" in one.stderr, one.stderr
    assert vault.seal("status").returncode == 0 and len(keys_of(vault.key)) == 1
    vault.stop()
    vault.up()
    vault.stop()


# --- wrong files and wrong use

@pytest.mark.parametrize("content, line", [
    (b"", r"not a key file \(0 bytes\)"),
    (b"x" * 31, r"not a key file \(31 bytes\)"),
    (f"{HEAD}\n".encode(), "line 2: missing; expected a key"),
    (f"{HEAD}\n1 0 {'0' * 40}".encode(), "line 2: not a key, or cut off"),
    (f"{HEAD}\n1 0 {'0' * 64}\n2 0 {'1' * 64}\n".encode(), "line 3: wrong number of a key"),
    (f"{HEAD}\n1 0 {'0' * 64}\n".encode(), "its keys are wrapped by seal key [0-9a-f]{8}"),
])
def test_a_key_file_that_does_not_fit_is_told_in_one_line(vault, content, line):
    vault.give(range(1, 11))
    vault.stop()
    right = vault.key.read_bytes()
    vault.key.write_bytes(content)
    assert re.search(line, vault.refused())
    for command in (("seal", "rotate"), ("seal", "status"), ("recover",)):
        done = crowdveil(*command, vault.config)
        assert done.returncode == 1 and re.search(line, done.stderr), done.stdout + done.stderr
        assert len(done.stderr.strip().splitlines()) == 1, done.stderr
        assert b"0" * 16 not in done.stderr.encode()
    done = crowdveil("doctor", vault.config)
    assert done.returncode == 1 and re.search(line, done.stdout)
    assert vault.key.read_bytes() == content
    vault.key.write_bytes(right)
    vault.up()
    vault.stop()


def test_a_broker_that_cannot_be_asked_is_not_disturbed(deployment):
    deployment.start_thirdparty()
    settings = {key: value for key, value in deployment.broker_settings().items() if key != "admin"}
    deployment.broker = deployment.start("broker", settings)
    deployment.broker.address
    before = (deployment.folder / "seal.key").read_bytes()
    done = crowdveil("seal", "rotate", deployment.folder / "broker.yaml")
    assert done.returncode == 1 and "no admin socket" in done.stderr, done.stderr
    assert (deployment.folder / "seal.key").read_bytes() == before


def test_another_key_file_than_the_running_brokers_is_refused(vault):
    """A configuration that names another file: the broker cannot follow it."""
    other = vault.deployment.folder / "other.key"
    shutil.copyfile(vault.key, other)
    other.chmod(0o600)
    config = vault.deployment.folder / "other.yaml"
    config.write_text(vault.config.read_text().replace("seal.key", "other.key"))
    before = vault.key.read_bytes()
    done = crowdveil("seal", "rotate", config)
    assert done.returncode == 1 and "the running broker reads another key file" in done.stderr, done.stderr
    assert vault.key.read_bytes() == before
    assert vault.seal("status").returncode == 0
    vault.stop()


def test_the_admin_socket_refuses_a_file_that_does_not_fit(vault):
    socket = vault.deployment.folder / "broker.sock"
    right = vault.key.read_bytes()
    vault.key.write_text(f"{HEAD}\n1 0 {'0' * 64}\n")
    status, line = post(socket, "/seal/rewrap")
    assert status == 503 and "expected also key" in line
    vault.key.write_bytes(right)
    assert post(socket, "/seal/rewrap")[0] == 200 and get(socket, "/seal/rewrap")[0] == 405
    assert get(vault.deployment.folder / "thirdparty.sock", "/seal")[0] == 404
    assert "/seal" not in get(vault.deployment.folder / "thirdparty.sock", "/none")[1]
    vault.give(range(1, 31))
    vault.stop()


def test_wrong_use_has_status_2(vault):
    for words in ((), ("rotate",), ("turn", vault.config), ("rotate", vault.config, "--x")):
        done = crowdveil("seal", *words)
        assert done.returncode == 2 and len(done.stderr.strip().splitlines()) == 1, done.stderr
