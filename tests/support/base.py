# SPDX-License-Identifier: Apache-2.0
"""
A small Debian 12, made once by debootstrap and kept as an archive: the base of the containers' images, and where the
packages are installed.
"""
import fcntl
import os
import subprocess
import tempfile
from pathlib import Path

CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "crowdveil"
MIRROR = "http://deb.debian.org/debian"


class Unavailable(Exception):
    """The reason why there is no base here."""


def archive():
    """The path of the archive; makes it first if there is none. Raises Unavailable. Two suites may ask at once."""
    CACHE.mkdir(parents=True, exist_ok=True)
    path = CACHE / "base.tar"
    with open(CACHE / "base.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            make(path)
    return path


def make(path):
    """Like Debian's slim image: without package lists, caches, locales, manuals and documentation except licences."""
    with tempfile.TemporaryDirectory(prefix="crowdveil-base-", dir=CACHE) as folder:
        done = subprocess.run(["debootstrap", "--variant=minbase", "bookworm", folder, MIRROR], text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=900)
        if done.returncode != 0:
            raise Unavailable(f"debootstrap cannot make a base from {MIRROR}: {done.stdout.strip().splitlines()[-1]}")
        for unused in ("var/lib/apt/lists", "var/cache/apt", "var/log", "usr/share/man", "usr/share/locale",
                       "usr/share/info"):
            for each in sorted((Path(folder) / unused).rglob("*"), reverse=True):
                if each.is_symlink() or each.is_file():
                    each.unlink()
        for each in (Path(folder) / "usr/share/doc").rglob("*"):
            if (each.is_file() or each.is_symlink()) and each.name != "copyright":
                each.unlink()
        Path(folder).chmod(0o755)  # of the root folder
        half = path.with_suffix(".half")
        subprocess.run(["tar", "-C", folder, "-cf", half, "."], check=True)
        half.rename(path)
