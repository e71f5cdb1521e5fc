# SPDX-License-Identifier: Apache-2.0
"""Reads a unit of systemd: the part of its language that our units use."""
import re
import subprocess
from functools import cache
from pathlib import Path


class Unit:
    """A service; of a template with this instance. `values` has every assignment in its order: {key: [value...]}."""

    def __init__(self, path, instance=""):
        self.path, self.instance = Path(path), instance
        self.name = self.path.name.replace("@.", f"@{instance}.")
        self.values = {}
        text = re.sub(r"\\\n\s*", " ", self.path.read_text())
        for line in text.splitlines():
            if re.match(r"\w+=", line):
                key, _, value = line.partition("=")
                self.values.setdefault(key, []).append(value)

    @property
    def credentials(self):
        """The folder of its credentials, inside of the machine."""
        return f"/run/credentials/{self.name}"

    def expand(self, text):
        known = {"%d": self.credentials, "%i": self.instance, "%S": "/var/lib", "%t": "/run", "%L": "/var/log"}
        return re.sub(r"%.", lambda found: known[found[0]], text)

    def all(self, key):
        """Every word of every value of a key, expanded. An empty value takes away those before."""
        values = self.values.get(key, [])
        empty = max((at for at, value in enumerate(values) if not value), default=-1)
        return [self.expand(word) for value in values[empty + 1:] for word in value.split()]

    def one(self, key):
        """The last value of a key, expanded."""
        return self.expand(self.values[key][-1])

    def loaded(self):
        """Its credentials: {name: path}."""
        return dict(word.split(":", 1) for word in self.all("LoadCredential"))

    def folders(self):
        """The folders that it may write to."""
        return [f"/var/lib/{each}" for each in self.all("StateDirectory")] + \
               [f"/var/log/{each}" for each in self.all("LogsDirectory")] + \
               [f"/run/{each}" for each in self.all("RuntimeDirectory")]

    def calls(self):
        """The names of the system calls that its filter allows: each line adds, or with ~ removes."""
        allowed = set()
        for value in self.values["SystemCallFilter"]:
            named = set().union(*(group(word) for word in value.removeprefix("~").split()))
            allowed = allowed - named if value.startswith("~") else allowed | named
        return allowed | group("@default")


@cache
def group(name):
    """The system calls of a group, or the call itself."""
    if not name.startswith("@"):
        return {name}
    listed = subprocess.run(["systemd-analyze", "syscall-filter", name], check=True, stdout=subprocess.PIPE, text=True)
    words = [line.strip() for line in listed.stdout.splitlines()[1:] if line.strip() and not line.strip()[0] == "#"]
    return set().union(*(group(word) for word in words))
