#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""
How long it takes until a crowd is back after a takeover: two brokers over a PostgreSQL server of this script's own,
CLIENTS gateways with a certificate each, all in one process, and the active broker killed again and again.

usage: tests/bench/back.py [ROUNDS] [CLIENTS]

Prints the median and the range, in seconds, from the signal until all are connected to the next broker. All clients
have one address, so limits.hellos is raised: a real crowd has many. Bounds: the takeover, then the clients' handshakes.
"""
import asyncio
import multiprocessing
import statistics
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/e2e"), str(ROOT / "tests"), str(ROOT / "python")]

import crowdveil  # noqa: E402
from harness.admin import metrics  # noqa: E402
from harness.daemon import wait_until  # noqa: E402
from harness.deployment import Deployment  # noqa: E402
from harness.pki import Pki  # noqa: E402
from harness.shared import Brokers, postgres  # noqa: E402


def crowd(addresses, files):
    """A process that keeps one gateway connected for each certificate."""
    accept = crowdveil.Accept(["alice"], epsilon=5, tokens=0)

    async def serve():
        await asyncio.gather(*(crowdveil.Gateway(addresses, own, range(at, at + 1), lambda worker, arm: .5, "test",
                                                 accept, broker_name="main").serve() for at, own in files))
    asyncio.run(serve())


def wait_for_all(brokers, i, clients):
    wait_until(lambda: metrics(brokers.socket(i)).get('crowdveil_connections{role="gateway"}') == clients,
               f"{clients} gateways are connected", every=.01)


def replace(brokers, clients):
    """Seconds from the kill until all clients are connected to the next broker."""
    active = brokers.active(every=.005)
    brokers.running[active].kill()
    began = time.monotonic()
    wait_for_all(brokers, brokers.active(every=.005), clients)
    took = time.monotonic() - began
    brokers.start(active).wait_for("standing by on")
    return took


def main(rounds, clients):
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        deployment = Deployment(folder, Pki(folder / "ca"))
        server = postgres.Server().start()
        process = None
        try:
            server.add_store()
            with ThreadPoolExecutor(4) as pool:
                files = list(pool.map(lambda at: (at, deployment.pki.issue(f"gateway/{at}-{at}")),
                                      range(1, clients + 1)))
            brokers = Brokers(deployment, server, limits={"connections": 2 * clients, "hellos": 4 * clients})
            deployment.start_thirdparty()
            active = brokers.start_all()
            process = multiprocessing.get_context("spawn").Process(target=crowd, args=(brokers.addresses, files))
            process.start()
            wait_for_all(brokers, active, clients)
            took = [replace(brokers, clients) for _ in range(rounds)]
            print(f"{clients} clients back: {statistics.median(took):.2f} s, {min(took):.2f} to {max(took):.2f}, "
                  f"{rounds} times", flush=True)
        finally:
            if process is not None:
                process.kill()
            deployment.close()
            server.close()


if __name__ == "__main__":
    main(*(int(given) if given else default
           for given, default in zip([*sys.argv[1:3], "", ""], (20, 1000))))
