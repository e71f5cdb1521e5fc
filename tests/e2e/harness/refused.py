# SPDX-License-Identifier: Apache-2.0
"""Input that the daemons of this session refused, by reason, from their own metrics."""
import re
from collections import Counter

from harness.admin import get

refused = Counter()


def take(path):
    """Adds the counters of the daemon behind this socket; nothing if it does not answer."""
    try:
        _, text = get(path, "/metrics", timeout=1)
    except OSError:
        return
    for reason, count in re.findall(r'^crowdveil_refused_total\{reason="(\w+)"\} (\d+)', text, re.M):
        refused[reason] += int(count)


def line():
    """One line for people, or None."""
    if not refused.total():
        return None
    return (f"refused inputs {refused.total()} (" +
            ", ".join(f"{reason} {count}" for reason, count in refused.most_common() if count) + ")")
