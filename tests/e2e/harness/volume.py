# SPDX-License-Identifier: Apache-2.0
"""A small file system in memory that a test can fill, empty, and mount read-only."""
import ctypes
import functools
import os
import subprocess

import pytest


class Volume:
    """Mounted over a folder."""

    def __init__(self, folder, mib=64):
        folder.mkdir(exist_ok=True)
        self.folder, self.filler = folder, folder / "filler"
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={mib}m,mode=0700", "crowdveil-test", folder],
                              capture_output=True, text=True)
        if done.returncode != 0:
            pytest.skip(f"no file system can be mounted here: {done.stderr.strip()}")

    def fill(self):
        """Fills it to the last page."""
        with self.filler.open("ab", 0) as file:
            for size in (1 << 20, 1 << 12, 1):
                try:
                    while file.write(bytes(size)):
                        pass
                except OSError:
                    pass

    def make_room(self):
        self.filler.unlink()

    def read_only(self, yes=True):
        subprocess.run(["mount", "-o", f"remount,{'ro' if yes else 'rw'}", self.folder], check=True)

    def close(self):
        subprocess.run(["umount", "-l", self.folder], check=False)


def run(*command):
    return subprocess.run([str(part) for part in command], capture_output=True, text=True)


CORRECTED = 1  # e2fsck's status


class Ext4:
    """A file system on a block device that can fail: the kernel then makes it read-only while it is in use."""

    def __init__(self, folder, mib=64):
        folder.mkdir(exist_ok=True)
        self.folder, self.image, self.device = folder, folder.with_suffix(".img"), None
        with self.image.open("wb") as file:
            file.truncate(mib << 20)
        make = ("mkfs.ext4", "-q", "-O", "^has_journal", self.image)
        for command in (make, ("losetup", "--find", "--show", self.image)):
            done = run(*command)
            if done.returncode != 0:
                pytest.skip(f"no block device can be made here: {done.stderr.strip()}")
        self.device = done.stdout.strip()
        mounted = self.mount()
        if mounted.returncode != 0:
            self.close()
            pytest.skip(f"no file system can be mounted here: {mounted.stderr.strip()}")

    def mount(self):
        return run("mount", "--read-write", "-o", "errors=remount-ro", self.device, self.folder)

    def break_down(self):
        with open(f"/sys/fs/ext4/{os.path.basename(self.device)}/trigger_fs_error", "w") as trigger:
            trigger.write("a test wants it")

    def repair(self):
        unmounted = run("umount", self.folder)
        assert unmounted.returncode == 0, unmounted.stderr
        checked = run("e2fsck", "-fy", self.device)
        assert checked.returncode in (0, CORRECTED), checked.stdout + checked.stderr
        mounted = self.mount()
        assert mounted.returncode == 0, mounted.stderr

    def close(self):
        run("umount", "-l", self.folder)
        run("losetup", "--detach", self.device)


CLONE_NEWNS = 0x00020000  # linux/sched.h


@functools.cache
def have_own_mounts():
    """
    Gives this process a mount namespace. Every new namespace begins with a copy of all mounts, and in that of a test
    beside this one a broken file system would stay in use, so that it could not be repaired.
    """
    if os.geteuid() != 0:
        pytest.skip("a file system of its own needs root")
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS) != 0:
        pytest.skip(f"no mount namespace can be made here: {os.strerror(ctypes.get_errno())}")
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)


@pytest.fixture
def volume(tmp_path):
    """volume(folder) mounts; all is unmounted at the end, whatever happened."""
    made = []
    have_own_mounts()

    def mount(folder, kind=Volume, **kwargs):
        made.append(kind(folder, **kwargs))
        return made[-1]
    yield mount
    for one in made:
        one.close()
