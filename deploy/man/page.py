#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a program's manual page from its --help and that of each of its commands.

    page.py OUT PROGRAM SEE_ALSO...    OUT is NAME.SECTION
"""
import sys
from pathlib import Path

from roff import plain, see_also, tagged
from told import told

STATUSES = (
    ("0", "Success."),
    ("1", "A failure, or problems were found; one line on standard error says which."),
    ("2", "A wrong argument, option or configuration; one line on standard error says which, and what was expected."),
)


def main():
    out, program, *others = sys.argv[1:]
    name, section = Path(out).name.split(".")
    usage, about, rows = told(program)
    has_commands = not rows[0][0].startswith("-")
    page = [f".TH {plain(name.upper())} {section} \"\" crowdveil \"Crowdveil\"\n",
            f".SH NAME\n{plain(name)} \\- {plain(about[0].rstrip('.'))}\n", f".SH SYNOPSIS\n.B {plain(usage)}\n",
            ".SH DESCRIPTION\n" + "".join(plain(line) + "\n" for line in about),
            f".SH {'COMMANDS' if has_commands else 'OPTIONS'}\n" + tagged(rows)]
    for command, _ in rows if has_commands else ():
        usage, about, options = told(program, command)
        page.append(f".SS {plain(usage)}\n" + "".join(plain(line) + "\n" for line in about) + tagged(options))
    page.append(".SH EXIT STATUS\n" + tagged(STATUSES))
    page.append(see_also(other for other in others if other != f"{name}.{section}"))
    Path(out).write_text("".join(page))


if __name__ == "__main__":
    main()
