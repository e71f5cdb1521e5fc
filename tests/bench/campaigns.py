# SPDX-License-Identifier: Apache-2.0
"""What the benchmarks of whole campaigns share: the arguments, a campaign file made from an example, a run of it."""
import json
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def arguments(runs):
    """(RUNS, BUILD) of the command line."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else runs
    return count, Path(sys.argv[2] if len(sys.argv) > 2 else ROOT / "build")


def example(name):
    return ROOT / "deploy/campaigns" / name


def changed(name, folder, changes):
    """The example with each pattern replaced, as a file in the folder."""
    text = example(name).read_text()
    for pattern, said in changes.items():
        text = re.sub(pattern, said, text)
    path = Path(folder) / name
    path.write_text(text)
    return path


def up(build, path, seed=1, **env):
    """What `crowdveil up --json` says of the campaign at its end."""
    command = [build / "deploy/launcher/crowdveil", "up", path, "--json", "--seed", str(seed)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True,
                          env={**os.environ, **env})
    return json.loads(done.stdout.strip().split("\n")[-1])
