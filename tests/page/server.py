# SPDX-License-Identifier: Apache-2.0
"""
A server of the page for tests of the page alone: the same addresses, headers and events as Crowdveil's own, with
campaigns that the test makes and moves on. `python3 tests/page/server.py` serves some until Ctrl-C.
"""
import gzip
import json
import queue
import secrets
import select
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

sys.path.insert(0, str(Path(__file__).resolve().parent))
import campaigns as made  # noqa: E402

PAGE = Path(__file__).resolve().parents[2] / "page"
POLICY = ("default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
          "base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
TYPES = {".html": "text/html; charset=utf-8", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *args):
        pass

    def answer(self, status, kind, body, **more):
        body = body.encode() if isinstance(body, str) else body
        self.send_response(status)
        if "gzip" in self.headers.get("Accept-Encoding", "") and len(body) > 500:
            body = gzip.compress(body, 6)
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.guards()
        for key, value in more.items():
            self.send_header(key.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def guards(self):
        self.send_header("Content-Security-Policy", POLICY)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("Cache-Control", "no-store")

    def do_GET(self):
        site, address = self.server.site, urlsplit(self.path)
        asked = {key: values[0] for key, values in parse_qs(address.query).items()}
        site.requests.append(self.path)
        cookie = f"crowdveil-{site.port}={site.token}"
        if address.path == "/" and asked.get("token") == site.token:
            self.answer(303, "text/plain", "", Set_Cookie=f"{cookie}; HttpOnly; SameSite=Strict; Path=/", Location="/")
        elif cookie not in self.headers.get("Cookie", ""):
            self.answer(403, "text/plain", "no cookie of this page; use the link that the program printed\n")
        else:
            self.serve(site, address.path, asked)

    def serve(self, site, path, asked):
        number = int(asked.get("id", max(site.campaigns, default=0)))
        campaign = site.campaigns.get(number)
        if path == "/api/campaigns":
            self.json(site.listing())
        elif path == "/table":
            self.answer(200, TYPES[".html"], table(campaign))
        elif path.startswith("/api/") and campaign is None:
            self.answer(404, "text/plain", "no such campaign\n")
        elif path == "/api/campaign":
            self.json(campaign)
        elif path == "/api/boundary" and not site.alone:
            self.json(made.boundary(campaign, int(asked["arm"])))
        elif path == "/api/events":
            self.events(site, campaign, int(self.headers.get("Last-Event-ID") or asked.get("after", 0)))
        else:
            self.file(path)

    def file(self, path):
        found = (PAGE / (path.lstrip("/") or "index.html")).resolve()
        if PAGE in found.parents and found.is_file():
            self.answer(200, TYPES.get(found.suffix, "text/plain"), found.read_bytes())
        else:
            self.answer(404, "text/plain", "no such file\n")

    def json(self, value):
        self.answer(200, "application/json", json.dumps(value))

    def events(self, site, campaign, after):
        self.close_connection = True
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.guards()
        self.end_headers()
        waiting = queue.Queue()
        for step in campaign["steps"]:
            if step["n"] > after:
                waiting.put(("step", step))
        site.streams.append(waiting)
        try:
            self.wfile.write(b"retry: 300\n\n")
            while not site.closing:
                if select.select([self.connection], [], [], 0.02)[0] and not self.connection.recv(1):
                    break
                while not waiting.empty():
                    kind, data = waiting.get()
                    number = f"id: {data['n']}\n" if kind == "step" else ""
                    self.wfile.write(f"{number}event: {kind}\ndata: {json.dumps(data)}\n\n".encode())
        except OSError:
            pass
        finally:
            site.streams.remove(waiting)


def table(campaign):
    rows = "".join(f"<tr><td>{arm + 1}</td></tr>" for arm in range(campaign["arms"]))
    name = campaign["name"]
    return f"<!doctype html><html lang=en><title>{name}</title><h1>{name}</h1><table>{rows}</table>"


class Http(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        """A browser that leaves in the middle of an answer is no error; the test sees any other."""


class Site:
    """A running server. `alone`: the third-party's, which has no view of the others."""

    def __init__(self, campaigns, alone=False, port=0, token=None):
        self.campaigns = {campaign["id"]: campaign for campaign in campaigns}
        self.alone, self.token = alone, token or secrets.token_hex(32)
        self.requests, self.streams, self.closing = [], [], False
        self.http = Http(("127.0.0.1", port), Handler)
        self.http.site = self
        self.port = self.http.server_address[1]
        threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    @property
    def link(self):
        return f"http://127.0.0.1:{self.port}/?token={self.token}"

    def listing(self):
        keys = ("id", "number", "broker", "name", "kind", "state", "arms")
        rows = [{key: campaign[key] for key in keys} | {"plans": len(campaign["steps"]), "decided": 0}
                for campaign in self.campaigns.values()]
        return {"party": "third-party" if self.alone else "all", "program": "test", "campaigns": rows}

    def send(self, kind, data):
        for waiting in list(self.streams):
            waiting.put((kind, data))

    def push(self, number, step):
        self.campaigns[number]["steps"].append(step)
        self.send("step", step)

    def stop(self):
        self.closing = True
        self.http.shutdown()
        self.http.server_close()


if __name__ == "__main__":
    site = Site([made.restaurants()[1], made.recruitment(), made.bandit(), made.graph(), made.many(), made.long_run()],
                alone="--alone" in sys.argv)
    print(site.link, flush=True)
    threading.Event().wait()
