# SPDX-License-Identifier: Apache-2.0
"""
A PostgreSQL server of a test's own, in a folder of its own, from Debian's package postgresql-15. Its programs refuse to
run as root: then they run as the package's user. It listens on loopback, with TLS and passwords.
"""
import os
import pwd
import shutil
import subprocess
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

from support.address import HOST, free_port

PROGRAMS = Path("/usr/lib/postgresql/15/bin")
HOMELESS = dict(os.environ, HOME="/nonexistent")  # else clients look for certificates of another user
OWNER, USER = "crowdveil_owner", "crowdveil"


def is_installed():
    return os.access(PROGRAMS / "postgres", os.X_OK)


def as_user(command):
    return command if os.geteuid() != 0 else ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups",
                                              "--", *command]


def run(command, **kwargs):
    done = subprocess.run([str(part) for part in command], cwd="/", text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, env=HOMELESS, **kwargs)
    if done.returncode != 0:
        raise RuntimeError(f"{command}: {done.stdout}")
    return done.stdout


class Server:
    """`start()` makes and starts it, in a network namespace of this name if there is one, at the address `host`;
    `close()` ends it and removes its folder. `name`: how the server that it is a replica of knows it; `hosts`: the
    addresses of all replicas."""

    def __init__(self, replica_of=None, in_memory=False, trusts=False, network=None, host=HOST, name="replica",
                 hosts=()):
        self.within = () if network is None else ("ip", "netns", "exec", network)
        self.host, self.name, self.hosts = host, name, {host, *hosts}
        self.folder = Path(tempfile.mkdtemp(prefix="crowdveil-postgres-", dir="/dev/shm" if in_memory else "/tmp"))
        self.data, self.port, self.replica_of = self.folder / "data", free_port(), replica_of
        self.process, self.prefix = None, []  # words before its command
        self.trusts = "hostssl all postgres all trust\n" if trusts else ""
        self.wal = None  # a folder for its log, which then has small segments
        self.own(self.folder).chmod(0o755)  # the brokers read the CA's certificate

    # --- making it

    def make(self):
        if self.replica_of is None:
            run(as_user([PROGRAMS / "initdb", "-D", self.data, "-U", "postgres", "-A", "scram-sha-256", "--no-sync",
                         "--pwfile", self.write("password", "admin\n"),
                         *(["-X", self.wal, "--wal-segsize=1"] if self.wal else [])]))
            self.make_certificate()
            (self.data / "pg_hba.conf").write_text(
                f"local all postgres trust\n{self.trusts}"
                "hostssl all all all scram-sha-256\nhostssl replication all all scram-sha-256\n")
        else:
            run([*self.within, *as_user(
                [PROGRAMS / "pg_basebackup", "-D", self.data, "-R", "-X", "stream", "-c", "fast", "-d",
                 f"host={self.replica_of.host} port={self.replica_of.port} user=postgres sslmode=require "
                 f"application_name={self.name} passfile={self.origin.folder / 'own-passwords'}", "-w"])])
        return self

    def write(self, name, text, mode=0o644):
        path = self.folder / name
        path.write_text(text)
        path.chmod(mode)
        return self.own(path)

    @staticmethod
    def own(path):
        """Gives a file or folder to the server's user."""
        if os.geteuid() == 0:
            user = pwd.getpwnam("postgres")
            os.chown(path, user.pw_uid, user.pw_gid)
        return path

    def make_certificate(self):
        """A server certificate for all addresses, which is its own CA."""
        key, cert = self.folder / "server.key", self.folder / "server.crt"
        run(as_user(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                     "-days", "2", "-subj", "/CN=server", "-addext",
                     f"subjectAltName={','.join(f'IP:{host}' for host in sorted(self.hosts))}",
                     "-keyout", str(key), "-out", str(cert)]))
        passwords = f"*:*:*:{OWNER}:secret\n*:*:*:{USER}:secret\n*:*:*:postgres:admin\n"
        self.write("own-passwords", passwords, 0o600)
        self.passfile.write_text(passwords)
        self.passfile.chmod(0o600)

    @property
    def origin(self):
        """The server whose copy this is, or that of its origin."""
        return self if self.replica_of is None else self.replica_of.origin

    @property
    def passfile(self):
        return self.origin.folder / "passwords"

    @property
    def ca(self):
        return self.origin.folder / "server.crt"

    # --- running it

    def options(self, **settings):
        files = self.origin.folder
        settings = {"port": self.port, "listen_addresses": self.host, "unix_socket_directories": self.folder,
                    "ssl": "on", "ssl_cert_file": files / "server.crt", "ssl_key_file": files / "server.key",
                    "max_connections": 40, "log_line_prefix": "%m [%p] ", **settings}
        return [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]

    def start(self, **settings):
        if not self.data.exists():
            self.make()
        log = (self.folder / "log").open("a")
        program = [*self.prefix, PROGRAMS / "postgres", "-D", self.data, *self.options(**settings)]
        self.process = subprocess.Popen(
            [str(part) for part in (*self.within, *as_user(program))], cwd="/", stdout=log, stderr=log,
            env=HOMELESS)
        self.wait_ready()
        return self

    def wait_ready(self, timeout=60):
        until = time.monotonic() + timeout
        while subprocess.run([PROGRAMS / "pg_isready", "-q", "-h", self.folder, "-p", str(self.port)]).returncode != 0:
            if self.process.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"not ready: {(self.folder / 'log').read_text()[-2000:]}")
            time.sleep(.05)

    def reload(self, **settings):
        """Changes settings of the running server."""
        for name, value in settings.items():
            self.sql(f"ALTER SYSTEM SET {name} = '{value}'")
        self.sql("SELECT pg_reload_conf()")

    def promote(self):
        run(as_user([PROGRAMS / "pg_ctl", "-D", self.data, "-w", "promote"]))

    def kill(self):
        """All of its processes at once, as when the machine dies."""
        self.process.kill()
        self.process.wait(60)

    def stop(self, mode="fast"):
        if self.process is not None and self.process.poll() is None:
            run(as_user([PROGRAMS / "pg_ctl", "-D", self.data, "-m", mode, "-w", "stop"]))
        if self.process is not None:
            self.process.wait(60)

    def close(self):
        try:
            self.stop("immediate")
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)

    # --- using it

    def sql(self, text, database="postgres"):
        """Runs statements as the administrator; returns the rows as text."""
        return run([PROGRAMS / "psql", "-X", "-q", "-t", "-A", "-v", "ON_ERROR_STOP=1", "-h", self.folder,
                    "-p", self.port, "-U", "postgres", "-d", database, "-c", text]).strip()

    def commits(self):
        """The number of the last commit of a broker."""
        return int(self.sql("SELECT last_commit FROM crowdveil.meta", "crowdveil"))

    @contextmanager
    def locked(self, table, database):
        """Nobody else reads the table meanwhile."""
        with subprocess.Popen([PROGRAMS / "psql", "-X", "-q", "-t", "-A", "-h", self.folder, "-p", str(self.port), "-U",
                               "postgres", "-d", database], env=HOMELESS, cwd="/", text=True, stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE) as psql:  # its end gives the lock back
            print(f"BEGIN; LOCK TABLE {table}; SELECT 1;", file=psql.stdin, flush=True)
            if psql.stdout.readline() != "1\n":
                raise RuntimeError(f"{table} cannot be locked")
            yield

    def add_store(self, name="crowdveil"):
        """The two roles and an empty database; returns its name."""
        roles = self.sql("SELECT rolname FROM pg_roles").split()
        if OWNER not in roles:
            self.sql(f"CREATE ROLE {OWNER} LOGIN PASSWORD 'secret'")
            self.sql(f"CREATE ROLE {USER} LOGIN PASSWORD 'secret'")
            self.sql(f"GRANT pg_read_all_stats TO {USER}")
        self.sql(f"CREATE DATABASE {name} OWNER {OWNER}")
        return name

    def uri(self, user=USER, database="crowdveil", servers=None):
        """As the setting `store` takes it."""
        hosts = ",".join(f"{server.host}:{server.port}" for server in servers or [self])
        return (f"postgresql://{user}@{hosts}/{database}?sslmode=verify-full&sslrootcert={self.ca}"
                f"&passfile={self.passfile}")

    def admin_uri(self, database="postgres"):
        """For tests of libraries, which reset the database themselves. A password is told with channel binding only,
        which a server that trusts has not."""
        uri = self.uri("postgres", database)
        return uri.replace(f"&passfile={self.passfile}", "") if self.trusts else uri


@contextmanager
def serving(**options):
    """The environment for programs that test with a server; empty if the package is not installed."""
    if not is_installed():
        yield {}
        return
    server = Server(**options)
    try:
        server.start(max_connections=100)
        yield {"CROWDVEIL_POSTGRES": server.admin_uri()}
    finally:
        server.close()
