# SPDX-License-Identifier: Apache-2.0
"""Requests over a daemon's Unix socket."""
import http.client
import socket


class _Unix(http.client.HTTPConnection):
    def __init__(self, path, timeout):
        super().__init__("localhost", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self.path))


def get(path, url, timeout=20):
    """(status, body)."""
    return ask(path, "GET", url, timeout=timeout)


def post(path, url, timeout=20):
    return ask(path, "POST", url, timeout=timeout)


def ask(path, method, url, body=None, host="localhost", timeout=20):
    """(status, body)."""
    connection = _Unix(path, timeout)
    try:
        connection.request(method, url, body, {"Host": host})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def metrics(path):
    """{name with labels: value}."""
    _, text = get(path, "/metrics")
    return {name: float(value) for name, value in
            (line.rsplit(" ", 1) for line in text.splitlines() if line and not line.startswith("#"))}


def metric(folder, program, name):
    """The value of one line of a daemon's metrics; its socket is in the folder."""
    return metrics(folder / f"{program}.sock")[name]
