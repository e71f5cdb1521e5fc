# SPDX-License-Identifier: Apache-2.0
"""What can go wrong; the text of every error is one line: where, what, and what was expected."""
import re

# Controls, half characters, line separators and what turns the direction of the rest of a line.
UNCLEAN = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066\u2067\ud800-\udfff]")
HEAD, TAIL = 360, 140  # characters that are kept of a long line


def clean(text: object) -> str:
    """One line for people and logs: blanks joined, what a terminal would obey replaced, the middle left out if long."""
    line = UNCLEAN.sub("?", " ".join(str(text).split()))
    return line if len(line) <= HEAD + TAIL else f"{line[:HEAD]} ... {line[-TAIL:]}"


def cut(text: str, most: int) -> str:
    """As much of the text as `most` bytes of UTF-8 hold."""
    return text.encode(errors="replace")[:most].decode(errors="ignore")


class Error(Exception):
    """Any error of this package."""

    def __init__(self, text: object) -> None:
        super().__init__(clean(text))


class ProtocolError(Error):
    """The other side sent bytes that the protocol does not allow."""


class Refused(Error):
    """The broker answered a request with an error."""


class Lost(Error, ConnectionError):
    """There is no connection, or it has ended."""


class Moved(Lost):
    """The connection has ended because another process of the broker, at another address, takes over."""


class Damaged(Error):
    """A file is not what its format says."""
