# SPDX-License-Identifier: Apache-2.0
"""One command of the laboratory, run to its end."""
import json
import subprocess

from harness.daemon import PROGRAMS


def lab(*args, cwd, timeout=240):
    return subprocess.run([PROGRAMS["lab"], *map(str, args)], cwd=cwd, timeout=timeout, capture_output=True, text=True,
                          stdin=subprocess.DEVNULL)


def rows_of(done):
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]
