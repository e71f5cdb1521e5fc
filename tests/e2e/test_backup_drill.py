# SPDX-License-Identifier: Apache-2.0
"""The restore drill of docs/backup.md, followed literally in an empty folder, except that it gets free ports."""
import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import threading
import uuid
from pathlib import Path

import pytest

from harness.daemon import PROGRAMS, ROOT

PAGE = "docs/backup.md"
TIME_S = 120
PORTS = ("17401", "17402")


def free_ports(count):
    """Below the ports that the system gives out by itself, of which any connection of another test could take one
    before the drill does, or while its broker is down."""
    lowest = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    found = []
    for port in range(lowest - 1 - os.getpid() % 5000, 1024, -1):
        with contextlib.suppress(OSError), socket.socket() as free:
            free.bind(("127.0.0.1", port))
            found.append(str(port))
        if len(found) == count:
            return found
    raise AssertionError(f"no {count} free ports below {lowest}")


def blocks():
    """(line, kind, words after it, text) of each fenced block."""
    text = (ROOT / PAGE).read_text()
    for port, free in zip(PORTS, free_ports(len(PORTS))):
        assert port in text
        text = text.replace(port, free)
    for found in re.finditer(r"^```(\w+) ?(.*)\n((?:.*\n)*?)```$", text, re.M):
        yield text[:found.start()].count("\n") + 1, found[1], found[2], found[3]


def steps(text):
    """(command, lines that its output must contain) of a console block."""
    for part in re.split(r"^\$ ", text, flags=re.M)[1:]:
        command, *lines = part.rstrip("\n").split("\n")
        yield command, lines


class Shell:
    """One bash for the whole drill, so that its variables and jobs stay."""

    def __init__(self, folder, path):
        self.process = subprocess.Popen(["bash", "--norc"], cwd=folder, text=True, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
                                        env=dict(os.environ, PATH=f"{path}:{os.environ['PATH']}"))

        self.timer = threading.Timer(TIME_S, self.kill)
        self.timer.start()

    def kill(self):
        os.killpg(self.process.pid, signal.SIGKILL)  # its own session: the parties of the drill, too

    def run(self, command):
        """(exit status, output)."""
        mark = uuid.uuid4().hex
        self.process.stdin.write(f"{command}\nSTATUS=$?; echo; echo {mark} $STATUS\n")
        self.process.stdin.flush()
        output = []
        for line in self.process.stdout:
            if line.startswith(mark):
                return int(line.split()[1]), "".join(output)
            output.append(line)
        raise AssertionError(f"bash ended: {''.join(output)}")

    def close(self):
        self.timer.cancel()
        self.kill()
        self.process.wait()


@pytest.fixture
def shell(tmp_path):
    path = tmp_path / "bin"
    path.mkdir()
    for program in PROGRAMS.values():
        (path / program.name).symlink_to(program)
    drill = tmp_path / "drill"
    drill.mkdir()
    made = Shell(drill, path)
    made.folder = drill
    yield made
    made.close()


def stated(folder, name):
    """What the ledger stated: {arm: account}, and the charge to every worker."""
    statement = json.loads((folder / name).read_text())
    return {account["arm"]: account for account in statement["arms"]}, statement["worker_floor_micro"]


def test_the_drill_restores_a_lost_broker(shell):
    for line, kind, words, text in blocks():
        if kind == "yaml":
            (shell.folder / words).write_text(text)
            continue
        assert kind == "console", f"{PAGE}:{line}: a block of kind {kind}; expected yaml or console"
        for command, expected in steps(text):
            status, output = shell.run(command)
            print(f"$ {command}\n{output}")
            assert status == 0, f"{PAGE}:{line}: exit status {status} of {command}"
            missing = [part for part in expected if part not in output]
            assert not missing, f"{PAGE}:{line}: {command} does not say {missing}"
    copied, _ = stated(shell.folder, "at-backup.json")
    before, _ = stated(shell.folder, "before.json")
    after, floor = stated(shell.folder, "after.json")
    assert len(after) == 2 and sum(account["releases"] for account in before.values()) > \
        sum(account["releases"] for account in copied.values()), "nothing was lost: the drill showed nothing"
    for arm, account in before.items():
        assert after[arm]["spent_micro"] >= account["spent_micro"] > 0
        assert after[arm]["lost_micro"] > 0 and after[arm]["left_micro"] == 0
    assert floor == 1_000_000, "what one token of the campaign costs a worker"
