# SPDX-License-Identifier: Apache-2.0
"""
Prio3Count and Prio3Sum of draft-irtf-cfrg-vdaf, wire version 18, from the text of the draft and of RFC 9861 alone.
It shares no idea with the C code beyond those texts: polynomials are evaluated by Lagrange's formula over the given
points. It is slow, and not safe for secrets.
"""
from dataclasses import dataclass
from functools import lru_cache

P = 2**64 - 2**32 + 1
GENERATOR, GENERATOR_ORDER = pow(7, 2**32 - 1, P), 2**32
VERSION, SEED, NONCE, RATE = 18, 32, 16, 168
MEAS_SHARE, PROOF_SHARE, PROVE_RANDOMNESS, QUERY_RANDOMNESS = 1, 2, 4, 5


class Refused(Exception):
    """The operation fails, as the draft says that it must."""


# --- TurboSHAKE128


def rotated(lane, by):
    return (lane << by | lane >> (64 - by)) & (2**64 - 1)


@lru_cache
def round_constants():
    """Of Keccak-f[1600], from its shift register over x^8 + x^6 + x^5 + x^4 + 1."""
    state, bits = 1, []
    for _ in range(255):
        bits.append(state & 1)
        state <<= 1
        state ^= 0x171 if state & 0x100 else 0
    return [sum(bits[(j + 7 * i) % 255] << (2**j - 1) for j in range(7)) for i in range(24)]


