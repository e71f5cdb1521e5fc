# SPDX-License-Identifier: Apache-2.0
"""
The commands that docs/operations.md prints for brokers over PostgreSQL, on machines with servers, db1 and db2, and with
brokers, a and b. They run as they stand, except that placeholders (hosts, ports, passwords, folders) have values of the
test, and that `systemctl` and `apt`, which need a whole machine, act on the test's own processes.
"""
import re
import subprocess

import yaml

from harness.campaign import NOISE
from harness.daemon import PROGRAMS, ROOT, wait_until, write_config
from harness.deployment import merged
from harness.shared import Brokers, postgres

PAGE = "docs/operations.md"
BROKERS, SERVERS = ("a", "b"), ("db1", "db2")
UNITS = {"crowdveil-broker-postgresql": BROKERS, "postgresql@15-main": SERVERS}
BLOCK = re.compile(r"^( {4,})(#|--) on (\w+(?: and \w+)*)\n((?:\1.+\n)+)", re.M)
SAYS = re.compile(r"^(.*?) +(?:#|--) says: (.*)$")
OWN, ETC = "/var/lib/crowdveil-broker-postgresql", "/etc/crowdveil/broker-postgresql"


def blocks(title):
    """[(place, is SQL, hosts, lines)] of a section."""
    text = (ROOT / PAGE).read_text()
    section = re.search(rf"^### {re.escape(title)}\n(.*?)(?=^##)", text, re.M | re.S)
    assert section, f"{PAGE}: no section {title!r}"
    made = [(f"{PAGE}:{text[:section.start(1) + found.start()].count(chr(10)) + 1}", found[2] == "--",
             found[3].split(" and "), [line[len(found[1]):] for line in found[4].splitlines()])
            for found in BLOCK.finditer(section[1])]
    assert made, f"{PAGE}: no commands in section {title!r}"
    return made


def printed_settings():
    """The brokers' configuration."""
    found = re.search(r"^```yaml\n(# /etc/crowdveil/broker-postgresql.yaml .*?)^```$", (ROOT / PAGE).read_text(),
                      re.M | re.S)
    assert found, f"{PAGE}: no broker-postgresql.yaml"
    return found[1]


class PrintedBrokers(Brokers):
    """They have the printed configuration, and the tables that the printed commands make."""

    def __init__(self, site):
        super().__init__(site.deployment, site.servers["db1"], len(BROKERS))
        self.site, self.changes = site, NOISE

    def settings(self, i):
        return merged(yaml.safe_load(self.site.filled(BROKERS[i], printed_settings())),
                      {"listen": self.addresses[i], **self.changes})

    def migrate(self):
        for i in range(len(BROKERS)):
            write_config(self.deployment.folder / f"broker-{i}.yaml", self.settings(i))
        self.site.follow("Setting up", slice(-2))
        self.site.make_tables()

    def start(self, i):
        self.deployment.programs["broker"] = self.site.installed[BROKERS[i]]
        return super().start(i)


