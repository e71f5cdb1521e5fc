# SPDX-License-Identifier: Apache-2.0
"""The drill of a page of documentation, followed literally in an empty folder, except that it gets free ports."""
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

from harness.daemon import PROGRAMS, ROOT


def free_ports(count):
    """Below the ports that the system gives out by itself, of which any connection of another test could take one
    before the drill does, or while its daemon is down."""
    lowest = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    found = []
    for port in range(lowest - 1 - os.getpid() % 5000, 1024, -1):
        with contextlib.suppress(OSError), socket.socket() as free:
            free.bind(("127.0.0.1", port))
            found.append(str(port))
        if len(found) == count:
            return found
    raise AssertionError(f"no {count} free ports below {lowest}")


def blocks(page, ports):
    """(line, kind, words after it, text) of each fenced block."""
    text = (ROOT / page).read_text()
    for port, free in zip(ports, free_ports(len(ports))):
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
    """One bash for the whole drill, so that its variables and jobs stay. `within`: words before its command."""

    def __init__(self, folder, within=(), env=os.environ, time_s=120):
        """`folder` is empty, and of the user who follows the drill."""
        programs, self.folder = folder / "bin", folder / "drill"
        for made in (programs, self.folder):
            subprocess.run([*within, "mkdir", made], check=True)
        for program in PROGRAMS.values():
            (programs / program.name).symlink_to(program)
        self.process = subprocess.Popen([*within, "bash", "--norc"], cwd=self.folder, text=True, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
                                        env=dict(env, PATH=f"{programs}:{env['PATH']}"))
        self.timer = threading.Timer(time_s, self.kill)
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

    def follow(self, page, ports):
        """Writes each file, runs each command, and requires the lines below it."""
        for line, kind, words, text in blocks(page, ports):
            if words:
                (self.folder / words).write_text(text)
                continue
            assert kind == "console", f"{page}:{line}: a block of kind {kind}; expected console, or a file's name"
            for command, expected in steps(text):
                status, output = self.run(command)
                print(f"$ {command}\n{output}")
                assert status == 0, f"{page}:{line}: exit status {status} of {command}"
                missing = [part for part in expected if part not in output]
                assert not missing, f"{page}:{line}: {command} does not say {missing}"

    def close(self):
        self.timer.cancel()
        self.kill()
        self.process.wait()


def stated(folder, name):
    """What the ledger stated: {arm: account}, and the charge to every worker."""
    statement = json.loads((folder / name).read_text())
    return {account["arm"]: account for account in statement["arms"]}, statement["worker_floor_micro"]
