# SPDX-License-Identifier: Apache-2.0
"""A deployment on loopback: third-party, broker, perhaps a co-broker, workers, a requester; the system chooses every
port. With two brokers start the co-broker after the third-party and before the broker."""
import copy
import os

import crowdveil
from client.requester import Requester
from harness import refused
from harness.clock import Clock
from harness.daemon import PROGRAMS, Daemon, write_config
from harness.pki import fingerprint
from support.address import ANY_PORT


# Most tests are about something else than how much a campaign may ask for: their parties allow more than by default.
LIMITS = {"epsilon": 10, "worker_epsilon": 100, "release_tokens": 10}


def merged(base, changes):
    """A change to None leaves the setting out."""
    out = copy.deepcopy(base)
    for key, value in (changes or {}).items():
        out[key] = merged(out[key], value) if isinstance(value, dict) and isinstance(out.get(key), dict) else value
    return {key: value for key, value in out.items() if value is not None}


class Deployment:
    def __init__(self, folder, pki, has_clock=True):
        """Without a clock of its own the daemons have the system's: for times that are measured, and for peers in
        namespaces."""
        self.folder, self.pki, self.daemons, self.count = folder, pki, [], 0
        self.clock = Clock(folder / "clock") if has_clock else None
        self.thirdparty = self.broker = self.cobroker = self.thirdparty_address = self.cobroker_address = None
        self.anchor = str(folder / "anchor")
        self.prefixes = {}  # by program: words before its command
        self.programs = {}  # by program: another one in its place
        self.hosts = {}     # by party: the host at which that party finds the broker

    # --- starting

    def use_system_clock(self):
        """Before the first daemon is started."""
        if self.clock is not None:
            self.clock.close()
            self.clock = None

    def launch(self, name, command, **kwargs):
        self.count += 1
        daemon = Daemon(name, command, self.folder / f"{self.count:02}-{name}.log", **kwargs)
        self.daemons.append(daemon)
        return daemon

    def start(self, program, settings, name=None, prefix=(), **kwargs):
        name = name or program
        if self.clock is not None:
            settings = merged({"unsafe_clock": self.clock.path}, settings)
        config = write_config(self.folder / f"{name}.yaml", settings)
        prefix = prefix or self.prefixes.get(program, ())
        return self.launch(name, [*prefix, PROGRAMS[self.programs.get(program, program)], "--config", config], **kwargs)

    def state(self, name):
        folder = self.folder / name
        folder.mkdir(mode=0o700, exist_ok=True)
        return str(folder)

    def thirdparty_settings(self):
        return {"listen": ANY_PORT, "state": self.state("thirdparty-state"), "brokers": "main",
                "admin": str(self.folder / "thirdparty.sock"),
                "tls": self.pki.issue("thirdparty/ranker").config()}

    def broker_settings(self):
        return {"listen": ANY_PORT, "thirdparty": self.thirdparty_address or "127.0.0.1:1",
                "thirdparty_name": "ranker",
                "state": self.state("broker-state"), "anchor": self.anchor,
                "seal_key": str(self.folder / "seal.key"), "admin": str(self.folder / "broker.sock"),
                "limits": LIMITS, "tls": self.pki.issue("broker/main").config(), **self.of_cobroker()}

    def of_cobroker(self):
        """What a broker's configuration says of the co-broker, if there is one."""
        return {} if self.cobroker_address is None else {"cobroker": self.cobroker_address,
                                                         "cobroker_key": self.key_of("cobroker/second")}

    def key_of(self, identity):
        return fingerprint(self.pki.issue(identity))

    def pair(self):
        """As a worker's accept.pairs has it."""
        return f"{self.key_of('broker/main')}+{self.key_of('cobroker/second')}"

    def cobroker_settings(self):
        return {"listen": ANY_PORT, "broker_name": "main", "broker_key": self.key_of("broker/main"),
                "state": self.state("cobroker-state"), "anchor": str(self.folder / "cobroker-anchor"),
                "seal_key": str(self.folder / "cobroker-seal.key"), "admin": str(self.folder / "cobroker.sock"),
                "limits": LIMITS, "tls": self.pki.issue("cobroker/second").config()}

    def launch_thirdparty(self, changes=None, **kwargs):
        """Starts it without waiting until it is ready."""
        self.thirdparty = self.start("thirdparty", merged(self.thirdparty_settings(), changes), **kwargs)
        return self.thirdparty

    def launch_broker(self, changes=None, **kwargs):
        self.broker = self.start("broker", merged(self.broker_settings(), changes), **kwargs)
        return self.broker

    def launch_cobroker(self, changes=None, **kwargs):
        self.cobroker = self.start("cobroker", merged(self.cobroker_settings(), changes), **kwargs)
        return self.cobroker

    def start_cobroker(self, changes=None, **kwargs):
        self.cobroker_address = self.launch_cobroker(changes, **kwargs).address
        return self.cobroker

    def start_thirdparty(self, changes=None, **kwargs):
        self.thirdparty_address = self.launch_thirdparty(changes, **kwargs).address
        return self.thirdparty

    def start_broker(self, changes=None, **kwargs):
        self.launch_broker(changes, **kwargs).address
        return self.broker

    def up(self, thirdparty=None, broker=None, cobroker=None):
        """`cobroker`: its changes, {} for none; without it there is one broker."""
        self.start_thirdparty(thirdparty)
        if cobroker is not None:
            self.start_cobroker(cobroker)
        self.start_broker(broker)
        return self

    def broker_for(self, party):
        host, port = self.broker.address.rsplit(":", 1)
        return f"{self.hosts.get(party, host)}:{port}"

    def start_worker(self, identity, campaign_file, changes=None, **kwargs):
        """A worker daemon: `identity` is worker/ID or gateway/FIRST-LAST. Without a privatizer it gives any number of
        scores, so that it needs no state."""
        broker = (changes or {}).get("broker") or self.broker_for("worker")
        settings = {"broker": broker, "broker_name": "main", "campaign": str(campaign_file), "requesters": "alice",
                    "tls": self.pki.issue(identity).config(), "seed": 1, "exit_when_done": True,
                    "accept": {"epsilon": LIMITS["epsilon"]}}
        if "privatizers" not in (changes or {}).get("accept", {}):
            settings["accept"]["tokens"] = 0
        if self.cobroker_address is not None:
            settings["cobroker"] = self.cobroker_address
            settings["accept"]["pairs"] = self.pair()
        return self.start("worker", merged(settings, changes), name=identity.replace("/", "-"), **kwargs)

    # --- the requester's side

    def requester(self, name="alice", address=None):
        return Requester(address or self.broker_for("requester"), self.pki.issue(f"requester/{name}"))

    def requester_in_python(self, name="alice"):
        """The package's own requester, with dataclasses."""
        return crowdveil.Requester(self.broker_for("requester"), self.pki.issue(f"requester/{name}"), "main", 60)

    def watch(self, files, campaign, address=None):
        """`crowdveil watch`, which ends with the campaign."""
        return self.launch("watch", [
            PROGRAMS["crowdveil"], "watch", campaign, "--broker", address or self.broker_for("requester"),
            "--broker-name", "main", "--tls-ca", files.ca, "--tls-cert", files.cert, "--tls-key", files.key])

    # --- the end

    def logs(self):
        return {daemon.name: daemon.text() for daemon in self.daemons}

    def count_refused(self):
        """Before a daemon ends: adds its counts of refused input to the session's."""
        for daemon in (self.broker, self.cobroker, self.thirdparty):
            if daemon is not None and daemon.process.poll() is None:
                refused.take(self.folder / f"{daemon.name}.sock")

    def close(self):
        self.count_refused()
        for daemon in reversed(self.daemons):
            daemon.kill()
        self.use_system_clock()

    def stop(self):
        """Asks every daemon that still runs to stop; returns the statuses by name."""
        return {daemon.name: daemon.stop() for daemon in reversed(self.daemons)}


def missing_programs(*names):
    return [name for name in names if not os.access(PROGRAMS[name], os.X_OK)]
