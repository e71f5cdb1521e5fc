# SPDX-License-Identifier: Apache-2.0
"""Shared by the benchmarks of whole campaigns: the arguments, a campaign file made from an example, a run of it."""
import json
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def usage_error(line):
    print(line, file=sys.stderr)
    sys.exit(2)


def whole(name, what, at, default, least=1):
    """Argument number `at` as a whole number."""
    text = sys.argv[at] if len(sys.argv) > at else str(default)
    if not text.isdecimal() or int(text) < least:
        usage_error(f'{name}: {what} is "{text}"; expected a whole number of at least {least}')
    return int(text)


def arguments(runs):
    """(RUNS, BUILD) of the command line; wrong ones end the program with a usage error."""
    name = Path(sys.argv[0]).name
    if len(sys.argv) > 3:
        usage_error(f'{name}: unexpected argument "{sys.argv[3]}"; usage: {name} [RUNS] [BUILD]')
    build = Path(sys.argv[2] if len(sys.argv) > 2 else ROOT / "build")
    if not build.is_dir():
        usage_error(f"{name}: no folder {build}; expected a build folder")
    return whole(name, "RUNS", 1, runs), build


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
    """The result that `crowdveil up --json` prints for the campaign."""
    command = [build / "deploy/launcher/crowdveil", "up", path, "--json", "--seed", str(seed)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True,
                          env={**os.environ, **env})
    return json.loads(done.stdout.strip().split("\n")[-1])
