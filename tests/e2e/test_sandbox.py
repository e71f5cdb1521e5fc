# SPDX-License-Identifier: Apache-2.0
"""What a daemon can do once it runs: its own work, and no access to another party's files, even as the same user."""
import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import tempfile
from pathlib import Path

import pytest

from client.requester import classes, end_name, spec
from harness import machine
from harness.daemon import PROGRAMS, write_config
from harness.deployment import merged
from harness.intruder import Died, Intruder
from harness.machine import needs
from support.address import HOST

WITHOUT = ("/usr/bin/python3", str(Path(__file__).parent / "harness/without.py"))
CAMPAIGN = """campaign: test
items: {list: [{name: a, mean: 0.9}, {name: b, mean: 0.2}]}
policy: {name: ppar, alpha: 0.2}
privacy: {epsilon: 1}
"""
PARTIES = ("thirdparty", "broker", "worker")
needs_sandbox = needs(machine.sandbox)
needs_locks = needs(machine.locked_memory)
needs_tracing = needs(machine.tracing)


def own_folders(deployment, name):
    """The admin socket and, for a broker, anchor and key, each in a folder that no other party needs."""
    folders = {part: deployment.state(f"{name}-{part}") for part in ("run", "anchor", "keys")}
    changes = {"admin": f"{folders['run']}/admin.sock"}
    if name == "broker":
        changes |= {"anchor": f"{folders['anchor']}/anchor", "seal_key": f"{folders['keys']}/seal"}
    return changes


def rank(deployment, tmp_path, identity="gateway/1-20000", changes=None):
    """A whole campaign, so that every thread has run and every file was written."""
    (tmp_path / "campaign.yaml").write_text(CAMPAIGN)
    with deployment.requester() as requester:
        campaign = requester.submit(
            spec(2, tokens=20_000, policy_params={"alpha": .2, "tokens_per_round": 500})).campaign
        worker = deployment.start_worker(identity, tmp_path / "campaign.yaml",
                                         {"exit_when_done": False, **(changes or {})})
        finished = requester.watch(campaign)
    assert end_name(finished.progress.end) == "complete"
    assert classes(finished) == ({1: [0], 2: [1]}, [])
    return worker


@pytest.fixture
def ranked(deployment, tmp_path, worker_program):
    """All three parties after their work, still running: {name: daemon}."""
    deployment.up(own_folders(deployment, "thirdparty"), own_folders(deployment, "broker"))
    worker = rank(deployment, tmp_path, changes=own_folders(deployment, "worker"))
    return {"thirdparty": deployment.thirdparty, "broker": deployment.broker, "worker": worker}


def status_of(path):
    return dict(re.findall(r"^(\w+):\s*(.*)$", Path(path, "status").read_text(), re.M))


def sandbox_line(daemon):
    return daemon.wait_for(r"(info|warning): sandbox: (.*)").group(2)


@needs_sandbox
@needs_locks
def test_every_thread_is_sandboxed_and_every_part_is_reported(ranked):
    kernel = tuple(map(int, re.match(r"(\d+)\.(\d+)", os.uname().release).groups()))
    for name, daemon in ranked.items():
        threads = list(Path(f"/proc/{daemon.pid}/task").iterdir())
        assert name == "worker" or len(threads) > 1, "the storage thread must have run"
        for thread in threads:
            status = status_of(thread)
            assert (status["Seccomp"], status["NoNewPrivs"]) == ("2", "1"), name
            for key in ("CapEff", "CapPrm", "CapInh", "CapAmb") + (("CapBnd",) if os.geteuid() == 0 else ()):
                assert int(status[key], 16) == 0, f"{name}: {key}"
        limits = Path(f"/proc/{daemon.pid}/limits").read_text()
        assert re.search(r"^Max core file size +0 +0 ", limits, re.M)
        line = sandbox_line(daemon)
        assert "OFF" not in line and "info: sandbox" in daemon.text()
        for part in ("user: ", "new privileges: none", "capabilities: none", "core dumps: none", "swap: no",
                     "landlock: ABI ", "in every thread"):
            assert part in line, f"{name}: {line}"
        assert int(status_of(f"/proc/{daemon.pid}")["VmLck"].split()[0]) > 0, "keys could go to a swap device"
    port = ranked["thirdparty"].address.rsplit(":")[-1]
    limited = kernel >= (6, 7)
    assert (f"connects to TCP port {port}" if limited else "any TCP port") in sandbox_line(ranked["broker"])
    assert ("no TCP port" if limited else "any TCP port") in sandbox_line(ranked["thirdparty"])
    assert "writes" not in sandbox_line(ranked["worker"]), "it has read its campaign by then"
    assert re.search("removes from [^,]*/worker-run(,|$)", sandbox_line(ranked["worker"]))


