# SPDX-License-Identifier: Apache-2.0
"""The files of earlier versions in tests/data, some of them packed."""
import gzip
import json


def content(before, name):
    packed = before / f"{name}.gz"
    return gzip.decompress(packed.read_bytes()) if packed.exists() else (before / name).read_bytes()


def said(before):
    return json.loads(content(before, "said.json"))


def put(before, name, folder, mode=0o600):
    """A writable copy."""
    (folder / name).write_bytes(content(before, name))
    (folder / name).chmod(mode)
    return folder / name


def put_all(before, deployment):
    put(before, "broker.db", deployment.folder / deployment.state("broker-state"))
    put(before, "thirdparty.db", deployment.folder / deployment.state("thirdparty-state"))
    for name in ("anchor", "seal.key"):
        put(before, name, deployment.folder)
