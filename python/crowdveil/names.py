# SPDX-License-Identifier: Apache-2.0
"""The normal form of names, as the C programs have it (common/base/normal.c): tests compare the two."""
from __future__ import annotations

import re
import unicodedata

from .errors import Error

# White_Space of Unicode, the byte order mark and Braille's blank; what Python's strip() takes besides is a control.
BLANKS = "\t\n\v\f\r \u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u2800\u3000\ufeff"
ENDS = re.compile(f"\\A[{BLANKS}]+|[{BLANKS}]+\\Z")
TURNING = "\u202a-\u202e\u2066-\u2069"
HIDDEN = ("\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180e\u200b\u2028\u2029\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb"
          "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e00ff\U000e01f0-\U000e0fff")
REFUSED = re.compile(f"[{TURNING}{HIDDEN}]")
FLAG = re.compile("\U0001f3f4[\U000e0020-\U000e007e]+\U000e007f")  # of a region, spelled with tags
MARKS = "\u200e\u200f\u061c"  # of direction
CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f]")
TYPED = 1024  # code points that are read of a name


def _runs_right_to_left(text: str) -> bool:
    return any(unicodedata.bidirectional(char) in ("R", "AL") for char in text if char not in MARKS)


def normal(text: str, most: int = 255) -> str:
    """
    The name in Unicode's NFC, without blanks at its ends, and without marks of direction where nothing runs from right
    to left. Error if it has a character that cannot be seen or turns a line, or if it is not 1 to `most` bytes of
    printable text.
    """
    name = text if _runs_right_to_left(text) else text.translate({ord(mark): None for mark in MARKS})
    name = ENDS.sub("", name)
    refused = REFUSED.search(FLAG.sub("", name))
    if refused is not None and len(text) <= TYPED:
        what = "turns the direction of what follows" if re.match(f"[{TURNING}]", refused[0]) else "cannot be seen"
        raise Error(f"{ascii(text)} has U+{ord(refused[0]):04X}, which {what}; expected a name without it")
    name = unicodedata.normalize("NFC", name)
    surrogates = any("\ud800" <= char <= "\udfff" for char in name)
    if surrogates or CONTROLS.search(name) or not 1 <= len(name.encode()) <= most or len(text) > TYPED:
        raise Error(f"{ascii(text)} is not a valid name; expected 1 to {most} bytes of printable text")
    return name
