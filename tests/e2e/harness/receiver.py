# SPDX-License-Identifier: Apache-2.0
"""A socket that receives datagrams: of a service manager (sd_notify), or of systemd's journal, each with its format."""
import contextlib
import os
import socket
import struct
import threading
import time

from harness.daemon import Failed

MANAGER = ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "JOURNAL_STREAM")


class Receiver:
    """At a path, or "@name" for an abstract address; `decode` makes of each datagram what the test looks at. With
    `reads` False nothing is taken until read()."""

    def __init__(self, path, decode, reads=True):
        self.path, self.decode, self.got, self.changed = str(path), decode, [], threading.Condition()
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path.replace("@", "\0", 1))
        if reads:
            self.read()

    def read(self):
        threading.Thread(target=self._receive, daemon=True).start()

    def _receive(self):
        with contextlib.suppress(OSError):
            while data := self.socket.recv(1 << 16):
                with self.changed:
                    self.got.append(self.decode(data))
                    self.changed.notify_all()

    def mark(self):
        with self.changed:
            return len(self.got)

    def wait_for(self, holds, what, timeout=60, after=0):
        """The first datagram from number `after` on for which `holds`."""
        deadline = time.monotonic() + timeout
        with self.changed:
            while True:
                for one in self.got[after:]:
                    if holds(one):
                        return one
                left = deadline - time.monotonic()
                if left <= 0:
                    raise Failed(f"not within {timeout} s: {what}; received:\n" +
                                 "\n".join(map(str, self.got[-10:])))
                self.changed.wait(left)

    def none_for(self, seconds, holds):
        """True if no such datagram comes within this time."""
        after = self.mark()
        try:
            self.wait_for(holds, "", seconds, after)
        except Failed:
            return True
        return False

    def close(self):
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()
        with contextlib.suppress(OSError):
            os.unlink(self.path)


def lines(data):
    """{name: value} of a datagram to a service manager."""
    return dict(line.split("=", 1) for line in data.decode().splitlines())


def fields(data):
    """[(name, value)] of a datagram to the journal, read as systemd reads it."""
    found = []
    while data:
        end = data.index(b"\n")
        name, equals, value = data[:end].partition(b"=")
        data = data[end + 1:]
        if not equals:
            size, = struct.unpack_from("<Q", data)
            value, data = data[8:8 + size], data[8 + size:]
            assert data[:1] == b"\n", "a field does not end where its length says"
            data = data[1:]
        found.append((name.decode(), value.decode()))
    return found


class Manager(Receiver):
    """What systemd would hear. `environment` is for the daemon."""

    def __init__(self, path):
        super().__init__(path, lines)

    def environment(self, **more):
        clean = {name: value for name, value in os.environ.items() if name not in MANAGER}
        return {**clean, "NOTIFY_SOCKET": self.path, **more}

    def hears(self, name, value=None, timeout=60, after=0):
        """The first message with this name, and this value unless None."""
        what = f"{name}={value or '...'}"
        return self.wait_for(lambda one: name in one and value in (None, one[name]), what, timeout, after)
