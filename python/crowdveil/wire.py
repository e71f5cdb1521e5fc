# SPDX-License-Identifier: Apache-2.0
"""Frames (4 bytes of length, big-endian, then one envelope) over mutual TLS 1.3 with ALPN crowdveil/1."""
from __future__ import annotations

import random
import select
import socket
import ssl
import struct
import time
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Optional, TypeVar, Union

from google.protobuf.message import DecodeError

from .errors import Error, Lost, Moved, ProtocolError
from .scan import FIELDS_MAX, UNSCANNED, check_size
from .schema import schema

FRAME_LIMIT = 256 * 1024
LARGE_FRAME_LIMIT = FRAME_LIMIT + 131_072 * 300  # with requesters and third-parties: an element of each arm
FRAME_S = 30  # a peer's first frame, and the rest of a frame that has begun, must arrive within this time
ALPN = "crowdveil/1"
VERSION = 3
SILENCE_S = 20  # after which a host that acknowledges nothing counts as gone
PAUSE_S = .1, 5.0, .5  # after a cycle over all addresses: the first, the longest, the longest with several addresses
QUIET_S = 1.0  # without a word: the other addresses are knocked at, about as often
STAY_S = 2.0  # between two times that a quiet connection is left for another address
ATTEMPT_S = 1.0, 4.0  # for TCP and TLS at one of several addresses: in the first cycle, and at most
MOVED = "moved"  # the reason in the goodbye of a broker that another process takes over from
GRID = 1 << 20  # a score of 1
MICRO = 1_000_000
Addresses = Union[str, Sequence[str]]  # one HOST:PORT, or several: in a list, or separated by commas
Self = TypeVar("Self", bound="Closing")
# protobuf warns of such bytes and stops at them; decode() sees that it has stopped
warnings.filterwarnings("ignore", "Unexpected end-group tag", RuntimeWarning)


def grid(score: float) -> int:
    """The nearest grid point of a score, which is cut to 0 .. 1."""
    if score != score:
        raise Error("a score is not a number; expected 0 to 1")
    return int(min(max(score, 0.0), 1.0) * GRID + 0.5)


# --- frames and envelopes


def frame(payload: bytes) -> bytes:
    return struct.pack(">I", len(payload)) + payload


class Splitter:
    """Takes bytes in any pieces and returns whole frames. `count` is the number of frames so far."""

    def __init__(self, limit: int = FRAME_LIMIT) -> None:
        self.limit, self.rest, self.count = limit, bytearray(), 0

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The frames that are complete with these bytes; ProtocolError for a length out of bounds."""
        self.rest += data
        while len(self.rest) >= 4:
            length, = struct.unpack_from(">I", self.rest)
            if not 1 <= length <= self.limit:
                raise ProtocolError(f"a frame of {length} bytes; expected 1 to {self.limit}")
            if len(self.rest) < 4 + length:
                return
            with memoryview(self.rest) as view:
                payload = bytes(view[4:4 + length])
            del self.rest[:4 + length]
            self.count += 1
            yield payload


class Stopwatch:
    """The time until which a peer must have sent what it has begun: its first frame, then each frame, in FRAME_S."""

    def __init__(self, splitter: Splitter, now: float) -> None:
        self.splitter, self.count = splitter, 0
        self.until: Optional[float] = now + FRAME_S

    def take(self, now: float) -> None:
        """After the splitter was fed."""
        if not self.splitter.rest and self.splitter.count:
            self.until = None
        elif self.splitter.count > self.count or self.until is None:
            self.until = now + FRAME_S
        self.count = self.splitter.count


def decode(name: str, payload: bytes) -> Any:
    """The envelope of this schema; ProtocolError if the bytes are none, or have no field that is known."""
    envelope = schema(name).Envelope()
    if len(payload) > UNSCANNED:
        check_size(envelope.DESCRIPTOR, payload, FIELDS_MAX if name == "rank" else max(FIELDS_MAX, len(payload) // 6))
    try:
        whole = envelope.MergeFromString(payload) == len(payload)
    except DecodeError:
        whole = False
    if not whole:
        raise ProtocolError(f"a frame that is no envelope of {name}.proto")
    if not envelope.ListFields():
        raise ProtocolError(f"an envelope of {name}.proto without any known field")
    return envelope


def hello(name: str, program: str = "crowdveil-python", version: int = VERSION) -> Any:
    """The first envelope of a connection."""
    envelope = schema(name).Envelope()
    envelope.hello.version = version
    envelope.hello.program = program
    return envelope


def check_hello(envelope: Any, greeted: bool) -> None:
    """Checks a received envelope: the first one has a hello of this version, or says why there is none."""
    if envelope.HasField("hello"):
        if envelope.hello.version != VERSION:
            raise ProtocolError(f"the other side speaks version {envelope.hello.version}; expected {VERSION}")
    elif not greeted and not envelope.HasField("goodbye"):
        raise ProtocolError("the first message is no hello; expected one")


# --- TLS


@dataclass(frozen=True)
class Tls:
    """Paths of PEM files: the CA's certificate, this party's certificate and key, and the CA's revocation list."""
    ca: str
    cert: str
    key: str
    crl: Optional[str] = None


