#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Campaigns of many items end to end: seconds, tokens a second, and the most memory that each party had.

    tests/bench/many.py [ITEMS] [BUILD]

Runs `crowdveil up` with ITEMS items (100,000) three times: ppar with ten tokens of each item in a round, ppar-kl with a
tenth of the items in a plan, and ppar on a data file of ten rows an item. Prints a row of docs/operations.md for each.
"""
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PARTIES = (("crowdveil-broke", "broker"), ("crowdveil-third", "third-party"), ("crowdveil-worke", "a gateway"),
           ("crowdveil", "requester"))


def campaigns(items, folder):
    with open(folder / "scores.csv", "w", encoding="ascii") as file:
        file.write("item,score\n")
        file.writelines(f"item {item},{(item * 7 + row) % 11}\n" for row in range(10) for item in range(items))
    drawn = f"items: {{synthetic: {{count: {items}, mean: 0.5, variance: 0.08, seed: 3}}}}\n"
    read = f"items: {{source: csv, path: {folder}/scores.csv, item: item, score: score, scale: [0, 10]}}\n"
    tail = "privacy: {{mechanism: {}, epsilon: 1, tokens_per_worker: 1}}\nlimits: {{tokens: {}, idle: 60s}}\n"
    ppar = "policy: {name: ppar, alpha: 0.2, tokens_per_round: 10}\n"
    kl = f"policy: {{name: ppar-kl, alpha: 0.5, arms_per_plan: {max(1, items // 10)}}}\n"
    yield "ppar", drawn + ppar + tail.format("hybrid", 20 * items)
    yield "ppar-kl", drawn + kl + tail.format("segments", 30 * items).replace("epsilon: 1", "epsilon: 4")
    yield "ppar, data file", read + ppar + tail.format("hybrid", 10 * items)


def peaks(root, found):
    """Notes the most memory of the launcher and of the programs that it runs."""
    children = Path(f"/proc/{root}/task/{root}/children")
    for pid in [root, *map(int, children.read_text().split())]:
        status = dict(line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
        if "VmHWM" in status:
            name = status["Name"].strip()
            found[name] = max(found.get(name, 0), int(status["VmHWM"].split()[0]) // 1024)


def run(build, folder, text):
    (folder / "campaign.yaml").write_text("campaign: many\n" + text, encoding="ascii")
    command = [build / "deploy/launcher/crowdveil", "up", folder / "campaign.yaml", "--json"]
    found = {}
    with open(folder / "result.json", "w+", encoding="utf-8") as result:
        with subprocess.Popen(command, stdout=result, stderr=subprocess.DEVNULL) as process:
            while process.poll() is None:
                try:
                    peaks(process.pid, found)
                except OSError:
                    pass  # a program ended meanwhile
                time.sleep(0.2)
        result.seek(0)
        return json.load(result), found


def main():
    items = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    build = Path(sys.argv[2] if len(sys.argv) > 2 else ROOT / "build").absolute()
    print("| items | policy | seconds | tokens a second | " + " | ".join(name for _, name in PARTIES) + " |")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for policy, text in campaigns(items, folder):
            began = time.monotonic()
            result, found = run(build, folder, text)
            cells = " | ".join(f"{found.get(comm, 0)} MiB" for comm, _ in PARTIES)
            print(f"| {items:,} | {policy} | {result['seconds']:.0f} of {time.monotonic() - began:.0f} | "
                  f"{result['tokens_per_second']:,.0f} | {cells} |", flush=True)


if __name__ == "__main__":
    os.environ.setdefault("TMPDIR", "/tmp")
    main()
