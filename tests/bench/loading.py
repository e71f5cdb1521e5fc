#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""
How long a broker loads before it serves: RELEASES of a running campaign of 4,096 items, and CAMPAIGNS that have ended,
from a file and from a PostgreSQL server of this script's own. All of it is what real programs have stored before.

usage: tests/bench/loading.py [RELEASES] [CAMPAIGNS] [STARTS]

Prints for each the median and the range, in seconds, from the start of the process until it is ready, of STARTS starts,
its resident memory then, and the size of what it loads. Bounds: the rows' codes, and the server's answers.
"""
import statistics
import sys
import tempfile
import time
from pathlib import Path

from campaigns import whole

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/e2e"), str(ROOT / "tests"), str(ROOT / "python")]

from client.requester import spec  # noqa: E402
from crowdveil import Refused  # noqa: E402
from ended import MIB, memory  # noqa: E402
from harness.deployment import Deployment  # noqa: E402
from harness.pki import Pki  # noqa: E402
from harness.shared import Brokers, postgres  # noqa: E402

ARMS = 4096
LIMITS = {"limits": {"submits": 1_000_000, "kept": 100_000, "campaigns": 64, "release_tokens": 1,
                     "worker_epsilon": 1000}}


def end_many(deployment, campaigns):
    with deployment.requester("mallory") as requester:
        done = 0
        while done < campaigns:
            try:
                requester.cancel(requester.submit(spec(2, name="short")).campaign)
                done += 1
            except Refused as error:  # the third-party has not closed the last ones yet
                if "are open" not in str(error) and "try again" not in str(error):
                    raise


def release_many(deployment, releases):
    """A campaign that releases each token by itself, until there are enough."""
    file = deployment.folder / "long.yaml"
    file.write_text(f"campaign: long\nitems: {{synthetic: {{count: {ARMS}, variance: 0.1}}}}\n"
                    "policy: {name: ppar, alpha: 0}\nprivacy: {epsilon: 1}\n")
    with deployment.requester() as requester:
        campaign = requester.submit(spec(ARMS, name="long", tokens=10 * releases, policy_params={
            "alpha": 0, "tokens_per_round": 1})).campaign
        worker = deployment.start_worker(f"gateway/1-{10 * releases}", file, {"arrival_rate": 0})
        requester.watch(campaign, until=lambda progress: progress.releases >= releases)
        worker.stop()
        return requester.watch(campaign, until=lambda _: True).releases


def fill(deployment, releases, campaigns):
    end_many(deployment, campaigns)
    return release_many(deployment, releases)


def measure(starts, start, stop):
    took, resident = [], []
    for _ in range(starts):
        stop()
        began = time.monotonic()
        daemon = start()
        took.append(time.monotonic() - began)
        resident.append(memory(daemon)[0])
    return (f"{statistics.median(took):.2f} s, {min(took):.2f} to {max(took):.2f}, {starts} times; "
            f"{statistics.median(resident):.0f} MiB")


def in_a_file(folder, releases, campaigns, starts):
    deployment = Deployment(folder, Pki(folder / "ca"), has_clock=False).up(broker=LIMITS)
    try:
        stored = fill(deployment, releases, campaigns)
        address = deployment.broker.address
        told = measure(starts, lambda: deployment.start_broker({**LIMITS, "listen": address}),
                       lambda: deployment.broker.stop())
        size = (folder / "broker-state/broker.db").stat().st_size / MIB
        print(f"file: {stored} releases, {campaigns} campaigns, {size:.0f} MiB: {told}", flush=True)
    finally:
        deployment.close()


def in_postgresql(folder, releases, campaigns, starts):
    server = postgres.Server().start()
    deployment = Deployment(folder, Pki(folder / "ca"), has_clock=False)
    try:
        server.add_store()
        brokers = Brokers(deployment, server, 1, **LIMITS)
        deployment.start_thirdparty()
        brokers.start_all()
        deployment.broker = brokers.running[0]

        def start():
            brokers.start(0)
            brokers.active(every=.005)
            return brokers.running[0]
        stored = fill(deployment, releases, campaigns)
        told = measure(starts, start, lambda: brokers.running[0].stop())
        size = int(server.sql("SELECT pg_database_size('crowdveil')")) / MIB
        print(f"PostgreSQL: {stored} releases, {campaigns} campaigns, {size:.0f} MiB: {told}", flush=True)
    finally:
        deployment.close()
        server.close()


def main():
    releases = whole("loading.py", "RELEASES", 1, 1_000_000)
    campaigns = whole("loading.py", "CAMPAIGNS", 2, 10_000)
    starts = whole("loading.py", "STARTS", 3, 5)
    for load in (in_a_file, in_postgresql):
        with tempfile.TemporaryDirectory() as folder:
            load(Path(folder), releases, campaigns, starts)


if __name__ == "__main__":
    main()
