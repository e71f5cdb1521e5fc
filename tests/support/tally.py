# SPDX-License-Identifier: Apache-2.0
"""What the suites count, and the file with the tests that failed beside others and passed alone."""
import fcntl
import json
import os
import time
from pathlib import Path

FLAKES = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "crowdveil/flakes.json"


class Tally:
    """Counts of passed, failed and skipped cases; prints a line for each case that did not pass, and once more at the
    end, since the output between may be longer than what a reader of it keeps."""

    def __init__(self, flakes=FLAKES):
        self.passed, self.failed, self.skipped, self.notes, self.failures = 0, 0, 0, [], []
        self.fuzzed = {}  # harness: number of its corpus inputs that were replayed
        self.flakes = Path(flakes)

    def ok(self, count=1):
        self.passed += count

    def fail(self, name, detail=""):
        self.failed += 1
        self.failures.append(f"FAILED {name}" + (f": {detail}" if detail else ""))
        print(self.failures[-1], flush=True)

    def skip(self, name, why):
        self.skipped += 1
        print(f"SKIPPED {name}: {why or 'no reason given'}", flush=True)

    def check(self, name, problems):
        """Counts one case: it fails if there are problems, each printed on a line of its own."""
        problems = list(problems)
        if problems:
            self.fail(name, "\n  ".join([""] + problems).rstrip())
        else:
            self.ok()

    def flake(self, name, detail):
        """It failed, and passed when it was run once more, alone. Counted by its name, for as long as the file is
        kept."""
        self.flakes.parent.mkdir(parents=True, exist_ok=True)
        with open(self.flakes, "a+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            known = json.loads(file.read() or "{}")
            times = known.get(name, {}).get("times", 0) + 1
            known[name] = {"times": times, "last": time.strftime("%Y-%m-%d"), "said": detail[:300]}
            file.truncate(0)
            json.dump(known, file, indent=1)
        note = f"FLAKY {name}: passed alone; {times} times on this machine ({self.flakes}): {detail}"
        self.notes.append(note)
        print(note, flush=True)

    def line(self):
        return f"{self.passed} passed, {self.failed} failed" + (f", {self.skipped} skipped" if self.skipped else "")