@needs(machine.nobody)
def test_memory_belongs_to_root_alone(ranked):
    """A process that may be dumped has files in /proc that belong to its user; these belong to root in any case."""
    if os.geteuid() != 0:
        with pytest.raises(PermissionError):
            Path(f"/proc/{ranked['broker'].pid}/environ").read_bytes()
    with pytest.raises((subprocess.CalledProcessError, PermissionError)):
        subprocess.run(["cat", f"/proc/{ranked['broker'].pid}/maps"], check=True, capture_output=True,
                       **({"user": "nobody"} if os.geteuid() == 0 else {}))


def brokers_files(deployment):
    files = deployment.pki.issue("broker/main")
    folder = deployment.folder
    paths = [folder / "broker-state/broker.db", folder / "broker-state/broker.db-wal", folder / "broker.yaml",
             folder / "broker-anchor/anchor", folder / "broker-keys/seal", files.key, files.cert,
             deployment.pki.folder / "ca.key"]
    assert all(Path(path).exists() for path in paths), paths
    return paths


@needs_sandbox
@needs_tracing
def test_a_third_party_that_was_taken_over_cannot_open_the_brokers_files(ranked, deployment):
    daemon, files = ranked["thirdparty"], brokers_files(deployment)
    assert status_of(f"/proc/{daemon.pid}")["Uid"] == status_of(f"/proc/{ranked['broker'].pid}")["Uid"], "same user"
    with Intruder(daemon.pid) as intruder:
        assert intruder.open(deployment.folder / "thirdparty-state/thirdparty.db") == 0, "its own it must open"
        assert intruder.open(deployment.pki.issue("thirdparty/ranker").cert) == 0
        found = {str(path): intruder.open(path) for path in files}
        assert set(found.values()) == {"EACCES"}, found
        assert {intruder.open(path, os.O_RDWR) for path in files} == {"EACCES"}
        assert {intruder.unlink(path) for path in files} == {"EACCES"}
        assert intruder.open(f"/proc/{ranked['broker'].pid}/mem") == "EACCES"
        assert intruder.open("/etc/passwd") == "EACCES"
        assert intruder.open(deployment.folder / "planted", os.O_WRONLY | os.O_CREAT) == "EACCES"
        assert intruder.connect(int(ranked["broker"].address.rsplit(":")[-1])) == "ENOSYS"
    assert all(Path(path).exists() for path in files)
    assert daemon.stop() == 0, "it goes on as if nothing had been"


@needs_sandbox
@needs_tracing
def test_a_daemon_that_was_taken_over_cannot_read_cut_or_remove_its_audit_log(deployment, tmp_path):
    """It can still write in the folder: Landlock has no right that permits appending alone."""
    (tmp_path / "log").mkdir()
    log, old = tmp_path / "log/audit", tmp_path / "log/audit.1"
    old.write_text("kept\n")
    deployment.up(broker=own_folders(deployment, "broker") | {"audit": str(log)})
    with Intruder(deployment.broker.pid) as intruder:
        assert {intruder.open(path) for path in (log, old)} == {"EACCES"}
        assert {intruder.open(path, os.O_WRONLY | os.O_TRUNC) for path in (log, old)} == {"EACCES"}
        assert {intruder.unlink(path) for path in (log, old)} == {"EACCES"}
        assert intruder.open(log, os.O_WRONLY | os.O_APPEND) == 0
    assert deployment.broker.stop() == 0
    assert old.read_text() == "kept\n" and len(log.read_text().splitlines()) == 2


