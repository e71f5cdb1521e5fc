# SPDX-License-Identifier: Apache-2.0
"""The log in its formats and levels: what a peer writes into it stays text, and what an operator asks for comes."""
import json
import re
import signal
import socket
import statistics
import subprocess
import time
from pathlib import Path
from collections import Counter

import pytest

from client.requester import spec
from client.worker import Session
from harness.admin import ask, get
from harness.daemon import PROGRAMS, wait_until
from harness.machine import mount_namespaces, needs
from harness.receiver import Receiver, fields

pytestmark = pytest.mark.usefixtures("worker_program")

CAMPAIGN = """campaign: shown
items: {list: [{name: a, mean: 0.9}, {name: b, mean: 0.2}]}
policy: {name: ppar, alpha: 0.2}
privacy: {epsilon: 1}
"""
RULES = {"alpha": .2, "tokens_per_round": 500}
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
# the end of a text in JSON, a line to some programs, a field of the journal, a direction of what follows, a long rest
FORGED = 'no"}\\\u2028PRIORITY=0\u202e' + "é" * 20
HARMLESS = 'no"}\\???PRIORITY=0???' + "é" * 20
# with what the protocol refuses in any text: lines, escapes of a terminal in both of their forms
UNCLEAN = ("no\nPRIORITY=0", "no\x1b[2J", "no\x9b2J", "no\r")
# what no line may contain
EVIL = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def apart(path):
    """A prefix: standard error goes to this file, and only to it."""
    return "sh", "-c", 'exec "$@" 2>"$0"', str(path)


def objects(path):
    found = [json.loads(line) for line in path.read_text().split("\n")[:-1]]
    for one in found:
        assert TIME.fullmatch(one["time"]) and one["level"] in ("error", "warn", "info", "debug"), one
        assert isinstance(one["message"], str) and one["message"], one
        assert set(one) <= {"time", "level", "program", "message", "peer", "campaign", "reason"}, one
    return found


# --- JSON


def test_every_line_is_one_json_object(deployment, tmp_path):
    logs = {name: tmp_path / f"{name}.json" for name in ("broker", "thirdparty", "worker")}
    options = {"log": "json", "log_level": "debug"}
    (tmp_path / "campaign.yaml").write_text(CAMPAIGN)
    deployment.start_thirdparty(options, prefix=apart(logs["thirdparty"]))
    deployment.start_broker(options, prefix=apart(logs["broker"]))
    deployment.start_worker("gateway/20-400", tmp_path / "campaign.yaml", {**options, "exit_when_done": False},
                            prefix=apart(logs["worker"]))
    with deployment.requester() as requester:
        campaign = requester.submit(spec(2, name="shown", tokens=300, tokens_per_worker=9, policy_params={
            "alpha": .001, "tokens_per_round": 50})).campaign
        requester.watch(campaign)
    host, port = deployment.broker.address.rsplit(":", 1)
    with socket.create_connection((host, int(port)), 20) as stranger:
        host = stranger.getsockname()[0]
        stranger.sendall(b"GET / HTTP/1.0\r\n\r\n")
        while stranger.recv(4096):
            pass
    deployment.stop()
    lines = {name: objects(path) for name, path in logs.items()}
    for name, found in lines.items():
        assert {one["program"] for one in found} == {f"crowdveil-{name}"}
        assert any(one.get("peer") for one in found), found
    broker = lines["broker"]
    of_campaign = [one["message"] for one in broker if one.get("campaign") == campaign]
    assert len([text for text in of_campaign if text.startswith(f'campaign {campaign} "shown"')]) == len(of_campaign)
    for text in ("accepted from alice", "plan 1 accepted", "release 1, of arm", "ended: "):
        assert any(text in one for one in of_campaign), text
    assert any(one.get("reason") == "handshake" and one["peer"] == host for one in broker)
    assert any(one["message"].startswith("commit: ") and one["level"] == "debug" for one in broker)
    assert any(one.get("campaign") == campaign and "release 1 applied" in one["message"]
               for one in lines["thirdparty"])
    assert Counter(one["message"] for one in broker)["draining on signal 15"] == 1


