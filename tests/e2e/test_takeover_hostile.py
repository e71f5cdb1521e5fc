# SPDX-License-Identifier: Apache-2.0
"""Who takes the database's port or socket is told no password, and cannot fill the broker's memory."""
import os
import pwd
import socket
import ssl
import struct
import threading
from contextlib import closing, contextmanager
from urllib.parse import quote

import pytest

from harness.admin import get
from harness.shared import Brokers, postgres

pytestmark = pytest.mark.skipif(not postgres.is_installed(), reason="postgresql-15 is not installed")

OK, CLEAR, MD5, SCRAM = (struct.pack("!I", code) for code in (0, 3, 5, 10))
MOST_KIB = 300 * 1024


def message(kind, body):
    return kind + struct.pack("!I", len(body) + 4) + body


def read_packet(peer):
    head = peer.recv(4, socket.MSG_WAITALL)
    return peer.recv(struct.unpack("!I", head)[0] - 4, socket.MSG_WAITALL) if len(head) == 4 else b""


def flood(peer, *parts):
    """Sends without end, until the peer has had enough."""
    try:
        while True:
            for part in parts:
                peer.sendall(part)
    except OSError:
        pass


class Hostile:
    """Listens in the place of a server; `act(peer)` serves a connection. `told` is what its clients have said after
    their first packet."""

    def __init__(self, listener, act, tls=None):
        self.listener, self.act, self.tls, self.told, self.calls = listener, act, tls, b"", 0
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            try:
                peer, _ = self.listener.accept()
            except OSError:
                return
            self.calls += 1
            with peer:
                try:
                    self.serve(peer)
                except OSError:
                    pass

    def serve(self, peer):
        if self.tls is not None:
            read_packet(peer)
            peer.sendall(b"S")
            peer = self.tls.wrap_socket(peer, server_side=True)
            peer.recv(8192)  # user and database
        self.act(peer)
        peer.settimeout(5)
        while data := peer.recv(8192):
            self.told += data


@contextmanager
def at_the_port(store, act, tls=True):
    """In the place of the server, with its certificate and key."""
    context = None
    if tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(store.folder / "server.crt", store.folder / "server.key")
    with closing(socket.create_server((store.host, 0))) as listener:
        yield Hostile(listener, act, context), listener.getsockname()[1]


def start_at(deployment, store, uri, **kwargs):
    brokers = Brokers(deployment, store, 1)
    brokers.migrate()
    brokers.changes["store"] = uri
    return brokers, brokers.start(0, **kwargs)


def most_kib(daemon):
    """The largest memory that the process has ever had."""
    with open(f"/proc/{daemon.process.pid}/status", encoding="ascii") as status:
        return int(next(line for line in status if line.startswith("VmHWM")).split()[1])


@pytest.mark.parametrize("asks", [CLEAR, MD5 + b"salt", SCRAM + b"SCRAM-SHA-256\0\0", OK],
                         ids=["in clear", "as MD5", "without channel binding", "not at all"])
def test_a_server_that_asks_for_a_password_as_it_likes_is_told_none(deployment, store, asks):
    with at_the_port(store, lambda peer: peer.sendall(message(b"R", asks))) as (hostile, port):
        brokers, daemon = start_at(deployment, store, store.uri().replace(f":{store.port}/", f":{port}/"))
        daemon.wait_for("warning: standing by: .*channel binding")
        assert get(brokers.socket(0), "/health")[0] == 503
        assert daemon.stop() == 0
    assert b"p" not in hostile.told[:1] and b"secret" not in hostile.told, hostile.told


@pytest.mark.parametrize("said", [b"E" * 65536, b"S" + b"\0" * 65536, b"N"], ids=["an error", "more", "no TLS"])
def test_before_TLS_nothing_is_taken(deployment, store, said):
    """An error without an end was read for as long as it came."""
    with at_the_port(store, lambda peer: flood(peer, said), tls=False) as (hostile, port):
        _, daemon = start_at(deployment, store, store.uri().replace(f":{store.port}/", f":{port}/"))
        daemon.wait_for("warning: standing by: ")
        assert hostile.calls > 0 and most_kib(daemon) < MOST_KIB
        assert daemon.stop() == 0


