# SPDX-License-Identifier: Apache-2.0
"""Faults planted in a scratch copy of the sources. A place is (file, what is there once, what is put there instead)."""
import shutil
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


def lost_places(faults):
    """One line for each place of {name: places} that is not in the sources, or not once."""
    for name, places in faults.items():
        for path, old, _ in places:
            count = (ROOT / path).read_text().count(old)
            if count != 1:
                yield f"{name}: {path} has {count} times: {old.strip()[:60]}; expected once"


class Scratch:
    """A copy of the sources with a build folder; as a context, it is gone at the end."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="cv-planted-")
        self.tree, self.build = Path(self.folder.name) / "tree", Path(self.folder.name) / "build"
        self.before = {}

    def __enter__(self):
        shutil.copytree(ROOT, self.tree, ignore=shutil.ignore_patterns("build*", ".git", "__pycache__"))
        subprocess.run(["meson", "setup", "-Dwerror=false", "-Dbuildtype=debugoptimized", self.build, self.tree],
                       check=True, capture_output=True)
        return self

    def __exit__(self, *_):
        self.folder.cleanup()

    def plant(self, name, places):
        """False, and nothing planted, if a place is gone."""
        for path, old, new in places:
            file = self.tree / path
            text = file.read_text()
            self.before.setdefault(file, text)
            if text.count(old) != 1:
                print(f"{name}: {path} has {text.count(old)} times: {old.strip()[:60]}")
                self.restore()
                return False
            file.write_text(text.replace(old, new))
        return True

    def restore(self):
        for file, text in self.before.items():
            file.write_text(text)
        self.before = {}

    def compile(self, target):
        """None, or what the compiler said."""
        done = subprocess.run(["ninja", "-C", self.build, target], capture_output=True, text=True)
        return None if done.returncode == 0 else done.stdout
