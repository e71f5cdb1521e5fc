# SPDX-License-Identifier: Apache-2.0
"""Frames (4 bytes of length, big-endian, then one envelope) over mutual TLS 1.3 with ALPN crowdveil/1."""
import socket
import ssl
import struct
import time

FRAME_LIMIT = 256 * 1024
ALPN = "crowdveil/1"
VERSION = 2


class FrameError(Exception):
    """The other side sent something that is not a frame."""


def frame(payload):
    return struct.pack(">I", len(payload)) + payload


class Splitter:
    """Takes bytes in any pieces and returns whole frames."""

    def __init__(self, limit=FRAME_LIMIT):
        self.limit, self.rest = limit, bytearray()

    def feed(self, data):
        self.rest += data
        while len(self.rest) >= 4:
            length, = struct.unpack_from(">I", self.rest)
            if not 1 <= length <= self.limit:
                raise FrameError(f"a frame of {length} bytes; expected 1 to {self.limit}")
            if len(self.rest) < 4 + length:
                return
            payload = bytes(self.rest[4:4 + length])
            del self.rest[:4 + length]
            yield payload


def context(ca, cert=None, key=None, alpn=ALPN):
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    tls.minimum_version = ssl.TLSVersion.TLSv1_3
    tls.check_hostname = False  # a party is identified by the role in its certificate, not by its host
    tls.load_verify_locations(ca)
    if cert:
        tls.load_cert_chain(cert, key)
    if alpn:
        tls.set_alpn_protocols([alpn])
    return tls


def identity(sock):
    """`crowdveil:ROLE/NAME` of the other side."""
    names = [value for kind, value in sock.getpeercert().get("subjectAltName", ()) if kind == "URI"]
    return names[0] if names else ""


def slow_connection(address, tls, delay, source="", timeout=20):
    """A connection made step by step to a party that is `delay` seconds away: what arrives is read that much later.
    Returns the socket and the TLS object over its two memory BIOs once the other side may accept our certificate."""
    host, port = address.rsplit(":", 1)
    raw = socket.create_connection((host, int(port)), timeout=timeout, source_address=(source, 0))
    coming, going = ssl.MemoryBIO(), ssl.MemoryBIO()
    side = tls.wrap_bio(coming, going)
    done = False
    while not done:
        try:
            side.do_handshake()
            done = True
        except ssl.SSLWantReadError:
            pass
        raw.sendall(going.read())
        if not done:
            data = raw.recv(65536)
            if not data:
                raw.close()
                raise ConnectionError("closed during the handshake")
            time.sleep(delay)
            coming.write(data)
    return raw, side, coming, going


class Closing:
    """Has a connection, or is one: `with` closes it."""

    def close(self):
        self.connection.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Connection(Closing):
    """One TLS connection to a party of the given role; raises the exceptions of ssl if the handshake fails."""

    def __init__(self, address, tls, role="broker", timeout=20):
        host, port = address.rsplit(":", 1)
        raw = socket.create_connection((host, int(port)), timeout=timeout)
        try:
            self.sock = tls.wrap_socket(raw)
        except BaseException:
            raw.close()
            raise
        self.splitter, self.queue = Splitter(), []
        self.peer = identity(self.sock)
        if self.sock.selected_alpn_protocol() != ALPN or not self.peer.startswith(f"crowdveil:{role}/"):
            self.close()
            raise FrameError(f"{address} is {self.peer!r}; expected a {role} that speaks {ALPN}")

    def send(self, payload):
        self.sock.sendall(frame(payload))

    def send_raw(self, data):
        self.sock.sendall(data)

    def receive(self):
        """The next frame, or None at the end."""
        while not self.queue:
            data = self.sock.recv(65536)
            if not data:
                return None
            self.queue.extend(self.splitter.feed(data))
        return self.queue.pop(0)

    def close(self):
        self.sock.close()
