# SPDX-License-Identifier: Apache-2.0
"""A gateway with a form, and a person at it, who acts as a browser without JavaScript."""
import contextlib
import html
import http.client
import re
import sqlite3
import subprocess
from urllib.parse import urlencode, urlsplit

from client.requester import spec
from crowdveil.wire import GRID
from harness.daemon import PROGRAMS, write_config

NAMES = ("Roma", "Golden Wok", "the <b>Grill</b> & more")
SCORES = (10, 5, 0)  # of 10
LIMITS = {"trusted_thirdparty": True, "release_tokens": 1}
LAPLACE = {"privatizers": "laplace", "epsilon": 10, "tokens": 100}


class Person:
    """`link`: as --form-invite prints it; `address` is where the form really listens."""

    def __init__(self, link, address):
        self.address, self.cookie = address, None
        self.query = urlsplit(link).query

    def ask(self, method, path, body=None, headers=None, cookie=True):
        """(status, headers, text); follows nothing."""
        host, port = self.address.rsplit(":", 1)
        connection = http.client.HTTPConnection(host, int(port), timeout=20)
        sent = {"Content-Type": "application/x-www-form-urlencoded"} if body is not None else {}
        if cookie and self.cookie:
            sent["Cookie"] = self.cookie
        try:
            connection.request(method, path, body, {**sent, **(headers or {})})
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read().decode()
        finally:
            connection.close()

    def enter(self):
        status, headers, _ = self.ask("GET", f"/?{self.query}")
        assert status == 303 and headers["Location"] == "/", status
        self.cookie = headers["Set-Cookie"].split(";")[0]
        return headers["Set-Cookie"]

    def look(self):
        """The page."""
        status, _, text = self.ask("GET", "/")
        assert status == 200, (status, text)
        return text

    def send(self, page, **fields):
        """Posts the page's form: (status, page after it)."""
        hidden = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', page))
        status, headers, text = self.ask("POST", "/answer", urlencode({**hidden, **fields}),
                                         {"Origin": f"http://{self.address}"})
        return (200, self.look()) if status == 303 else (status, text)


def item(page):
    """The item that the page asks for; None: it asks for none."""
    found = re.search(r"<label for=\"score\">Your score for <strong><bdi>(.*?)</bdi></strong>", page)
    return html.unescape(found.group(1)) if found else None


def notice(page):
    return html.unescape(re.sub("</?bdi>", "", re.search(r'<p role="status">(.*?)</p>', page).group(1)))


def given_means(deployment, arms):
    """The mean score of each arm, from the exact sums that a trusted third-party has; stops it."""
    deployment.thirdparty.stop()
    path = f"file:{deployment.folder}/thirdparty-state/thirdparty.db?mode=ro"
    with contextlib.closing(sqlite3.connect(path, uri=True)) as database:
        rows = database.execute("SELECT arm, noisy_sum, tokens FROM release ORDER BY number").fetchall()
    last = {arm: total / tokens / GRID for arm, total, tokens in rows}
    return [round(last[arm], 5) for arm in range(arms)]


class World:
    """A campaign of three items and a gateway with a form. `cobroker`: as in Deployment.up()."""

    def __init__(self, deployment, people=2, broker=None, accept=None, start=True, form=None, cobroker=None,
                 thirdparty=None, **changes):
        self.deployment, self.folder = deployment, deployment.folder
        deployment.up(thirdparty, {"lease": "5m", "limits": LIMITS, **(broker or {})}, cobroker)
        items = ", ".join(f"{{name: '{name}', mean: 0.5}}" for name in NAMES)
        self.file = self.folder / "campaign.yaml"
        self.file.write_text(f"campaign: dinner\nitems: {{list: [{items}]}}\npolicy: {{name: ppar, alpha: 0.3}}\n"
                             "privacy: {epsilon: 1}\n")
        with deployment.requester() as requester:
            self.campaign = requester.submit(spec(len(NAMES), **{
                "name": "dinner", "mechanism": "none", "trusted": True, "tokens_per_worker": 50,
                "policy_params": {"alpha": .3, "delta": .1, "tokens_per_round": 1}, "tokens": 10_000,
                **changes})).campaign
        self.settings = {"form": "127.0.0.1:0", "form_people": str(self.folder / "people"),
                         "accept": {"mechanisms": "none", **(accept or {})}, "state": deployment.state("worker-state"),
                         "exit_when_done": False,
                         **(form or {})}
        self.links = self.invite(people)
        if start:
            self.start()

    def invite(self, people):
        """The links by number."""
        config = write_config(self.folder / "invite.yaml", {
            **self.settings, "broker_name": "main", "campaign": str(self.file), "requesters": "alice",
            "tls": self.deployment.pki.issue("gateway/101-120").config()})
        done = subprocess.run([PROGRAMS["worker"], "--config", config, "--form-invite", str(people)],
                              capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return dict(line.split(" ", 1) for line in done.stdout.splitlines())

    def start(self, **changes):
        self.gateway = self.deployment.start_worker("gateway/101-120", self.file, {**self.settings, **changes})
        self.address = self.gateway.wait_for(r"form for \d+ people on https?://([^/]+)/").group(1)
        return self.gateway

    def person(self, number=1):
        made = Person(self.links[str(number)], self.address)
        made.enter()
        return made

    def is_over(self):
        return "ended: " in self.deployment.broker.text()

    def finished(self):
        with self.deployment.requester() as requester:
            return requester.watch(self.campaign)
