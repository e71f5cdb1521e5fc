#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Cost of a copy of a broker's database to the crowd that gives tokens meanwhile.

A gateway gives tokens without end; a worker of another certificate gives one after the other and measures how long each
acknowledgement takes. Windows without a copy and copies take turns. Prints the tokens a second and the times of
the acknowledgements of each, and the medians.

    tests/bench/backup.py [MEBIBYTES] [RUNS] [BUILD]      the database's size, default 1024; copies, default 3
"""
import contextlib
import os
import sqlite3
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path

from campaigns import whole

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/e2e"))

WINDOW_S = 8
LIMITS = {"limits": {"worker_epsilon": 4000, "release_tokens": 1}}
ITEMS = "items: {list: [{name: a, mean: 0.5}, {name: b, mean: 0.5}]}\npolicy: {name: ppar, alpha: 0}\n"


def enlarge(path, mebibytes):
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE ballast (bytes BLOB)")
        for _ in range(mebibytes):
            db.execute("INSERT INTO ballast VALUES (randomblob(1048000))")
        db.commit()


class Prober(threading.Thread):
    """One worker after the other gives one token."""

    def __init__(self, deployment):
        super().__init__(daemon=True)
        self.files, self.address = deployment.pki.issue("gateway/5000001-6000000"), deployment.broker.address
        self.waits, self.ends = [], False

    def run(self):
        from client.worker import Session, work
        from crowdveil.wire import GRID
        with Session(self.address, self.files.ca, self.files.cert, self.files.key, timeout=60) as session:
            for worker in range(5_000_001, 6_000_001):
                began = time.monotonic()
                work(session, [worker], lambda *_: GRID // 2, credit=1)
                self.waits.append(time.monotonic() - began)
                if self.ends:
                    return


class Bench:
    def __init__(self, folder, mebibytes):
        from client.requester import spec
        from harness.deployment import Deployment
        from harness.pki import Pki
        self.folder = folder
        self.deployment = deployment = Deployment(folder, Pki(folder / "ca"), has_clock=False)
        deployment.up(broker=LIMITS)
        assert deployment.broker.stop() == 0
        enlarge(folder / "broker-state/broker.db", mebibytes)
        deployment.start_broker(LIMITS)
        with deployment.requester() as requester:
            requester.submit(spec(2, name="endless", tokens=1_000_000_000, tokens_per_worker=1000,
                                  policy_params={"alpha": 0, "tokens_per_round": 20_000}))
        (folder / "endless.yaml").write_text("campaign: endless\n" + ITEMS + "privacy: {epsilon: 1}\n")
        deployment.start_worker("gateway/1-5000000", folder / "endless.yaml")
        self.prober = Prober(deployment)
        self.prober.start()

    def tokens(self):
        from harness.admin import metrics
        return metrics(self.folder / "broker.sock")["crowdveil_tokens_total"]

    def measure(self, what, action):
        self.prober.waits.clear()
        began, tokens = time.monotonic(), self.tokens()
        action()
        took = time.monotonic() - began
        rate, waits = (self.tokens() - tokens) / took, sorted(self.prober.waits) or [took]
        high, longest = waits[len(waits) * 99 // 100], waits[-1]
        print(f"{what:13} {took:6.1f} s  {rate:9.0f} tokens a second; {len(waits)} acknowledgements, 99 % within "
              f"{1000 * high:.1f} ms, all within {1000 * longest:.1f} ms", flush=True)
        return rate, high, longest

    def copy(self):
        from harness.commands import crowdveil
        path = self.folder / "copy.db"
        done = crowdveil("backup", self.folder / "broker.yaml", "--to", path, timeout=900)
        assert done.returncode == 0, done.stderr
        path.unlink()


def main():
    mebibytes, runs = whole("backup.py", "MEBIBYTES", 1, 1024), whole("backup.py", "RUNS", 2, 3)
    if len(sys.argv) > 3:
        os.environ["CROWDVEIL_BUILD"] = sys.argv[3]
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder), mebibytes)
        try:
            time.sleep(WINDOW_S)  # the crowd's ramp
            without, during = [], []
            for _ in range(runs):
                without.append(bench.measure("without", lambda: time.sleep(WINDOW_S)))
                during.append(bench.measure("during a copy", bench.copy))
        finally:
            bench.prober.ends = True
            bench.deployment.close()
    rate, high, longest = ([statistics.median(each[i] for each in part) for part in (without, during)]
                           for i in range(3))
    print(f"medians of {runs}, without and during a copy of {mebibytes} MiB: {rate[0]:.0f} and {rate[1]:.0f} tokens a "
          f"second ({rate[1] / rate[0]:.2f}); 99 % of acknowledgements within {1000 * high[0]:.1f} and "
          f"{1000 * high[1]:.1f} ms, all within {1000 * longest[0]:.0f} and {1000 * longest[1]:.0f} ms")


if __name__ == "__main__":
    main()
