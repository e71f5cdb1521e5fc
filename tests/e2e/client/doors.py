# SPDX-License-Identifier: Apache-2.0
"""
Hostile clients of an HTTP server: `doors.py KIND ADDRESS COUNT SOURCE [HEADER]...` holds COUNT connections from SOURCE,
opens each again once it is closed, and prints "on" when as many have been opened. Runs until it is killed.
"""
import os
import resource
import selectors
import socket
import sys
import time

PACE = 1000  # connections opened a second, after the first COUNT: the machine is not the target


def head(headers):
    """A head that never ends."""
    return b"GET / HTTP/1.1\r\nX: ", b"x"


def silent(headers):
    return b"", b""


def body(headers):
    return (b"POST /answer HTTP/1.1\r\n" + headers + b"Content-Length: 400\r\n\r\n"), b"x"


def asking(headers):
    """A whole request, whose answer ends the connection."""
    return b"GET /nothing HTTP/1.1\r\n" + headers + b"\r\n", b""


def kept(headers):
    """A whole post, whose answer does not, and a further head that never ends."""
    return b"POST /answer HTTP/1.1\r\n" + headers + b"Content-Length: 1\r\n\r\nx", b"G"


def deaf(headers):
    """Requests without end whose answers are not read."""
    return (b"GET /nothing HTTP/1.1\r\n" + headers + b"\r\n") * 200, b"G"


class Crowd:
    def __init__(self, kind, address, count, source, headers):
        host, port = address.rsplit(":", 1)
        self.target, self.count, self.source = (host, int(port)), count, source
        self.first, self.drip = kind(headers)
        self.reads = kind is not deaf
        self.selector = selectors.DefaultSelector()
        self.open = {}  # socket: what it waits for, of selectors

    def wait(self, sock, what):
        if self.open.get(sock):
            self.selector.unregister(sock)
        if what:
            self.selector.register(sock, what)
        self.open[sock] = what

    def enter(self):
        sock = socket.socket()
        if not self.reads:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        sock.setblocking(False)
        sock.bind((self.source, 0))
        sock.connect_ex(self.target)
        self.wait(sock, selectors.EVENT_WRITE)

    def leave(self, sock):
        self.wait(sock, 0)
        del self.open[sock]
        sock.close()

    def act(self, sock, does):
        """Whether the connection is still there."""
        try:
            return does(sock)
        except BlockingIOError:
            return True
        except OSError:
            return False

    def begin(self, sock):
        sock.send(self.first)
        self.wait(sock, selectors.EVENT_READ if self.reads else 0)
        return True

    def turn(self):
        for key, _ in self.selector.select(.02):
            does = self.begin if key.events == selectors.EVENT_WRITE else lambda sock: sock.recv(65536) != b""
            if not self.act(key.fileobj, does):
                self.leave(key.fileobj)

    def run(self):
        for _ in range(self.count):
            self.enter()
        self.turn()
        print("on", flush=True)
        dripped = opened = time.monotonic()
        while True:
            self.turn()
            now = time.monotonic()
            if now - dripped >= 1:
                dripped = now
                for sock, what in list(self.open.items()):
                    if what != selectors.EVENT_WRITE and not self.act(sock, lambda sock: sock.send(self.drip) >= 0):
                        self.leave(sock)
            for _ in range(min(self.count - len(self.open), int((now - opened) * PACE))):
                self.enter()
            opened = now


if __name__ == "__main__":
    os.nice(10)
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    _, named, where, many, whence, *lines = sys.argv
    Crowd(globals()[named], where, int(many), whence, "".join(line + "\r\n" for line in lines).encode()).run()
