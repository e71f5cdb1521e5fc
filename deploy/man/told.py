# SPDX-License-Identifier: Apache-2.0
"""What a program says of itself with --help; the manual pages and the shells' completion are made from it."""
import re
import subprocess
import sys


def told(program, *words):
    """Parses a help text: (usage, lines of description, rows of (option or command, text))."""
    text = subprocess.run([program, *words, "--help"], stdout=subprocess.PIPE, text=True, check=True).stdout
    usage, *lines = text.splitlines()
    about, rows = [], []
    for line in lines:
        row = re.fullmatch(r"  (-[hV], --\S+|-\S+(?: [A-Z]+)?|[a-z]\S*) +(\S.*)", line)
        further = re.fullmatch(r" {31}(\S.*)", line)
        if row:
            rows.append(row.groups())
        elif further:
            rows[-1] = (rows[-1][0], f"{rows[-1][1]} {further[1]}")
        elif line.startswith("    ") and not about:
            usage += " " + line.strip()
        elif line:
            about.append(line)
    if not usage.startswith("Usage: ") or not rows:
        sys.exit(f"{program} {' '.join(words)} --help: expected a usage line and rows of options or commands")
    return usage[len("Usage: "):], about, rows
