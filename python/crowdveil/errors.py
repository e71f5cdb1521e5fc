# SPDX-License-Identifier: Apache-2.0
"""What can go wrong; the text of every error is one line: where, what, and what was expected."""


class Error(Exception):
    """Any error of this package."""

    def __init__(self, text: object) -> None:
        super().__init__(" ".join(str(text).split()))


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
