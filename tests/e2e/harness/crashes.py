# SPDX-License-Identifier: Apache-2.0
"""Sums over a session for the tests of faults: how often a party died, and how many values were wrong."""
from collections import Counter

died = Counter()      # by party: kill -9 in the middle of a campaign
compared = Counter()  # tokens and releases that were compared with their expected values
wrong = Counter()     # of them: lost, twice, redrawn


def killed(party):
    died[party] += 1


def compare_sums(acknowledged, released):
    """Both map an arm to (tokens, exact sum): of the tokens acknowledged to workers, and as released."""
    for arm, (tokens, total) in acknowledged.items():
        compared["tokens"] += tokens
        found, found_total = released.get(arm, (0, 0))
        one_for_another = found == tokens and found_total != total
        wrong["lost"] += max(0, tokens - found) + one_for_another
        wrong["twice"] += max(0, found - tokens) + one_for_another


def compare_releases(expected, releases):
    """Each maps (plan, arm) to (tokens, noisy sum), of a run without faults and of one with them."""
    compared["releases"] += len(expected)
    wrong["redrawn"] += sum(1 for key, value in expected.items() if releases.get(key) != value)


def line():
    """One line for people, or None if no test of this session killed a party."""
    if not died:
        return None
    parties = ", ".join(f"{name} {count}" for name, count in sorted(died.items()))
    return (f"crashes survived: {sum(died.values())} ({parties}); of {compared['tokens']} acknowledged tokens "
            f"{wrong['lost']} lost, {wrong['twice']} counted twice; of {compared['releases']} releases "
            f"{wrong['redrawn']} redrawn")
