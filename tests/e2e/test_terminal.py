# SPDX-License-Identifier: Apache-2.0
"""What `up` and `watch` show on a terminal while a campaign runs, and that a watcher survives its broker's restart."""
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time

import pytest

from harness import machine
from harness.campaign import Run
from harness.commands import as_requester
from harness.daemon import PROGRAMS

pytestmark = [pytest.mark.usefixtures("worker_program"), machine.needs(machine.pseudo_terminals)]

# Two means so close together that all tokens are used, in many rounds. The noise of a release moves Roma's mean by less
# than .01, but with a probability below e^-15.
CAMPAIGN = """
campaign: restaurants
items:
  rewards: bernoulli
  seed: 1
  list:
    - {name: Roma, mean: 0.64}
    - {name: Zum Goldenen Löwen am Markt, mean: 0.638}
    - {name: Golden Wok, mean: 0.58}
    - {name: Bistro, mean: 0.42}
    - {name: Station Buffet, mean: 0.40}
policy: {name: ppar, alpha: 0.005, delta: 0.1, tokens_per_round: 3000, boundary: feed}
privacy: {mechanism: hybrid, epsilon: 1, tokens_per_worker: 1, share_names: true}
limits: {tokens: 1000000, idle: 30s}
"""
ESCAPE = re.compile(r"\x1b\[[?]?[0-9;]*[a-zA-Z]")


class Terminal:
    """A program on a terminal of this size, and all that it wrote there."""

    def __init__(self, command, columns=80, lines=24, **env):
        ours, its = pty.openpty()
        fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        clean = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "LC_ALL", "LC_CTYPE")}
        self.process = subprocess.Popen([*map(str, command)], stdin=its, stdout=its, stderr=its,
                                        env={**clean, "TERM": "xterm", "LANG": "C.UTF-8", **env})
        os.close(its)
        self.fd, self.text = ours, b""

    def read(self, timeout=60, until=None):
        """Reads on until the program ends, or until the text that was written matches."""
        end = time.monotonic() + timeout
        while until is None or not re.search(until, self.shown(), re.M):
            left = end - time.monotonic()
            assert left > 0, f"no {until} on the terminal: {self.shown()[-2000:]}"
            if not select.select([self.fd], [], [], left)[0]:
                continue
            try:
                part = os.read(self.fd, 65536)
            except OSError:  # the other end is closed
                part = b""
            if not part:
                assert until is None, f"ended without {until}: {self.shown()[-2000:]}"
                break
            self.text += part
        return self.shown()

    def shown(self):
        return self.text.decode(errors="strict" if self.process.poll() is not None else "replace")

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self.fd)


@pytest.fixture
def terminal(request):
    opened = []

    def start(*args, **kwargs):
        opened.append(Terminal(*args, **kwargs))
        return opened[-1]

    yield start
    for one in opened:
        one.close()


def table_of(text):
    """The lines of all tables that were drawn, without escape sequences."""
    return [ESCAPE.sub("", line).rstrip("\r") for line in re.findall(r"\x1b\[K(.*)\n", text)]


def up(tmp_path, *options):
    (tmp_path / "close.yaml").write_text(CAMPAIGN)
    return [PROGRAMS["crowdveil"], "up", tmp_path / "close.yaml", *options]


@pytest.mark.quick
def test_a_table_is_drawn_while_the_campaign_runs(tmp_path, terminal):
    text = terminal(up(tmp_path), columns=40).read()
    lines = table_of(text)
    assert any(re.match(r"restaurants   [0-5] of 5 ranked", line) for line in lines), text
    rows = [line for line in lines if "Roma" in line and re.search("[●○]", line)]
    assert rows and all(re.fullmatch(r"  [1-5-][ +] Roma .*[━─●○].* 0\.6\d\d", row) for row in rows)
    assert all(len(line) <= 40 for line in lines), max(lines, key=len)
    assert "\x1b[1m" in text
    # The table is gone when the result is printed, and wrapping is on again.
    after = text.rsplit("\x1b[J", 1)[1]
    assert "class  item" in after and "ended " in after and "\x1b" not in after
    assert text.count("\x1b[?7l") == text.count("\x1b[?7h") > 0


@pytest.mark.parametrize("env, escapes, table", [({"NO_COLOR": "1"}, False, True), ({"TERM": "dumb"}, False, False),
                                                 ({"LANG": "C"}, True, True)])
def test_the_environment_says_what_a_terminal_can(tmp_path, terminal, env, escapes, table):
    text = terminal(up(tmp_path), **env).read()
    assert bool(re.search(r"\x1b\[\d+m", text)) == escapes
    assert bool(table_of(text)) == table
    if not table:
        assert "\x1b" not in text and "of 1,000,000 tokens" in text
    if env.get("LANG") == "C":
        assert not re.search("[━─●○█±]", "".join(line for line in table_of(text)))


def test_a_small_terminal_gets_plain_lines(tmp_path, terminal):
    text = terminal(up(tmp_path), columns=23).read()
    assert "\x1b" not in text and "of 1,000,000 tokens" in text


def test_json_leaves_standard_output_to_the_result(tmp_path, terminal):
    with open(tmp_path / "result.json", "wb") as result:
        shell = ["/bin/sh", "-c", f'exec "$0" "$@" > {result.name}', *map(str, up(tmp_path, "--json"))]
        text = terminal(shell).read()
    assert table_of(text)
    assert (tmp_path / "result.json").read_text().startswith('{"campaign": "restaurants"')


def test_watch_goes_on_after_the_broker_was_killed(deployment, undisturbed, terminal):
    """It says that the connection is lost, draws again when the broker is there, and ends with the result."""
    run = Run(deployment)
    watch = terminal([PROGRAMS["crowdveil"], "watch", "--patience", "200ms", *as_requester(deployment)])
    run.start_workers()
    run.when(3000)
    watch.read(until="of .* ranked|plan|tokens")
    run.kill("broker")
    watch.read(until=r"crowdveil watch: connection to the broker lost \(.*\); trying again for up to 3600 s")
    run.start("broker").address
    watch.read(until="crowdveil watch: connected to the broker again")
    run.hurry()
    assert "ended       complete" in watch.read()
    assert watch.process.wait() == 0
    run.check(undisturbed)


def test_watch_gives_up_after_the_time_it_is_told(deployment, terminal):
    run = Run(deployment)
    watch = terminal([PROGRAMS["crowdveil"], "watch", "--reconnect", "300ms", *as_requester(deployment)])
    run.start_workers()
    watch.read(until="tokens")
    run.kill("broker")
    text = watch.read()
    assert watch.process.wait() == 1
    assert re.search(r"crowdveil watch: .*(refused|reset|closed)", text.replace("\r", "").splitlines()[-1]), text
