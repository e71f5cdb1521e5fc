#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Cost of hostile peers to the others. For each attack: the honest gateway's rate against its rate just before, the
time that a requester waits for the answer to `status`, how many newcomers at 100 ms from the broker are connected at
their first try from another address than the attack's and from the same one, and the broker's memory.

Attackers run at full speed, but with the lowest priority: on one machine their own CPU use would slow down the others.

    tests/bench/hostile.py [--pace TOKENS] [--seconds N] [--broker PROGRAM] [ATTACK...]
"""
import argparse
import statistics
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/e2e"))

import test_hostile as hostile  # noqa: E402
from client.requester import Requester  # noqa: E402
from client.wire import slow_connection  # noqa: E402
from crowdveil.wire import context  # noqa: E402
from harness import daemon  # noqa: E402
from harness.pki import Pki  # noqa: E402

# name: certificates
ATTACKS = {"silent": 0, "loris": 0, "plain_text": 0, "hellos": 0, "reconnect": 1, "resume": 1, "wide": 1, "worn_out": 1,
           "same_again": 1, "tiny_arrives": 1, "arrivals": 6, "forged_tokens": 6, "garbage": 6, "deaf": 6, "idle": 6,
           "tiny_records": 1, "slow_frames": 6, "status": "requester", "watch": "requester"}
NEWCOMERS = 10
WORN_OUT_S = 120  # until the attack's worker has given all its tokens


class Asker:
    """Asks for the status a hundred times a second and keeps each answer's time, in ms."""

    def __init__(self, stage):
        self.requester = Requester(stage.broker.address, stage.pki.issue("requester/bob"), timeout=60)
        self.took, self.over = [], False
        self.thread = threading.Thread(target=self.ask, daemon=True)
        self.thread.start()

    def ask(self):
        while not self.over:
            start = time.monotonic()
            self.requester.status()
            self.took.append((time.monotonic() - start) * 1e3)
            time.sleep(.01)

    def take(self):
        took, self.took = self.took, []
        return took or [float("inf")]

    def close(self):
        self.over = True
        self.thread.join()
        self.requester.close()


def rate_over(stage, seconds):
    before, start = stage.tokens(), time.monotonic()
    time.sleep(seconds)
    return (stage.tokens() - before) / (time.monotonic() - start)


def let_in(stage, source):
    """The number of newcomers that were connected at their first try."""
    tls = context(*hostile.newcomer(stage))

    def call(_):
        try:
            slow_connection(stage.broker.address, tls, .1, source)[0].close()
        except OSError:
            return 0
        return 1
    with ThreadPoolExecutor(NEWCOMERS) as pool:
        return sum(pool.map(call, range(NEWCOMERS)))


def certificates(stage, name):
    if name in ("wide", "worn_out"):
        first = (1 << 40) + len(name) * (1 << 42)
        return [stage.pki.issue(f"gateway/{first}-{first + (1 << 41)}")]
    if ATTACKS[name] == "requester":
        return [stage.pki.issue("requester/mallory")]
    return stage.crowd[:ATTACKS[name]]


def measure(stage, asker, name, seconds):
    alone = rate_over(stage, seconds)
    quiet = asker.take()
    with stage.attack(name, certificates(stage, name)) as attack:
        if name == "worn_out":
            patience = threading.Timer(WORN_OUT_S, attack.process.kill)
            patience.start()
            attack.process.stdout.readline()
            patience.cancel()
        asker.take()
        rate = rate_over(stage, seconds)
        took = asker.take()
        far, near = let_in(stage, "127.0.0.2"), let_in(stage, "127.0.0.1")
    memory = hostile.status_bytes(stage.broker.pid, "VmHWM") / hostile.MIB
    print(f"{name:14} {alone:7.0f} {rate:7.0f} {rate / alone:5.2f} {statistics.median(quiet):7.1f} {max(quiet):7.1f} "
          f"{statistics.median(took):7.1f} {max(took):7.1f} {far:4}/{NEWCOMERS} {near:4}/{NEWCOMERS} {memory:6.0f}",
          flush=True)


def act(names, options, pace, limits=None, **campaign):
    if not names:
        return
    with tempfile.TemporaryDirectory() as folder:
        stage = hostile.Stage(Path(folder), Pki(Path(folder) / "ca"), pace, limits,
                              policy_params={"alpha": 0, "tokens_per_round": 2000}, **campaign)
        asker = Asker(stage)
        try:
            for name in names:
                measure(stage, asker, name, options.seconds)
        finally:
            asker.close()
            stage.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pace", type=int, default=2000, help="tokens a second that the honest gateway gives")
    parser.add_argument("--seconds", type=float, default=4, help="how long each rate is measured")
    parser.add_argument("--broker", help="program to measure instead of the build's broker")
    parser.add_argument("attacks", nargs="*", metavar="ATTACK", help=", ".join(ATTACKS))
    options = parser.parse_args()
    for name in options.attacks:
        if name not in ATTACKS:
            parser.error(f'unknown attack "{name}"; expected {", ".join(ATTACKS)}')
    if options.broker:
        daemon.PROGRAMS["broker"] = options.broker
    names = options.attacks or list(ATTACKS)
    print("attack           alone   under ratio   status, ms, alone    under attack   newcomers      peak\n"
          "              tokens/s tokens/s        median   worst  median   worst elsewhere  here   MiB", flush=True)
    act([name for name in names if name != "worn_out"], options, options.pace)
    # each worker may give thousands: 8 KiB in the broker's table
    act([name for name in names if name == "worn_out"], options, options.pace // 10, {"chunks": 1000000}, epsilon=1e-5,
        tokens_per_worker=65535)


if __name__ == "__main__":
    main()
