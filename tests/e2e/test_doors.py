# SPDX-License-Identifier: Apache-2.0
"""
Form and page stay open while others hold connections: a person elsewhere has every request answered within a second, a
person at the attacker's own address within five.
"""
import contextlib
import http.client
import re
import select
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlencode

import pytest

from harness import admin
from harness.daemon import PYTHON, wait_until
from harness.page import Page
from harness.people import LIMITS, World, item, notice
from support.address import HOST, free_port

pytestmark = [pytest.mark.usefixtures("worker_program"), pytest.mark.alone]
DOORS = Path(__file__).parent / "client/doors.py"
ATTACKER, OTHER = "127.0.0.66", "127.0.0.7"
ELSEWHERE_S, SAME_S = 1, 5


@contextlib.contextmanager
def attacked(kind, address, count, *headers, source=ATTACKER):
    command = [PYTHON, str(DOORS), kind, address, str(count), source, *headers]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=sys.stderr) as attack:
        try:
            assert attack.stdout.readline() == b"on\n"
            yield
        finally:
            attack.kill()


def ask(address, url, source, headers):
    """(status, seconds) of a request with a connection of its own."""
    host, port = address.rsplit(":", 1)
    began = time.monotonic()
    connection = http.client.HTTPConnection(host, int(port), timeout=20, source_address=(source, 0))
    try:
        connection.request("GET", url, headers=headers)
        answer = connection.getresponse()
        answer.read()
        return answer.status, time.monotonic() - began
    finally:
        connection.close()


def stays_open(address, url, headers, status=200, rounds=6):
    for source, most_s in ((OTHER, ELSEWHERE_S), (ATTACKER, SAME_S)) * rounds:
        found, seconds = ask(address, url, source, headers)
        assert found == status and seconds < most_s, (source, found, seconds)
        time.sleep(.1)  # the attack goes on meanwhile


def lets_in(world, link="1"):
    """The form's way in, which asks for no broker."""
    return {"address": world.address, "url": "/?" + world.links[link].split("?")[1], "headers": {}, "status": 303}


@pytest.fixture
def page(deployment):
    deployment.start_thirdparty({"page": "127.0.0.1:0"})
    made = Page(deployment.thirdparty)
    made.clock = deployment.clock
    return made


@pytest.mark.parametrize("kind, count", [("head", 270), ("head", 400), ("silent", 1500), ("asking", 400),
                                         ("deaf", 400)])
def test_the_form_stays_open(deployment, kind, count):
    world = World(deployment)
    with attacked(kind, world.address, count, "Host: 127.0.0.1"):
        stays_open(**lets_in(world))
    assert item(world.person().look()), "and gives questions"


@pytest.mark.parametrize("kind, count", [("body", 400), ("kept", 1200)])
def test_a_person_does_not_shut_the_form(deployment, kind, count):
    """Only who has a link can owe a body, or have a connection kept."""
    world = World(deployment)
    person = world.person()
    headers = ("Host: 127.0.0.1", f"Cookie: {person.cookie}", "Sec-Fetch-Site: same-origin")
    with attacked(kind, world.address, count, *headers):
        stays_open(**lets_in(world, "2"))


@pytest.mark.parametrize("kind, count", [("head", 400), ("silent", 1500), ("asking", 400), ("deaf", 300)])
def test_the_page_stays_open(page, kind, count):
    address, headers = f"127.0.0.1:{page.port}", {"Cookie": page.cookie}
    with attacked(kind, address, count, "Host: 127.0.0.1"):
        stays_open(address, "/api/campaigns", headers)


@pytest.mark.parametrize("sent", [b"", b"GET /health HTTP/1.1\r\nX: "])
def test_the_admin_socket_stays_open(deployment, sent):
    """A monitor that leaks connections does not hide the daemon from its operator."""
    deployment.start_thirdparty()
    path = deployment.folder / "thirdparty.sock"
    with contextlib.ExitStack() as leaked:
        for _ in range(60):
            sock = leaked.enter_context(socket.socket(socket.AF_UNIX))
            sock.settimeout(10)
            sock.connect(str(path))
            sock.sendall(sent)
        for _ in range(5):
            assert admin.get(path, "/health", timeout=SAME_S) == (200, "ok\n")


