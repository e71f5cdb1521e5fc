# SPDX-License-Identifier: Apache-2.0
"""The messages, generated from proto/*.proto at their first use."""
import importlib
import subprocess
import sys
import tempfile
from functools import lru_cache
from pathlib import Path

PROTO = Path(__file__).resolve().parents[3] / "proto"


@lru_cache(maxsize=None)
def _folder():
    folder = tempfile.TemporaryDirectory(prefix="crowdveil-proto-")
    subprocess.run(["protoc", f"--proto_path={PROTO}", f"--python_out={folder.name}",
                    *(str(PROTO / f"{name}.proto") for name in ("base", "crowd", "rank", "order"))], check=True)
    sys.path.insert(0, folder.name)
    return folder  # lives as long as this process


def schema(name):
    """The generated module of `base`, `crowd`, `rank` or `order`."""
    _folder()
    return importlib.import_module(f"{name}_pb2")
