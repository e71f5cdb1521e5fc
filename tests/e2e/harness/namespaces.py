# SPDX-License-Identifier: Apache-2.0
"""Network namespaces for the parties, with links between them that can be cut, in one direction or both."""
import fcntl
import os
import subprocess
import tempfile
from contextlib import closing, contextmanager

import pytest

from harness import machine

# a link's two ends and their addresses
LINKS = (("crowd", "10.213.1.2", "broker", "10.213.1.1"), ("rank", "10.213.2.2", "broker", "10.213.2.1"))
NOBODY = "02:00:00:00:00:01"


def ip(*args, check=True):
    return subprocess.run(["ip", *args], check=check, capture_output=True, text=True)


class Network:
    """Namespaces, and between any two of them that are linked two ways that can be cut."""

    def __init__(self, parts):
        self.tag, self.ways = f"cv{os.getpid()}", {}
        self.names = {part: f"{self.tag}-{part}" for part in parts}
        for name in self.names.values():
            ip("netns", "add", name)
            ip("-n", name, "link", "set", "lo", "up")

    def inside(self, part):
        return ("ip", "netns", "exec", self.names[part])

    def run(self, part, *command):
        return subprocess.run([*self.inside(part), *command], capture_output=True, text=True, timeout=60)

    def mute(self, sender, receiver):
        """From now on packets from `sender` to `receiver` are lost without an error to either: they go to a wrong
        address."""
        where, device, address = self.ways[sender, receiver]
        ip(*where, "neigh", "replace", address, "lladdr", NOBODY, "dev", device, "nud", "permanent")

    def heal(self):
        for where, device, address in self.ways.values():
            ip(*where, "neigh", "del", address, "dev", device, check=False)

    def close(self):
        for name in self.names.values():
            ip("netns", "del", name, check=False)
        ip("link", "del", f"{self.tag}h", check=False)


class Switch(Network):
    """Every part, and this host as the part "host", reaches every other one."""

    def __init__(self, *parts):
        super().__init__(("switch", *parts))
        self.hosts = {part: f"10.213.4.{number}" for number, part in enumerate(("host", *parts), start=1)}
        switch = self.names["switch"]
        ip("-n", switch, "link", "add", "switch", "type", "bridge")
        ip("-n", switch, "link", "set", "switch", "up")
        where = {"host": (), **{part: ("-n", self.names[part]) for part in parts}}
        devices = {part: f"{self.tag}h" if part == "host" else "eth0" for part in where}
        for number, part in enumerate(where):
            port = f"port{number}"
            ip("-n", switch, "link", "add", port, "type", "veth", "peer", "name", devices[part],
               *(() if part == "host" else ("netns", self.names[part])))
            if part == "host":
                ip("-n", switch, "link", "set", devices[part], "netns", str(os.getpid()))
            ip("-n", switch, "link", "set", port, "master", "switch", "up")
            ip(*where[part], "addr", "add", f"{self.hosts[part]}/24", "dev", devices[part])
            ip(*where[part], "link", "set", devices[part], "up")
        self.ways = {(one, other): (where[one], devices[one], self.hosts[other])
                     for one in where for other in where if one != other}

    def cut(self, one, other):
        self.mute(one, other)
        self.mute(other, one)


class Namespaces(Network):
    """crowd -- broker -- rank, and this host -- broker for the requester; nothing is forwarded."""

    def __init__(self):
        super().__init__(("crowd", "broker", "rank"))
        for near, near_address, far, far_address in LINKS:
            self.link(near[0], near, near_address, far, far_address)
        ends = (f"{self.tag}h", f"{self.tag}b")
        self.ways["host", "broker"] = ((), ends[0], "10.213.3.1")
        self.ways["broker", "host"] = (("-n", self.names["broker"]), ends[1], "10.213.3.2")
        ip("link", "add", ends[0], "type", "veth", "peer", "name", ends[1], "netns", self.names["broker"])
        ip("addr", "add", "10.213.3.2/30", "dev", ends[0])
        ip("link", "set", ends[0], "up")
        ip("-n", self.names["broker"], "addr", "add", "10.213.3.1/30", "dev", ends[1])
        ip("-n", self.names["broker"], "link", "set", ends[1], "up")
        # even with a route: the broker's host forwards nothing
        self.run("broker", "sysctl", "-qw", "net.ipv4.ip_forward=0")
        ip("-n", self.names["crowd"], "route", "add", "default", "via", "10.213.1.1")

    def link(self, letter, near, near_address, far, far_address):
        ends = (f"{self.tag}{letter}0", f"{self.tag}{letter}1")
        ip("-n", self.names[near], "link", "add", ends[0], "type", "veth", "peer", "name", ends[1],
           "netns", self.names[far])
        self.ways[near, far] = (("-n", self.names[near]), ends[0], far_address)
        self.ways[far, near] = (("-n", self.names[far]), ends[1], near_address)
        for part, end, address in ((near, ends[0], near_address), (far, ends[1], far_address)):
            ip("-n", self.names[part], "addr", "add", f"{address}/30", "dev", end)
            ip("-n", self.names[part], "link", "set", end, "up")


@contextmanager
def alone():
    """The host has each address once, also if other tests run on it."""
    if reason := machine.network_namespaces():
        pytest.skip(reason)
    with open(f"{tempfile.gettempdir()}/crowdveil-namespaces.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@pytest.fixture
def namespaces():
    with alone(), closing(Namespaces()) as made:
        yield made
