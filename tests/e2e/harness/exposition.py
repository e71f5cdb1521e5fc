# SPDX-License-Identifier: Apache-2.0
"""A strict reader of the Prometheus text format 0.0.4 that also applies the rules of `promtool check metrics`: what a
scraper forgives (a family in two places, a counter without _total, a unit that is not a base unit) fails here."""
import math
import re

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(,|$)')
SAMPLE = re.compile(rf"({NAME})(?:\{{(.+)\}})? (\S+)")
NUMBER = re.compile(r"[+-]?Inf|NaN|[+-]?[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?")
TYPES = ("counter", "gauge", "histogram")
PARTS = {"histogram": ("_bucket", "_sum", "_count")}
NO_BASE_UNITS = ("milliseconds", "ms", "microseconds", "minutes", "hours", "days", "kilobytes", "kb", "mb", "kib",
                 "mib", "megabytes", "percent")


class Family:
    def __init__(self, name):
        self.name, self.help, self.type, self.samples = name, None, None, {}

    def owns(self, name):
        return name in [self.name + part for part in PARTS.get(self.type, ("",))]


def labels_of(text):
    """The labels as a tuple of pairs, in the order of the line."""
    out, at = [], 0
    while at < len(text):
        match = LABEL.match(text, at)
        assert match, f"labels: {text}"
        out.append((match[1], match[2]))
        at = match.end()
        assert at < len(text) or match[3] == "", f"a comma at the end: {text}"
    assert len({name for name, _ in out}) == len(out), f"a label twice: {text}"
    return tuple(out)


def read(text):
    """{name: Family}; an AssertionError names the line that breaks a rule."""
    assert text.endswith("\n") and "\r" not in text and "\n\n" not in text
    families, current = {}, None
    for line in text.splitlines():
        about = re.fullmatch(rf"# (HELP|TYPE) ({NAME}) (.+)", line)
        if about:
            kind, name, rest = about.groups()
            if kind == "HELP":
                assert name not in families, f"in two places: {line}"
                current = families[name] = Family(name)
                current.help = rest
            else:
                assert current and name == current.name and current.type is None and not current.samples, line
                assert rest in TYPES, line
                current.type = rest
            continue
        sample = SAMPLE.fullmatch(line)
        assert sample and NUMBER.fullmatch(sample[3]), f"not a sample: {line}"
        assert current and current.type and current.owns(sample[1]), f"outside of its family: {line}"
        key = (sample[1], labels_of(sample[2] or ""))
        assert key not in current.samples, f"twice: {line}"
        current.samples[key] = float(sample[3])
    for family in families.values():
        check(family)
    return families


def check(family):
    name = family.name
    assert family.type, f"{name}: no TYPE"
    assert (family.type == "counter") == name.endswith("_total"), f"{name}: only counters end in _total"
    assert not name.endswith(("_count", "_sum", "_bucket")), name
    assert family.help[0].isupper() or family.help[0].isdigit(), f"{name}: {family.help}"
    assert not set(name.split("_")) & set(NO_BASE_UNITS), f"{name}: expected seconds, bytes or a ratio"
    assert name.islower() and ":" not in name, name
    if family.type == "counter":
        assert all(value >= 0 for value in family.samples.values()), name
    if family.type == "histogram":
        check_histogram(family)


def check_histogram(family):
    buckets = [(dict(labels)["le"], value) for (name, labels), value in family.samples.items()
               if name.endswith("_bucket")]
    bounds, counts = [float(le) for le, _ in buckets], [count for _, count in buckets]
    assert bounds == sorted(set(bounds)) and bounds[-1] == math.inf, f"{family.name}: {bounds}"
    assert counts == sorted(counts), f"{family.name}: {counts}"
    assert family.samples[(f"{family.name}_count", ())] == counts[-1], family.name
    assert family.samples[(f"{family.name}_sum", ())] >= 0, family.name


def names(families):
    """Every name that an expression can use."""
    return {name + part for name, family in families.items() for part in PARTS.get(family.type, ("",))}
