# SPDX-License-Identifier: Apache-2.0
"""--probe, as the health check of a container, and the worker's admin socket."""
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from client.requester import spec
from harness.admin import get, metrics
from harness.daemon import PROGRAMS, ROOT, Daemon, wait_until, write_config
from harness.deployment import merged

pytestmark = pytest.mark.usefixtures("worker_program")

CAMPAIGN = """campaign: test
items: {list: [{name: a, mean: 0.9}, {name: b, mean: 0.2}]}
policy: {name: ppar, alpha: 0.2}
privacy: {epsilon: 1}
"""
PARTIES = ("broker", "thirdparty", "worker")
IDENTITY = {"broker": "broker/main", "thirdparty": "thirdparty/ranker", "worker": "gateway/1-500"}
RULES = {"alpha": .2, "tokens_per_round": 500}


@pytest.fixture
def campaign(tmp_path):
    path = tmp_path / "campaign.yaml"
    path.write_text(CAMPAIGN)
    return path


def settings_of(deployment, name, campaign):
    """Of a daemon with an admin socket; a worker goes on when its campaigns are over."""
    if name == "worker":
        broker = deployment.broker.address if deployment.broker else "127.0.0.1:1"
        return {"broker": broker, "broker_name": "main", "campaign": str(campaign), "requesters": "alice", "seed": 1,
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
        assert probe(folder / f"{name}.yaml", name) == ill(name, f"{sock}: nobody answers: No such file or directory")
        sock.write_text("")
        assert probe(folder / f"{name}.yaml", name) == ill(name, f"{sock}: nobody answers: Connection refused")


@pytest.mark.parametrize("name", PARTIES)
def test_a_probe_does_not_wait_for_a_daemon_that_stands_still(deployment, campaign, name):
    deployment.up().broker.wait_for("thirdparty/ranker: connected")
    config = deployment.folder / f"{name}.yaml"
    daemon = start_worker(deployment, campaign) if name == "worker" else getattr(deployment, name)
    daemon.signal(signal.SIGSTOP)
    try:
        start = time.monotonic()
        assert probe(config, name) == ill(name, f"{deployment.folder / name}.sock: no answer within 2 s")
        assert 2 <= time.monotonic() - start < 10
    finally:
        daemon.signal(signal.SIGCONT)
    wait_until(lambda: probe(config, name) == healthy(name), "it goes on")


@pytest.mark.parametrize("name", PARTIES)
def test_a_probe_reads_nothing_but_the_configuration(deployment, campaign, name):
    """No file that the configuration names is there, and none is made."""
    deployment.up().broker.wait_for("thirdparty/ranker: connected")
    start_worker(deployment, campaign)
    nowhere = deployment.folder / "nowhere"
    lost = {key: str(nowhere / key) for key in ("state", "anchor", "seal_key", "campaign")}
    settings = settings_of(deployment, name, campaign)
    settings |= {key: path for key, path in lost.items() if key in settings}
    settings["tls"] = {key: str(nowhere / key) for key in settings["tls"]}
    config = write_config(deployment.folder / "lost.yaml", settings)
    assert probe(config, name) == healthy(name)
    without = write_config(deployment.folder / "without.yaml",
                           {key: value for key, value in settings.items() if key != "admin"})
    assert probe(without, name) == ill(name, "--probe asks the admin socket and admin is missing; expected the path of "
                                             "a Unix socket")
    assert probe(without, name, "--admin", settings["admin"]) == healthy(name)
    assert not nowhere.exists()


# --- the worker's admin socket


def test_a_worker_says_how_many_tokens_it_gave(deployment, campaign):
    """Each of 500 workers gives one token, and the campaign wants more: what it says is what it sums up at its end."""
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
    assert found == {"crowdveil_worker_connected": 1, "crowdveil_worker_ids": 500}, "that is all it says"
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
