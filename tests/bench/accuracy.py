#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Accuracy of the deployed ranking on seeded instances of the demo's campaign.

First instances in which no arm is closer than 0.02 to a class boundary: all arms must be ranked right. Then instances
with a closer arm: they may end at the token limit, and the classes that they settle must be right.

    tests/bench/accuracy.py [INSTANCES] [BUILD]
"""
import statistics
import subprocess

from campaigns import arguments, example, up


def wrong_items(result):
    """Items that were put into a wrong class."""
    truth = {item: i for i, group in enumerate(result["truth"]) for item in group}
    return [item for i, group in enumerate(result["classes"]) for item in group if truth[item] != i]


def main():
    count, build = arguments(20)
    listed = subprocess.run([build / "tests/bench/bench-instances", str(count), "0.02"], stdout=subprocess.PIPE,
                            text=True, check=True).stdout
    easy = dict(line.split() for line in listed.strip().split("\n"))
    accuracies = []
    for seed, gap in easy.items():
        result = up(build, example("demo.yaml"), seed)
        accuracies.append(result["accuracy"])
        print(f"seed {seed}: closest arm {gap}, accuracy {result['accuracy']:.4f}, {result['tokens']} tokens, "
              f"{result['seconds']:.1f} s, undecided {result['undecided']}, wrong {wrong_items(result)}", flush=True)
    print(f"{len(accuracies)} instances, no arm closer than 0.02: mean accuracy {statistics.mean(accuracies):.4f}, "
          f"smallest {min(accuracies):.4f}")
    hard = [str(seed) for seed in range(1, max(map(int, easy)) + 1) if str(seed) not in easy][:5]
    for seed in hard:
        result = up(build, example("demo.yaml"), seed)
        print(f"seed {seed}: an arm closer than 0.02, accuracy {result['accuracy']:.4f}, {result['tokens']} tokens, "
              f"undecided {result['undecided']}, wrong {wrong_items(result)}", flush=True)


if __name__ == "__main__":
    main()
