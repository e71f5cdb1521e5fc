#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""
Single durable tokens a second with the broker's state in a file and on a PostgreSQL server of this script's own, on
this machine. Each run gives all tokens of a campaign through two gateways; the two stores take turns.

usage: tests/bench/stores.py [RUNS] [TOKENS]

Prints medians of tokens a second, of the broker's processor time a token (with PostgreSQL the server's is not in it),
and of its largest memory.
"""
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/e2e"), str(ROOT / "tests"), str(ROOT / "python")]

from client.requester import spec  # noqa: E402
from harness.campaign import GATEWAYS  # noqa: E402
from harness.deployment import Deployment  # noqa: E402
from harness.pki import Pki  # noqa: E402
from harness.shared import Brokers, postgres  # noqa: E402


def used(pid):
    """(seconds of processor time, largest memory in MiB) of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1].split()
    peak = next(line for line in Path(f"/proc/{pid}/status").read_text().split("\n") if line.startswith("VmHWM"))
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"), int(peak.split()[1]) / 1024


def measure(deployment, broker, tokens):
    (deployment.folder / "campaign.yaml").write_text(
        "campaign: test\nitems: {list: [{name: a, mean: 0.5}, {name: b, mean: 0.5001}]}\n"
        "policy: {name: ppar, alpha: 0.00001}\nprivacy: {epsilon: 1}\n")
    for identity in GATEWAYS:
        deployment.start_worker(identity, deployment.folder / "campaign.yaml",
                                {"arrival_rate": 0, "exit_when_done": False})
    before, began = used(broker.pid)[0], time.monotonic()
    with deployment.requester() as requester:
        campaign = requester.submit(spec(2, epsilon=1, tokens=tokens, tokens_per_worker=1000, policy_params={
            "alpha": .00001, "delta": .1, "tokens_per_round": 20_000})).campaign
        requester.watch(campaign)
    took = time.monotonic() - began
    seconds, peak = used(broker.pid)
    return tokens / took, 1e6 * (seconds - before) / tokens, peak


def in_file(folder, pki, tokens):
    deployment = Deployment(folder, pki)
    try:
        return measure(deployment.up(), deployment.broker, tokens)
    finally:
        deployment.close()


def on_server(folder, pki, tokens):
    deployment, server = Deployment(folder, pki), postgres.Server().start()
    try:
        server.add_store()
        brokers = Brokers(deployment, server, 1)
        deployment.start_thirdparty()
        brokers.start_all()
        deployment.broker = brokers.running[0]
        return measure(deployment, deployment.broker, tokens)
    finally:
        deployment.close()
        server.close()


def main(runs, tokens):
    figures = {in_file: [], on_server: []}
    with tempfile.TemporaryDirectory() as folder:
        pki = Pki(Path(folder) / "ca")
        for run in range(runs):
            for store in figures if run % 2 == 0 else reversed(figures):
                own = Path(folder) / f"{run}-{store.__name__}"
                own.mkdir()
                figures[store].append(store(own, pki, tokens))
                print(f"run {run + 1}, {store.__name__}: {figures[store][-1][0]:.0f} tokens a second", flush=True)
    for store, rows in figures.items():
        rate, processor, peak = (statistics.median(column) for column in zip(*rows))
        print(f"median of {runs}, {store.__name__}: {rate:.0f} tokens a second, {processor:.2f} us of the broker's "
              f"processor time a token, {peak:.0f} MiB")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5, int(sys.argv[2]) if len(sys.argv) > 2 else 1_000_000)
