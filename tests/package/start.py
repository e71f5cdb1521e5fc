#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""
Starts a unit's ExecStart as systemd would, without systemd: in a chroot, on a read-only root with the unit's own
folders and copies of its credentials, as its user, without capabilities, under its filter of system calls.

    unshare --mount start.py ROOT UNIT-FILE INSTANCE    (as root; passes NOTIFY_SOCKET and WATCHDOG_USEC on)
"""
import ctypes
import os
import pwd
import resource
import shlex
import subprocess
import sys
from pathlib import Path

import seccomp

from units import Unit

PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 24, 38
PROT_WRITE, PROT_EXEC = 2, 4
ENOSYS = 38
FAMILIES = {"AF_UNIX": 1, "AF_INET": 2, "AF_INET6": 10, "AF_NETLINK": 16}
libc = ctypes.CDLL(None, use_errno=True)


def mount(*args):
    subprocess.run(["mount", *args], check=True)


def prepare_folders(root, unit, user):
    """State, logs and runtime folders, whose parents are root's, and the place of the credentials."""
    (root / unit.credentials.lstrip("/")).mkdir(parents=True, exist_ok=True)
    for folder in unit.folders():
        path = root / folder.lstrip("/")
        path.mkdir(parents=True, exist_ok=True)
        path.chmod(0o700)
        os.chown(path, user.pw_uid, user.pw_gid)


def load_credentials(root, unit, user):
    """Copies on a file system of their own, readable by the user only."""
    folder = root / unit.credentials.lstrip("/")
    mount("-t", "ramfs", "-o", "mode=0700", "ramfs", str(folder))
    for name, path in unit.loaded().items():
        copy = folder / name
        copy.write_bytes((root / path.lstrip("/")).read_bytes())
        copy.chmod(0o400)
        os.chown(copy, user.pw_uid, user.pw_gid)
    os.chown(folder, user.pw_uid, user.pw_gid)
    folder.chmod(0o500)
    mount("-o", "remount,ro", str(folder))


def protect(root, unit):
    """ProtectSystem=strict, PrivateTmp, PrivateDevices, ProcSubset and ProtectProc."""
    mount("--make-rprivate", "/")
    mount("--rbind", str(root), str(root))
    for folder in unit.folders():
        mount("--bind", str(root / folder.lstrip("/")), str(root / folder.lstrip("/")))
    mount("-o", "remount,bind,ro", str(root))
    mount("-t", "tmpfs", "tmpfs", str(root / "tmp"))
    mount("-t", "proc", "-o", "subset=pid,hidepid=invisible", "proc", str(root / "proc"))
    mount("-t", "tmpfs", "tmpfs", str(root / "dev"))
    for device in ("null", "zero", "random", "urandom"):
        (root / "dev" / device).touch()
        mount("--bind", f"/dev/{device}", str(root / "dev" / device))


def drop(user, unit):
    """Everything that a service of this user may not have."""
    os.setgroups([])
    for capability in range(64):
        libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
    try:
        resource.setrlimit(resource.RLIMIT_MEMLOCK, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    except ValueError:  # in a container root may not raise it
        pass
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.setresgid(user.pw_gid, user.pw_gid, user.pw_gid)
    os.setresuid(user.pw_uid, user.pw_uid, user.pw_uid)
    os.umask(int(unit.one("UMask"), 8))
    libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)


def filtered(unit):
    """SystemCallFilter, RestrictAddressFamilies and MemoryDenyWriteExecute in one filter."""
    made = seccomp.SyscallFilter(seccomp.ERRNO(ENOSYS))
    for name in sorted(unit.calls() - {"socket", "mmap", "mprotect"}):
        try:
            made.add_rule(seccomp.ALLOW, name)
        except (RuntimeError, ValueError):  # a call of another architecture, or one that libseccomp does not know
            pass
    for family in unit.all("RestrictAddressFamilies"):
        made.add_rule(seccomp.ALLOW, "socket", seccomp.Arg(0, seccomp.EQ, FAMILIES[family]))
    for protection in (0, PROT_WRITE, PROT_EXEC):
        made.add_rule(seccomp.ALLOW, "mmap", seccomp.Arg(2, seccomp.MASKED_EQ, PROT_WRITE | PROT_EXEC, protection))
    made.add_rule(seccomp.ALLOW, "mprotect", seccomp.Arg(2, seccomp.MASKED_EQ, PROT_EXEC, 0))
    return made


def main():
    root, unit = Path(sys.argv[1]).resolve(), Unit(sys.argv[2], sys.argv[3])
    entry = next(line.split(":") for line in (root / "etc/passwd").read_text().splitlines()
                 if line.startswith(unit.one("User") + ":"))
    user = pwd.struct_passwd((entry[0], entry[1], int(entry[2]), int(entry[3]), *entry[4:]))
    command = shlex.split(unit.one("ExecStart"))
    filters = filtered(unit)  # before the chroot, which has neither systemd-analyze nor this library
    prepare_folders(root, unit, user)
    protect(root, unit)
    load_credentials(root, unit, user)
    os.chroot(root)
    os.chdir("/")
    env = {"PATH": "/usr/bin:/bin", "USER": user.pw_name, "CREDENTIALS_DIRECTORY": unit.credentials}
    if "NOTIFY_SOCKET" in os.environ:
        env |= {name: os.environ[name] for name in ("NOTIFY_SOCKET", "WATCHDOG_USEC")}
        env["WATCHDOG_PID"] = str(os.getpid())
    drop(user, unit)
    filters.load()
    os.execve(command[0], command, env)


if __name__ == "__main__":
    main()
