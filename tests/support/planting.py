# SPDX-License-Identifier: Apache-2.0
"""Faults planted in a scratch copy of the sources. A place is (file, text that occurs once, replacement)."""
import shutil
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


def check_names(parser, names, faults):
    """Ends the program with a usage error if a name is not that of a fault."""
    for name in names:
        if name not in faults:
            parser.error(f'unknown fault "{name}"; expected {", ".join(faults)}')


def lost_places(faults):
    """One line for each place of {name: places} whose text does not occur exactly once in the sources."""
    for name, places in faults.items():
        for path, old, _ in places:
            count = (ROOT / path).read_text().count(old)
            if count != 1:
                yield f"{name}: {count} occurrences in {path} of: {old.strip()[:60]}; expected one"


class Scratch:
    """A copy of the sources with a build folder; a context manager, which removes it at the end."""

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
        """Plants the fault; false, with nothing planted, if a place's text does not occur exactly once."""
        for path, old, new in places:
            file = self.tree / path
            text = file.read_text()
            self.before.setdefault(file, text)
            if text.count(old) != 1:
                print(f"{name}: {text.count(old)} occurrences in {path} of: {old.strip()[:60]}; expected one")
                self.restore()
                return False
            file.write_text(text.replace(old, new))
        return True

    def restore(self):
        for file, text in self.before.items():
            file.write_text(text)
        self.before = {}

    def compile(self, target):
        """None, or the compiler's output."""
        done = subprocess.run(["ninja", "-C", self.build, target], capture_output=True, text=True)
        return None if done.returncode == 0 else done.stdout
