# SPDX-License-Identifier: Apache-2.0
"""Searches any bytes for known tokens and exact sums: files, logs, traffic, memory. One token has 20 bits and would
be found anywhere by chance; four known ones in a row would not. A sum is searched for alone."""
import re
import struct

RUN = 4        # tokens in a row
PREFIX = 12    # bytes that all encodings of a run have at least
LEAST = 5      # bytes of a sum that do not occur by chance in some megabytes


def varint(value):
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def zigzag(value):
    return varint(value << 1 if value >= 0 else (-value << 1) - 1)


ENCODINGS = {
    "varint": varint, "zigzag varint": zigzag,
    "u32 little-endian": lambda value: struct.pack("<I", value),
    "u32 big-endian": lambda value: struct.pack(">I", value),
    "u64 little-endian": lambda value: struct.pack("<q", value),
    "u64 big-endian": lambda value: struct.pack(">q", value),
    "double little-endian": lambda value: struct.pack("<d", value),
    "double big-endian": lambda value: struct.pack(">d", value),
    "score as double": lambda value: struct.pack("<d", value / 2**20),
    "decimal, commas": lambda value: b"%d," % value, "decimal, blanks": lambda value: b"%d " % value,
    "decimal, comma and blank": lambda value: b"%d, " % value, "decimal, lines": lambda value: b"%d\n" % value,
    "hexadecimal": lambda value: b"%05x" % value, "hexadecimal, 8 digits": lambda value: b"%08x" % value,
    "HEXADECIMAL, blanks": lambda value: b"%X " % value,
}
WIDE = ("varint", "zigzag varint", "u64 little-endian", "u64 big-endian", "double little-endian", "double big-endian",
        "score as double")  # those in which a single sum does not occur by chance


class Secrets:
    """`runs`: lists of token values in an order in which they might be stored; `sums`: exact sums, or other long
    numbers (ids of workers), of 30 bits and more; `blobs`: byte strings (tickets, keys) that must not appear,
    neither as they are nor in hexadecimal. `length`: how many values in a row are searched for; 14-bit values are so
    short that six are needed."""

    def __init__(self, runs=(), sums=(), blobs=(), length=RUN):
        self.patterns, self.sums = {}, []
        for run in runs:
            for name, encode in ENCODINGS.items():
                coded = [encode(value) for value in run]
                for at in range(len(run) - length + 1):
                    whole = b"".join(coded[at:at + length])
                    what = f"tokens {run[at:at + length]} as {name}"
                    self.patterns.setdefault(whole[:PREFIX], []).append((whole, what))
        for value in sums:
            for name in WIDE:
                if len(coded := ENCODINGS[name](value)) >= LEAST:
                    self.sums.append((coded, f"the sum {value} as {name}"))
            for text in (b"%d" % value, b"%x" % value, b"%X" % value):
                self.sums.append((text, f"the sum {value} as text {text.decode()}"))
        for blob in blobs:
            self.sums.append((blob, f"the secret {blob.hex()}"))
            self.sums.append((blob.hex().encode(), f"the secret {blob.hex()} in hexadecimal"))

    def find(self, data):
        """A line for each find; only the first few."""
        data = re.sub(rb"\0{64,}", bytes(32), data)  # none of our data has that many zeros
        found = [what for pattern, what in self.sums if pattern in data]
        patterns = self.patterns
        for at in range(len(data) - PREFIX + 1):
            if data[at:at + PREFIX] in patterns:
                found += [what for whole, what in patterns[data[at:at + PREFIX]] if data.startswith(whole, at)]
                if len(found) > 20:
                    break
        return found


SHADOW = 1 << 36  # more than this machine has


def memory_of(pid):
    """All memory of a process that it could have written to, read as root; without a sanitizer's shadow memory."""
    pieces = []
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", 0) as memory:
        for line in maps:
            span, rights, *_ = line.split()
            if rights[:2] != "rw":
                continue
            start, end = (int(part, 16) for part in span.split("-"))
            if end - start > SHADOW:
                continue
            try:
                memory.seek(start)
                pieces.append(memory.read(end - start))
            except (OSError, ValueError):
                continue
    return b"\n".join(pieces)