def _load(tls: ssl.SSLContext, ca: str, cert: Optional[str], key: Optional[str], crl: Optional[str]) -> ssl.SSLContext:
    tls.minimum_version = ssl.TLSVersion.TLSv1_3
    tls.load_verify_locations(ca)
    if crl:
        tls.load_verify_locations(crl)
        tls.verify_flags |= ssl.VerifyFlags.VERIFY_CRL_CHECK_LEAF
    if cert:
        tls.load_cert_chain(cert, key)
    return tls


def context(ca: str, cert: Optional[str] = None, key: Optional[str] = None, alpn: Optional[str] = ALPN,
            crl: Optional[str] = None) -> ssl.SSLContext:
    """For connections that this side makes."""
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    tls.check_hostname = False  # a party is identified by the role in its certificate, not by its host
    if alpn:
        tls.set_alpn_protocols([alpn])
    return _load(tls, ca, cert, key, crl)


def server_context(files: Tls) -> ssl.SSLContext:
    """For a listener, which asks every peer for its certificate."""
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.verify_mode = ssl.CERT_REQUIRED
    tls.num_tickets = 0  # type: ignore[attr-defined]  # a session that is resumed shows no certificate
    tls.set_alpn_protocols([ALPN])
    return _load(tls, files.ca, files.cert, files.key, files.crl)


def opened(files: Tls, server: bool = False) -> ssl.SSLContext:
    """The context of these files; Error names the one that cannot be used."""
    for path in filter(None, (files.ca, files.cert, files.key, files.crl)):
        try:
            open(path, "rb").close()
        except OSError as error:
            raise Error(f"{path}: {error.strerror}; expected a PEM file") from None
    try:
        return server_context(files) if server else context(files.ca, files.cert, files.key, crl=files.crl)
    except (OSError, ValueError) as error:
        raise Error(f"{files.cert}, {files.key}, {files.ca}: {error}; expected a certificate, its key and the "
                    "certificate of its CA") from None


def _identity_of(certificate: Any) -> str:
    names: list[str] = [value for kind, value in (certificate or {}).get("subjectAltName", ())
                        if kind == "URI" and value.startswith("crowdveil:")]
    return names[0] if len(names) == 1 else ""  # who has two could be taken for either


def identity(sock: Any) -> str:
    """`crowdveil:ROLE/NAME` of the other side of a TLS connection."""
    return _identity_of(sock.getpeercert())


