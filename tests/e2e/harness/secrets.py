# SPDX-License-Identifier: Apache-2.0
"""Searches any bytes for known tokens and exact sums: files, logs, traffic, memory. One token has 20 bits and would
be found anywhere by chance; four known ones in a row would not, and of five in a row four are found. A sum is searched
for alone."""
import re
import struct

RUN = 4        # tokens in a row
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


class Patterns:
    """Byte strings of `prefix` bytes at least. Their search looks at one window of the data in `stride` bytes, which is
    so short that any prefix has one in it."""

    def __init__(self, prefix, stride):
        self.prefix, self.stride, self.window, self.known, self.windows = prefix, stride, prefix - stride + 1, {}, set()

    def add(self, pattern, what):
        start = pattern[:self.prefix]
        if start in self.known:
            self.known[start][pattern] = what
        else:
            self.known[start] = {pattern: what}
            self.windows.update([start[at:at + self.window] for at in range(self.stride)])

    def find(self, data):
        windows, window, found = self.windows, self.window, []
        for looked in range(0, len(data) - window + 1 if windows else 0, self.stride):
            if data[looked:looked + window] in windows:
                for at in range(max(looked - self.stride + 1, 0), looked + 1):
                    found += ["%s as %s" % what
                              for pattern, what in self.known.get(data[at:at + self.prefix], {}).items()
                              if data.startswith(pattern, at)]
                if len(found) > 20:
                    break
        return found


class Secrets:
    """`runs`: lists of token values in an order in which they might be stored; `sums`: exact sums, or other long
    numbers (ids of workers), of 30 bits and more; `blobs`: byte strings (tickets, keys) that must not appear,
    neither as they are nor in hexadecimal. `length`: how many values in a row are searched for; 14-bit values are so
    short that six are needed."""

    def __init__(self, runs=(), sums=(), blobs=(), length=RUN):
        self.longer, self.short, self.shortest, self.sums = Patterns(12, 5), Patterns(8, 3), [], list(sums)
        for run in runs:
            for name, encode in ENCODINGS.items():
                coded = [encode(value) for value in run]
                for at in range(0, len(run) - length + 1, 2):
                    self._add(b"".join(coded[at:at + length]), (run[at:at + length], name))
        for value in self.sums:
            for name in WIDE:
                if len(coded := ENCODINGS[name](value)) >= LEAST:
                    self._add(coded, (value, name))
            for text in (b"%d" % value, b"%x" % value, b"%X" % value):
                self._add(text, (value, "text"))
        for blob in blobs:
            self._add(blob, (blob.hex(), "bytes"))
            self._add(blob.hex().encode(), (blob.hex(), "text"))

    def _add(self, pattern, what):
        for patterns in self.longer, self.short:
            if len(pattern) >= patterns.prefix:
                patterns.add(pattern, what)
                return
        self.shortest.append((pattern, what))

    def find(self, data):
        """A line for each find; only the first few."""
        data = re.sub(rb"\0{64,}", bytes(32), data)  # none of our data has that many zeros
        shortest = ["%s as %s" % what for pattern, what in self.shortest if pattern in data]
        return shortest + self.longer.find(data) + self.short.find(data)


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
