# SPDX-License-Identifier: Apache-2.0
"""Two brokers over PostgreSQL: the active one's container is killed in mid-campaign, and the other one goes on."""
import http.client
import json
import re
import time
from pathlib import Path

import pytest
import yaml

import engine
from harness.admin import get, metric
from project import wait_until

SERVICES = yaml.safe_load((engine.COMPOSE / "ha.yaml").read_text())["services"]
BROKERS = ("broker-1", "broker-2")
PAGE_PORT = 7480


def test_each_party_is_confined_and_sees_what_it_needs():
    mounts = {service: {volume.split(":")[0] for volume in of["volumes"]} for service, of in SERVICES.items()}
    for service, of in SERVICES.items():
        assert of["read_only"] and of["cap_drop"] == ["ALL"] and of["security_opt"] == ["no-new-privileges"], service
        assert ("healthcheck" in of) == ("restart" in of) == (
            service not in ("certificates", "tables", "requester")), service
        assert ("storage" in of["networks"]) == (service.split("-")[0] in ("broker", "database", "tables")), service
        assert ("ranking" in of["networks"]) == (service in (*BROKERS, "thirdparty")), service
        assert ("ha-owner" in mounts[service]) == (service in ("database-1", "tables")), service
        assert ("ha-ca" in mounts[service]) == (service == "certificates"), service
    assert mounts["broker-1"] ^ mounts["broker-2"] == {"ha-broker-1-anchor", "ha-broker-2-anchor"}


def socket_folder(project, service):
    return Path(f"/proc/{project.pid(service)}/root/var/lib/crowdveil-admin")


def is_active(project, service):
    try:
        return get(socket_folder(project, service) / "broker.sock", "/active", timeout=1)[0] == 200
    except OSError:  # it has ended or is starting
        return False


def active(project):
    return wait_until(lambda: [service for service in BROKERS if is_active(project, service)], "a broker is active")[0]


def health(project, service):
    return get(socket_folder(project, service) / "broker.sock", "/health")[1]


class Page:
    """The third-party's page, asked over the network of the brokers as a browser on this machine would."""

    def __init__(self, project):
        self.address = project.address("thirdparty", "ranking")
        token = re.search(r"page on http://\S+/(\?token=\S+)", project.log("thirdparty"))[1]
        self.cookie = self.ask(f"/{token}").getheader("Set-Cookie").split(";")[0]

    def ask(self, path, **headers):
        connection = http.client.HTTPConnection(self.address, PAGE_PORT, timeout=10)
        connection.request("GET", path, headers={"Host": f"127.0.0.1:{PAGE_PORT}", **headers})
        return connection.getresponse()

    def campaigns(self):
        return json.load(self.ask("/api/campaigns", Cookie=self.cookie))["campaigns"]

    def campaign(self):
        return json.load(self.ask("/api/campaign?id=1", Cookie=self.cookie))

    def link(self):
        """Whether a broker is connected, and its term."""
        link = self.campaign()["link"]
        return link["connected"], link["term"]

    def released(self):
        return self.campaign()["steps"][-1]["releases"]


@pytest.fixture
def deployment(project):
    pace = ["--arrival-rate=20000"]
    page = [f"--page=0.0.0.0:{PAGE_PORT}", "--page-hosts=127.0.0.1"]
    started = project("ha", thirdparty=page, worker_1=pace, worker_2=pace, worker_3=pace)
    started.up("database-1", "database-2")
    started.wait_for_health("database-2")
    started.up("tables")
    assert started.wait("tables") == 0, started.log("tables")
    return started.up()


def test_the_active_broker_is_killed_in_mid_campaign(deployment, say):
    before = active(deployment)
    other = BROKERS[1 - BROKERS.index(before)]
    first = f'ok role=active term=1 .*holder="main at {before}:7401" .*replica=sync'
    wait_until(lambda: re.match(first, health(deployment, before)), f"{before} says so, and has the third-party")
    wait_until(lambda: "role=standby term=1 " in health(deployment, other), "the other one stands by")
    page = Page(deployment)
    wait_until(page.campaigns, "the page has the campaign")
    reached = wait_until(page.released, "the page shows a release")
    assert page.campaign()["state"] == "running"
    assert page.link() == (True, 1)
    killed = time.monotonic()
    engine.podman("stop", "-t", "0", deployment.id(before))
    assert active(deployment) == other
    say(f"the active broker's container was killed; after {time.monotonic() - killed:.1f} s the other one was active")
    wait_until(lambda: "ok role=active term=2 " in health(deployment, other), "and it has the third-party")
    assert page.link() == (True, 2)
    for name, value in (("active", 1), ("term", 2)):
        assert metric(socket_folder(deployment, other), "broker", f"crowdveil_broker_{name}") == value
    wait_until(lambda: page.released() > reached, "the page shows releases of the next term")
    engine.podman("start", deployment.id(before))
    wait_until(lambda: is_healthy_standby(deployment, before), "the killed one is back and stands by")
    assert deployment.wait() == 0, deployment.log("requester")
    assert "complete, every item is ranked" in deployment.log("requester")
    assert page.campaign()["state"] == "complete"


def is_healthy_standby(project, service):
    try:
        return "ok role=standby term=2 " in health(project, service)
    except OSError:
        return False
