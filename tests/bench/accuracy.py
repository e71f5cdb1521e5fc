#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Accuracy of the deployed ranking over seeded instances of the demo's campaign.

First instances in which no arm lies closer than 0.02 to a class boundary: all are to be ranked right. Then instances
with a closer arm: they may end at the token limit, and what they are sure of has to be right.

    tests/bench/accuracy.py [INSTANCES] [BUILD]
"""
import json
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def up(build, seed):
    done = subprocess.run([build / "deploy/launcher/crowdveil", "up", ROOT / "deploy/campaigns/demo.yaml", "--json",
                           "--seed", seed], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True)
    return json.loads(done.stdout.strip().split("\n")[-1])


def wrong_items(result):
    """Items that were given a class that is not theirs."""
    truth = {item: i for i, group in enumerate(result["truth"]) for item in group}
    return [item for i, group in enumerate(result["classes"]) for item in group if truth[item] != i]


def main():
    count = sys.argv[1] if len(sys.argv) > 1 else "20"
    build = Path(sys.argv[2] if len(sys.argv) > 2 else ROOT / "build")
    listed = subprocess.run([build / "tests/bench/bench-instances", count, "0.02"], stdout=subprocess.PIPE, text=True,
                            check=True).stdout
    easy = dict(line.split() for line in listed.strip().split("\n"))
    accuracies = []
    for seed, gap in easy.items():
        result = up(build, seed)
        accuracies.append(result["accuracy"])
        print(f"seed {seed}: closest arm {gap}, accuracy {result['accuracy']:.4f}, {result['tokens']} tokens, "
              f"{result['seconds']:.1f} s, undecided {result['undecided']}, wrong {wrong_items(result)}", flush=True)
    print(f"{len(accuracies)} instances, no arm closer than 0.02: mean accuracy {statistics.mean(accuracies):.4f}, "
          f"smallest {min(accuracies):.4f}")
    hard = [str(seed) for seed in range(1, max(map(int, easy)) + 1) if str(seed) not in easy][:5]
    for seed in hard:
        result = up(build, seed)
        print(f"seed {seed}: an arm closer than 0.02, accuracy {result['accuracy']:.4f}, {result['tokens']} tokens, "
              f"undecided {result['undecided']}, wrong {wrong_items(result)}", flush=True)


if __name__ == "__main__":
    main()
