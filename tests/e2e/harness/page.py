# SPDX-License-Identifier: Apache-2.0
"""A plain client of the page: no browser, so that every header can be wrong."""
import http.client
import json
import re
import socket
import threading
import time

from harness.daemon import Failed, wait_until

LINK = re.compile(r"page on (http://([^/]+):(\d+)/\?token=(\S+))")


class Page:
    """The page of a program that has said where it is."""

    def __init__(self, daemon):
        match = daemon.wait_for(LINK)
        self.link, self.host, port, self.token = match.groups()
        self.port = int(port)
        self.cookie = f"crowdveil-{self.port}={self.token}"

    def ask(self, url, method="GET", headers=None, cookie=True, timeout=20):
        """(status, headers, body)."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            connection.request(method, url, headers={**({"Cookie": self.cookie} if cookie else {}), **(headers or {})})
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()
        finally:
            connection.close()

    def json(self, url):
        status, headers, body = self.ask(url)
        assert status == 200 and headers["Content-Type"] == "application/json", (url, status, body[:300])
        return json.loads(body)

    def campaigns(self):
        return self.json("/api/campaigns")["campaigns"]

    def campaign(self, number=1):
        return self.json(f"/api/campaign?id={number}")

    def events(self, number=1, after=None, last_event_id=None):
        """Of a campaign that is known or will be; the broker hands it on after its requester has the number."""
        wait_until(lambda: self.ask(f"/api/campaign?id={number}", method="HEAD")[0] == 200,
                   f"campaign {number} is on the page")
        return Events(self, number, after, last_event_id)


class Events:
    """An open event stream, read by a thread."""

    def __init__(self, page, number, after, last_event_id):
        self.seen, self.changed, self.ended = [], threading.Condition(), False
        self.socket = socket.create_connection(("127.0.0.1", page.port), timeout=60)
        query = f"id={number}" + ("" if after is None else f"&after={after}")
        head = "" if last_event_id is None else f"Last-Event-ID: {last_event_id}\r\n"
        self.socket.sendall((f"GET /api/events?{query} HTTP/1.1\r\nHost: 127.0.0.1:{page.port}\r\n"
                             f"Cookie: {page.cookie}\r\n{head}\r\n").encode())
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        try:
            answer = http.client.HTTPResponse(self.socket)
            answer.begin()
            self.status = answer.status
            event = {}
            while line := answer.readline():
                line = line.decode().rstrip("\n")
                if line == "" and event:
                    with self.changed:
                        self.seen.append(event)
                        self.changed.notify_all()
                    event = {}
                elif line and not line.startswith(":"):
                    key, value = line.split(": ", 1)
                    event[key] = json.loads(value) if key == "data" else value
        except (OSError, ValueError, http.client.HTTPException):
            pass
        with self.changed:
            self.ended = True
            self.changed.notify_all()

    def wait_for(self, holds, what, timeout=60):
        """The events so far, once holds(events)."""
        deadline = time.monotonic() + timeout
        with self.changed:
            while not holds(self.seen):
                left = deadline - time.monotonic()
                if left <= 0 or self.ended:
                    raise Failed(f"no event stream with {what}; {len(self.seen)} events, the last {self.seen[-1:]}")
                self.changed.wait(left)
            return list(self.seen)

    def close(self):
        try:
            self.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.reader.join(10)
        self.socket.close()


def steps(events):
    return [event["data"] for event in events if event["event"] == "step"]


def last_standings(steps_):
    """[class, tokens, mean, radius, noise] of each arm after the steps."""
    found = {}
    for step in steps_:
        for arm, *standing in step["s"]:
            found[arm] = standing
    return found


def decisions(steps_):
    return [decision for step in steps_ for decision in step["d"]]