def test_a_peers_text_stays_text_in_json(deployment, tmp_path):
    path = tmp_path / "broker.json"
    deployment.start_thirdparty()
    deployment.start_broker({"log": "json"}, prefix=apart(path))
    for one in forged_lines(deployment, lambda: objects(path)):
        assert one["peer"] == "gateway/1-9" and HARMLESS in one["message"], one
    assert any(one.get("reason") == "ticket" and "token refused" in one["message"] for one in objects(path))
    assert not any(EVIL.search(line) for line in path.read_text().split("\n"))


def forged_lines(deployment, lines):
    """Lets a peer write what it likes; the lines with it, once all are there."""
    with deployment.requester() as requester:
        campaign = requester.submit(spec(2, name="shown", policy_params=RULES)).campaign
    files = deployment.pki.issue("gateway/1-9")
    for text in UNCLEAN:
        with Session(deployment.broker.address, files.ca, files.cert, files.key) as session:
            session.decline(campaign, text)
            assert "not a valid message" in session.until("goodbye").why
    with Session(deployment.broker.address, files.ca, files.cert, files.key) as session:
        session.arrive([1, 2], credit=8)
        session.until("assign")
        session.token(bytes(48), [1])
        session.until("ack")
        session.decline(campaign, FORGED)
        envelope = session.pb.Envelope()
        envelope.goodbye.why = FORGED
        session.send(envelope)

        def found():
            return [one for one in lines() if "PRIORITY=0" in str(one)]
        wait_until(lambda: len(found()) >= 2, "the decline and the goodbye are logged")
    return found()


def test_a_peers_text_stays_text_in_lines(deployment):
    deployment.start_thirdparty()
    broker = deployment.start_broker({"log": "text"})
    for line in forged_lines(deployment, lambda: list(broker.lines)):
        assert re.match(TIME.pattern + " crowdveil-broker info: gateway/1-9: ", line) and HARMLESS in line, line
    assert not any(EVIL.search(line) for line in broker.lines)


def test_a_start_that_fails_says_so_in_json(deployment):
    broker = deployment.launch_broker({"log": "json", "seal_key": "/nowhere/key"})
    assert broker.wait() == 1
    line, = broker.lines
    assert json.loads(line)["level"] == "error" and "/nowhere/key" in json.loads(line)["message"]


@pytest.mark.parametrize("option, value, noun, expected", [
    ("log", "xml", "format", "auto, text, json or journal"),
    ("log_level", "loud", "level", "error, warn, info or debug")])
def test_an_unknown_format_or_level_is_refused(deployment, option, value, noun, expected):
    broker = deployment.launch_broker({option: value})
    assert broker.wait() == 2
    line, = broker.lines
    assert re.search(rf'broker.yaml:\d+:\d+: unknown {noun} "{value}"; expected one of {expected}$', line), line
    done = subprocess.run([PROGRAMS["broker"], f"--{option.replace('_', '-')}", value], capture_output=True, text=True)
    assert done.returncode == 2 and expected in done.stderr


# --- the journal

# In a mount namespace with the test's socket as the journal's; standard error is, or is not, what JOURNAL_STREAM names.
INSIDE = ('mount -t tmpfs none /run && mkdir -p /run/systemd/journal && mount --bind "$0" /run/systemd/journal && '
          'export JOURNAL_STREAM={stream} && exec "$@"')
STREAMS = {"own": "$(stat -L -c %d:%i /dev/stderr)", "other": "1:2", "none": ""}


