# SPDX-License-Identifier: Apache-2.0
"""GET over a daemon's Unix socket."""
import http.client
import socket


class _Unix(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=20)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self.path))


def get(path, url):
    """(status, body)."""
    connection = _Unix(path)
    try:
        connection.request("GET", url)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def metric(folder, program, name):
    """The value of one line of a daemon's metrics; its socket is in the folder."""
    text = get(folder / f"{program}.sock", "/metrics")[1]
    return next(float(line.split()[1]) for line in text.split("\n") if line.startswith(f"{name} "))
