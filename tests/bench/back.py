#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""
How long it takes until a crowd is back after a takeover: two brokers over a PostgreSQL server of this script's own,
CLIENTS gateways with a certificate each, all in one process (crowd.c), and the active broker killed again and again.

usage: ninja -C build tests/bench/bench-crowd && tests/bench/back.py [ROUNDS] [CLIENTS] [HANDSHAKES]

Prints the median and the range, in seconds, from the signal until all are connected to the next broker, and medians of
the part until it is active, of the processor time of that broker and of the clients' process until the end, and of the
handshakes that the broker has closed to make room. All clients have one address, so limits.hellos is raised: a real
crowd has many. HANDSHAKES is limits.handshakes, 128 as usual: the clients' one process has 1,000 connections before it
has sent as many TLS hellos, and the broker closes some that it waits for. Bounds: the handshakes' processor time.
"""
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/e2e"), str(ROOT / "tests"), str(ROOT / "python")]

from harness.admin import metrics  # noqa: E402
from harness.daemon import BUILD, wait_until  # noqa: E402
from harness.deployment import Deployment  # noqa: E402
from harness.pki import Pki  # noqa: E402
from harness.shared import Brokers, postgres  # noqa: E402
from stores import used  # noqa: E402

PROGRAM = BUILD / "tests/bench/bench-crowd"


def crowd(brokers, files):
    """A process that keeps a gateway connected for each certificate."""
    process = subprocess.Popen([PROGRAM, ",".join(brokers.addresses), "main", files[0].ca], stdin=subprocess.PIPE,
                               text=True)
    process.stdin.writelines(f"{own.cert} {own.key}\n" for own in files)
    process.stdin.close()
    return process


def wait_for_all(brokers, i, clients):
    wait_until(lambda: metrics(brokers.socket(i)).get('crowdveil_connections{role="gateway"}') == clients,
               f"{clients} gateways are connected", every=.05)


def crowded(brokers, i):
    return metrics(brokers.socket(i)).get('crowdveil_refused_total{reason="crowded"}', 0)


def replace(brokers, process, clients):
    """From the kill until all clients are connected to the next broker: seconds; until it is active; of the processor,
    by that broker; by the clients; handshakes closed to make room."""
    active = brokers.active(every=.005)
    pids = brokers.running[1 - active].pid, process.pid
    before = [used(pid)[0] for pid in pids]
    brokers.running[active].kill()
    began = time.monotonic()
    brokers.active(every=.005)
    taken = time.monotonic() - began
    wait_for_all(brokers, 1 - active, clients)
    took = time.monotonic() - began
    spent = [used(pid)[0] - early for pid, early in zip(pids, before)]
    brokers.start(active).wait_for("standing by on")
    return took, taken, *spent, crowded(brokers, 1 - active)


def main(rounds, clients, handshakes):
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        deployment = Deployment(folder, Pki(folder / "ca"), has_clock=False)
        server = postgres.Server().start()
        process = None
        try:
            server.add_store()
            with ThreadPoolExecutor(4) as pool:
                files = list(pool.map(lambda at: deployment.pki.issue(f"gateway/{at}-{at}"), range(1, clients + 1)))
            brokers = Brokers(deployment, server, limits={
                "connections": 2 * clients, "hellos": 4 * clients, "handshakes": handshakes})
            deployment.start_thirdparty()
            active = brokers.start_all()
            process = crowd(brokers, files)
            wait_for_all(brokers, active, clients)
            took, *parts = zip(*(replace(brokers, process, clients) for _ in range(rounds)))
            taken, broker, crowds, closed = (statistics.median(part) for part in parts)
            print(f"{clients} clients back: {statistics.median(took):.2f} s, {min(took):.2f} to {max(took):.2f}, "
                  f"{rounds} times; active after {taken:.2f} s; processor time: broker {broker:.2f} s, clients "
                  f"{crowds:.2f} s; {closed:.0f} handshakes closed to make room", flush=True)
        finally:
            if process is not None:
                process.kill()
            deployment.close()
            server.close()


if __name__ == "__main__":
    main(*(int(given) if given else default
           for given, default in zip([*sys.argv[1:4], "", "", ""], (20, 1000, 128))))
