# SPDX-License-Identifier: Apache-2.0
"""Support for containers: --probe as a health check, the worker's admin socket, and a start before the files and the
other parties exist."""
import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from client.requester import spec
from harness import machine
from harness.admin import get, metrics
from harness.commands import as_requester, crowdveil
from harness.daemon import PROGRAMS, ROOT, Daemon, wait_until, write_config
from harness.deployment import merged
from harness.machine import needs
from support.address import HOST

pytestmark = pytest.mark.usefixtures("worker_program")

CAMPAIGN = """campaign: test
items: {list: [{name: a, mean: 0.9}, {name: b, mean: 0.2}]}
policy: {name: ppar, alpha: 0.2}
privacy: {epsilon: 1}
"""
PARTIES = ("broker", "thirdparty", "worker")
IDENTITY = {"broker": "broker/main", "thirdparty": "thirdparty/ranker", "worker": "gateway/1-500",
            "status": "requester/alice"}
RULES = {"alpha": .2, "tokens_per_round": 500}
LOST = "lost.test"  # no party has this name


@pytest.fixture
def campaign(tmp_path):
    path = tmp_path / "campaign.yaml"
    path.write_text(CAMPAIGN)
    return path


def settings_of(deployment, name, campaign):
    """A daemon with an admin socket; a worker runs on when its campaigns have ended."""
    if name == "worker":
        broker = deployment.broker.address if deployment.broker else "127.0.0.1:1"
        return {"broker": broker, "broker_name": "main", "campaign": str(campaign), "requesters": "alice", "seed": 1,
                "accept": {"tokens": 0},
                "tls": deployment.pki.issue(IDENTITY[name]).config(), "admin": str(deployment.folder / "worker.sock")}
    return getattr(deployment, f"{name}_settings")()


def start_worker(deployment, campaign, changes=None):
    worker = deployment.start("worker", merged(settings_of(deployment, "worker", campaign), changes))
    worker.wait_for("connected as gateway/1-500")
    return worker


def probe(config, name, *options):
    """(status, standard output, standard error)"""
    done = subprocess.run([PROGRAMS[name], "--config", config, "--probe", *options], capture_output=True, text=True,
                          timeout=30)
    return done.returncode, done.stdout, done.stderr


def healthy(name):
    return 0, f"crowdveil-{name}: ok\n", ""


def ill(name, line):
    return 1, "", f"crowdveil-{name}: {line}\n"


# --- the probe


def test_a_probe_says_whether_a_daemon_is_healthy(deployment, campaign):
    folder = deployment.folder
    deployment.start_broker()
    assert probe(folder / "broker.yaml", "broker") == ill("broker", "the third-party is not connected")
    address = deployment.broker.address
    assert deployment.broker.stop() == 0
    deployment.start_thirdparty()
    deployment.start_broker({"listen": address}).wait_for("thirdparty/ranker: connected")
    worker = start_worker(deployment, campaign)
    for name in PARTIES:
        assert probe(folder / f"{name}.yaml", name) == healthy(name)
    assert deployment.broker.stop() == 0
    wait_until(lambda: get(folder / "worker.sock", "/health") == (503, "the broker is not connected\n"), "it is gone")
    assert probe(folder / "worker.yaml", "worker") == ill("worker", "the broker is not connected")
    assert worker.stop() == 0 and deployment.thirdparty.stop() == 0
    for name in PARTIES:
        sock = folder / f"{name}.sock"
        absent = f"{sock}: no daemon answers: No such file or directory"
        assert probe(folder / f"{name}.yaml", name) == ill(name, absent)
        sock.write_text("")
        assert probe(folder / f"{name}.yaml", name) == ill(name, f"{sock}: no daemon answers: Connection refused")


@pytest.mark.parametrize("name", PARTIES)
def test_a_probe_does_not_wait_for_a_daemon_that_stands_still(deployment, campaign, name):
    deployment.up().broker.wait_for("thirdparty/ranker: connected")
    config = deployment.folder / f"{name}.yaml"
    daemon = start_worker(deployment, campaign) if name == "worker" else getattr(deployment, name)
    daemon.signal(signal.SIGSTOP)
    try:
        start = time.monotonic()
        assert probe(config, name) == ill(name, f"{deployment.folder / name}.sock: no answer within 2 s")
        assert time.monotonic() - start >= 2
    finally:
        daemon.signal(signal.SIGCONT)
    wait_until(lambda: probe(config, name) == healthy(name), "it goes on")


