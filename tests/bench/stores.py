#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""
Single durable tokens a second with the broker's state in a file and on a PostgreSQL server of this script's own, on
this machine. Each run gives all tokens of a campaign through two gateways; the two stores take turns.

usage: tests/bench/stores.py [RUNS] [TOKENS] [BROKER]

Prints medians of tokens a second, of the broker's processor time a token (with PostgreSQL the server's is not in it),
and of its largest memory. With BROKER, the path of another build's crowdveil-broker, that one takes turns with this
build's, both with a file, and the medians of the runs' ratios (this one's to the other's) follow, with their quartiles:
a difference inside of these is noise.
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
from harness.daemon import PROGRAMS  # noqa: E402
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


def in_file(folder, pki, tokens, program="broker"):
    deployment = Deployment(folder, pki, has_clock=False)
    deployment.programs["broker"] = program
    try:
        return measure(deployment.up(), deployment.broker, tokens)
    finally:
        deployment.close()


def of_other_build(folder, pki, tokens):
    return in_file(folder, pki, tokens, "broker-other")


def on_server(folder, pki, tokens):
    deployment, server = Deployment(folder, pki, has_clock=False), postgres.Server().start()
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


def compare(figures):
    """The runs' ratios, which a change of the machine's load between the runs alters little."""
    columns = zip(*(zip(*figures[store]) for store in (in_file, of_other_build)))
    for what, (own, other) in zip(("tokens a second", "processor time a token"), columns):
        low, median, high = statistics.quantiles([one / two for one, two in zip(own, other)], n=4)
        print(f"{median:.3f} of its {what}, quartiles {low:.3f} and {high:.3f}")


def main(runs, tokens, other=None):
    figures = {in_file: [], on_server if other is None else of_other_build: []}
    PROGRAMS["broker-other"] = other
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
    if other is not None:
        compare(figures)


if __name__ == "__main__":
    main(*(kind(given) if given else default for kind, given, default in zip(
        (int, int, str), [*sys.argv[1:4], "", "", ""], (5, 1_000_000, None))))
