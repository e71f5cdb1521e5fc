# SPDX-License-Identifier: Apache-2.0
"""Network namespaces: the crowd cannot reach the third-party, and a campaign runs all the same."""
import os
import shutil
import subprocess

import pytest

from client.requester import classes, end_name, spec

# prefix, then: the link's two ends and their addresses
LINKS = (("crowd", "10.213.1.2", "broker", "10.213.1.1"), ("rank", "10.213.2.2", "broker", "10.213.2.1"))


def ip(*args, check=True):
    return subprocess.run(["ip", *args], check=check, capture_output=True, text=True)


class Namespaces:
    """crowd -- broker -- rank, and this host -- broker for the requester; nothing is forwarded."""

    def __init__(self):
        self.tag = f"cv{os.getpid()}"
        self.names = {part: f"{self.tag}-{part}" for part in ("crowd", "broker", "rank")}
        for name in self.names.values():
            ip("netns", "add", name)
            ip("-n", name, "link", "set", "lo", "up")
        for near, near_address, far, far_address in LINKS:
            self.link(near[0], near, near_address, far, far_address)
        ends = (f"{self.tag}h", f"{self.tag}b")
        ip("link", "add", ends[0], "type", "veth", "peer", "name", ends[1], "netns", self.names["broker"])
        ip("addr", "add", "10.213.3.2/30", "dev", ends[0])
        ip("link", "set", ends[0], "up")
        ip("-n", self.names["broker"], "addr", "add", "10.213.3.1/30", "dev", ends[1])
        ip("-n", self.names["broker"], "link", "set", ends[1], "up")
        # even if somebody set a route: the broker's host forwards nothing
        self.run("broker", "sysctl", "-qw", "net.ipv4.ip_forward=0")
        ip("-n", self.names["crowd"], "route", "add", "default", "via", "10.213.1.1")

    def link(self, letter, near, near_address, far, far_address):
        ends = (f"{self.tag}{letter}0", f"{self.tag}{letter}1")
        ip("-n", self.names[near], "link", "add", ends[0], "type", "veth", "peer", "name", ends[1],
           "netns", self.names[far])
        for part, end, address in ((near, ends[0], near_address), (far, ends[1], far_address)):
            ip("-n", self.names[part], "addr", "add", f"{address}/30", "dev", end)
            ip("-n", self.names[part], "link", "set", end, "up")

    def inside(self, part):
        return ("ip", "netns", "exec", self.names[part])

    def run(self, part, *command):
        return subprocess.run([*self.inside(part), *command], capture_output=True, text=True, timeout=60)

    def close(self):
        for name in self.names.values():
            ip("netns", "del", name, check=False)
        ip("link", "del", f"{self.tag}h", check=False)


@pytest.fixture
def namespaces():
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("network namespaces need root and the program ip")
    try:
        made = Namespaces()
    except subprocess.CalledProcessError as error:
        pytest.skip(f"no network namespaces here: {error.stderr.strip()}")
    yield made
    made.close()


CONNECT = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), 2)"


def test_the_crowd_cannot_reach_the_third_party(deployment, namespaces, tmp_path, worker_program):
    (tmp_path / "campaign.yaml").write_text(
        "campaign: test\nitems: {list: [{name: a, mean: 0.9}, {name: b, mean: 0.2}]}\n"
        "policy: {name: ppar, alpha: 0.2}\nprivacy: {epsilon: 1}\n")
    deployment.start_thirdparty({"listen": "10.213.2.2:0"}, prefix=namespaces.inside("rank"))
    deployment.start_broker({"listen": "0.0.0.0:0"}, prefix=namespaces.inside("broker"))
    port = deployment.broker.address.rsplit(":", 1)[1]
    thirdparty_port = deployment.thirdparty.address.rsplit(":", 1)[1]

    reach = namespaces.run("crowd", "/usr/bin/python3", "-c", CONNECT, "10.213.1.1", port)
    assert reach.returncode == 0, f"the crowd must reach the broker: {reach.stderr}"
    reach = namespaces.run("broker", "/usr/bin/python3", "-c", CONNECT, "10.213.2.2", thirdparty_port)
    assert reach.returncode == 0, f"the broker must reach the third-party: {reach.stderr}"
    reach = namespaces.run("crowd", "/usr/bin/python3", "-c", CONNECT, "10.213.2.2", thirdparty_port)
    assert reach.returncode != 0 and "rror" in reach.stderr, "the crowd must not reach the third-party"

    with deployment.requester(address=f"10.213.3.1:{port}") as requester:
        campaign = requester.submit(
            spec(2, tokens=20_000, policy_params={"alpha": .2, "tokens_per_round": 500})).campaign
        worker = deployment.start_worker("gateway/1-20000", tmp_path / "campaign.yaml",
                                         {"broker": f"10.213.1.1:{port}"}, prefix=namespaces.inside("crowd"))
        finished = requester.watch(campaign)
    assert end_name(finished.progress.end) == "complete"
    assert classes(finished) == ({1: [0], 2: [1]}, [])
    assert worker.wait() == 0
