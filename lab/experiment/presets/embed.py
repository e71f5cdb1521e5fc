#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""embed.py OUT FILE...: the experiments as a C table, in the order given, so that the program needs no files."""
import sys
from pathlib import Path


def literal(text):
    lines = []
    for line in text.splitlines():
        quoted = line.replace("\\", "\\\\").replace('"', '\\"').replace("?", "\\?")
        lines.append(f'    "{quoted}\\n"')
    return "\n".join(lines)


out, *files = sys.argv[1:]
rows = []
for file in map(Path, files):
    rows.append(f'  {{"{file.stem}",\n{literal(file.read_text())}}},')
HEAD = """#include "lab/experiment/preset.h"

#pragma GCC diagnostic ignored "-Woverlength-strings"

const struct cv_lab_preset cv_lab_presets[] = {
"""
Path(out).write_text(HEAD + "\n".join(rows) + "\n  {0}\n};\n")
