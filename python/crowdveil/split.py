# SPDX-License-Identifier: Apache-2.0
"""
A worker's part in a campaign with two brokers (docs/protocol.md): the context of its shares, the session's key, and the
seal under which the co-broker's share passes through the broker.
"""
from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import ssl
from dataclasses import dataclass
from typing import Any, Optional

from .errors import Error
from .prio3 import NONCE_BYTES, RAND_BYTES, SEED_BYTES, Prio3
from .wire import GRID

LABEL, EXPORTER = b"crowdveil two brokers 1", b"EXPORTER-crowdveil-share"
BIT, SCORE = 1, 15  # score_bits: 0 or 1, and 0 to MOST
MOST = 1 << SCORE - 1


def _cryptography() -> Any:
    try:
        import cryptography.hazmat.primitives.ciphers.aead
        import cryptography.hazmat.primitives.serialization
        import cryptography.x509
    except ImportError:
        raise Error("campaigns with two brokers need the Python package cryptography; expected it installed "
                    "(Debian: python3-cryptography)") from None
    return cryptography


def check_ready() -> None:
    """Error if this Python cannot take part in campaigns with two brokers."""
    _cryptography()
    if not hasattr(os, "memfd_create"):
        raise Error("campaigns with two brokers need a file in memory for keys of TLS; expected Linux")


def fingerprint(certificate: Optional[bytes]) -> str:
    """SHA-256 of the public key in a certificate (DER), in hexadecimal digits."""
    library = _cryptography()
    serialization = library.hazmat.primitives.serialization
    key = library.x509.load_der_x509_certificate(certificate).public_key()
    return hashlib.sha256(key.public_bytes(serialization.Encoding.DER,
                                           serialization.PublicFormat.SubjectPublicKeyInfo)).hexdigest()


# --- the session's key


def _expand(digest: str, secret: bytes, label: bytes, data: bytes, length: int) -> bytes:
    """HKDF-Expand-Label of TLS 1.3, for at most one block."""
    label = b"tls13 " + label
    info = length.to_bytes(2, "big") + bytes([len(label)]) + label + bytes([len(data)]) + data
    return hmac.digest(secret, info + b"\1", digest)[:length]


class KeyLog:
    """
    The exporter of the one connection that is made with a TLS context (RFC 8446, 7.5). Python's ssl has none, but tells
    OpenSSL's log of keys the secret that the exporter starts from. This log is a file in memory.
    """

    def __init__(self, tls: ssl.SSLContext) -> None:
        self.file = os.memfd_create("crowdveil-keys")
        tls.keylog_filename = f"/proc/self/fd/{self.file}"

    def close(self) -> None:
        if self.file >= 0:
            os.close(self.file)
        self.file = -1

    def export(self, sock: Any, context: bytes, length: int = SEED_BYTES) -> bytes:
        """The key for this context."""
        lines = os.pread(self.file, 65536, 0).decode().splitlines()
        secret = bytes.fromhex([line for line in lines if line.startswith("EXPORTER_SECRET")][-1].split()[2])
        digest = "sha384" if sock.cipher()[0].endswith("SHA384") else "sha256"
        derived = _expand(digest, secret, EXPORTER, hashlib.new(digest).digest(), hashlib.new(digest).digest_size)
        return _expand(digest, derived, b"exporter", hashlib.new(digest, context).digest(), length)


# --- what binds a share


def context_of(terms: Any, broker: str, cobroker: str) -> bytes:
    """The context of a campaign's shares, from its base.Terms and the two fingerprints."""
    split = terms.split
    number, most = (1, 1) if split.score_bits == BIT else (2, MOST)
    return hashlib.sha256(
        LABEL + bytes.fromhex(broker) + bytes.fromhex(cobroker) + split.database + terms.id.to_bytes(8, "little") +
        split.spec + number.to_bytes(4, "little") + most.to_bytes(8, "little") + split.key).digest()


@dataclass(frozen=True)
class Place:
    """Where a token belongs, as an assignment says."""
    plan: int
    arm: int
    place: int
    worker: int
    slot: int

    def bound(self, context: bytes, nonce: bytes) -> bytes:
        """What a seal is bound to."""
        numbers = ((self.plan, 8), (self.arm, 4), (self.place, 8), (self.worker, 8), (self.slot, 4))
        return context + b"".join(number.to_bytes(size, "little") for number, size in numbers) + nonce


def seal(key: bytes, counter: int, bound: bytes, seed: bytes) -> bytes:
    """AES-256-GCM; no counter twice under one key."""
    aead = _cryptography().hazmat.primitives.ciphers.aead
    sealed: bytes = aead.AESGCM(key).encrypt(bytes(4) + counter.to_bytes(8, "big"), seed, bound)
    return sealed


def measure(score_bits: int, value: int) -> int:
    """A token, in grid units, as the number that is split: rounded at random to 2^14, so that its mean is kept. A token
    that is no bit is an Error where bits are asked for."""
    step = GRID if score_bits == BIT else GRID // MOST
    if not 0 <= value <= GRID or (score_bits == BIT and value % step):
        raise Error(f"the score {value / GRID:g}; expected 0 or 1, since the campaign splits scores of one bit"
                    if score_bits == BIT else f"the token {value / GRID:g}; expected 0 to 1")
    return value // step + (secrets.randbelow(step) < value % step)


class Sealer:
    """A session with the co-broker: splits tokens, and seals the co-broker's share."""

    def __init__(self, score_bits: int, context: bytes, session: bytes, key: bytes) -> None:
        self.score_bits, self.context, self.session, self.key = score_bits, context, session, key
        self.prio, self.counter = Prio3(None if score_bits == BIT else MOST), 0

    def share(self, value: int, place: Place) -> dict[str, Any]:
        """The fields of a crowd.Share for a token in grid units; each time another one."""
        nonce = secrets.token_bytes(NONCE_BYTES)
        leader, seed = self.prio.split(self.context, measure(self.score_bits, value), secrets.token_bytes(RAND_BYTES))
        return self.sealed(leader, seed, place, nonce)

    def sealed(self, leader: bytes, seed: bytes, place: Place, nonce: bytes) -> dict[str, Any]:
        counter, self.counter = self.counter, self.counter + 1
        return {"nonce": nonce, "leader": leader, "session": self.session, "counter": counter,
                "sealed": seal(self.key, counter, place.bound(self.context, nonce), seed)}
