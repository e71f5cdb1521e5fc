# SPDX-License-Identifier: Apache-2.0
"""
Log lines that a peer causes, bounded as common/base/log_limit.h bounds those of the C programs: the first lines of a
kind are written, further ones are counted for a minute, and one line then tells their number. Pure: time is an
argument.
"""
from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from .errors import clean

MINUTE_S = 60.0
BURST = 4       # lines of a kind in a minute that are written
REASONS = 8     # kinds of lines of a peer
ENTRIES = 256   # kinds of lines of all peers
DIGITS = re.compile(r"\d+")


@dataclass
class _Entry:
    since: float
    text: str
    written: int = 0
    more: int = 0


class Notes:
    """`take` returns the line to write, if it is to be written; `sums` what has been counted since."""

    def __init__(self) -> None:
        self.entries: dict[tuple[str, str], _Entry] = {}

    def _entry(self, peer: str, text: str, now: float) -> _Entry:
        """Lines that differ only in digits are of one kind: a peer must not cause one for each number."""
        key = (peer, DIGITS.sub("0", text))
        if key not in self.entries and sum(each[0] == peer for each in self.entries) >= REASONS:
            key = (peer, "")
        if key not in self.entries and len(self.entries) >= ENTRIES:
            key = ("", "")
        return self.entries.setdefault(key, _Entry(now, text if key[1] else "further lines"))

    def take(self, peer: str, text: str, now: float) -> str:
        text = clean(f"{peer}: {text}" if peer else text)
        entry = self._entry(peer, text, now)
        most = BURST if entry.text != "further lines" else 0
        if entry.written >= most:
            entry.more += 1
            return ""
        entry.written += 1
        return text

    def sums(self, now: float, early: bool = False) -> Iterator[str]:
        """Ends the minutes that have passed (`early`: all)."""
        for key, entry in list(self.entries.items()):
            if early or now >= entry.since + MINUTE_S:
                del self.entries[key]
                if entry.more:
                    yield clean(f"{entry.text} ({entry.more} more in {now - entry.since:.0f} s)")
