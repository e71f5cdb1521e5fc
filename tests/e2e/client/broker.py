# SPDX-License-Identifier: Apache-2.0
"""A curious broker: it listens for workers and dials a third-party; it sends whatever a test tells it to."""
import socket
import ssl
import threading
from contextlib import suppress

from crowdveil.schema import schema
from crowdveil.wire import (MOVED, VERSION, Closing, Connection, Splitter, context, frame, hello, identity,
                            server_context)
from support.address import HOST


class FakeBroker:
    """
    Listens for workers, one at a time. `script(broker, arrived)` runs once for each connection when the first workers
    have arrived, and uses `tell` and `hear`; the worker's tokens and declines are kept in `tokens` and `declines`.
    """

    def __init__(self, files, script, version=VERSION):
        self.pb, self.tls, self.script, self.version = schema("crowd"), server_context(files), script, version
        self.tokens, self.declines, self.connections, self.failures = [], [], 0, []
        self.listener = socket.create_server((HOST, 0))
        self.address = f"{HOST}:{self.listener.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            try:
                raw, _ = self.listener.accept()
            except OSError:
                return
            raw.settimeout(10)
            try:
                with self.tls.wrap_socket(raw, server_side=True) as self.sock:
                    self.connections += 1
                    self.splitter, self.arrived = Splitter(), []
                    hello = self.pb.Envelope()
                    hello.hello.version = self.version
                    self.tell(hello)
                    while not self.arrived:
                        self.hear()
                    self.script(self, self.arrived)
                    while True:
                        self.hear()
            except (OSError, ssl.SSLError, ConnectionError):
                pass
            except Exception as error:
                self.failures.append(error)

    def tell(self, envelope):
        self.sock.sendall(frame(envelope.SerializeToString()))

    def hear(self):
        """The messages of the next bytes; ConnectionError at the end."""
        data = self.sock.recv(65536)
        if not data:
            raise ConnectionError("closed")
        for payload in self.splitter.feed(data):
            envelope = self.pb.Envelope.FromString(payload)
            self.tokens += envelope.tokens
            self.declines += envelope.declines
            for arrive in envelope.arrives:
                self.arrived += arrive.workers

    def close(self):
        self.listener.close()


class LeavingBroker:
    """
    Takes one connection, of a requester or a worker. When it was asked for something it answers with the messages of
    `told`, says `why` it leaves, and takes no more connections.
    """

    def __init__(self, files, *told, why=MOVED):
        self.tls, self.told, self.why = server_context(files), told, why
        self.listener = socket.create_server((HOST, 0))
        self.address = f"{HOST}:{self.listener.getsockname()[1]}"
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def _serve(self):
        raw, _ = self.listener.accept()
        self.listener.close()
        raw.settimeout(20)
        with self.tls.wrap_socket(raw, server_side=True) as sock:
            name = "order" if "requester/" in identity(sock) else "crowd"
            pb = schema(name)
            splitter, asked = Splitter(), False
            sock.sendall(frame(hello(name).SerializeToString()))  # without tickets a client waits for something
            while not asked:
                for payload in splitter.feed(sock.recv(65536)):
                    fields = pb.Envelope.FromString(payload).ListFields()
                    asked = asked or any(field.name != "hello" for field, _ in fields)
            leaving = pb.Envelope()
            leaving.goodbye.why = self.why
            for envelope in (*self.told, leaving):
                sock.sendall(frame(envelope.SerializeToString()))
            with suppress(OSError):
                sock.unwrap()


class Dialer(Closing):
    """A broker's connection to a third-party."""

    def __init__(self, address, files, timeout=20):
        self.pb, self.inbox = schema("rank"), []
        self.connection = Connection(address, context(files.ca, files.cert, files.key), role="thirdparty",
                                     timeout=timeout)
        hello = self.pb.Envelope()
        hello.hello.version = VERSION
        self.tell(hello)

    def tell(self, envelope):
        self.connection.send(envelope.SerializeToString())

    def say(self, kind, **fields):
        envelope = self.pb.Envelope()
        getattr(envelope, kind).add(**fields)
        self.tell(envelope)

    def until(self, kind):
        """The next message of this kind; a goodbye or the end of the connection is a ConnectionError."""
        while True:
            for at, (heard, message) in enumerate(self.inbox):
                if heard == kind:
                    del self.inbox[:at + 1]
                    return message
            payload = self.connection.receive()
            if payload is None:
                raise ConnectionError("closed")
            envelope = self.pb.Envelope.FromString(payload)
            if envelope.HasField("goodbye"):
                raise ConnectionError(envelope.goodbye.why)
            for heard in ("opened", "acks", "plans", "results"):
                self.inbox.extend((heard, message) for message in getattr(envelope, heard))
