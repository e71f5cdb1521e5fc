#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Rate of plans of one token: a recruitment with `dpu`, 100 workers and a budget of 10000 (about 2,670 hires).

Each hire needs three transactions one after another (the broker's for token and release, the third-party's, the
broker's for the next plan), which are five syncs with the broker's anchor. Runs on the disk of TMPDIR and once in
memory, where a sync costs nothing, and measures the cost of such syncs alone: the rest of the difference is time spent
waiting for the CPU between them. Prints milliseconds, CPU time and voluntary context switches for each plan.

    tests/bench/pulls.py [RUNS] [BUILD]
"""
import os
import resource
import statistics
import tempfile
import time
from pathlib import Path

from campaigns import arguments, changed, up

MEMORY = "/dev/shm"
SYNCS, SYNC_PAGES = 500, 6


def measure(build, path, tmpdir):
    """(milliseconds, CPU milliseconds, context switches) for each plan, and the number of plans."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    result = up(build, path, TMPDIR=tmpdir)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    plans = result["rounds"]
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return (1e3 * result["seconds"] / plans, 1e3 * processor / plans, (after.ru_nvcsw - before.ru_nvcsw) / plans), plans


def sync_ms(folder):
    """The median time to write some allocated pages and to sync them."""
    pages = bytes(4096 * SYNC_PAGES)
    file = os.open(Path(folder) / "sync", os.O_RDWR | os.O_CREAT, 0o600)
    took = []
    for turn in range(2 * SYNCS):
        start = time.perf_counter()
        os.pwrite(file, pages, turn % SYNCS * len(pages))
        os.fdatasync(file)
        took.append(time.perf_counter() - start)
    os.close(file)
    return 1e3 * statistics.median(took[SYNCS:])


def main():
    runs, build = arguments(5)
    with tempfile.TemporaryDirectory() as folder:
        path = changed("dpu.yaml", folder, {r"count: \d+": "count: 100", r"budget: \d+": "budget: 10000"})
        on_disk = []
        for run in range(runs):
            figures, plans = measure(build, path, folder)
            on_disk.append(figures)
            print(f"run {run + 1}: {plans} plans, {figures[0]:.3f} ms each ({1e3 / figures[0]:.0f} a second), "
                  f"{figures[1]:.3f} ms of processor time, {figures[2]:.1f} switches", flush=True)
        in_memory, _ = measure(build, path, MEMORY)
        each, processor, switches = (statistics.median(column) for column in zip(*on_disk))
        print(f"in memory: {in_memory[0]:.3f} ms each, {in_memory[1]:.3f} ms of processor time, "
              f"{in_memory[2]:.1f} switches; a sync alone: {sync_ms(folder):.3f} ms")
        print(f"median of {runs}: {each:.3f} ms a plan, {processor:.3f} ms of processor time, {switches:.1f} switches; "
              f"best {min(figures[0] for figures in on_disk):.3f} ms")


if __name__ == "__main__":
    main()