class Site:
    """Two machines with servers, of which the first one runs and has nothing in it yet, and two for brokers.
    `installed`: the broker's program on each machine, by its key in PROGRAMS; `packages`: what `apt` installs."""

    def __init__(self, deployment):
        self.deployment, self.masked, self.said = deployment, set(), ""
        self.packages = "broker-postgresql"
        self.installed = dict.fromkeys(BROKERS, self.packages)
        first = postgres.Server(in_memory=True)
        self.servers = dict(zip(SERVERS, (first, postgres.Server(replica_of=first, in_memory=True))))
        self.brokers = PrintedBrokers(self)
        try:
            self.make_machines()
        except BaseException:
            self.close()
            raise

    def make_machines(self):
        first, second = self.servers.values()
        first.make()
        first.write("data/pg_hba.conf", "local all postgres trust\nlocal replication postgres trust\n")
        for folder in (second.data, first.folder / "archive", first.folder / "backup"):
            folder.mkdir(mode=0o700)
            first.own(folder)
        for server in self.servers.values():
            server.write("replicator", "*:*:*:replicator:secret\n", 0o600)
        for user in (postgres.USER, postgres.OWNER):
            path = self.deployment.folder / f"passwords-{user}"
            path.write_text(f"*:*:*:{user}:secret\n")
            path.chmod(0o600)
        self.bin = self.deployment.folder / "bin"
        self.bin.mkdir()
        for program in PROGRAMS.values():
            (self.bin / program.name).symlink_to(program)
        (self.bin / "scp").symlink_to("/bin/cp")
        (self.bin / "ssh").write_text('#!/bin/sh\nshift\nexec "$@"\n')
        (self.bin / "ssh").chmod(0o755)
        first.start()

    def close(self):
        for server in reversed(self.servers.values()):
            server.close()

    def make_tables(self):
        self.follow("Setting up", slice(-2, -1))

    # --- placeholders

    def filled(self, host, text, values=()):
        own = self.of_broker(BROKERS.index(host)) if host in BROKERS else self.of_server(self.servers[host])
        for word, value in {**dict(values), **own, **self.of_all()}.items():
            text = text.replace(word, str(value))
        return text

    def of_all(self):
        first, second = self.servers.values()
        return {"'...'": "'secret'", "192.0.2.0/24": "127.0.0.1/32", "/etc/crowdveil/db-ca.pem": first.ca,
                "db1.example,db2.example": f"{first.host}:{first.port},{second.host}:{second.port}",
                "host=db1.example": f"host={first.host} port={first.port}",
                "host=db2.example": f"host={second.host} port={second.port}"}

    def of_server(self, server):
        shared = self.servers["db1"].folder
        return {"/etc/postgresql/15/main": server.data, "/var/lib/postgresql/15/main": server.data,
                "/var/lib/postgresql/passwords": server.folder / "replicator", "/srv/archive": shared / "archive",
                "/srv/backup": shared / "backup"}

    def of_broker(self, i):
        folder, keys = self.deployment.folder, self.deployment.pki.issue("broker/main")
        return {f"b.example:{OWN}/broker.anchor": folder / f"anchor-{BROKERS.index('b')}",
                f"{OWN}/broker.anchor": folder / f"anchor-{i}", f"{OWN}/passwords": folder / "passwords-crowdveil",
                "/root/db-passwords": folder / "passwords-crowdveil_owner", f"{ETC}.yaml": folder / f"broker-{i}.yaml",
                f"{ETC}/seal.key": folder / "seal.key", f"{ETC}/ca.pem": keys.ca, f"{ETC}/cert.pem": keys.cert,
                f"{ETC}/key.pem": keys.key, "/run/crowdveil/broker-postgresql/admin.sock": self.brokers.socket(i),
                "/etc/crowdveil/thirdparty.yaml": folder / "thirdparty.yaml",
                "third.example:7402": self.deployment.thirdparty_address or "127.0.0.1:1"}

    # --- commands

    def follow(self, title, part=slice(None), swapped=False, values=()):
        """What (this part of the blocks of) a section says. `swapped`: what it says of broker a is done to b, and the
        reverse. `values`: further placeholders."""
        for place, is_sql, hosts, lines in blocks(title)[part]:
            for host in hosts:
                if swapped and host in BROKERS:
                    host = BROKERS[1 - BROKERS.index(host)]
                for script in parts(lines):
                    self.run(place, is_sql, host, self.filled(host, script, values))

    def run(self, place, is_sql, host, script):
        """A part of a block. What it has to say may come a little later."""
        found = SAYS.match(script)
        command, expected = found.groups() if found else (script, "")
        print(f"{host}: {command}")
        if not is_sql and command.split()[0] in ("systemctl", "apt"):
            getattr(self, command.split()[0])(host, *command.split()[1:])
            return
        def says_it():
            done = self.sql(host, command) if is_sql else self.shell(host, command)
            self.said = done.stdout.strip()
            assert done.returncode == 0 or found, f"{place}: {command}: {done.stdout}"
            return done.returncode == 0 and expected in done.stdout
        try:
            wait_until(says_it, f"{place}: {command} says {expected}", timeout=10)
        finally:
            print(self.said)

    def shell(self, host, command):
        path = {"PATH": f"{self.bin}:{postgres.PROGRAMS}:/usr/sbin:/usr/bin:/sbin:/bin"}
        words, folder = ["bash", "-euc", command], self.deployment.folder
        if host in SERVERS:
            server = self.servers[host]
            words, folder = postgres.as_user(words), server.folder
            path |= {"PGHOST": str(folder), "PGPORT": str(server.port), "PGUSER": "postgres"}
        return subprocess.run(words, cwd=folder, env={**postgres.HOMELESS, **path}, text=True, timeout=60,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def sql(self, host, text):
        server = self.servers[host]
        return subprocess.run([postgres.PROGRAMS / "psql", "-XqtA", "-v", "ON_ERROR_STOP=1", "-h", server.folder, "-p",
                               str(server.port), "-U", "postgres", "-d", "postgres"], input=text, text=True, timeout=60,
                              env=postgres.HOMELESS, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def systemctl(self, host, verb, *words):
        unit = words[-1]
        assert host in UNITS[unit], f"no {unit} on {host}"
        if verb in ("mask", "unmask"):
            (self.masked.add if verb == "mask" else self.masked.discard)((host, unit))
            verb = "stop" if words[0] == "--now" else None
        if verb in ("stop", "restart"):
            self.stop(host)
        if verb in ("start", "restart"):
            assert (host, unit) not in self.masked, f"{unit} is masked on {host}"
            self.start(host)
        if verb == "reload":
            self.servers[host].sql("SELECT pg_reload_conf()")
        assert verb in ("start", "stop", "restart", "reload", None), verb

    def start(self, host):
        if host in SERVERS:
            self.servers[host].start()
        else:
            self.brokers.start(BROKERS.index(host)).wait_for("(standing by|ready) on ")

    def stop(self, host):
        if host in SERVERS:
            self.servers[host].stop()
        else:
            daemon = self.brokers.running[BROKERS.index(host)]
            daemon.wait_for("standing by on ")  # it may have been started a moment ago
            assert daemon.stop() in (0, 1), daemon.text()  # 1: the term was over before

    def apt(self, host, *words):
        assert words[0] == "install" and any("crowdveil-broker-postgresql_" in word for word in words), words
        self.installed[host] = self.packages


def parts(lines):
    """Lines that run together: each `systemctl`, `apt` and line that says something is one of its own."""
    made, open_ = [], []
    for line in lines:
        alone = SAYS.match(line) or line.split()[0] in ("systemctl", "apt")
        if alone and open_:
            made.append("\n".join(open_))
            open_ = []
        if alone:
            made.append(line)
        else:
            open_.append(line)
    return made + (["\n".join(open_)] if open_ else [])
