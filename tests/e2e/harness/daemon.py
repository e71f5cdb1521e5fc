# SPDX-License-Identifier: Apache-2.0
"""A running program: a test waits for its lines as events, and its whole output is kept."""
import json
import os
import re
import signal
import subprocess
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
BUILD = Path(os.environ.get("CROWDVEIL_BUILD", ROOT / "build")).resolve()
PYTHON = "/usr/bin/python3"  # Debian's, which has the packages of deploy/packages
PROGRAMS = {
    "broker": BUILD / "broker/crowdveil-broker",
    "broker-postgresql": BUILD / "broker/crowdveil-broker-postgresql",
    "cobroker": BUILD / "cobroker/crowdveil-cobroker",
    "thirdparty": BUILD / "thirdparty/crowdveil-thirdparty",
    "worker": BUILD / "worker/crowdveil-worker",
    "crowdveil": BUILD / "deploy/launcher/crowdveil",
    "lab": BUILD / "lab/crowdveil-lab",
}
READY = re.compile(r"ready on (\S+:\d+)")


class Failed(AssertionError):
    """A program did not do what a test waited for; the message has its last lines, the very last one first."""


def wait_until(holds, what, timeout=60, every=.05):
    """Polls for something that no line announces."""
    deadline = time.monotonic() + timeout
    while not holds():
        if time.monotonic() > deadline:
            raise Failed(f"not within {timeout} s: {what}")
        time.sleep(every)


def write_config(path, settings):
    """YAML for the daemons: JSON, except for times like 5s, which stand without quotes."""
    text = re.sub(r'"(\d+(?:ms|s|m|h|d))"', r"\1", json.dumps(settings, indent=1))
    Path(path).write_text(text + "\n")
    return str(path)


def waits_for(thread):
    """The state of a thread, by its folder in /proc: R for one that is running, D for one that waits for a disk."""
    try:
        state = re.search(r"^State:\s+(\S)", (thread / "status").read_text(), re.M).group(1)
        return f"{state} in {(thread / 'wchan').read_text()}, call {(thread / 'syscall').read_text().split()[0]}"
    except OSError as error:
        return str(error)


class Daemon:
    """A started program. Its standard output and error are read as they arrive, into one list and one file."""

    def __init__(self, name, command, log, **kwargs):
        self.name, self.log, self.lines, self.streams_open = name, Path(log), [], 2
        self.changed = threading.Condition()
        self.process = subprocess.Popen([str(part) for part in command], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, **kwargs)
        self.readers = [threading.Thread(target=self._read, args=(stream,), daemon=True)
                        for stream in (self.process.stdout, self.process.stderr)]
        for reader in self.readers:
            reader.start()

    def _read(self, stream):
        for raw in stream:
            line = raw.decode(errors="replace").rstrip("\n")
            with self.changed:
                self.lines.append(line)
                with self.log.open("a") as log:
                    log.write(line + "\n")
                self.changed.notify_all()
        with self.changed:
            self.streams_open -= 1
            self.changed.notify_all()

    @property
    def pid(self):
        return self.process.pid

    def text(self):
        with self.changed:
            return "\n".join(self.lines)

    def wait_for(self, pattern, timeout=60, after=0):
        """The match of the first line (from line number `after`) that contains the pattern."""
        deadline, seen = time.monotonic() + timeout, after
        with self.changed:
            while True:
                while seen < len(self.lines):
                    match = re.search(pattern, self.lines[seen])
                    if match:
                        return match
                    seen += 1
                left = deadline - time.monotonic()
                if left <= 0 or self.streams_open == 0:
                    break
                self.changed.wait(left)
        raise self.failed(f"no line with {pattern!r} within {timeout} s")

    def failed(self, what):
        """The error, whose first line tells whether the program has ended, and if not, what its threads wait for."""
        try:
            now = f"it ended with status {self.process.wait(10 if self.streams_open == 0 else 0)}"
        except subprocess.TimeoutExpired:
            now = f"it is running: {', '.join(map(waits_for, Path(f'/proc/{self.pid}/task').iterdir()))}"
        last = "; last line: " + self.lines[-1] if self.lines else "; it wrote nothing"
        return Failed("\n".join([f"{self.name}: {what}: {now}{last}", *self.lines[-15:-1]]))

    def mark(self):
        """For `after`: the number of the next line."""
        with self.changed:
            return len(self.lines)

    @property
    def address(self):
        return self.wait_for(READY).group(1)

    def wait(self, timeout=60):
        """The exit status, once the program has ended by itself."""
        try:
            status = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise self.failed(f"has not ended within {timeout} s") from None
        for reader in self.readers:
            reader.join(10)
        return status

    def signal(self, number):
        self.process.send_signal(number)

    def stop(self, timeout=60):
        """SIGTERM, then the exit status."""
        if self.process.poll() is None:
            self.signal(signal.SIGTERM)
        return self.wait(timeout)

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for reader in self.readers:
            reader.join(10)
        for stream in (self.process.stdout, self.process.stderr):
            stream.close()