def check_peer(sock: Any, role: str, names: Optional[frozenset[str]] = None) -> str:
    """The name of the other side; ProtocolError unless it has this role, one of these names, and speaks the ALPN."""
    peer = identity(sock)
    name = peer.removeprefix(f"crowdveil:{role}/")
    if name == peer or sock.selected_alpn_protocol() != ALPN:
        raise ProtocolError(f"the other side is {peer!r}; expected a {role} that speaks {ALPN}")
    if names is not None and name not in names:
        raise ProtocolError(f"the other side is the {role} {name}; expected {' or '.join(sorted(names))}")
    return name


def host_and_port(address: str) -> tuple[str, int]:
    host, colon, port = address.rpartition(":")
    if not colon or not host or not port.isdecimal() or int(port) > 65535:
        raise Error(f'"{address}" is no address; expected HOST:PORT')
    return host.strip("[]"), int(port)


def answers(address: str) -> bool:
    """
    Whether a process serves there: only one that runs ends a connection that it is told has no data. A standby refuses
    it; of one that stands still the kernel accepts it, and nothing follows.
    """
    with suppress(OSError), socket.create_connection(host_and_port(address), timeout=ATTEMPT_S[0]) as sock:
        sock.shutdown(socket.SHUT_WR)
        sock.recv(64)
        return True
    return False


class Turns:
    """
    The addresses of one party: processes with one name and key, of which one is active and the others refuse
    connections. All are tried in turn before a pause. After a lost connection the next address comes first: if the
    process there has died, or has handed over, another one is active; if only the network has failed, the other's
    refusal costs one round trip. An attempt at one of several is short, so that a host that is off delays the others
    little; it gets longer with each cycle that has failed, so that a slow host is reached, too.

    A process that stands still keeps its connections while another one is active. So if nothing was heard for QUIET_S,
    whatever one waits for, `knock` asks the others, and `leave` turns to one that answers.
    """

    def __init__(self, addresses: Addresses) -> None:
        words = (addresses if isinstance(addresses, str) else ",".join(addresses)).replace(",", " ").split() or [""]
        for word in words:
            host_and_port(word)
        self.addresses, self.at, self.tried = tuple(words), 0, 0
        self.answering: Optional[int] = None  # the next one to try
        self.left = -STAY_S + time.monotonic()
        self.begin()

    def begin(self) -> None:
        """There is a connection: the next cycle is a first one."""
        self.pause, self.attempt = PAUSE_S[0], ATTEMPT_S[0]

    @property
    def are_several(self) -> bool:
        return len(self.addresses) > 1

    @property
    def address(self) -> str:
        return self.addresses[self.at]

    @property
    def limit(self) -> Optional[float]:
        """Of the next attempt, in seconds; None: no other than with one address."""
        return self.attempt if self.are_several else None

    def failed(self) -> float:
        """No connection at this address: turns to the next, and returns the pause before it, 0 within a cycle."""
        self.tried += 1
        if self.tried < len(self.addresses):
            self.at = (self.at + 1) % len(self.addresses)
            return 0
        self.attempt = min(2 * self.attempt, ATTEMPT_S[1])
        return self.lost()

    def lost(self) -> float:
        """The connection has ended: a cycle begins with the address after it. Returns the pause before it."""
        self.at = (self.at + 1) % len(self.addresses) if self.answering is None else self.answering
        self.answering, self.tried = None, 0
        pause, self.pause = self.pause, min(2 * self.pause, PAUSE_S[2 if self.are_several else 1])
        return pause * random.uniform(.5, 1)

    def knock(self) -> Optional[int]:
        """The number of another address where a process answers, within ATTEMPT_S[0]; None: there is none."""
        others = [i for i in range(len(self.addresses)) if i != self.at]
        if not others or time.monotonic() < self.left + STAY_S:
            return None
        with ThreadPoolExecutor(len(others)) as pool:
            answered = pool.map(answers, [self.addresses[i] for i in others])
            return next((i for i, yes in zip(others, list(answered)) if yes), None)

    def leave(self, other: int) -> Lost:
        """The quiet connection is to end: the next one is at this address."""
        self.answering, self.left = other, time.monotonic()
        return Lost(f"{self.address}: silent, while {self.addresses[other]} answers")


