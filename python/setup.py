# SPDX-License-Identifier: Apache-2.0
"""Adds what meson makes otherwise: the compiled .proto files, and the version of the project."""
import re
import subprocess
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parent.parent
VERSION = re.search(r"version: '([^']*)'", (ROOT / "meson.build").read_text())[1].replace("-dev", ".dev0")


class Build(build_py):
    def run(self):
        super().run()
        made = Path(self.build_lib) / "crowdveil"
        subprocess.run(["protoc", f"--proto_path={ROOT / 'proto'}", f"--descriptor_set_out={made / 'schema.bin'}",
                        *(str(ROOT / f"proto/{name}.proto") for name in ("base", "crowd", "rank", "order", "share"))],
                       check=True)
        (made / "version").write_text(VERSION + "\n")


setup(version=VERSION, cmdclass={"build_py": Build})
