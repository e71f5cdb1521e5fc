#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The default campaign in each mode of docs/trust.md: tokens to a correct ranking, seconds, bytes that workers send.

All parties run as daemons. One broker and two rank the demo's items in pairs, with the same items and scores and noise
of their own. Randomized response at the same epsilon takes tens of millions of tokens: its daemons stop at a token
limit, which gives their rate and bytes, and the laboratory says how many tokens it takes. Its seconds are these tokens
at this rate. The laboratory simulates all modes, with the same scores in each replicate.

    tests/bench/modes.py [PAIRS] [BUILD]
"""
import json
import os
import re
import signal
import sqlite3
import statistics
import subprocess
import tempfile
from pathlib import Path

from campaigns import ROOT, arguments, changed, example

PRESET = ROOT / "lab/experiment/presets/beyond-brokers.yaml"  # has the means that the demo draws
REPLICATES = 200
LIMIT = 400000
RESPONSE = "privatizer: {name: randomized-response, epsilon: 0.25}"
MODES = {"one broker": "mechanism: hybrid, epsilon: 0.25",
         "two brokers": "mechanism: hybrid, epsilon: 0.25, brokers: 2",
         "randomized response": f"mechanism: none, {RESPONSE}",
         "the same, two brokers": f"mechanism: hybrid, epsilon: 0.25, brokers: 2, {RESPONSE}"}
BASE, TWO, *LOCAL = MODES


def bytes_written(pid):
    """By all workers that the launcher runs: to their connections, but for some lines of log."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    workers = [child for child in children if Path(f"/proc/{child}/comm").read_text().startswith("crowdveil-worke")]
    counts = [dict(line.split(": ") for line in Path(f"/proc/{child}/io").read_text().splitlines())
              for child in workers]
    return sum(int(count["wchar"]) for count in counts)


def deploy(build, path):
    """The result of a campaign, with the bytes that its workers sent."""
    command = [build / "deploy/launcher/crowdveil", "up", path, "--json", "--keep"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        said, sent = [], 0
        for line in process.stderr:
            said.append(line)
            if line.startswith("Still running"):
                sent = bytes_written(process.pid)
                process.send_signal(signal.SIGINT)
                break
        printed, rest = process.communicate()
    if not printed:
        raise SystemExit("modes.py: crowdveil up failed: " + "".join(said) + rest)
    return {**json.loads(printed), "sent": sent}


def is_correct(result):
    truth = [set(group) for group in result["truth"]]
    return not result["undecided"] and [set(group) for group in result["classes"]] == truth


def campaign_of(mode, folder, tokens=None):
    limit = {} if tokens is None else {r"tokens: \d+,": f"tokens: {tokens},"}
    return changed("demo.yaml", folder, {r"(?m)^privacy: .*$": f"privacy: {{{MODES[mode]}, tokens_per_worker: 1}}",
                                         **limit})


def run(build, mode, folder, tokens=None):
    result = deploy(build, campaign_of(mode, folder, tokens))
    outcome = "stopped" if tokens else "correct" if is_correct(result) else "WRONG OR UNDECIDED"
    print(f"  {mode}: {result['tokens']} tokens, {outcome}, {result['seconds']:.1f} s, "
          f"{result['sent'] / result['tokens']:.0f} bytes a token", flush=True)
    return result


def simulated(build, folder):
    """{mode: tokens of each replicate}, and how many of all rankings were not correct."""
    series = "".join(f'    - {{name: "{mode}", privacy: {{{privacy}}}, limits.tokens: 1000000000}}\n'
                     for mode, privacy in MODES.items())
    path = folder / "modes.yaml"
    items = re.search(r"(?ms)^items:.*?(?=^policy:)", PRESET.read_text())[0]
    campaign = re.sub(r"(?ms)^items:.*?(?=^policy:)", items, example("demo.yaml").read_text())
    path.write_text(f"{campaign}experiment:\n  about: modes\n  replicates: 1\n  statistic: median\n"
                    f"  series:\n{series}  metrics: [pulls, misplaced, undecided]\n")
    subprocess.run([build / "lab/crowdveil-lab", "run", path, "--replicates", str(REPLICATES), "--out",
                    folder / "out"], check=True, stdout=subprocess.DEVNULL)
    [file] = (folder / "out").glob("*.db")
    with sqlite3.connect(file) as rows:
        tokens = {mode: [value for value, in rows.execute(
            "SELECT value FROM result WHERE series = ? AND metric = 'pulls' ORDER BY replicate", (mode,))]
                  for mode in MODES}
        [(wrong,)] = rows.execute("SELECT count(DISTINCT series || '/' || replicate) FROM result "
                                  "WHERE metric <> 'pulls' AND value > 0")
    return tokens, wrong


def spread(values, digits=2):
    low, high = min(values), max(values)
    return f"{statistics.median(values):.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"


def ratios(values, base):
    return [value / other for value, other in zip(values, base)]


def compare(name, figures, digits=2):
    """A line of one figure of the pairs: one broker's median, two brokers' median, the ratio within pairs."""
    one, two = figures
    print(f"{name}: {statistics.median(one):.{digits}f} with one broker, {statistics.median(two):.{digits}f} with two; "
          f"ratio of pairs {spread(ratios(two, one))}")


def main():
    pairs, build = arguments(5)
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        runs = {mode: [] for mode in MODES}
        for pair in range(pairs):
            print(f"pair {pair + 1}")
            for mode in (BASE, TWO) if pair % 2 == 0 else (TWO, BASE):  # neither is always the first
                runs[mode].append(run(build, mode, folder))
        print(f"up to {LIMIT} tokens")
        for mode in LOCAL:
            runs[mode].append(run(build, mode, folder, LIMIT))
        tokens, wrong = simulated(build, folder)
    print(f"\nmedians and ratios of {pairs} pairs (range), cores: {len(os.sched_getaffinity(0))}")
    for name, figure, digits in (("tokens", lambda result: result["tokens"], 0),
                                 ("seconds", lambda result: result["seconds"], 1),
                                 ("bytes a token", lambda result: result["sent"] / result["tokens"], 0),
                                 ("MB in all", lambda result: result["sent"] / 1e6, 1)):
        compare(name, [[figure(result) for result in runs[mode]] for mode in (BASE, TWO)], digits)
    correct = sum(is_correct(result) for mode in (BASE, TWO) for result in runs[mode])
    print(f"correct rankings: {correct} of {2 * pairs}")
    print(f"\n{REPLICATES} replicates in the laboratory, {wrong} of {REPLICATES * len(MODES)} rankings not correct:")
    for mode in MODES:
        print(f"{mode}: {statistics.median(tokens[mode]):.0f} tokens, "
              f"ratio {spread(ratios(tokens[mode], tokens[BASE]))} to {BASE}")
    for mode in LOCAL:
        [result] = runs[mode]
        needed = statistics.median(tokens[mode])
        print(f"{mode}: {result['sent'] / result['tokens']:.0f} bytes a token; with these tokens, at the rate of its "
              f"daemons, {needed / result['tokens_per_second']:.0f} s and "
              f"{needed * result['sent'] / result['tokens'] / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