def watch_silence(sock: Any) -> None:
    """Ends a connection whose other host acknowledges nothing, whether or not there is data to send."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (("TCP_KEEPIDLE", SILENCE_S // 2), ("TCP_KEEPINTVL", SILENCE_S // 8), ("TCP_KEEPCNT", 3),
                        ("TCP_USER_TIMEOUT", 1000 * SILENCE_S)):
        if hasattr(socket, name):  # not every system has all of them
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def left(until: float) -> float:
    """The time that is left; socket.timeout if none is."""
    seconds = until - time.monotonic()
    if seconds <= 0:
        raise socket.timeout
    return seconds


class Closing:
    """Has a connection, or is one: `with` closes it."""
    connection: Any

    def close(self) -> None:
        self.connection.close()

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Connection(Closing):
    """One TLS connection to a party of the given role; raises the exceptions of ssl if the handshake fails."""

    def __init__(self, address: str, tls: ssl.SSLContext, role: str = "broker", timeout: float = 20,
                 name: Optional[str] = None, limit: int = FRAME_LIMIT) -> None:
        until = time.monotonic() + timeout
        raw = socket.create_connection(host_and_port(address), timeout=timeout)
        try:
            raw.settimeout(left(until))
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            watch_silence(raw)
            self.sock = tls.wrap_socket(raw)
            self.sock.settimeout(timeout)
        except BaseException:
            raw.close()
            raise
        self.splitter, self.queue = Splitter(limit), list[bytes]()
        self.heard = time.monotonic()
        self.peer = identity(self.sock)
        try:
            check_peer(self.sock, role, None if name is None else frozenset([name]))
        except ProtocolError as error:
            self.close()
            raise ProtocolError(f"{address}: {error}") from None

    def send(self, payload: bytes, until: Optional[float] = None) -> None:
        """All of it by this time, however slowly the other side reads; None: as the socket's timeout permits."""
        if until is None:
            self.sock.sendall(frame(payload))
            return
        data = memoryview(frame(payload))
        while data:
            self.sock.settimeout(left(until))
            data = data[self.sock.send(data):]

    def send_raw(self, data: bytes) -> None:
        self.sock.sendall(data)

    def receive(self, until: Optional[float] = None) -> Optional[bytes]:
        """The next frame, or None at the end. socket.timeout if it is not whole by this time, however it drips."""
        while not self.queue:
            if until is not None:
                self.sock.settimeout(left(until))
            data = self.sock.recv(65536)
            if not data:
                return None
            self.heard = time.monotonic()
            self.queue.extend(self.splitter.feed(data))
        return self.queue.pop(0)

    def has_data(self) -> bool:
        """Whether `receive` would find something."""
        return bool(self.queue or self.sock.pending() or select.select([self.sock], [], [], 0)[0])

    def close(self) -> None:
        with suppress(OSError, ValueError):  # says that this end is meant; the other side's answer is not awaited
            self.sock.settimeout(0)
            self.sock.unwrap()
        self.sock.close()


def goodbye(address: str, title: str, why: str) -> Lost:
    """The end of a connection that the other side has announced."""
    if why == MOVED:
        return Moved(f"{address}: the {title} moves to another address")
    return Lost(f"{address}: the {title} says goodbye: {why}")


def lost(address: str, error: BaseException) -> Lost:
    """One line for a connection that failed."""
    if isinstance(error, (TimeoutError, socket.timeout)):
        return Lost(f"{address}: no answer in time")
    if isinstance(error, ssl.SSLCertVerificationError):
        return Lost(f"{address}: its certificate is not accepted: {error.verify_message}")
    return Lost(f"{address}: {getattr(error, 'strerror', None) or error}")
