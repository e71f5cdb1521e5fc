#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Single-token exchanges (assignment, token, durable acknowledgement) a second, through all three parties.

Runs the demo's campaign several times with `settled: pull`, which asks for more tokens, and prints the median rate.
What bounds it: the broker's one loop (decode, two HMACs, encode and TLS take about 1 us a token); the gateways and the
storage thread share the other core.

    tests/bench/exchange.py [RUNS] [BUILD]
"""
import json
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def campaign(folder):
    text = (ROOT / "deploy/campaigns/demo.yaml").read_text()
    text = re.sub(r"settled: \w+", "settled: pull", text)
    text = re.sub(r"tokens: \d+,", "tokens: 1000000,", text)
    path = Path(folder) / "exchange.yaml"
    path.write_text(text)
    return path


def main():
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    build = Path(sys.argv[2] if len(sys.argv) > 2 else ROOT / "build")
    rates = []
    with tempfile.TemporaryDirectory() as folder:
        for run in range(runs):
            command = [build / "deploy/launcher/crowdveil", "up", campaign(folder), "--json", "--seed", "1"]
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True)
            result = json.loads(done.stdout.strip().split("\n")[-1])
            rates.append(result["tokens_per_second"])
            print(f"run {run + 1}: {result['tokens']} tokens in {result['seconds']:.2f} s, {rates[-1]:.0f} a second",
                  flush=True)
    print(f"median of {runs}: {statistics.median(rates):.0f} tokens a second")


if __name__ == "__main__":
    main()