@needs_tracing
def test_without_a_sandbox_the_same_intruder_gets_it_all(deployment):
    """A control: nothing else keeps a program from another one's files of the same user."""
    deployment.up({"sandbox": "off", **own_folders(deployment, "thirdparty")}, own_folders(deployment, "broker"))
    files = brokers_files(deployment)
    with Intruder(deployment.thirdparty.pid) as intruder:
        assert {intruder.open(path) for path in files} == {0}
        assert intruder.connect(int(deployment.broker.address.rsplit(":")[-1])) == 0
    assert sandbox_line(deployment.thirdparty) == "off, as configured"
    assert "warning: sandbox: off" in deployment.thirdparty.text()
    status = status_of(f"/proc/{deployment.thirdparty.pid}")
    ours = status_of("/proc/self")  # inside a container some parts are on
    assert (status["Seccomp"], status["NoNewPrivs"]) == (ours["Seccomp"], ours["NoNewPrivs"])


@needs_sandbox
@needs_tracing
def test_a_broker_and_a_worker_reach_only_their_peers(ranked, deployment):
    limited = "any TCP port" not in sandbox_line(ranked["broker"])
    with socket.create_server((HOST, 0)) as other:
        elsewhere = other.getsockname()[1]
        for name, target in (("broker", "thirdparty"), ("worker", "broker")):
            with Intruder(ranked[name].pid) as intruder:
                assert intruder.connect(int(ranked[target].address.rsplit(":")[-1])) == 0, name
                assert intruder.connect(elsewhere) == ("EACCES" if limited else 0), name
                key = deployment.folder / "broker-keys/seal"
                # what the broker has in memory anyway, it may read again; only the operator's command changes it
                assert intruder.open(key) == (0 if name == "broker" else "EACCES")
                assert intruder.open(key, os.O_WRONLY) == "EACCES"
                assert intruder.open(f"{key}.new", os.O_WRONLY | os.O_CREAT) == "EACCES"
                assert intruder.unlink(key) == "EACCES"
                assert intruder.open(deployment.folder / "thirdparty-state/thirdparty.db") == "EACCES"


@needs_sandbox
@needs_tracing
def test_another_program_ends_the_daemon(ranked):
    """An intruder usually starts a shell first."""
    daemon = ranked["thirdparty"]
    with Intruder(daemon.pid) as intruder, pytest.raises(Died) as died:
        intruder.call("execve", intruder.put(b"/bin/sh\0"), 0, 0)
    assert died.value.signal == signal.SIGSYS


# --- what must still work


def renew(pki, files, identity, folder):
    """A new certificate and key at the same paths, put there by rename, as a renewal does."""
    fresh = pki.issue(identity, name=f"renewed-{identity.replace('/', '-')}-{folder.name}")
    for new, old in ((fresh.key, files["key"]), (fresh.cert, files["cert"])):
        staged = Path(old).with_suffix(".new")
        shutil.copy(new, staged)
        staged.rename(old)
    return fresh


def served_certificate(address):
    done = subprocess.run(["openssl", "s_client", "-connect", address, "-alpn", "crowdveil/1"], input=b"",
                          capture_output=True, timeout=20)
    return re.search(rb"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", done.stdout, re.S).group()


def own_copy(pki, identity, folder):
    """Files that a test may replace."""
    folder.mkdir()
    files = pki.issue(identity).config()
    for key, path in files.items():
        files[key] = shutil.copy(path, folder)
    return files


def test_certificates_that_were_replaced_by_rename_are_read_on_sighup(deployment, pki, tmp_path):
    for name, identity in (("thirdparty", "thirdparty/ranker"), ("broker", "broker/main")):
        files = own_copy(pki, identity, tmp_path / f"{name}-tls")
        daemon = getattr(deployment, f"start_{name}")({"tls": files})
        before = served_certificate(daemon.address)
        fresh = renew(pki, files, identity, tmp_path)
        mark = daemon.mark()
        daemon.signal(signal.SIGHUP)
        daemon.wait_for(r"certificates reloaded", after=mark)
        served = served_certificate(daemon.address)
        assert served != before and served in Path(fresh.cert).read_bytes()
    deployment.thirdparty.wait_for("broker/main: connected")
    deployment.broker.wait_for("thirdparty/ranker: connected")