def keccak_p(lanes, rounds):
    """Keccak-p[1600, rounds] on {(x, y): lane}."""
    for constant in round_constants()[24 - rounds:]:
        columns = [0] * 5
        for (x, _), lane in lanes.items():
            columns[x] ^= lane
        for x, y in lanes:
            lanes[x, y] ^= columns[(x - 1) % 5] ^ rotated(columns[(x + 1) % 5], 1)
        x, y, current = 1, 0, lanes[1, 0]
        for t in range(24):
            x, y = y, (2 * x + 3 * y) % 5
            current, lanes[x, y] = lanes[x, y], rotated(current, (t + 1) * (t + 2) // 2 % 64)
        lanes = {(x, y): lanes[x, y] ^ (~lanes[(x + 1) % 5, y] & lanes[(x + 2) % 5, y]) & (2**64 - 1)
                 for x in range(5) for y in range(5)}
        lanes[0, 0] ^= constant
    return lanes


def turboshake128(message, domain, length):
    padded = bytearray(message + bytes([domain]))
    padded += bytes(-len(padded) % RATE)
    padded[-1] ^= 0x80
    lanes = {(x, y): 0 for y in range(5) for x in range(5)}
    places = [(i % 5, i // 5) for i in range(RATE // 8)]
    for at in range(0, len(padded), RATE):
        for i, place in enumerate(places):
            lanes[place] ^= int.from_bytes(padded[at + 8 * i:at + 8 * i + 8], "little")
        lanes = keccak_p(lanes, 12)
    out = b""
    while len(out) < length:
        out += b"".join(lanes[place].to_bytes(8, "little") for place in places)
        lanes = keccak_p(lanes, 12)
    return out[:length]


def xof(seed, tag, binder, length):
    message = len(tag).to_bytes(2, "little") + tag + len(seed).to_bytes(1, "little") + seed + binder
    return turboshake128(message, 1, length)


def expand(seed, tag, binder, length):
    """`length` elements: words of the output, without those that are no element."""
    words = length
    while True:
        stream = xof(seed, tag, binder, 8 * words)
        found = [int.from_bytes(stream[i:i + 8], "little") for i in range(0, len(stream), 8)]
        found = [word for word in found if word < P]
        if len(found) >= length:
            return found[:length]
        words += 1


# --- polynomials


@lru_cache
def roots(n):
    """The first n powers of the principal n-th root of unity."""
    root = pow(GENERATOR, GENERATOR_ORDER // n, P)
    return tuple(pow(root, i, P) for i in range(n))


@lru_cache(maxsize=None)
def denominators(points):
    inverse = []
    for i, point in enumerate(points):
        product = 1
        for j, other in enumerate(points):
            product = product * (point - other) % P if i != j else product
        inverse.append(pow(product, -1, P))
    return inverse


def evaluate(points, values, x):
    """The value at x of the polynomial of lowest degree with these values at these points."""
    if x in points:
        return values[points.index(x)]
    whole = 1
    for point in points:
        whole = whole * (x - point) % P
    return sum(value * whole * pow(x - point, -1, P) * inverse
               for point, value, inverse in zip(points, values, denominators(points))) % P


# --- the instance


@dataclass(frozen=True)
class Prio3:
    """Prio3Sum for measurements up to `maximum`; Prio3Count with maximum None."""
    maximum: int | None
    shares: int = 2

    @property
    def number(self):
        return 1 if self.maximum is None else 2

    @property
    def calls(self):
        """Elements of a measurement, and calls of the gadget."""
        return 1 if self.maximum is None else self.maximum.bit_length()

    @property
    def arity(self):
        return 2 if self.maximum is None else 1

    @property
    def points(self):
        n = 1
        while n < 1 + self.calls:
            n *= 2
        return n

    @property
    def proof_length(self):
        return self.arity + 2 * (self.points - 1) + 1

    @property
    def weights(self):
        rest = [2**i for i in range(self.calls - 1)]
        return [*rest, (self.maximum or 1) - sum(rest)]

    def tag(self, usage, ctx):
        return bytes([VERSION, 0]) + self.number.to_bytes(4, "big") + usage.to_bytes(2, "big") + ctx

    def gadget(self, inputs):
        return inputs[0] * inputs[1] % P if self.number == 1 else (inputs[0]**2 - inputs[0]) % P

    # --- what a client does

    def encode(self, measurement):
        if not 0 <= measurement <= (self.maximum or 1):
            raise Refused("measurement")
        rest = 2**(self.calls - 1) - 1
        last = int(measurement > rest)
        measurement -= last * self.weights[-1]
        return [measurement >> i & 1 for i in range(self.calls - 1)] + [last]

    def wire(self, seed, encoded):
        return [seed, *encoded] + [0] * (self.points - 1 - len(encoded))

    def prove(self, encoded, rand):
        """Wire seeds, then the gadget polynomial's values at all roots of order 2 points but the last."""
        wires = [self.wire(seed, encoded) for seed in rand]
        return rand + [self.gadget([evaluate(roots(self.points), wire, x) for wire in wires])
                       for x in roots(2 * self.points)[:-1]]

    def helper_share(self, ctx, helper, seed):
        return (expand(seed, self.tag(MEAS_SHARE, ctx), bytes([helper]), self.calls) +
                expand(seed, self.tag(PROOF_SHARE, ctx), bytes([1, helper]), self.proof_length))

    def split(self, ctx, encoded, rand, proof=None):
        """The shares of an encoded measurement (of any, also one that is not valid), as on the wire."""
        if len(rand) != SEED * self.shares:
            raise Refused("rand")
        seeds = [rand[i:i + SEED] for i in range(0, len(rand), SEED)]
        prove_rand = expand(seeds[-1], self.tag(PROVE_RANDOMNESS, ctx), b"\x01", self.arity)
        leader = encoded + (proof or self.prove(encoded, prove_rand))
        for helper, seed in enumerate(seeds[:-1], 1):
            leader = [(a - b) % P for a, b in zip(leader, self.helper_share(ctx, helper, seed))]
        return [encode(leader), *seeds[:-1]]

    # --- what an aggregator does

    def verify(self, key, ctx, aggregator, nonce, share):
        """(verifier share, output share)"""
        if aggregator == 0:
            elements = decode(share)
            if len(elements) != self.calls + self.proof_length:
                raise Refused("length")
        else:
            elements = self.helper_share(ctx, aggregator, share)
        encoded, proof = elements[:self.calls], elements[self.calls:]
        length = 1 + (self.calls if self.calls > 1 else 0)
        rand = expand(key, self.tag(QUERY_RANDOMNESS, ctx), b"\x01" + nonce, length)
        return self.query(encoded, proof, rand), sum(a * b for a, b in zip(self.weights, encoded)) % P

    def query(self, encoded, proof, rand):
        seeds, values = proof[:self.arity], proof[self.arity:]
        x = rand[-1]
        if pow(x, self.points, P) == 1:
            raise Refused("the test point is a root of unity")
        outputs = [values[2 * (k + 1)] for k in range(self.calls)]
        if self.number == 1:
            result = outputs[0] - encoded[0]
        elif self.calls == 1:
            result = outputs[0]
        else:
            result = sum(a * b for a, b in zip(rand, outputs))
        wires = [evaluate(roots(self.points), self.wire(seed, encoded), x) for seed in seeds]
        return [result % P, *wires, evaluate(roots(2 * self.points)[:-1], values, x)]

    def accepts(self, verifiers):
        total = [sum(column) % P for column in zip(*verifiers)]
        return total[0] == 0 and self.gadget(total[1:-1]) == total[-1]


def encode(elements):
    return b"".join(element.to_bytes(8, "little") for element in elements)


def decode(data):
    if len(data) % 8:
        raise Refused("length")
    elements = [int.from_bytes(data[i:i + 8], "little") for i in range(0, len(data), 8)]
    if any(element >= P for element in elements):
        raise Refused("element")
    return elements
