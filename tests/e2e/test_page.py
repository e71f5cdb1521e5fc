# SPDX-License-Identifier: Apache-2.0
"""The page of the third-party: who may open it, and that it shows what the database holds, all of it, in order."""
import gzip
import json
import socket
import sqlite3

import pytest

from harness import admin
from harness.campaign import Run
from harness.daemon import Failed, wait_until
from harness.page import Page, decisions, last_standings, steps

ON = {"page": "127.0.0.1:0"}
PROTECTED = ["/", "/index.html", "/api/campaigns", "/api/campaign?id=1", "/api/events?id=1", "/table?id=1", "/nothing"]


@pytest.fixture
def page(deployment):
    deployment.start_thirdparty(ON)
    return Page(deployment.thirdparty)


def rows(run, sql):
    """Of the database of a third-party that has stopped."""
    database = sqlite3.connect(f"file:{run.deployment.folder}/thirdparty-state/thirdparty.db?mode=ro", uri=True)
    try:
        return database.execute(sql).fetchall()
    finally:
        database.close()


# ---- who may open it


def test_the_link_opens_the_page_once_and_the_cookie_then(page):
    status, headers, _ = page.ask(f"/?token={page.token}", cookie=False)
    assert (status, headers["Location"]) == (303, "/")
    assert headers["Set-Cookie"] == f"{page.cookie}; HttpOnly; SameSite=Strict; Path=/"
    status, headers, body = page.ask("/")
    assert status == 200 and headers["Content-Type"].startswith("text/html") and b"<html" in body
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert headers["X-Content-Type-Options"] == "nosniff" and headers["Cache-Control"] == "no-store"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["Cross-Origin-Resource-Policy"] == headers["Cross-Origin-Opener-Policy"] == "same-origin"


def test_a_browser_that_takes_gzip_gets_it(page):
    _, plain, body = page.ask("/index.html")
    _, headers, packed = page.ask("/index.html", headers={"Accept-Encoding": "br, gzip"})
    _, refused, again = page.ask("/index.html", headers={"Accept-Encoding": "gzip;q=0"})
    assert headers["Content-Encoding"] == "gzip" and gzip.decompress(packed) == body == again
    assert "Content-Encoding" not in plain and "Content-Encoding" not in refused


@pytest.mark.parametrize("url", PROTECTED)
def test_without_the_token_nothing_is_shown(page, url):
    wrong = page.cookie[:-1] + ("0" if page.cookie[-1] != "0" else "1")
    for headers in ({}, {"Cookie": wrong}, {"Cookie": page.cookie + "0"}, {"Cookie": page.cookie[:-1]},
                    {"Cookie": f"crowdveil-{page.port}="}, {"Cookie": f"crowdveil-1={page.token}"}):
        status, _, body = page.ask(url, cookie=False, headers=headers)
        assert status == 403 and b"link that the program printed" in body and body.count(b"\n") == 1
    status, _, _ = page.ask(f"/?token={page.token[:-1]}", cookie=False)
    assert status == 403


@pytest.mark.parametrize("headers", [
    {"Host": "rebound.example"}, {"Host": "127.0.0.1.rebound.example"}, {"Host": "localhost:80:80"}, {"Host": ""},
    {"Origin": "http://rebound.example"}, {"Origin": "null"}, {"Origin": "https://127.0.0.1"},
    {"Origin": "http://127.0.0.1:1"}])
def test_a_page_from_elsewhere_is_refused(page, headers):
    for url in ("/", "/api/campaigns", f"/?token={page.token}"):
        status, _, body = page.ask(url, headers=headers)
        assert status == 403 and b"wrong " in body


def test_its_own_origin_is_accepted(page):
    own = f"127.0.0.1:{page.port}"
    assert page.ask("/api/campaigns", headers={"Host": own, "Origin": f"http://{own}"})[0] == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH"])
def test_another_method_is_refused(page, method):
    assert page.ask("/api/campaigns", method=method)[0] == 405
    assert page.ask("/api/campaigns")[0] == 200


@pytest.mark.parametrize("url, status", [
    ("/api/campaign", 400), ("/api/campaign?id=", 400), ("/api/campaign?id=-1", 400), ("/api/campaign?id=1x", 400),
    ("/api/campaign?id=99999999999999999999", 400), ("/api/campaign?id=9223372036854775808", 404),
    ("/api/campaign?id=0", 404), ("/api/campaign?id=7", 404), ("/api/events?id=7", 404), ("/table?id=7", 404),
    ("/api/events?id=1&after=x", 400), ("/api/boundary?id=1&arm=0", 404), ("/api", 404), ("/api/", 404),
    ("/../etc/passwd", 404), ("/page/index.html", 404)])