@pytest.mark.parametrize("name", PARTIES)
def test_a_probe_reads_nothing_but_the_configuration(deployment, campaign, name):
    """None of the files that the configuration names exists, and none is made."""
    deployment.up().broker.wait_for("thirdparty/ranker: connected")
    start_worker(deployment, campaign)
    nowhere = deployment.folder / "nowhere"
    lost = {key: str(nowhere / key) for key in ("state", "anchor", "seal_key", "campaign")}
    settings = settings_of(deployment, name, campaign)
    settings |= {key: path for key, path in lost.items() if key in settings}
    settings["tls"] = {key: str(nowhere / key) for key in settings["tls"]}
    settings["wait_for_files"] = "60s"
    config = write_config(deployment.folder / "lost.yaml", settings)
    assert probe(config, name) == healthy(name)
    without = write_config(deployment.folder / "without.yaml",
                           {key: value for key, value in settings.items() if key != "admin"})
    assert probe(without, name) == ill(name, "missing setting admin, which --probe needs; expected the path of "
                                             "a Unix socket")
    assert probe(without, name, "--admin", settings["admin"]) == healthy(name)
    assert not nowhere.exists()


# --- the worker's admin socket


def test_a_worker_says_how_many_tokens_it_gave(deployment, campaign):
    """Each of 500 workers gives one token, and the campaign wants more: the metrics agree with the summary at the
    end."""
    deployment.up()
    sock = deployment.folder / "worker.sock"
    with deployment.requester() as requester:
        requester.submit(spec(2, tokens=20_000, policy_params=RULES))
        worker = start_worker(deployment, campaign)
        assert sock.stat().st_mode & 0o7777 == 0o600
        assert get(sock, "/health") == (200, "ok\n")
        wait_until(lambda: metrics(sock)["crowdveil_worker_tokens_accepted_total"] == 500, "all have given theirs")
    found = metrics(sock)
    assert worker.stop() == 0
    printed = worker.wait_for(r"(\d+) tokens accepted, (\d+) sent again, (\d+) expired, (\d+) refused")
    counted = [found.pop(f"crowdveil_worker_tokens_{what}_total")
               for what in ("accepted", "duplicates", "expired", "refused")]
    assert counted == [500, 0, 0, 0] == list(map(int, printed.groups()))
    own = {name: value for name, value in found.items() if name.startswith("crowdveil_worker_")}
    assert own == {"crowdveil_worker_connected": 1, "crowdveil_worker_ids": 500, "crowdveil_worker_campaigns": 1}, (
        "that is all it says of its workers")
    assert not sock.exists()


def test_a_worker_with_a_socket_ends_when_it_is_done(deployment, campaign):
    deployment.up()
    with deployment.requester() as requester:
        requester.submit(spec(2, tokens=20_000, policy_params=RULES))
        worker = start_worker(deployment, campaign, {"exit_when_done": True})
        assert worker.wait() == 0
    assert "500 tokens accepted" in worker.text()
    assert not (deployment.folder / "worker.sock").exists()


def test_all_parties_of_a_launcher_can_be_probed():
    with tempfile.TemporaryDirectory(prefix="cv-") as folder:
        state = Path(folder) / "state"
        command = [PROGRAMS["crowdveil"], "up", ROOT / "deploy/campaigns/first.yaml", "--keep", "--state", state]
        up = Daemon("up", command, Path(folder) / "up.log")
        try:
            up.wait_for("Still running until Ctrl-C", timeout=120)
            for party in ("broker", "thirdparty", "gateway-1", "gateway-2"):
                name = "worker" if "gateway" in party else party
                assert probe(state / f"{party}.yaml", name) == healthy(name), party
            up.signal(signal.SIGINT)
            assert up.wait() == 0
            assert not list(state.rglob("*.sock"))
        finally:
            up.kill()


