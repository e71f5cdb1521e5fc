#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Single-token exchanges (assignment, token, durable acknowledgement) a second, with all three parties.

Runs the demo's campaign several times with `settled: pull`, which asks for more tokens, and prints the median rate.
The limit is the broker's one loop (decode, two HMACs, encode and TLS take about 1 us a token); the gateways and
the storage thread share the other core.

    tests/bench/exchange.py [RUNS] [BUILD]
"""
import statistics
import tempfile

from campaigns import arguments, changed, up


def main():
    runs, build = arguments(5)
    rates = []
    with tempfile.TemporaryDirectory() as folder:
        path = changed("demo.yaml", folder, {r"settled: \w+": "settled: pull", r"tokens: \d+,": "tokens: 1000000,"})
        for run in range(runs):
            result = up(build, path)
            rates.append(result["tokens_per_second"])
            print(f"run {run + 1}: {result['tokens']} tokens in {result['seconds']:.2f} s, {rates[-1]:.0f} a second",
                  flush=True)
    print(f"median of {runs}: {statistics.median(rates):.0f} tokens a second")


if __name__ == "__main__":
    main()
