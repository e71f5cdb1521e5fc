# SPDX-License-Identifier: Apache-2.0
"""
What this machine can do, found by trying: a bare container has no name `localhost`, no pseudo-terminal, no namespaces.
Each function below returns None, or the reason why tests that need it are skipped.
"""
import contextlib
import ctypes
import os
import platform
import pty
import shutil
import socket
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

import pytest

from harness.intruder import DETACH, INTERRUPT, SEIZE, ptrace

LANDLOCK_CREATE_RULESET, LANDLOCK_VERSION = 444, 1
PR_SET_DUMPABLE = 4
LOCKED = 2 << 20  # bytes that keys need

libc = ctypes.CDLL(None, use_errno=True)


def needs(*tries):
    """A mark for tests that are skipped if one of these is missing."""
    reasons = [reason for reason in (attempt() for attempt in tries) if reason]
    return pytest.mark.skipif(bool(reasons), reason="; ".join(reasons))


def said(done):
    """The last line of a command that failed, or its status."""
    lines = (done.stderr or done.stdout).strip().split("\n")
    return lines[-1] or f"status {done.returncode}"


def tried(what, *command):
    """None if the command succeeds, else the reason why there is no `what`."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
    except OSError as error:
        return f"no {what} here: {error}"
    return None if done.returncode == 0 else f"no {what} here: {said(done)}"


@cache
def localhost():
    """A program can listen on the name localhost."""
    try:
        for family, kind, number, _, address in socket.getaddrinfo("localhost", 0, type=socket.SOCK_STREAM):
            with socket.socket(family, kind, number) as listener:
                listener.bind(address)
    except OSError as error:
        return f"the name localhost cannot be used here: {error}"
    return None


@cache
def pseudo_terminals():
    try:
        for fd in pty.openpty():
            os.close(fd)
    except OSError as error:
        return f"no pseudo-terminals here: {error}"
    return None


@cache
def network_namespaces():
    """Network namespaces, connected by links."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    name = f"cvtry{os.getpid()}"
    try:
        return (tried("network namespaces", "ip", "netns", "add", name) or
                tried("links between network namespaces", "ip", "-n", name, "link", "add", f"{name}a", "type", "veth",
                      "peer", "name", f"{name}b") or
                tried("programs in network namespaces", "ip", "netns", "exec", name, "true"))
    finally:
        with contextlib.suppress(OSError):
            subprocess.run(["ip", "netns", "del", name], capture_output=True)


@cache
def mount_namespaces():
    """Mount namespaces in which one file is bound over another."""
    return tried("mount namespaces", "unshare", "--mount", "mount", "--bind", os.devnull, "/etc/hosts")


@cache
def process_namespaces():
    return tried("namespaces of processes", "unshare", "--pid", "--fork", "--kill-child", "true")


@cache
def user_namespaces():
    """Namespaces of processes without root's rights."""
    return bounded_capabilities() or tried("user namespaces", *without_rights(), "unshare", "--user", "--pid", "--fork",
                                           "true")


@cache
def own_proc():
    """In such a namespace /proc can be mounted anew, which a container that hides parts of it forbids."""
    return user_namespaces() or tried("a /proc of a user namespace", *without_rights(), "unshare", "--user",
                                      "--map-root-user", "--pid", "--fork", "--mount-proc", "true")


def without_rights():
    """Runs a program of root's without the capability to make namespaces."""
    return ("setpriv", "--bounding-set", "-sys_admin") if os.geteuid() == 0 else ()


@cache
def nobody():
    """Root runs a program as nobody; not needed if the tests do not run as root."""
    if os.geteuid() != 0:
        return None
    try:
        subprocess.run(["true"], check=True, user="nobody", group="nogroup", extra_groups=[])
    except (OSError, LookupError, subprocess.SubprocessError) as error:
        return f"nothing can be run as nobody here: {error}"
    return None


@cache
def other_users():
    """Root becomes another user, which owns files."""
    if os.geteuid() != 0:
        return "changing the user needs root"
    with tempfile.NamedTemporaryFile() as file:
        return nobody() or tried("files of others", "chown", "nobody", file.name)


@cache
def bounded_capabilities():
    """Root without the capabilities with which it may read every file."""
    if os.geteuid() != 0:
        return None
    return tried("bounding of capabilities", "setpriv", "--bounding-set", "-dac_override,-dac_read_search", "true")


@contextlib.contextmanager
def closed_process():
    """A child that cannot be dumped, as our programs cannot; it ends with its standard input."""
    source = f"import ctypes, sys; ctypes.CDLL(None).prctl({PR_SET_DUMPABLE}, 0); print(flush=True); sys.stdin.read()"
    child = subprocess.Popen([sys.executable, "-c", source], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        child.stdout.readline()
        yield child
    finally:
        child.kill()
        child.communicate()


@cache
def others():
    """Memory and sockets of a program that cannot be dumped can be read."""
    with closed_process() as child:
        try:
            os.readlink(f"/proc/{child.pid}/fd/0")
            with open(f"/proc/{child.pid}/maps") as maps, open(f"/proc/{child.pid}/mem", "rb", 0) as memory:
                memory.seek(int(maps.readline().split("-")[0], 16))
                memory.read(1)
        except OSError as error:
            return f"the memory of other programs cannot be read here: {error}"
    return None


@cache
def tracing():
    """System calls can be made in another program's name, on x86-64 only."""
    if platform.machine() != "x86_64":
        return "calls are made in another program's name on x86-64 only"
    with closed_process() as child:
        try:
            ptrace(SEIZE, child.pid)
            ptrace(INTERRUPT, child.pid)
            os.waitpid(child.pid, 0)
            ptrace(DETACH, child.pid)
        except OSError as error:
            return f"programs cannot be traced here: {error}"
    return None


@cache
def landlock():
    if libc.syscall(LANDLOCK_CREATE_RULESET, None, 0, LANDLOCK_VERSION) < 1:
        return f"no Landlock here: {os.strerror(ctypes.get_errno())}"
    return None


@cache
def seccomp():
    return tried("seccomp", sys.executable, Path(__file__).with_name("without.py"), "mlock2", shutil.which("true"))


@cache
def sandbox():
    """All parts of a daemon's sandbox, except locked memory."""
    if "CROWDVEIL_SANITIZED" in os.environ:
        return "a sanitizer build leaves most of it off, and says so"
    return landlock() or seccomp()


LOCK = f"""
import contextlib, ctypes, mmap, os, resource, sys
with contextlib.suppress(ValueError, OSError):  # root may, in most places
    resource.setrlimit(resource.RLIMIT_MEMLOCK, (resource.RLIM_INFINITY,) * 2)
memory = mmap.mmap(-1, {LOCKED})
libc = ctypes.CDLL(None, use_errno=True)
if libc.mlock(ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(memory))), ctypes.c_size_t({LOCKED})):
    sys.exit(os.strerror(ctypes.get_errno()))
"""


@cache
def locked_memory():
    """The locked memory that keys need."""
    return tried("locked memory", sys.executable, "-c", LOCK)
