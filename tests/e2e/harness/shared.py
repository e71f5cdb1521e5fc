# SPDX-License-Identifier: Apache-2.0
"""Brokers that share a PostgreSQL database, each with its own anchor and port: one is active, the others stand by."""
import subprocess
import sys
from pathlib import Path

from harness.admin import get
from harness.campaign import NOISE
from harness.daemon import PROGRAMS, wait_until, write_config
from harness.deployment import merged

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from support import postgres  # noqa: E402


class Brokers:
    """`count` brokers of the deployment, at addresses that stay. `changes` are settings that differ."""

    def __init__(self, deployment, server, count=2, durability="one-server", **changes):
        self.deployment, self.server = deployment, server
        self.addresses = [f"127.0.0.1:{postgres.free_port()}" for _ in range(count)]
        self.changes = {**NOISE, "state": None, "store": server.uri(), "store_durability": durability, **changes}
        self.running = [None] * count
        deployment.programs["broker"] = "broker-postgresql"

    def settings(self, i):
        folder = self.deployment.folder
        return merged(self.deployment.broker_settings(), {
            "listen": self.addresses[i], "anchor": str(folder / f"anchor-{i}"),
            "admin": str(folder / f"broker-{i}.sock"), **self.changes})

    def migrate(self):
        config = write_config(self.deployment.folder / "migrate.yaml", self.settings(0))
        return subprocess.run([PROGRAMS["broker-postgresql"], "--config", config, "--migrate",
                               self.server.uri(postgres.OWNER)], capture_output=True, text=True, timeout=60)

    def start(self, i):
        self.running[i] = self.deployment.start("broker", self.settings(i), name=f"broker-{i}")
        return self.running[i]

    def socket(self, i):
        return self.deployment.folder / f"broker-{i}.sock"

    def is_active(self, i):
        daemon = self.running[i]
        return daemon is not None and daemon.process.poll() is None and get(self.socket(i), "/active")[0] == 200

    def active(self, timeout=60):
        """The number of the active broker, once there is one."""
        found = []

        def look():
            found[:] = [i for i in range(len(self.running)) if self.is_active(i)]
            return bool(found)
        wait_until(look, "a broker is active", timeout)
        assert len(found) == 1, f"brokers {found} are active"
        return found[0]