def world_behind_a_proxy(deployment, **form):
    """Its links do not have the port, since browsers do not see it."""
    address = f"{HOST}:{free_port()}"
    world = World(deployment, form={"form": address, "form_hosts": HOST, **form})
    world.address = address
    return world


def begin_post(address, source, person, headers, body):
    """A connection that has sent the head of a post and half of its body."""
    host, port = address.rsplit(":", 1)
    sock = socket.create_connection((host, int(port)), timeout=20, source_address=(source, 0))
    head = {"Host": address, "Cookie": person.cookie, "Sec-Fetch-Site": "same-origin", "Content-Length": len(body),
            "Connection": "close", **headers}
    lines = "".join(f"{name}: {value}\r\n" for name, value in head.items())
    sock.sendall(f"POST /answer HTTP/1.1\r\n{lines}\r\n".encode() + body[:len(body) // 2])
    return sock


@pytest.mark.parametrize("trusted, source, told", [
    ({"form_tls": True}, "127.0.0.1", "198.51.100.9, 192.0.2.66"),
    ({"form_tls": True}, "127.0.0.1", "192.0.2.7\r\nX-Forwarded-For: 192.0.2.66"),  # the proxy adds a line of its own
    ({"form_tls": True}, "127.0.0.1", "192.0.2.7, unknown"),  # as malformed as it can be
    ({"form_tls": True, "form_proxy": "127.0.0.5, 192.0.2.1"}, ATTACKER, "192.0.2.7"),  # no proxy: a liar
    ({"form_proxy": "127.0.0.5"}, "127.0.0.5", "2001:db8:6:6::1"),
])
def test_behind_a_proxy_an_address_is_the_forwarded_one(deployment, trusted, source, told):
    """Who floods with bodies pushes out its own, and not one that was begun before and ends after a while."""
    world = world_behind_a_proxy(deployment, **trusted)
    attacker, person, proxy = world.person(1), world.person(2), trusted.get("form_proxy", "127.0.0.1").split(",")[0]
    headers = {"X-Forwarded-For": "192.0.2.66, 192.0.2.7"}
    with deployment.clock.hold():  # no time is over, so only the limits decide
        slow = begin_post(world.address, proxy, person, headers, b"x" * 100)
        with attacked("body", world.address, 1300, "Host: 127.0.0.1", f"Cookie: {attacker.cookie}",
                      "Sec-Fetch-Site: same-origin", f"X-Forwarded-For: {told}", source=source):
            for _ in range(15):
                status, seconds = ask(world.address, lets_in(world, "2")["url"], proxy, headers)
                assert status == 303 and seconds < ELSEWHERE_S
                time.sleep(.1)
            slow.sendall(b"x" * 50)
            assert slow.recv(100).startswith(b"HTTP/1.1 400 "), "the body arrived"


@pytest.mark.parametrize("proxies, said", [("proxy.example", "'proxy.example' is no IP address"),
                                           ("10.0.0.0/8", "'10.0.0.0/8' is no IP address")])
def test_a_wrong_proxy_is_told_at_the_start(deployment, proxies, said):
    world = World(deployment, start=False)
    gateway = world.deployment.start_worker("gateway/101-120", world.file, {**world.settings, "form_proxy": proxies})
    assert gateway.wait() == 2 and f"form_proxy: {said}" in gateway.text()


def test_four_requests_of_a_person_wait(deployment):
    """More are answered at once, the oldest first, so that one person's do not take the places of the others."""
    world = World(deployment, start=False)
    deployment.broker.kill()  # so nothing is asked
    world.start()
    person = world.person()
    get = f"GET / HTTP/1.1\r\nHost: {world.address}\r\nCookie: {person.cookie}\r\n\r\n".encode()
    with deployment.clock.hold() as clock:
        socks = [connect(world.address, get) for _ in range(6)]
        wait_until(lambda: len(select.select(socks, [], [], 0)[0]) == 2, "two answers", timeout=10)
        clock.advance(3100)
        wait_until(lambda: len(select.select(socks, [], [], 0)[0]) == 6, "six answers", timeout=10)


# ---- descriptors


FEW_FILES = ("bash", "-c", 'ulimit -n "$0"; exec "$@"')


@pytest.mark.parametrize("worker, thirdparty", [(1024, 4096), (300, 1600)])
def test_silent_connections_leave_descriptors_for_the_work(deployment, worker, thirdparty):
    """A gateway and a third-party that may not open more files do their work beside them."""
    deployment.prefixes |= {"worker": (*FEW_FILES, str(worker)), "thirdparty": (*FEW_FILES, str(thirdparty))}
    world = World(deployment, thirdparty={"page": "127.0.0.1:0"})
    page = Page(deployment.thirdparty)
    with (attacked("silent", world.address, 2000), attacked("silent", f"127.0.0.1:{page.port}", 2000)):
        for number in (1, 2):
            person = world.person(number)
            status, after = person.send(person.look(), score=3)
            assert status == 200 and "was counted" in notice(after), after
        address = deployment.broker.address
        deployment.broker.kill()  # whoever connects again needs a new descriptor
        deployment.start_broker({"lease": "5m", "limits": LIMITS, "listen": address})
        wait_until(lambda: item(world.person(1).look()), "the next question")
        assert page.campaigns()


def test_too_few_files_are_told_at_the_start(deployment):
    deployment.prefixes |= {"thirdparty": (*FEW_FILES, "1500")}
    daemon = deployment.launch_thirdparty({"page": "127.0.0.1:0"})
    assert daemon.wait() != 0
    assert "an HTTP server needs 80 open files, but the system leaves 28 of 1500 (ulimit -n)" in daemon.text()


# ---- times


def is_closed(sock):
    """Whether the other end closes it, soon; it may have answered before."""
    sock.settimeout(10)
    try:
        while sock.recv(65536):
            pass
    except TimeoutError:
        return False
    except ConnectionError:
        pass
    return True


def connect(address, sent=b""):
    host, port = address.rsplit(":", 1)
    sock = socket.create_connection((host, int(port)), timeout=10)
    sock.sendall(sent)
    return sock


def test_heads_and_bodies_have_five_seconds_whatever_arrives(deployment):
    world = World(deployment)
    person = world.person()
    def post():
        return begin_post(world.address, OTHER, person, {}, b"x" * 100)
    with deployment.clock.hold() as clock:
        silent, head, late_head = connect(world.address), connect(world.address), connect(world.address)
        body, late_body = post(), post()
        for _ in range(7):
            clock.advance(700)
            head.sendall(b"GET / HTTP/1.1\r\n" if _ == 0 else b"X: y\r\n")
            late_head.sendall(b"GET / HTTP/1.1\r\n" if _ == 0 else b"X: y\r\n")
            body.sendall(b"x")
            late_body.sendall(b"x")
        head.sendall(f"Host: {world.address}\r\n\r\n".encode())
        body.sendall(b"x" * 43)
        assert head.recv(100).startswith(b"HTTP/1.1 403 ") and body.recv(100).startswith(b"HTTP/1.1 400 ")
        clock.advance(200)
        for sock in (silent, late_head, late_body):
            assert is_closed(sock)


def test_a_connection_is_kept_for_fifteen_seconds(deployment):
    world = World(deployment)
    person = world.person()
    with deployment.clock.hold() as clock:
        socks = [begin_post(world.address, OTHER, person, {"Connection": "keep-alive"}, b"x" * 100) for _ in range(2)]
        for sock in socks:
            sock.sendall(b"x" * 50)
            assert sock.recv(65536).startswith(b"HTTP/1.1 400 ")
        clock.advance(14_900)
        socks[0].sendall(f"GET / HTTP/1.1\r\nHost: {world.address}\r\n\r\n".encode())
        assert socks[0].recv(100).startswith(b"HTTP/1.1 403 ")
        clock.advance(200)
        assert is_closed(socks[1])


def test_an_answer_has_half_a_minute_to_be_read(deployment):
    """However slowly it is read."""
    world = World(deployment)
    person = world.person()
    post = (f"POST /answer HTTP/1.1\r\nHost: {world.address}\r\nCookie: {person.cookie}\r\n"
            "Sec-Fetch-Site: same-origin\r\nContent-Length: 1\r\n\r\nx").encode() * 1000
    with deployment.clock.hold() as clock, socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        host, port = world.address.split(":")
        sock.connect((host, int(port)))
        sock.settimeout(2)
        with pytest.raises(TimeoutError):
            while True:
                sock.sendall(post)  # until the server has no room for answers, and reads no more
        for _ in range(7):
            clock.advance(4000)
            assert sock.recv(100)
        clock.advance(3000)
        assert is_closed(sock)


# ---- requests that a proxy may read otherwise


@pytest.mark.parametrize("lines", [
    "Content-Length: 4\r\nTransfer-Encoding: chunked", "Transfer-Encoding: chunked\r\nContent-Length: 4",
    "Content-Length: 5\r\nContent-Length: 60", "Content-Length: 5\r\ncontent-length: 5",
    "Transfer-Encoding: xchunked", "Transfer-Encoding: chunked, identity", "Transfer-Encoding: identity",
    "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity", "Content-Length: 5\r\nHost: other.example"])
def test_nothing_follows_a_request_whose_end_is_unclear(deployment, lines):
    """Behind a proxy that keeps connections it would be answered to somebody else."""
    world = World(deployment)
    person = world.person()
    sock = connect(world.address, (
        f"POST /answer HTTP/1.1\r\nHost: {world.address}\r\nCookie: {person.cookie}\r\nSec-Fetch-Site: same-origin\r\n"
        f"{lines}\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: {world.address}\r\n\r\n").encode())
    answers = b""
    with contextlib.suppress(ConnectionError):
        while more := sock.recv(65536):
            answers += more
    assert answers.count(b"HTTP/1.1 ") == 1 and answers.startswith(b"HTTP/1.1 400 "), answers


def test_a_long_post_is_refused_before_it_is_read(deployment):
    world = World(deployment)
    sock = begin_post(world.address, OTHER, world.person(), {"Content-Length": 10 ** 12}, b"")
    assert sock.recv(100).startswith(b"HTTP/1.1 413 ")


# ---- who is let in


def test_a_post_names_the_page_that_sends_it(deployment):
    world = World(deployment)
    person = world.person()
    page = person.look()
    body = urlencode({**dict(re.findall(r'name="(secret|question)" value="([^"]*)"', page)), "score": 3})
    own = {"Origin": f"http://{world.address}"}
    for headers in ({}, {"Sec-Fetch-Site": "none"}, {"Sec-Fetch-Site": "same-site"}, {"Sec-Fetch-Site": "cross-site"},
                    {"Sec-Fetch-Site": ""}, {**own, "Sec-Fetch-Site": "cross-site"}, {"Referer": own["Origin"] + "/"}):
        status, _, text = person.ask("POST", "/answer", body, headers)
        assert status == 403 and "expected" in text, (headers, status, text)
    assert item(person.look()) == item(page), "the question is still open"
    assert person.ask("POST", "/answer", body, {"Sec-Fetch-Site": "same-origin"})[0] == 303


def test_a_picture_on_a_page_of_another_port_asks_for_nothing(deployment):
    """Cookies do not know ports, and SameSite does not either."""
    person = World(deployment).person()
    for site in ("same-site", "cross-site"):
        assert person.ask("GET", "/", headers={"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "no-cors"})[0] == 403
        assert person.ask("GET", "/", headers={"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "navigate"})[0] == 200


@pytest.mark.parametrize("wrong", ["link", "cookie"])
def test_guesses_wait_and_nobody_else_does(deployment, wrong):
    world = World(deployment)
    guess = world.person().cookie.split("=")[0] + "=" + "0" * 32
    url, headers = ("/", {"Cookie": guess}) if wrong == "cookie" else ("/?token=" + "0" * 32, {})

    def try_it():
        try:
            return ask(world.address, url, ATTACKER, headers)
        except (OSError, http.client.HTTPException):
            return None
    with ThreadPoolExecutor(300) as pool:
        guesses = [pool.submit(try_it) for _ in range(300)]
        stays_open(**lets_in(world), rounds=3)
        assert ask(world.address, "/", ATTACKER, {})[1] < SAME_S, "who has no token does not guess"
        found = [guess.result() for guess in guesses]
    assert {one[0] for one in found if one} == {403} and all(one[1] > .9 for one in found if one)
    assert sum(one is None for one in found) <= 100, "the connection of no more than those beyond 200 is closed"


def test_a_guess_at_the_page_waits(page):
    address = f"127.0.0.1:{page.port}"
    status, seconds = ask(address, "/?token=" + "0" * 64, OTHER, {})
    assert status == 403 and seconds > .9
    status, seconds = ask(address, "/", OTHER, {"Cookie": page.cookie[:-1] + "x"})
    assert status == 403 and seconds > .9
    assert ask(address, "/favicon.ico", OTHER, {"Cookie": "other=1"})[0] == 403