def test_a_wrong_request_has_one_line(page, url, status):
    found, _, body = page.ask(url)
    assert found == status and body.count(b"\n") == 1


def test_a_huge_query_is_refused_and_costs_nothing(page):
    for url in ("/api/campaign?id=" + "1" * 60_000, "/" + "a" * 60_000):
        try:
            assert page.ask(url)[0] in (400, 414, 431)
        except (ConnectionError, OSError):
            pass  # closed while the request was being sent
    assert page.ask("/api/campaigns")[0] == 200


def test_a_public_address_must_be_asked_for(deployment):
    deployment.use_system_clock()
    daemon = deployment.launch_thirdparty({"page": "0.0.0.0:0"})
    assert daemon.wait() == 2
    assert "page_hosts" in daemon.text() and daemon.text().count("\n") == 0
    daemon = deployment.launch_thirdparty({"page": "0.0.0.0:0", "page_hosts": "pages.example"})
    page = Page(daemon)
    assert page.host == "pages.example"
    assert page.ask("/api/campaigns", headers={"Host": "pages.example:8080"})[0] == 200
    assert page.ask("/api/campaigns", headers={"Host": "other.example"})[0] == 403


def test_the_token_may_come_from_a_file(deployment):
    file = deployment.folder / "token"
    file.write_text("short\n")
    file.chmod(0o600)
    daemon = deployment.launch_thirdparty({**ON, "page_token": str(file)})
    assert daemon.wait() == 2 and f"page_token: {file}: expected" in daemon.text()
    file.write_text("a-Token_of_32_letters-0123456789" + "\n")
    assert Page(deployment.launch_thirdparty({**ON, "page_token": str(file)})).token == file.read_text().strip()


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o620, 0o610])
def test_a_token_that_others_may_know_is_refused(deployment, mode):
    file = deployment.folder / "token"
    file.write_text("a-Token_of_32_letters-0123456789" + "\n")
    file.chmod(mode)
    daemon = deployment.launch_thirdparty({**ON, "page_token": str(file)})
    assert daemon.wait() != 0
    assert f"page_token: {file} is open to others than its owner; expected mode 0600" in daemon.text()


def test_without_the_setting_there_is_no_page(deployment):
    deployment.start_thirdparty()
    with pytest.raises(Failed):
        deployment.thirdparty.wait_for("page on", timeout=.5)


# ---- what it shows


def check_against_database(run, campaign):
    """The last values of the page are those of the stopped third-party's database."""
    (number, name, state, releases), = rows(run, "SELECT number, name, state, releases FROM campaign")
    assert (campaign["number"], campaign["name"], campaign["state"]) == (number, name, state)
    stored = {arm: list(rest) for arm, *rest in rows(run, "SELECT arm, class, tokens, mean, radius FROM standing")}
    shown = last_standings(campaign["steps"])
    assert {arm: standing[:4] for arm, standing in shown.items()} == stored
    assert all(0 < standing[4] < standing[3] for standing in shown.values())
    # A lone arm is settled against nothing: an infinite reference, which JSON does not have.
    assert decisions(campaign["steps"]) == [[None if value == float("-inf") else value for value in row]
                                              for row in rows(
        run, "SELECT number, kind, arm, class, tokens, mean, radius, reference FROM decision ORDER BY number")]
    last = campaign["steps"][-1]
    asked, = rows(run, "SELECT sum(tokens) FROM plan_want")[0]
    assert (last["releases"], last["asked"]) == (releases, asked)
    assert last["tokens"] == rows(run, "SELECT sum(w.tokens) FROM release r JOIN plan_want w"
                                       " ON w.plan = r.plan AND w.arm = r.arm")[0][0]


def test_the_page_shows_what_the_database_holds_also_after_a_restart(deployment):
    run = Run(deployment, thirdparty=ON)
    page = Page(deployment.thirdparty)
    wait_until(page.campaigns, "a campaign")
    begun = page.campaign()
    assert [step["n"] for step in begun["steps"]] == [0] and begun["state"] == "running"
    assert [standing[0] for standing in begun["steps"][0]["s"]] == [0, 1, 2, 3, 4]
    run.start_workers()
    run.start_worker("gateway/200001-400000", arrival_rate=0)
    events = page.events(after=0)
    seen = events.wait_for(lambda seen: any(e["event"] == "state" and e["data"]["state"] == "complete" for e in seen),
                           "the end")
    live = page.campaign()
    assert live["thinned"] == 1 and steps(seen) == live["steps"][1:]
    assert [int(e["id"]) for e in seen if e["event"] == "step"] == list(range(1, len(live["steps"])))
    times = [step["t"] for step in live["steps"]]
    assert times == sorted(times) and times[0] == 0
    assert page.campaigns()[0] | {"decided": 5, "arms": 5, "state": "complete", "kind": "ranking"} == \
        page.campaigns()[0]
    events.close()
    # A restart: the history is made from the database, without times.
    deployment.thirdparty.stop()
    check_against_database(run, live)
    run.start("thirdparty").address
    again = Page(deployment.thirdparty)
    assert again.token != page.token and again.ask("/", headers={"Cookie": page.cookie}, cookie=False)[0] == 403
    told = again.campaign()
    assert {step["t"] for step in told["steps"]} == {None}
    assert [{**step, "t": None} for step in live["steps"]] == told["steps"]
    assert live["link"]["connected"] and live["link"]["term"] == 0
    now = ("steps", "link")
    assert {key: live[key] for key in live if key not in now} == {key: told[key] for key in told if key not in now}