ROW = message(b"D", struct.pack("!HI", 1, 1 << 20) + bytes(1 << 20))
FLOODS = {
    "a message without an end": (b"D" + struct.pack("!I", (1 << 30) - 1) + bytes(1 << 20), bytes(1 << 20)),
    "rows": (message(b"T", struct.pack("!H", 1) + b"c\0" + struct.pack("!IHIHIH", 0, 0, 17, 65535, 0, 1)), ROW),
    "notices": (message(b"N", b"SWARNING\0VWARNING\0C01000\0M" + b"x" * 100_000 + b"\0\0"),),
    "statuses": (b"".join(message(b"S", b"%d\0%s\0" % (i, b"x" * 1000)) for i in range(1000)),),
    "notifications": (message(b"A", struct.pack("!I", 1) + b"channel\0" + b"x" * 7000 + b"\0") * 100,),
}


def greet(peer):
    """As a server that has let its client in."""
    peer.sendall(message(b"R", OK) + message(b"S", b"server_version\x0015.0\0") +
                 message(b"S", b"default_transaction_read_only\0off\0") + message(b"S", b"in_hot_standby\0off\0") +
                 message(b"K", struct.pack("!II", 1, 1)) + message(b"Z", b"I"))


@pytest.mark.parametrize("what", FLOODS)
@pytest.mark.parametrize("when", ["first", "asked"])
def test_a_server_does_not_fill_the_brokers_memory(deployment, store, what, when):
    def act(peer):
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if when == "asked":
            greet(peer)
            peer.recv(8192)
        else:
            peer.sendall(message(b"R", OK))
        head, *more = FLOODS[what]
        peer.sendall(head)
        flood(peer, *(more or [head]))

    with at_the_port(store, act) as (_, port):
        uri = store.uri().replace(f":{store.port}/", f":{port}/").replace(f"&passfile={store.passfile}", "")
        _, daemon = start_at(deployment, store, uri)
        daemon.wait_for("warning: standing by: .*(the server has sent more than such an answer has|unexpected message)")
        assert most_kib(daemon) < MOST_KIB, most_kib(daemon)
        assert daemon.stop() == 0


# --- a socket

def local_uri(folder, port, more=""):
    return f"postgresql://{postgres.USER}@{quote(str(folder), safe='')}:{port}/crowdveil{more}"


def test_a_socket_serves_without_a_password(deployment, store):
    """The server knows the broker by the system's user, the broker the server by the socket's."""
    server, owner = pwd.getpwuid(os.stat(store.folder).st_uid).pw_name, pwd.getpwuid(os.geteuid()).pw_name
    (store.data / "pg_ident.conf").write_text(f"brokers {owner} {postgres.USER}\n")
    access = store.data / "pg_hba.conf"
    access.write_text(f"local crowdveil {postgres.USER} peer map=brokers\n" + access.read_text())
    store.sql("SELECT pg_reload_conf()")
    brokers = Brokers(deployment, store, 1)
    brokers.migrate()
    brokers.changes["store"] = local_uri(store.folder, store.port, f"?requirepeer={server}")
    brokers.start(0).wait_for("ready on ")
    assert brokers.running[0].stop() == 0


def test_a_socket_of_somebody_else_is_told_nothing(deployment, store, tmp_path):
    with closing(socket.socket(socket.AF_UNIX)) as listener:
        listener.bind(str(tmp_path / ".s.PGSQL.5432"))
        listener.listen()
        hostile = Hostile(listener, lambda peer: peer.sendall(message(b"R", CLEAR)))
        _, daemon = start_at(deployment, store, local_uri(tmp_path, 5432, "?requirepeer=daemon"))
        daemon.wait_for('warning: standing by: .*requirepeer specifies "daemon", but actual peer user name is')
        assert daemon.stop() == 0
    assert hostile.told == b""


@pytest.mark.parametrize("name, value", [("PGPASSWORD", "secret"), ("PGHOSTADDR", "127.0.0.1"), ("PGSERVICE", "x"),
                                         ("PGOPTIONS", "-c search_path=x")])
def test_the_environment_adds_nothing_to_the_uri(deployment, store, tmp_path, monkeypatch, name, value):
    monkeypatch.setenv(name, value)
    with closing(socket.socket(socket.AF_UNIX)) as listener:
        listener.bind(str(tmp_path / ".s.PGSQL.5432"))
        listener.listen()
        hostile = Hostile(listener, lambda peer: peer.sendall(message(b"R", CLEAR)))
        brokers = Brokers(deployment, store, 1)
        brokers.changes["store"] = local_uri(tmp_path, 5432, f"?requirepeer={pwd.getpwuid(os.geteuid()).pw_name}")
        monkeypatch.delenv(name)
        brokers.migrate()
        monkeypatch.setenv(name, value)
        daemon = brokers.start(0)
        daemon.wait_for(f"warning: standing by: .*{name} in the environment; expected the store's URI to say all")
        assert daemon.stop() == 0
    assert hostile.told == b"" and hostile.calls == 0
