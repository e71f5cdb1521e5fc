# SPDX-License-Identifier: Apache-2.0
"""Brokers that share a PostgreSQL database, each with its own anchor and port: one is active, the others stand by."""
import json
import signal
import sqlite3
import subprocess
from contextlib import contextmanager
from pathlib import Path

from harness.admin import get
from harness.campaign import NOISE
from harness.daemon import PROGRAMS, wait_until, write_config
from harness.deployment import merged

from support import postgres
from support.address import HOST, free_port

TABLES = ("meta", "campaign", "plan", "release", "ledger", "recovery", "ended", "journal", "chunk")


class Brokers:
    """`count` brokers of the deployment, at addresses that stay. `changes` are settings that differ."""

    def __init__(self, deployment, server, count=2, durability="one-server", servers=None, networks=None, **changes):
        """`networks`: (words before the command, host) of each, if these differ."""
        self.deployment, self.server = deployment, server
        self.prefixes, hosts = zip(*(networks or [((), HOST)] * count))
        self.addresses = [f"{host}:{free_port()}" for host in hosts]
        self.changes = {**NOISE, "state": None, "store": server.uri(servers=servers), "store_durability": durability,
                        **changes}
        self.running = [None] * count
        deployment.programs["broker"] = "broker-postgresql"

    def settings(self, i):
        folder = self.deployment.folder
        return merged(self.deployment.broker_settings(), {
            "listen": self.addresses[i], "anchor": str(self.anchor(i)),
            "admin": str(folder / f"broker-{i}.sock"), **self.changes})

    def migrate(self):
        """Makes the tables, and the key that all brokers have."""
        config = write_config(self.deployment.folder / "migrate.yaml", self.settings(0))
        done = subprocess.run([*self.prefixes[0], PROGRAMS["broker-postgresql"], "--config", config, "--migrate",
                               self.server.uri(postgres.OWNER)], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def start(self, i, **kwargs):
        self.running[i] = self.deployment.start("broker", self.settings(i), name=f"broker-{i}", prefix=self.prefixes[i],
                                                **kwargs)
        return self.running[i]

    def start_all(self):
        """The number of the active one, once all answer."""
        self.migrate()
        for i in range(len(self.running)):
            self.start(i)
        for daemon in self.running:
            daemon.wait_for("standing by on ")
        return self.active()

    def socket(self, i):
        return self.deployment.folder / f"broker-{i}.sock"

    def anchor(self, i):
        return self.deployment.folder / f"anchor-{i}"

    def follow(self, commit):
        """Waits until every broker's anchor is at this commit or a later one."""
        wait_until(lambda: all(int((self.anchor(i).read_text().split() + ["0"] * 4)[3]) >= commit
                               for i in range(len(self.running))), f"the anchors are at commit {commit}")

    def is_active(self, i):
        daemon = self.running[i]
        if daemon is None or daemon.process.poll() is not None:
            return False
        try:
            return get(self.socket(i), "/active", timeout=1)[0] == 200
        except OSError:  # it has not opened its socket yet, or does not answer
            return False

    def active(self, timeout=60, every=.02):
        """The number of the active broker, once there is one."""
        found = []

        def look():
            found[:] = [i for i in range(len(self.running)) if self.is_active(i)]
            return bool(found)
        wait_until(look, "a broker is active", timeout, every)
        assert len(found) == 1, f"brokers {found} are active"
        return found[0]

    @contextmanager
    def frozen(self):
        """The active broker stands still, and keeps its connections, while another one is active. It ends when it goes
        on, and is started again."""
        active = self.active(every=.01)
        daemon = self.running[active]
        daemon.signal(signal.SIGSTOP)
        try:
            with self.deployment.clock.fast():
                wait_until(lambda: any(self.is_active(i) for i in range(len(self.running)) if i != active),
                           "another broker is active", every=.01)
            yield
        finally:
            daemon.signal(signal.SIGCONT)
        assert daemon.wait() == 1
        self.start(active)

    def save(self, path):
        """The broker's tables as they are in a file of a broker alone, for what reads such files."""
        with sqlite3.connect(path) as file:
            for table in TABLES:
                rows = [json.loads(row) for row in self.server.sql(
                    f"SELECT row_to_json(t) FROM crowdveil.{table} t", "crowdveil").split("\n") if row]
                columns = self.server.sql(
                    "SELECT column_name FROM information_schema.columns WHERE table_schema = 'crowdveil' AND "
                    f"table_name = '{table}' ORDER BY ordinal_position", "crowdveil").split()
                file.execute(f"CREATE TABLE {table} ({', '.join(columns)})")
                file.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(columns))})",
                                 [[value_of(row[column]) for column in columns] for row in rows])
        return path


def value_of(value):
    return bytes.fromhex(value[2:]) if isinstance(value, str) and value.startswith("\\x") else value
