# SPDX-License-Identifier: Apache-2.0
"""A clean Debian 12 in a folder, where packages are installed, and units are started without systemd."""
import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

from support import base
from units import Unit

HERE = Path(__file__).resolve().parent
MOUNTS = ("proc", "dev", "sys")


class Machine:
    """A chroot, with a network of its own: only loopback."""

    def __init__(self, folder):
        self.root, self.network = Path(folder), f"cvpackage{os.getpid()}"
        self.daemons = {}
        subprocess.run(["tar", "-C", self.root, "-xf", base.archive()], check=True)
        self.root.chmod(0o755)
        self.archives = base.CACHE / "archives"  # downloaded packages, kept for the next run
        self.archives.mkdir(exist_ok=True)
        (self.root / "etc/apt/apt.conf.d/99test").write_text(
            'APT::Install-Recommends "false"; DPkg::Options:: "--force-unsafe-io"; APT::Sandbox::User "root";\n'
            'APT::Keep-Downloaded-Packages "true"; Binary::apt::APT::Keep-Downloaded-Packages "true";\n')
        (self.root / "etc/hosts").write_text("127.0.0.1 localhost rank.example broker.example\n")
        (self.root / "usr/sbin/policy-rc.d").write_text("#!/bin/sh\nexit 0\n")
        (self.root / "usr/sbin/policy-rc.d").chmod(0o755)
        shutil.copy("/etc/resolv.conf", self.root / "etc/resolv.conf")
        for name in MOUNTS:
            subprocess.run(["mount", "--rbind", f"/{name}", self.root / name], check=True)
            subprocess.run(["mount", "--make-rslave", self.root / name], check=True)
        (self.root / "var/cache/apt/archives").mkdir(parents=True, exist_ok=True)
        subprocess.run(["mount", "--bind", self.archives, self.root / "var/cache/apt/archives"], check=True)
        subprocess.run(["ip", "netns", "add", self.network], check=True)
        subprocess.run(["ip", "-n", self.network, "link", "set", "lo", "up"], check=True)

    def close(self):
        for daemon in self.daemons.values():
            daemon.kill()
            daemon.wait()
        for name in (*MOUNTS, "var/cache/apt/archives"):
            subprocess.run(["umount", "-Rl", self.root / name], check=False)
        subprocess.run(["ip", "netns", "del", self.network], check=False)

    def path(self, inside):
        return self.root / inside.lstrip("/")

    def run(self, *command, check=True, online=False, timeout=300, **env):
        """Runs a command inside; both streams are in stdout. Only apt is online."""
        network = () if online else ("ip", "netns", "exec", self.network)
        done = subprocess.run([*network, "chroot", self.root, *map(str, command)], text=True, timeout=timeout,
                              env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LC_ALL": "C.UTF-8",
                                   "DEBIAN_FRONTEND": "noninteractive", **env},
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if check:
            assert done.returncode == 0, f"{' '.join(map(str, command))}: status {done.returncode}\n{done.stdout}"
        return done

    def apt(self, *args):
        return self.run("apt-get", "-y", *args, online=True, timeout=600).stdout

    def install(self, debs):
        """Installs .deb files with what they depend on."""
        folder = self.path("/tmp/debs")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        for deb in debs:
            shutil.copy(deb, folder)
        return self.apt("install", *(f"/tmp/debs/{deb.name}" for deb in debs))

    def state(self, package):
        """The state of a package, as dpkg has it: "installed", "config-files" or "" for none."""
        done = self.run("dpkg-query", "-W", "-f", "${db:Status-Status}", package, check=False)
        return done.stdout if done.returncode == 0 else ""

    def user(self, name):
        """(uid, gid) of a user inside."""
        for line in self.path("/etc/passwd").read_text().splitlines():
            fields = line.split(":")
            if fields[0] == name:
                return int(fields[2]), int(fields[3])
        return None

    # ---- units

    def unit(self, name, instance=""):
        return Unit(self.path(f"/lib/systemd/system/{name}"), instance)

    def start(self, unit, notified=None, watchdog_us=60_000_000):
        """Starts a unit as systemd would. `notified`: a path inside for the socket of notifications."""
        log = open(self.path(f"/var/log/{unit.name}.log"), "w+")
        told = {"NOTIFY_SOCKET": notified, "WATCHDOG_USEC": str(watchdog_us)} if notified else {}
        env = dict(os.environ, **told)
        command = ["ip", "netns", "exec", self.network, "unshare", "--mount", "--propagation", "private",
                   sys.executable, "-B", HERE / "start.py", self.root, unit.path, unit.instance]
        self.daemons[unit.name] = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=env)

    def log(self, unit):
        return self.path(f"/var/log/{unit.name}.log").read_text()

    def wait_for(self, unit, text, seconds=60):
        """Until the unit's log has this text."""
        deadline = time.monotonic() + seconds
        while text not in self.log(unit):
            status = self.daemons[unit.name].poll()
            assert status is None, f"{unit.name} ended with status {status}:\n{self.log(unit)}"
            assert time.monotonic() < deadline, f"{unit.name} did not log {text!r}:\n{self.log(unit)}"
            time.sleep(.05)

    def stop(self, unit, seconds=30):
        """SIGTERM; returns the exit status."""
        daemon = self.daemons.pop(unit.name)
        daemon.terminate()
        return daemon.wait(seconds)


class Notifications:
    """The other end of NOTIFY_SOCKET."""

    def __init__(self, machine, inside):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(str(machine.path(inside)))
        os.chmod(machine.path(inside), 0o666)

    def wait_for(self, line, seconds=60):
        self.socket.settimeout(seconds)
        while True:
            if line in self.socket.recv(4096).decode().split("\n"):
                return
