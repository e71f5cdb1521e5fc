#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""
How long a crowd waits when the active broker ends: two brokers over a PostgreSQL server of this script's own, a gateway
that gives tokens without a pause, and the active broker killed, stopped or frozen again and again.

usage: tests/bench/takeover.py [ROUNDS]

Prints the median and the range, in seconds, from the signal to the first token that the next broker has stored. A
frozen broker stays frozen until then: its gateway must leave a connection that nobody closes.
"""
import signal
import statistics
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/e2e"), str(ROOT / "tests"), str(ROOT / "python")]

from client.requester import spec  # noqa: E402
from harness.admin import metrics  # noqa: E402
from harness.deployment import Deployment  # noqa: E402
from harness.pki import Pki  # noqa: E402
from harness.shared import Brokers, postgres  # noqa: E402

SIGNALS = {"killed (SIGKILL)": signal.SIGKILL, "stopped (SIGTERM)": signal.SIGTERM, "frozen (SIGSTOP)": signal.SIGSTOP}


def tokens(brokers, i):
    return metrics(brokers.socket(i)).get("crowdveil_tokens_total", 0)


def replace(brokers, number):
    """Seconds from the signal to the first token of the next broker."""
    active = brokers.active(every=.005)
    brokers.running[active].signal(number)
    began = time.monotonic()
    while not brokers.is_active(1 - active):
        time.sleep(.005)
    while tokens(brokers, 1 - active) == 0:
        time.sleep(.005)
    took = time.monotonic() - began
    brokers.running[active].signal(signal.SIGCONT)
    brokers.running[active].wait()
    brokers.start(active).wait_for("standing by on")
    return took


def main(rounds):
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        deployment = Deployment(folder, Pki(folder / "ca"), has_clock=False)
        server = postgres.Server().start()
        try:
            server.add_store()
            brokers = Brokers(deployment, server)
            deployment.start_thirdparty()
            brokers.start_all()
            deployment.broker_for = lambda party: ",".join(brokers.addresses)
            (folder / "campaign.yaml").write_text(
                "campaign: test\nitems: {list: [{name: a, mean: 0.5}, {name: b, mean: 0.5001}]}\n"
                "policy: {name: ppar, alpha: 0.00001}\nprivacy: {epsilon: 1}\n")
            with deployment.requester() as requester:
                requester.submit(spec(2, epsilon=1, tokens=100_000_000, tokens_per_worker=1000, policy_params={
                    "alpha": .00001, "delta": .1, "tokens_per_round": 100_000}))
            deployment.start_worker("gateway/1-100000", folder / "campaign.yaml", {"arrival_rate": 0})
            while tokens(brokers, brokers.active()) == 0:
                time.sleep(.05)
            for what, number in SIGNALS.items():
                took = [replace(brokers, number) for _ in range(rounds)]
                print(f"{what}: {statistics.median(took):.2f} s, {min(took):.2f} to {max(took):.2f}, "
                      f"{rounds} times", flush=True)
        finally:
            deployment.close()
            server.close()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
