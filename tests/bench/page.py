#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""
What an open page costs: the exchange rate of the demo with a page that reads every event, as a share of that without
one, in pairs; then the processor time of the programs while one page, and ten, are open and nothing happens.

    tests/bench/page.py [PAIRS] [BUILD]
"""
import json
import os
import signal
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "e2e"))

from campaigns import arguments, changed, up  # noqa: E402
from harness.daemon import Daemon  # noqa: E402
from harness.page import Page  # noqa: E402

IDLE_S = 10
TICKS = os.sysconf("SC_CLK_TCK")


def start(build, path, folder):
    daemon = Daemon("up", [Path(build) / "deploy/launcher/crowdveil", "up", path, "--page", "--json", "--seed", 1],
                    Path(folder) / "up.log")
    return daemon, Page(daemon)


def with_page(build, path, folder):
    daemon, page = start(build, path, folder)
    while not page.campaigns():
        time.sleep(.02)
    page.campaign()
    events = page.events()
    daemon.wait_for("Still running until Ctrl-C", timeout=600)
    events.close()
    daemon.signal(signal.SIGINT)
    daemon.wait()
    return json.loads(daemon.lines[-1])["tokens_per_second"]


def seconds_of(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def tree_of(pid):
    """{name: pid} of `up`, the third-party and the broker."""
    found = {"up": pid}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
                name = (entry / "cmdline").read_bytes().split(b"\0")[0].decode().rsplit("-", 1)[-1]
            except (OSError, ValueError):
                continue
            if parent == pid and name in ("thirdparty", "broker"):
                found[name] = int(entry.name)
    return found


def idle(build, path, folder):
    daemon, page = start(build, path, folder)
    daemon.wait_for("Still running until Ctrl-C", timeout=600)
    tree, streams = tree_of(daemon.pid), []
    for pages in (0, 1, 10):
        while len(streams) < pages:
            streams.append(page.events())
            streams[-1].wait_for(lambda seen: any(e["event"] == "state" for e in seen), "the state")
        before = {name: seconds_of(pid) for name, pid in tree.items()}
        time.sleep(IDLE_S)
        used = {name: 100 * (seconds_of(pid) - before[name]) / IDLE_S for name, pid in tree.items()}
        print(f"idle, {pages} open: " + ", ".join(f"{name} {share:.2f} %" for name, share in used.items()) +
              " of a core", flush=True)
    for stream in streams:
        stream.close()
    daemon.signal(signal.SIGINT)
    daemon.wait()


def main():
    pairs, build = arguments(5)
    shares = []
    with tempfile.TemporaryDirectory() as folder:
        path = changed("demo.yaml", folder, {r"settled: \w+": "settled: pull", r"tokens: \d+,": "tokens: 1000000,"})
        idle(build, path, folder)
        for pair in range(pairs):
            # in turn, so that what else the machine does meets both
            order = (False, True) if pair % 2 == 0 else (True, False)
            rate = {has: with_page(build, path, folder) if has else up(build, path)["tokens_per_second"]
                    for has in order}
            shares.append(rate[True] / rate[False])
            print(f"pair {pair + 1}: {rate[False]:.0f} a second without, {rate[True]:.0f} with a page: "
                  f"{shares[-1]:.3f}", flush=True)
    print(f"median of {pairs}: {statistics.median(shares):.3f}")


if __name__ == "__main__":
    main()