class Journal:
    """The test's journal; `prefix` starts a program that finds it."""

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir()
        self.open()

    def open(self, reads=True):
        self.receiver = Receiver(self.folder / "socket", fields, reads)

    def prefix(self, stream):
        return "unshare", "--mount", "sh", "-c", INSIDE.format(stream=STREAMS[stream]), str(self.folder)

    def has(self, text, after=0):
        return dict(self.receiver.wait_for(lambda one: text in dict(one)["MESSAGE"], text, after=after))


@pytest.fixture
def journal(tmp_path):
    made = Journal(tmp_path / "journal")
    yield made
    made.receiver.close()


@needs(mount_namespaces)
def test_auto_writes_fields_if_standard_error_is_the_journal(deployment, journal):
    """From within the sandbox, whose line is the last one before it is shut."""
    deployment.start_thirdparty()
    broker = deployment.start_broker({"sandbox": "on"}, prefix=journal.prefix("own"))
    found = journal.has("connected to 127.")
    assert found == {"MESSAGE": found["MESSAGE"], "PRIORITY": "6", "SYSLOG_IDENTIFIER": "crowdveil-broker",
                     "CROWDVEIL_PEER": "thirdparty/ranker"}
    assert found["MESSAGE"].startswith("thirdparty/ranker: connected to")
    for one in forged_lines(deployment, lambda: list(journal.receiver.got)):
        names = ["MESSAGE", "PRIORITY", "SYSLOG_IDENTIFIER", "CROWDVEIL_PEER"]
        assert [name for name, _ in one] == names + ["CROWDVEIL_CAMPAIGN"] * ("campaign 1" in dict(one)["MESSAGE"]), one
        assert dict(one)["PRIORITY"] == "6" and HARMLESS in dict(one)["MESSAGE"]
    assert journal.has("token refused")["CROWDVEIL_REASON"] == "ticket"
    assert journal.has('campaign 1 "shown" accepted')["CROWDVEIL_CAMPAIGN"] == "1"
    assert broker.lines == [line for line in broker.lines if "ready on" in line], "nothing of the log is told twice"


@needs(mount_namespaces)
@pytest.mark.parametrize("stream", ["other", "none"])
def test_auto_writes_text_if_standard_error_is_something_else(deployment, journal, stream):
    broker = deployment.start_broker(prefix=journal.prefix(stream))
    broker.wait_for("sandbox: ")
    assert not journal.receiver.got


@needs(mount_namespaces)
def test_the_journal_may_be_asked_for(deployment, journal):
    broker = deployment.start_broker({"log": "journal"}, prefix=journal.prefix("none"))
    assert "sandbox" in journal.has("sandbox: ")["MESSAGE"]
    broker.signal(signal.SIGUSR1)
    assert journal.has("log level: debug, was info (SIGUSR1)")["PRIORITY"] == "7"


@needs(mount_namespaces)
def test_without_a_journal_a_wish_for_it_is_an_error(deployment, journal):
    journal.receiver.close()
    broker = deployment.launch_broker({"log": "journal"}, prefix=journal.prefix("own"))
    assert broker.wait() == 1
    assert broker.lines == ["crowdveil-broker: log is journal, but there is none: /run/systemd/journal/socket: "
                            "No such file or directory"]
    broker = deployment.start_broker(prefix=journal.prefix("own"))
    broker.wait_for("sandbox: ")


@needs(mount_namespaces)
def test_a_journal_that_goes_and_comes_back(deployment, journal):
    """While it is gone the lines are on standard error; its successor gets the next ones."""
    broker = deployment.start_broker(prefix=journal.prefix("own"))
    journal.has("sandbox: ")
    journal.receiver.close()
    broker.signal(signal.SIGUSR1)
    broker.wait_for("crowdveil-broker debug: log level: debug, was info")
    journal.open()
    broker.signal(signal.SIGUSR1)
    assert journal.has("log level: info, was debug")["PRIORITY"] == "6"


