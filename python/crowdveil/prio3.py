# SPDX-License-Identifier: Apache-2.0
"""
What a client does in Prio3Count and Prio3Sum of draft-irtf-cfrg-vdaf (wire version 18, two shares): it splits a number
into two shares with a proof that it is in range. docs/prio.md describes the instances.
"""
from __future__ import annotations

from functools import lru_cache
from typing import Optional

from .errors import Error

P = 2 ** 64 - 2 ** 32 + 1
SEED_BYTES, NONCE_BYTES, RAND_BYTES = 32, 16, 64
VERSION, RATE, ROUNDS = 18, 168, 12
MEAS_SHARE, PROOF_SHARE, PROVE_RANDOMNESS = 1, 2, 4  # usages of the stream
MASK = 2 ** 64 - 1
ROOT, ROOT_ORDER = pow(7, 2 ** 32 - 1, P), 2 ** 32


# --- TurboSHAKE128 (RFC 9861)


@lru_cache(maxsize=None)
def _constants() -> tuple[tuple[int, ...], tuple[tuple[int, int, int], ...]]:
    """The constants of the last rounds, and the steps of rho and pi: from lane, to lane, rotation."""
    bits, state = [], 1
    for _ in range(255):
        bits.append(state & 1)
        state = state << 1 ^ (0x171 if state & 0x80 else 0)
    constants = tuple(sum(bits[(j + 7 * i) % 255] << (2 ** j - 1) for j in range(7)) for i in range(24))
    steps, x, y = [(0, 0, 0)], 1, 0
    for t in range(24):
        steps.append((x + 5 * y, y + 5 * ((2 * x + 3 * y) % 5), (t + 1) * (t + 2) // 2 % 64))
        x, y = y, (2 * x + 3 * y) % 5
    return constants[24 - ROUNDS:], tuple(steps)


def _permute(lanes: list[int]) -> list[int]:
    """Keccak-p[1600, 12]; lane x + 5 y."""
    constants, steps = _constants()
    moved = [0] * 25
    for constant in constants:
        column = [lanes[x] ^ lanes[x + 5] ^ lanes[x + 10] ^ lanes[x + 15] ^ lanes[x + 20] for x in range(5)]
        mix = [column[x - 1] ^ (column[x - 4] << 1 & MASK | column[x - 4] >> 63) for x in range(5)]
        for start, end, by in steps:
            lane = lanes[start] ^ mix[start % 5]
            moved[end] = lane << by & MASK | lane >> (64 - by)
        lanes = [moved[i] ^ (~moved[i + 1 - 5 * (i % 5 > 3)] & moved[i + 2 - 5 * (i % 5 > 2)]) for i in range(25)]
        lanes[0] ^= constant
    return lanes


def turboshake128(message: bytes, domain: int, length: int) -> bytes:
    """`length` bytes."""
    padded = bytearray(message + bytes([domain]))
    padded += bytes(-len(padded) % RATE)
    padded[-1] ^= 0x80
    lanes = [0] * 25
    for at in range(0, len(padded), RATE):
        for i in range(RATE // 8):
            lanes[i] ^= int.from_bytes(padded[at + 8 * i:at + 8 * i + 8], "little")
        lanes = _permute(lanes)
    out = b"".join(lane.to_bytes(8, "little") for lane in lanes[:RATE // 8])
    while len(out) < length:
        lanes = _permute(lanes)
        out += b"".join(lane.to_bytes(8, "little") for lane in lanes[:RATE // 8])
    return out[:length]


# --- polynomials over the field


@lru_cache(maxsize=None)
def roots(n: int) -> tuple[int, ...]:
    """The powers of the n-th root of unity."""
    root = pow(ROOT, ROOT_ORDER // n, P)
    return tuple(pow(root, i, P) for i in range(n))


def doubled(values: list[int]) -> list[int]:
    """The polynomial with these values at the n-th roots of unity, n of them, at the 2n-th ones."""
    n = len(values)
    inverse, one, two = pow(n, -1, P), roots(n), roots(2 * n)
    coefficients = [inverse * sum(value * one[-i * j % n] for j, value in enumerate(values)) % P for i in range(n)]
    return [sum(c * two[i * k % (2 * n)] for i, c in enumerate(coefficients)) % P for k in range(2 * n)]


# --- the instances


class Prio3:
    """Prio3Count for `maximum` None, a number that is 0 or 1; else Prio3Sum for numbers from 0 to it."""

    def __init__(self, maximum: Optional[int]) -> None:
        self.maximum = maximum
        self.elements = 1 if maximum is None else maximum.bit_length()
        self.points = 1 << self.elements.bit_length()  # 1 + elements, rounded up to a power of two
        self.arity = 2 if maximum is None else 1
        self.proof_elements = self.arity + 2 * self.points - 1
        self.leader_bytes = 8 * (self.elements + self.proof_elements)

    def _stream(self, seed: bytes, usage: int, ctx: bytes, binder: bytes, elements: int) -> list[int]:
        number = 1 if self.maximum is None else 2
        tag = bytes([VERSION, 0]) + number.to_bytes(4, "big") + usage.to_bytes(2, "big") + ctx
        message = len(tag).to_bytes(2, "little") + tag + bytes([len(seed)]) + seed + binder
        words = elements
        while True:  # a word of P or more, which is rare, is no element
            stream = turboshake128(message, 1, 8 * words)
            found = [word for i in range(words) if (word := int.from_bytes(stream[8 * i:8 * i + 8], "little")) < P]
            if len(found) >= elements:
                return found[:elements]
            words += 1

    def encode(self, number: int) -> list[int]:
        """A number as bits; the last bit weighs what the others leave of the maximum."""
        if not 0 <= number <= (self.maximum or 1):
            raise Error(f"the number {number} to split; expected 0 to {self.maximum or 1}")
        rest = (1 << self.elements - 1) - 1
        last = number > rest
        if last:
            number -= (self.maximum or 1) - rest
        return [number >> i & 1 for i in range(self.elements - 1)] + [int(last)]

    def _prove(self, encoded: list[int], seeds: list[int]) -> list[int]:
        wires = [doubled([seed, *encoded] + [0] * (self.points - 1 - self.elements)) for seed in seeds]
        product = [a * b % P for a, b in zip(*wires)] if self.maximum is None else [a * (a - 1) % P for a in wires[0]]
        return seeds + product[:-1]

    def split(self, ctx: bytes, number: int, rand: bytes) -> tuple[bytes, bytes]:
        """The leader's share and the helper's seed; `rand` is RAND_BYTES of fresh random bits."""
        return self.split_encoded(ctx, self.encode(number), rand)

    def split_encoded(self, ctx: bytes, encoded: list[int], rand: bytes) -> tuple[bytes, bytes]:
        """As `split`, for a number in its encoded form, whose proof fails unless that is valid."""
        helper, prover = rand[:SEED_BYTES], rand[SEED_BYTES:RAND_BYTES]
        whole = encoded + self._prove(encoded, self._stream(prover, PROVE_RANDOMNESS, ctx, b"\1", self.arity))
        share = (self._stream(helper, MEAS_SHARE, ctx, b"\1", self.elements) +
                 self._stream(helper, PROOF_SHARE, ctx, b"\1\1", self.proof_elements))
        return b"".join(((a - b) % P).to_bytes(8, "little") for a, b in zip(whole, share)), helper
