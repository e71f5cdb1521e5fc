#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Single-token exchanges (assignment, token, durable acknowledgement) a second, with all parties on this machine.

Runs the demo's campaign with `settled: pull`, which asks for more tokens: with one broker, with two, and with two whose
scores are not bits (Prio3Sum instead of Prio3Count). Prints median rates, the CPU time that all processes take for a
token, and the ratio to one broker within each run. The CPU time does not depend on what else the machine does: tokens
a second on N cores are at most N over it. On a shared machine measure on one core that is not shared:

    taskset -c 1 chrt -r 1 tests/bench/exchange.py

With one broker the limit is the broker's one loop (decode, two HMACs, encode and TLS take about 1 us a token); the
gateways and the storage thread share the other core.

    tests/bench/exchange.py [RUNS] [BUILD]
"""
import resource
import statistics
import tempfile

from campaigns import arguments, changed, up

TWO = {r"epsilon: [\d.]+,": r"\g<0> brokers: 2,"}
MODES = {"one broker": {}, "two brokers": TWO, "two brokers, scores": {**TWO, "rewards: bernoulli": "rewards: beta"}}


def processor_seconds():
    """Of all processes that this program has started and that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measure(build, path):
    """(tokens a second, CPU microseconds a token)."""
    before = processor_seconds()
    result = up(build, path)
    return result["tokens_per_second"], 1e6 * (processor_seconds() - before) / result["tokens"]


def main():
    runs, build = arguments(5)
    figures = {mode: [] for mode in MODES}
    with tempfile.TemporaryDirectory() as folder:
        for run in range(runs):
            for mode in MODES if run % 2 == 0 else reversed(MODES):  # none is always the first
                path = changed("demo.yaml", folder, {r"settled: \w+": "settled: pull", r"tokens: \d+,":
                                                     "tokens: 500000,", **MODES[mode]})
                figures[mode].append(measure(build, path))
                print(f"run {run + 1}, {mode}: {figures[mode][-1][0]:.0f} tokens a second, "
                      f"{figures[mode][-1][1]:.1f} us of processor time a token", flush=True)
    for mode in MODES:
        rate, processor = (statistics.median(column) for column in zip(*figures[mode]))
        ratio = statistics.median(own[0] / one[0] for own, one in zip(figures[mode], figures["one broker"]))
        print(f"median of {runs}, {mode}: {rate:.0f} tokens a second, {processor:.1f} us of processor time a token, "
              f"{ratio:.2f} of one broker's rate")


if __name__ == "__main__":
    main()
