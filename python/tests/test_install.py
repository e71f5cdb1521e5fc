# SPDX-License-Identifier: Apache-2.0
"""`pip install` from a checkout, without a network."""
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_pip_installs_the_package_of_a_checkout(tmp_path):
    tree, target = tmp_path / "tree", tmp_path / "target"
    tree.mkdir()
    for name in ("python", "proto"):  # a copy, since the build writes into it
        shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "meson.build", tree)
    done = subprocess.run([sys.executable, "-m", "pip", "install", "--no-index", "--no-deps", "--no-build-isolation",
                           "--quiet", "--target", target, "./python"], cwd=tree, text=True, capture_output=True,
                          check=False)
    assert done.returncode == 0, done.stderr
    shutil.rmtree(tree)
    code = "import crowdveil; print(crowdveil.__version__, crowdveil.Spec('a', 2).message().arms, crowdveil.__file__)"
    done = subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": str(target)}, text=True, capture_output=True,
                          check=False)
    version = re.search(r"version: '([^']*)'", (ROOT / "meson.build").read_text())[1].replace("-dev", ".dev0")
    assert done.stdout == f"{version} 2 {target}/crowdveil/__init__.py\n", done.stderr
    assert (target / "crowdveil/py.typed").exists()
