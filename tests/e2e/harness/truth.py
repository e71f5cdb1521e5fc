# SPDX-License-Identifier: Apache-2.0
"""The true ranking, computed independently of the programs."""
import csv
from collections import defaultdict


def csv_means(path, item, score, low, high):
    """([names], [means]) in the order of the arms: by number, since the names are numbers."""
    scores = defaultdict(list)
    with open(path, newline="") as file:
        for row in csv.DictReader(file):
            scores[row[item]].append((float(row[score]) - low) / (high - low))
    names = sorted(scores, key=float)
    return names, [sum(scores[name]) / len(scores[name]) for name in names]


def true_classes(means, alpha):
    """[{arms}], best first: repeatedly the best unranked arm and all within alpha of it."""
    left, out = set(range(len(means))), []
    while left:
        best = max(means[arm] for arm in left)
        out.append({arm for arm in left if means[arm] >= best - alpha})
        left -= out[-1]
    return out
