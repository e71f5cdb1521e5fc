# SPDX-License-Identifier: Apache-2.0
"""`crowdveil up --page`: the third-party's history joined with the truth, the broker's progress and the boundary."""
import json
import re
import signal
import socket
from pathlib import Path

import pytest

from harness.commands import crowdveil
from harness.daemon import PROGRAMS, ROOT, Daemon, wait_until
from harness.page import Page, last_standings, steps

CAMPAIGNS = ROOT / "deploy/campaigns"


@pytest.fixture
def start(tmp_path):
    """Starts `crowdveil up --page`; (the program, its page)."""
    started = []

    def up(campaign, *options):
        daemon = Daemon("up", [PROGRAMS["crowdveil"], "up", CAMPAIGNS / campaign, "--page", "--seed", 3, *options],
                        tmp_path / "up.log")
        started.append(daemon)
        return daemon, Page(daemon)
    yield up
    for daemon in started:
        if daemon.process.poll() is None:
            daemon.signal(signal.SIGINT)
            daemon.wait()


def is_over(seen):
    return any(e["event"] == "state" and e["data"]["state"] != "running" for e in seen)


def test_it_adds_the_truth_and_the_progress_and_stays_until_ctrl_c(start):
    daemon, page = start("first.yaml")
    seen = page.events().wait_for(is_over, "the end", timeout=120)
    daemon.wait_for("Still running until Ctrl-C")
    campaign = page.campaign()
    assert page.json("/api/campaigns")["party"] == "all" and page.campaigns()[0]["state"] == "complete"
    assert campaign["truth"] == {"means": [.9, .84, .6, .55, .2], "classes": [1, 1, 2, 2, 3], "best": 0}
    assert steps(seen) == campaign["steps"] and campaign["steps"][0]["t"] == 0
    table = daemon.text()
    for standing in last_standings(campaign["steps"]).values():
        tokens, mean, radius = f"{standing[1]:,}", f"{standing[2]:.4f}", f"{standing[3]:.4f}"
        assert re.search(rf"{mean} ± {radius} +{tokens} ", table), (standing, table)
    live = campaign["live"]
    assert f"{live['tokens']:,} of" in table and live["regret"] is None
    assert live["spent"] == campaign["epsilon"] and live["left"] == 0
    daemon.signal(signal.SIGINT)
    assert daemon.wait() == 0


def test_of_a_bandit_it_shows_regret_and_reward_as_the_result_does(start):
    daemon, page = start("ts-cf.yaml", "--json")
    page.events().wait_for(is_over, "the end", timeout=120)
    daemon.wait_for("Still running until Ctrl-C")
    live = page.campaign()["live"]
    daemon.signal(signal.SIGINT)
    daemon.wait()
    result = json.loads(daemon.lines[-1])
    assert (live["reward"], live["regret"]) == pytest.approx((result["reward"], result["regret"]))
    assert live["tokens"] == result["tokens"] and live["regret"] > 0


def test_the_boundary_has_a_column_of_each_party(start, tmp_path):
    """Of the demo with long rounds: most of the time an epoch of the arm is open."""
    text = (CAMPAIGNS / "demo.yaml").read_text()
    assert "tokens_per_round: 6000," in text
    (tmp_path / "long.yaml").write_text(text.replace("tokens_per_round: 6000,", "tokens_per_round: 60000,"))
    _, page = start(tmp_path / "long.yaml")
    wait_until(page.campaigns, "a campaign")
    asked = []

    def between_its_epochs():  # between two plans nothing of the arm is sealed
        asked.append(page.json("/api/boundary?id=1&arm=3"))
        return not asked[-1]["broker"]["sealed"]
    wait_until(lambda: not between_its_epochs(), "an open epoch of the arm")
    running = asked[-1]
    assert running["arm"] == 3 and running["worker"] is None
    broker = running["broker"]
    assert broker["sealed"] == ["partial sum", "noise"] and broker["places_open"] + broker["epoch_tokens"] == 60_000
    assert set(broker) == {"tokens", "places_open", "epoch_tokens", "sealed", "holds", "releases", "spent"}
    page.events().wait_for(is_over, "the end", timeout=120)
    ended = page.json("/api/boundary?id=1&arm=3")["thirdparty"]
    standing = last_standings(page.campaign()["steps"])[3]
    assert ended["standing"] == standing and ended["release"][2:] == standing[1:3]
    assert ended["decision"][1] == "settle" and ended["noise"][0][1] > 0
    assert page.ask("/api/boundary?id=1&arm=20")[0] == 404 and page.ask("/api/boundary?id=1&arm=x")[0] == 400
    assert b"<tbody>" in page.ask("/table?id=1")[2]