def test_a_restart_in_the_middle_and_a_stream_that_goes_on(deployment):
    run = Run(deployment, thirdparty=ON)
    page = Page(deployment.thirdparty)
    run.start_workers()
    events = page.events()
    first = steps(events.wait_for(lambda seen: len(steps(seen)) > 5, "five steps"))
    run.kill_and_restart("thirdparty")
    page = Page(deployment.thirdparty)
    events = page.events(last_event_id=first[-1]["n"])
    run.start_worker("gateway/200001-400000", arrival_rate=0)
    seen = events.wait_for(lambda seen: any(e["event"] == "state" and e["data"]["state"] == "complete" for e in seen),
                           "the end")
    numbers = [step["n"] for step in first + steps(seen)]
    assert numbers == list(range(len(numbers))) and len(numbers) > 20
    whole = page.campaign()
    assert [{**step, "t": None} for step in first + steps(seen)] == [{**step, "t": None} for step in whole["steps"]]
    deployment.thirdparty.stop()
    check_against_database(run, whole)


def test_a_client_from_the_future_reloads(deployment):
    Run(deployment, thirdparty=ON)
    page = Page(deployment.thirdparty)
    events = page.events(after=1000)
    assert events.wait_for(lambda seen: seen, "an event")[0]["event"] == "reload"


def test_the_table_needs_no_script(deployment):
    Run(deployment, thirdparty=ON)
    page = Page(deployment.thirdparty)
    wait_until(page.campaigns, "a campaign")
    status, headers, body = page.ask("/table?id=1")
    assert page.ask("/table")[2] == body
    assert status == 200 and headers["Content-Type"] == "text/html; charset=utf-8"
    assert body.count(b"<tr>") == 6 and b"undecided" in body and b"<script" not in body


def test_without_a_campaign_the_table_says_so(page):
    status, _, body = page.ask("/table")
    assert status == 200 and b"No campaign yet" in body


def test_the_admin_socket_answers_the_same(deployment):
    Run(deployment)
    path = deployment.folder / "thirdparty.sock"
    wait_until(lambda: json.loads(admin.get(path, "/api/campaigns")[1])["campaigns"], "a campaign")
    status, body = admin.get(path, "/api/campaign?id=1")
    campaign = json.loads(body)
    assert status == 200 and campaign["truth"] is None and [step["n"] for step in campaign["steps"]] == [0]


# ---- many and slow readers


def test_a_hundred_connections_and_a_slow_reader_disturb_nobody(deployment):
    run = Run(deployment, thirdparty=ON)
    page = Page(deployment.thirdparty)
    idle = [socket.create_connection(("127.0.0.1", page.port)) for _ in range(100)]
    streams = [page.events() for _ in range(20)]
    slow = page.events()
    slow.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
    run.start_workers()
    run.start_worker("gateway/200001-400000", arrival_rate=0)
    first = None
    for stream in streams:
        seen = stream.wait_for(lambda seen: any(e["event"] == "state" and e["data"]["state"] == "complete"
                                                for e in seen), "the end")
        first = first or steps(seen)
        assert steps(seen) == first
    for connection in idle:
        connection.close()
    for stream in streams:
        stream.close()
    deployment.thirdparty.stop()


def test_streams_are_bounded(deployment):
    Run(deployment, thirdparty=ON)
    page = Page(deployment.thirdparty)
    streams = [page.events() for _ in range(64)]
    for stream in streams:
        stream.wait_for(lambda seen: len(seen) >= 2, "a step and a state")
    status, _, body = page.ask("/api/events?id=1")
    assert status == 503 and b"too many" in body
    for stream in streams:
        stream.close()
    # Places become free within seconds after their readers have gone.
    wait_until(lambda: page.events().wait_for(lambda seen: seen, "an event") if not busy(page) else False,
               "a free place", timeout=20, every=.5)


def busy(page):
    """Whether a further stream is refused; asks with HEAD, which opens none."""
    return page.ask("/api/events?id=1", method="HEAD")[0] == 503
