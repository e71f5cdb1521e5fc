# SPDX-License-Identifier: Apache-2.0
"""A small file system in memory that a test can fill, empty, and mount read-only."""
import os
import shutil
import subprocess

import pytest


class Volume:
    """Mounted over a folder."""

    def __init__(self, folder, mib=64):
        if os.geteuid() != 0:
            pytest.skip("a file system of its own needs root")
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
        if os.geteuid() != 0:
            pytest.skip("a file system of its own needs root")
        folder.mkdir(exist_ok=True)
        self.folder, self.image, self.device = folder, folder.with_suffix(".img"), None
        with self.image.open("wb") as file:
            file.truncate(mib << 20)
        why = run("mkfs.ext4", "-q", self.image).stderr.strip() or self.mount()
        if why:
            self.close()
            pytest.skip(f"no block device with a file system can be made here: {why}")

    def mount(self):
        """Mounts the image, from a device of its own. Returns why not, or nothing."""
        done = run("losetup", "--find", "--show", self.image)
        if done.returncode == 0:
            self.device = done.stdout.strip()
            done = run("mount", "-w", "-o", "errors=remount-ro", self.device, self.folder)
        return "" if done.returncode == 0 else done.stderr.strip()

    def break_down(self):
        with open(f"/sys/fs/ext4/{os.path.basename(self.device)}/trigger_fs_error", "w") as trigger:
            trigger.write("a test wants it")

    def repair(self):
        """Goes on with a copy of what is on the disk: mount namespaces of other tests may hold the device for a while,
        and a device that is held cannot be repaired."""
        self.close()
        self.image = shutil.copy(self.image, self.folder.with_suffix(".copy"))
        checked = run("e2fsck", "-fy", self.image)
        assert checked.returncode in (0, CORRECTED), checked.stdout + checked.stderr
        assert not (why := self.mount()), why

    def close(self):
        """The kernel lets go of the device when no namespace has it mounted any more."""
        run("umount", "-l", self.folder)
        if self.device is not None:
            run("losetup", "--detach", self.device)
            self.device = None


@pytest.fixture
def volume(tmp_path):
    """volume(folder) mounts; all is unmounted at the end, whatever happened."""
    made = []

    def mount(folder, kind=Volume, **kwargs):
        made.append(kind(folder, **kwargs))
        return made[-1]
    yield mount
    for one in made:
        one.close()
