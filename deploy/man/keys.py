#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the reference of campaign files from what `crowdveil check --keys --json` says.

    keys.py OUT PROGRAM SEE_ALSO...    OUT is a page in Markdown (campaign.md) or a manual page (crowdveil-campaign.5)
"""
import json
import subprocess
import sys
from pathlib import Path

from roff import plain, see_also, tagged

GROUPS = (("policies", "policy", "Policies", "Under `policy`: a name, or a mapping with `name` and these keys."),
          ("mechanisms", "mechanism", "Mechanisms",
           "Under `privacy.mechanism`: a name, or a mapping with `name` and these keys."),
          ("privatizers", "privatizer", "Privatizers",
           "Under `privacy.privatizer`: a name, or a mapping with `name` and these keys; a list gives each item its "
           "own value."))
# Put together here, so that no tool takes it for the licence of this file.
LICENCE = "<!-- SPDX-License-" + "Identifier: Apache-2.0 -->\n"
MADE = "<!-- Made by deploy/man/keys.py from the tables that check a campaign file: change those. -->\n"
ABOUT = "Every key of a campaign file, with the values that it accepts, its default and an example."


def accepted(key):
    """What a key accepts, in one phrase."""
    words = key["expected"]
    if key["required"]:
        words += "; required"
    return words if key["default"] is None else f"{words}; default {key['default']}"


def title(section):
    """A section's heading: its place in the file, and which of its forms."""
    name = f"`{section['name']}`" if section["name"] else "The file"
    return f"{name}: {section['form']}" if section.get("form") else name


def cell(text):
    return text.replace("|", "\\|")


def table(keys):
    """A Markdown table of keys."""
    rows = ["| key | accepts | what it is for | example |", "| --- | --- | --- | --- |"]
    for key in keys:
        example = f"`{cell(key['example'])}`" if key["example"] else ""
        rows.append(f"| `{key['key']}` | {cell(accepted(key))} | {cell(key['help'])} | {example} |")
    return "\n".join(rows) + "\n"


def markdown(reference):
    """The whole page in Markdown."""
    parts = [LICENCE + MADE + "# Keys of a campaign file\n\n" + ABOUT +
             " `crowdveil check FILE` checks a file, `crowdveil check --keys` prints this list;\n"
             "[campaigns.md](campaigns.md) explains how the parts work together.\n"]
    for section in reference["sections"]:
        parts.append(f"\n## {title(section)}\n\n{section['about']}\n\n{table(section['keys'])}")
    for group, _, heading, about in GROUPS:
        parts.append(f"\n## {heading}\n\n{about}\n")
        for algorithm in reference[group]:
            keys = "\n" + table(algorithm["keys"]) if algorithm["keys"] else "\nIt has no keys.\n"
            about = algorithm["about"]
            parts.append(f"\n### `{algorithm['name']}`\n\n{about[0].upper()}{about[1:]}.\n{keys}")
    return "".join(parts)


def tags(keys):
    return tagged((key["key"], f"{accepted(key)}. {key['help'][0].upper()}{key['help'][1:]}." +
                   (f" Example: {key['example']}" if key["example"] else "")) for key in keys)


def manual(reference, others):
    """The whole manual page."""
    parts = [".TH CROWDVEIL\\-CAMPAIGN 5 \"\" crowdveil \"Crowdveil\"\n",
             ".SH NAME\ncrowdveil\\-campaign \\- keys of a campaign file\n",
             f".SH DESCRIPTION\n{plain(ABOUT)}\n.B crowdveil check FILE\nchecks a file.\n"]
    for section in reference["sections"]:
        parts.append(f".SH {plain(title(section).replace('`', '').upper())}\n{plain(section['about'])}\n" +
                     tags(section["keys"]))
    for group, word, heading, about in GROUPS:
        parts.append(f".SH {heading.upper()}\n{plain(about.replace('`', ''))}\n")
        for algorithm in reference[group]:
            head = f".SS {word} {plain(algorithm['name'])}\n{plain(algorithm['about'])}.\n"
            parts.append(head + tags(algorithm["keys"]))
    return "".join(parts) + see_also(others)


def main():
    out, program, *others = sys.argv[1:]
    told = subprocess.run([program, "check", "--keys", "--json"], stdout=subprocess.PIPE, check=True).stdout
    reference = json.loads(told)
    mute = [f"{section['name']}.{key['key']}" for group in reference.values() for section in group
            for key in section["keys"] if not key["help"]]
    mute += [f"{section['name']}" for group in reference.values() for section in group if not section["about"]]
    if mute:
        sys.exit(f"{', '.join(mute)}: no help (of a key) or about (of an algorithm) in the table; expected what it is "
                 "for")
    Path(out).write_text(markdown(reference) if out.endswith(".md") else manual(reference, others))


if __name__ == "__main__":
    main()