@needs(mount_namespaces)
def test_a_journal_that_hangs_holds_nobody_up(deployment, journal):
    """Lines that it does not take are lost, and counted."""
    journal.receiver.close()
    journal.open(reads=False)
    deployment.start_broker(prefix=journal.prefix("own"))
    sock = deployment.folder / "broker.sock"
    holds = int(Path("/proc/sys/net/unix/max_dgram_qlen").read_text())
    took = []
    for change in range(holds + 50):
        began = time.monotonic()
        assert ask(sock, "PUT", "/log-level", ("debug", "info")[change % 2])[0] == 200
        took.append(time.monotonic() - began)
    # a line waits for .1 s
    assert statistics.median(took[holds + 5:]) < statistics.median(took[:holds - 5]) + .09, "each line was waited for"
    journal.receiver.read()
    lost = journal.has("lines of the log were lost: the journal did not take them in time")
    assert ask(sock, "PUT", "/log-level", "warn")[0] == 200
    journal.has("log level: warn")
    assert lost["PRIORITY"] == "4"
    kept = sum("log level" in dict(one)["MESSAGE"] for one in journal.receiver.got)
    assert kept + int(lost["MESSAGE"].split()[0]) >= len(took)


# --- the level


def test_sigusr1_changes_to_debug_and_back(deployment):
    deployment.start_thirdparty()
    broker = deployment.start_broker()
    with deployment.requester() as requester:
        requester.submit(spec(2, name="first", policy_params=RULES))
        assert " debug: " not in broker.text()
        broker.signal(signal.SIGUSR1)
        broker.wait_for("crowdveil-broker debug: log level: debug, was info .SIGUSR1.")
        requester.submit(spec(2, name="second", policy_params=RULES))
        broker.wait_for('debug: campaign 2 "second": plan 1 accepted, for 2 arms')
        broker.signal(signal.SIGUSR1)
        broker.wait_for("crowdveil-broker info: log level: info, was debug .SIGUSR1.")
        mark = broker.mark()
        requester.submit(spec(2, name="third", policy_params=RULES))
        broker.wait_for('campaign 3 "third" accepted', after=mark)
    assert broker.stop() == 0
    assert not any(" debug: " in line for line in broker.lines[mark:])


@pytest.mark.parametrize("configured, other", [("debug", "info"), ("error", "debug")])
def test_sigusr1_returns_to_the_configured_level(deployment, configured, other):
    broker = deployment.start_broker({"log_level": configured})
    broker.signal(signal.SIGUSR1)
    broker.wait_for(f"log level: {other}, was {configured}")
    broker.signal(signal.SIGUSR1)
    broker.wait_for(f"log level: {configured}, was {other}")
    if configured == "error":
        before = broker.lines[:next(at for at, line in enumerate(broker.lines) if "log level: debug" in line)]
        assert [line for line in before if TIME.match(line)] == [], "no line is important enough"


def test_the_admin_socket_answers_and_changes_the_level(deployment):
    broker = deployment.start_broker()
    sock = deployment.folder / "broker.sock"
    assert get(sock, "/log-level") == (200, "info\n")
    assert ask(sock, "PUT", "/log-level", "debug") == (200, "debug\n")
    broker.wait_for("debug: log level: debug, was info .admin socket.")
    assert ask(sock, "POST", "/log-level", "warn\n") == (200, "warn\n")
    wrong = 400, "wrong body; expected error, warn, info or debug\n"
    for body in ("", "loud", "debug\n\n", "DEBUG", "debug\0", "x" * 100_000, "\n"):
        assert ask(sock, "PUT", "/log-level", body) == wrong, body[:10]
    for method in ("DELETE", "PATCH"):
        assert ask(sock, method, "/log-level") == (405, "method not allowed; expected GET, HEAD, PUT or POST\n")
    for method in ("PUT", "POST"):
        assert ask(sock, method, "/metrics")[0] == 405
    assert ask(sock, "PUT", "/log-level", host="evil.example")[0] == 403
    assert get(sock, "/log-level") == (200, "warn\n")