def test_with_two_brokers_there_is_a_column_of_the_cobroker(start):
    """The same kinds and counts as the broker's; no share, half, noise, key or session of either."""
    _, page = start("two-brokers.yaml")
    wait_until(page.campaigns, "a campaign")
    asked = []

    def in_an_epoch():
        asked.append(page.json("/api/boundary?id=1&arm=3"))
        return all(asked[-1][party]["sealed"] for party in ("broker", "cobroker"))
    wait_until(in_an_epoch, "an open epoch of the arm at both")
    seen = asked[-1]
    assert set(seen) == {"arm", "worker", "broker", "cobroker", "cobroker_health", "thirdparty"}
    assert seen["worker"] is None and seen["cobroker_health"] == "ok" and page.campaign()["brokers"] == 2
    for party in ("broker", "cobroker"):
        column = seen[party]
        assert set(column) == {"tokens", "places_open", "epoch_tokens", "sealed", "holds", "releases", "spent"}
        assert column["sealed"] == ["share of the sum", "noise"]
        assert column["holds"] == [["shares summed", column["tokens"]], ["share of the sum", "sealed"],
                                   ["noise", "sealed"]]
        assert column["places_open"] + column["epoch_tokens"] == 6000


def test_only_the_unsafe_option_shows_a_score_and_a_token(start, tmp_path):
    daemon, page = start("randomized-response.yaml", "--unsafe-show-worker")
    daemon.wait_for("UNSAFE: the page shows the score and the token of one worker")
    wait_until(page.campaigns, "a campaign")
    wait_until(lambda: page.json("/api/boundary?id=1&arm=0")["worker"], "the worker's answer", timeout=60)
    worker = page.json("/api/boundary?id=1&arm=0")["worker"]
    assert worker["privatizer"] == "randomized-response" and worker["state"] == "answered"
    assert 0 <= worker["score"] <= 1 and worker["token"] in (0, 1)
    state = daemon.wait_for(r"state in (\S+)").group(1)
    for log in Path(state).glob("*.log"):
        assert "UNSAFE shown" not in log.read_text(), log
    assert "shown: worker" not in daemon.text()


def test_the_unsafe_worker_needs_the_page(tmp_path):
    done = crowdveil("up", CAMPAIGNS / "first.yaml", "--unsafe-show-worker")
    assert done.returncode == 2 and "expected --page" in done.stderr and done.stderr.count("\n") == 1


def test_nobody_else_gets_in(start):
    _, page = start("first.yaml")
    for url in ("/", "/api/campaigns", "/api/campaign?id=1",
                "/api/events?id=1", "/api/boundary?id=1&arm=0", "/table?id=1"):
        assert page.ask(url, cookie=False)[0] == 403
        assert page.ask(url, headers={"Host": "rebound.example"})[0] == 403
        assert page.ask(url, headers={"Origin": "http://rebound.example"})[0] == 403


def test_a_port_in_use_is_named(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        daemon = Daemon("up", [PROGRAMS["crowdveil"], "up", CAMPAIGNS / "first.yaml", "--page", "--page-port",
                               taken.getsockname()[1]], tmp_path / "up.log")
        assert daemon.wait() == 1
    assert "page: cannot listen on 127.0.0.1:" in daemon.text() and "thirdparty" not in daemon.text()