# --- files that do not exist yet


class Late:
    """A party's TLS files, which are put into their folder one by one."""

    def __init__(self, deployment, name):
        self.folder = deployment.folder / f"late-{name}"
        self.folder.mkdir()
        self.files = deployment.pki.issue(IDENTITY[name])
        self.names = {key: str(self.folder / f"{key}.pem") for key in ("ca", "cert", "key")}

    def put(self, *keys):
        for key in keys:
            beside = self.folder / "beside"
            shutil.copyfile(getattr(self.files, key), beside)
            beside.chmod(0o600)
            os.replace(beside, self.names[key])


def launch(deployment, name, campaign, late, wait="60s", prefix=(), **kwargs):
    """A daemon or, `status`, a requester's command, whose files may be missing."""
    if name == "status":
        options = [word for key, path in late.names.items() for word in (f"--tls-{key}", path)]
        return deployment.launch(name, [*prefix, PROGRAMS["crowdveil"], "status", "--broker-name", "main", "--broker",
                                        deployment.broker.address if deployment.broker else "127.0.0.1:1",
                                        "--wait-for-files", wait, *options], **kwargs)
    changes = {"tls": late.names} | ({"wait_for_files": wait} if wait else {})
    settings = merged(settings_of(deployment, name, campaign), changes)
    daemon = deployment.start(name, settings, prefix=prefix, **kwargs)
    if name != "worker":
        setattr(deployment, name, daemon)
    return daemon


def says(name):
    return "crowdveil status" if name == "status" else f"crowdveil-{name}"


def test_parties_start_before_their_files_are_there(deployment, campaign):
    for name, comes_up in (("thirdparty", "ready on"), ("broker", "ready on"), ("worker", "connected as gateway"),
                           ("status", None)):
        late = Late(deployment, name)
        daemon = launch(deployment, name, campaign, late)
        daemon.wait_for(f"^{says(name)}: waiting up to 60 s for {late.names['ca']}$")
        late.put("cert", "key", "ca")
        if comes_up:
            daemon.wait_for(comes_up)
        else:
            assert daemon.wait() == 0
        assert daemon.text().count("waiting up to") == 1


@pytest.mark.parametrize("name", [*PARTIES, "status"])
def test_the_wait_for_files_ends(deployment, campaign, name):
    late = Late(deployment, name)
    late.put("ca")
    daemon = launch(deployment, name, campaign, late, wait="300ms")
    assert daemon.wait() == 2
    cert = late.names["cert"]
    assert daemon.lines == [f"{says(name)}: waiting up to 300 ms for {cert}",
                            f"{says(name)}: {cert}: still missing after 300 ms; "
                            "expected a readable file (wait_for_files)"]
    assert not list(deployment.folder.rglob("*.db")) and not list(deployment.folder.rglob("*.sock"))


@pytest.mark.parametrize("name", PARTIES)
def test_without_the_setting_no_program_waits(deployment, campaign, name):
    daemon = launch(deployment, name, campaign, Late(deployment, name), wait=None)
    assert daemon.wait() != 0
    assert len(daemon.lines) == 1 and "No such file" in daemon.lines[0], daemon.lines


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("name", [*PARTIES, "status"])
def test_a_signal_ends_the_wait_for_files(deployment, campaign, name, number):
    late = Late(deployment, name)
    daemon = launch(deployment, name, campaign, late)
    daemon.wait_for("waiting up to 60 s")
    daemon.signal(number)
    assert daemon.wait(20) == (1 if name == "status" else 0)
    assert daemon.lines[1:] == [f"{says(name)}: stopped by a signal while waiting for {late.names['ca']}"]


@needs(machine.process_namespaces)
def test_a_signal_ends_the_wait_of_process_1(deployment, campaign):
    """The kernel sends process 1 no signal that it has no handler for."""
    late = Late(deployment, "broker")
    outer = launch(deployment, "broker", campaign, late, prefix=("unshare", "--pid", "--fork", "--kill-child"))
    outer.wait_for("waiting up to 60 s")
    inner = int(Path(f"/proc/{outer.pid}/task/{outer.pid}/children").read_text())
    assert re.search(r"^NSpid:\s+\d+\s+1$", Path(f"/proc/{inner}/status").read_text(), re.M)
    os.kill(inner, signal.SIGTERM)
    assert outer.wait(20) == 0
    outer.wait_for("stopped by a signal")