def test_a_worker_reads_its_certificate_again(deployment, pki, tmp_path, worker_program):
    """Behind a link, as some renewals leave it: cert.pem points to another folder, and later to another file there."""
    deployment.up()
    files, archive = own_copy(pki, "worker/7", tmp_path / "live"), tmp_path / "archive"
    archive.mkdir()
    for key in ("cert", "key"):
        Path(files[key]).rename(archive / f"{key}1")
        Path(files[key]).symlink_to(archive / f"{key}1")
    (tmp_path / "campaign.yaml").write_text(CAMPAIGN)
    worker = deployment.start_worker("worker/7", tmp_path / "campaign.yaml", {"tls": files, "exit_when_done": False})
    worker.wait_for("connected as worker/7")
    fresh = pki.issue("worker/7", name="worker-7-renewed")
    for key in ("key", "cert"):
        shutil.copy(getattr(fresh, key), archive / f"{key}2")
        (tmp_path / "link").symlink_to(archive / f"{key}2")
        (tmp_path / "link").rename(files[key])
    worker.signal(signal.SIGHUP)
    worker.wait_for("certificates reloaded")


@needs(machine.sandbox, machine.localhost)
def test_names_are_looked_up(deployment, tmp_path, worker_program):
    deployment.start_thirdparty({"listen": "localhost:0"})
    port = deployment.thirdparty.address.rsplit(":")[-1]
    deployment.start_broker({"listen": "localhost:0", "thirdparty": f"localhost:{port}"})
    deployment.broker.wait_for("thirdparty/ranker: connected")
    line = sandbox_line(deployment.broker)
    assert "looks up names" in line
    assert "any TCP port" in line or f"connects to TCP port {port} and 53" in line
    deployment.broker.wait_for(r"sandbox: ")
    (tmp_path / "campaign.yaml").write_text(CAMPAIGN)
    broker_port = deployment.broker.address.rsplit(":")[-1]
    worker = deployment.start_worker("worker/3", tmp_path / "campaign.yaml", {"broker": f"localhost:{broker_port}"})
    worker.wait_for("connected as worker/3")


def test_a_clean_end_leaves_no_socket_and_no_log_behind(deployment):
    deployment.up(own_folders(deployment, "thirdparty"), own_folders(deployment, "broker"))
    sockets = [deployment.folder / f"{name}-run/admin.sock" for name in ("broker", "thirdparty")]
    assert all(path.exists() for path in sockets)
    assert set(deployment.stop().values()) == {0}
    assert not any(path.exists() for path in sockets)
    assert not list(deployment.folder.rglob("*-wal")), "SQLite removes its log when it closes"


# --- as configured


def settings_of(deployment, name, tmp_path):
    if name != "worker":
        return getattr(deployment, f"{name}_settings")()
    (tmp_path / "campaign.yaml").write_text(CAMPAIGN)
    return {"broker": "127.0.0.1:1", "broker_name": "main", "requesters": "alice",
            "campaign": str(tmp_path / "campaign.yaml"), "seed": 1, "accept": {"tokens": 0},
            "tls": deployment.pki.issue("worker/1").config()}


def run(deployment, name, tmp_path, changes, prefix=(), *options):
    config = write_config(tmp_path / f"{name}.yaml", merged(settings_of(deployment, name, tmp_path), changes))
    return subprocess.run([*prefix, PROGRAMS[name], "--config", config, *options], capture_output=True, text=True,
                          timeout=30, cwd=tmp_path)


@needs_sandbox
@needs_locks
@pytest.mark.parametrize("name", PARTIES)
@pytest.mark.parametrize("call, part", [("landlock_create_ruleset", "landlock"), ("capset", "capabilities"),
                                        ("mlock,mlock2,mlockall", "swap")])
