#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""
How long it takes until a crowd is back after a takeover: two brokers over a PostgreSQL server of this script's own,
CLIENTS gateways with a certificate each, all in one process (crowd.c), and the active broker killed again and again.

usage: ninja -C build tests/bench/bench-crowd && tests/bench/back.py [ROUNDS] [CLIENTS]

Prints the median and the range, in seconds, from the signal until all are connected to the next broker. All clients
have one address, so limits.hellos is raised: a real crowd has many. Bounds: the takeover, then the handshakes of the
clients' process, and of the broker, some 2 ms each.
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
                files = list(pool.map(lambda at: deployment.pki.issue(f"gateway/{at}-{at}"), range(1, clients + 1)))
            brokers = Brokers(deployment, server, limits={"connections": 2 * clients, "hellos": 4 * clients})
            deployment.start_thirdparty()
            active = brokers.start_all()
            process = crowd(brokers, files)
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