@needs(machine.bounded_capabilities)
@pytest.mark.parametrize("name", [*PARTIES, "status"])
def test_a_file_that_may_not_be_read_is_named_so(deployment, campaign, name):
    late = Late(deployment, name)
    late.put("ca", "cert", "key")
    Path(late.names["key"]).chmod(0)
    as_somebody = ("setpriv", "--bounding-set", "-dac_override,-dac_read_search") if os.geteuid() == 0 else ()
    daemon = launch(deployment, name, campaign, late, wait="200ms", prefix=as_somebody)
    assert daemon.wait() == 2
    assert daemon.lines[-1] == (f"{says(name)}: {late.names['key']}: Permission denied after 200 ms; "
                                "expected a readable file (wait_for_files)")


# --- a broker that is not up yet


def wait_for_patience(address, more_than):
    """Listens at the broker's address and closes every connection until this many seconds after the first."""
    host, port = address.rsplit(":", 1)
    with socket.create_server((host, int(port))) as server:
        server.settimeout(30)
        server.accept()[0].close()
        end = time.monotonic() + more_than
        while (left := end - time.monotonic()) > 0:
            server.settimeout(left)
            with contextlib.suppress(TimeoutError):
                server.accept()[0].close()


def test_a_requester_may_come_before_the_broker_and_outlast_it(deployment, campaign):
    deployment.up()
    address = deployment.broker.address
    options = as_requester(deployment)
    assert deployment.broker.stop() == 0
    (deployment.folder / "submit.yaml").write_text(CAMPAIGN + "limits: {tokens: 20000}\n")
    submit = deployment.launch("submit", [PROGRAMS["crowdveil"], "submit", deployment.folder / "submit.yaml", "--watch",
                                          "--patience", "60s", *options])
    wait_for_patience(address, 3.2)  # without the option it is 3 s
    deployment.start_broker({"listen": address})
    submit.wait_for("^campaign 1$")
    deployment.broker.kill()
    wait_for_patience(address, 3.2)  # without the option it is 3 s
    deployment.start_broker({"listen": address})
    deployment.start_worker("gateway/1-20000", campaign)
    assert submit.wait() == 0


def test_a_requester_waits_as_long_as_its_option_says(deployment):
    files = deployment.pki.issue("requester/alice")
    options = ["--broker-name", "main", "--tls-ca", files.ca, "--tls-cert", files.cert, "--tls-key", files.key]
    for broker, reason in (("127.0.0.1:1", "connection refused"), (f"{LOST}:7401", "cannot resolve the name")):
        start = time.monotonic()
        done = crowdveil("status", "--broker", broker, "--patience", "700ms", *options)
        assert done.returncode == 1 and reason in done.stderr, done.stderr
        assert len(done.stderr.splitlines()) == 1
        assert time.monotonic() - start >= .7
    done = crowdveil("status", "--broker", "127.0.0.1:1", "--patience", "99ms", *options)
    assert done.returncode == 2 and "--patience" in done.stderr


@needs(machine.mount_namespaces)
def test_a_name_that_does_not_exist_yet_is_looked_up_again(deployment, campaign):
    """As for a container that has not been started."""
    deployment.use_system_clock()
    deployment.up()
    hosts = deployment.folder / "hosts"
    hosts.write_text("127.0.0.1 localhost\n")
    port = deployment.broker.address.rsplit(":")[-1]
    worker = deployment.start("worker", settings_of(deployment, "worker", campaign) | {"broker": f"{LOST}:{port}"},
                              prefix=("unshare", "--mount", "sh", "-c", 'mount --bind "$0" /etc/hosts && exec "$@"',
                                      str(hosts)))
    worker.wait_for("cannot resolve the name")
    with hosts.open("a") as table:
        table.write(f"{HOST} {LOST}\n")
    worker.wait_for("connected as gateway/1-500")