def test_require_does_not_start_without_a_part(deployment, tmp_path, name, call, part):
    done = run(deployment, name, tmp_path, {"sandbox": "require"}, (*WITHOUT, call))
    assert done.returncode == 1, done.stderr
    lines = done.stderr.strip().split("\n")
    assert len(lines) == 1 and done.stdout == "", done.stderr
    assert re.search(rf"sandbox is require, but {part} is not available: .+; expected", lines[0])


@needs_sandbox
def test_a_part_that_the_kernel_lacks_is_reported_and_not_fatal(deployment):
    deployment.start_thirdparty({}, prefix=(*WITHOUT, "landlock_create_ruleset"))
    assert "landlock: OFF, not supported by this kernel" in sandbox_line(deployment.thirdparty)
    assert "warning: sandbox" in deployment.thirdparty.text()
    assert status_of(f"/proc/{deployment.thirdparty.pid}")["Seccomp"] == "2", "the other parts are on"


@needs_sandbox
@needs_locks
def test_require_starts_where_all_can_be_had(deployment):
    deployment.up({"sandbox": "require"}, {"sandbox": "require"})
    deployment.broker.wait_for("thirdparty/ranker: connected")


@pytest.mark.parametrize("name", PARTIES)
def test_bad_settings(deployment, tmp_path, name):
    done = run(deployment, name, tmp_path, {"sandbox": "yes"})
    assert done.returncode == 2
    assert re.search(r':\d+:\d+: sandbox is "yes"; expected on, require or off', done.stderr)
    done = run(deployment, name, tmp_path, {"user": "no-such-user"})
    assert done.returncode == 2
    assert "user: unknown user no-such-user; expected" in done.stderr
    assert not list(deployment.folder.rglob("*.db")), "nothing is left behind"


@needs(machine.seccomp)
@pytest.mark.parametrize("name", PARTIES)
def test_checking_a_configuration_gives_nothing_up(deployment, tmp_path, name):
    done = run(deployment, name, tmp_path, {"sandbox": "require"}, (*WITHOUT, "landlock_create_ruleset"),
               "--check-config")
    assert (done.returncode, done.stderr) == (0, "")


@needs(machine.sandbox, machine.other_users)
def test_a_daemon_that_root_starts_becomes_its_user(deployment, pki):
    """Root reads the keys, in a folder that is closed to others, and binds; new files belong to the user."""
    nobody = pwd.getpwnam("nobody")
    deployment.folder = Path(tempfile.mkdtemp(prefix="crowdveil-"))
    deployment.folder.chmod(0o711)
    pki.folder.chmod(0o700)
    owned = {}
    for name in ("thirdparty", "broker"):
        changes = own_folders(deployment, name)
        for folder in [deployment.state(f"{name}-{part}") for part in ("state", "run", "anchor", "keys")]:
            os.chown(folder, nobody.pw_uid, nobody.pw_gid)
        getattr(deployment, f"start_{name}")({"user": "nobody", **changes})
        owned[name] = status_of(f"/proc/{getattr(deployment, name).pid}")
    deployment.broker.wait_for("thirdparty/ranker: connected")
    for name, status in owned.items():
        assert status["Uid"].split() == [str(nobody.pw_uid)] * 4
        assert status["Gid"].split() == [str(nobody.pw_gid)] * 4
        assert status["Groups"].split() == [str(nobody.pw_gid)]
        assert int(status["CapBnd"], 16) == 0 and int(status["CapEff"], 16) == 0
        database = deployment.folder / f"{name}-state/{name}.db"
        assert (database.stat().st_uid, database.stat().st_mode & 0o777) == (nobody.pw_uid, 0o600)
        assert "user: nobody;" in sandbox_line(getattr(deployment, name))
        assert "OFF" not in sandbox_line(getattr(deployment, name))
    assert set(deployment.stop().values()) == {0}
    assert not list(deployment.folder.rglob("*.sock"))
    shutil.rmtree(deployment.folder)
