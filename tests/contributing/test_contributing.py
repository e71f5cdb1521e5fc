# SPDX-License-Identifier: Apache-2.0
"""The tutorials of CONTRIBUTING.md, followed literally in a copy of the tree: each fenced block is carried out as it
is."""
import filecmp
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import suites  # noqa: E402

PAGE = "CONTRIBUTING.md"
SET_UP = "Set-up"
TUTORIALS = ("A policy", "A mechanism", "A privatizer", "A reward model")
# The blocks of a tutorial that write: a file, a row, a line of documentation, and a campaign that uses it.
WRITES = ["c", "row", "line", "yaml"]
COMMAND_TIME = 900


@dataclass
class Block:
    section: str
    line: int  # of its fence
    kind: str
    words: list  # of the info string, after the kind
    text: str

    def fail(self, what):
        pytest.fail(f"{PAGE}:{self.line}: {what}", pytrace=False)


def blocks():
    """Every fenced block of the page, with its section's heading."""
    section, found, block = None, [], None
    for number, line in enumerate((suites.ROOT / PAGE).read_text().split("\n"), 1):
        if line.startswith("```"):
            if block is None:
                kind, *words = line[3:].split() or [""]
                block = Block(section, number, kind, words, "")
            else:
                found.append(block)
                block = None
        elif block is not None:
            block.text += line + "\n"
        elif line.startswith("#"):
            section = line.lstrip("# ")
    assert block is None, f"{PAGE}:{block.line}: a block without an end"
    return found


# --- blocks that write


def new_file(tree, block):
    path = tree / block.words[0]
    if path.exists():
        block.fail(f"{block.words[0]} is there already; expected a new file")
    path.write_text(block.text)


def at_the_end_of_a_list(tree, block):
    header, name = block.words
    lines = (tree / header).read_text().split("\n")
    at = next((i for i, line in enumerate(lines) if line.startswith(f"#define {name}(ROW)")), None)
    if at is None:
        block.fail(f"no list {name} in {header}")
    while lines[at].endswith("\\"):
        at += 1
    lines[at] += " \\"
    lines.insert(at + 1, "  " + block.text.strip())
    (tree / header).write_text("\n".join(lines))


def below_a_line(tree, block):
    page, name = block.words
    lines = (tree / page).read_text().split("\n")
    places = [i for i, line in enumerate(lines) if line.startswith(f"| `{name}` |")]
    if len(places) != 1:
        block.fail(f"{len(places)} lines of `{name}` in the tables of {page}; expected one")
    lines.insert(places[0] + 1, block.text.strip())
    (tree / page).write_text("\n".join(lines))


WRITERS = {"c": new_file, "yaml": new_file, "row": at_the_end_of_a_list, "line": below_a_line}


# --- blocks that run


class Shell:
    """Runs commands at the root of the copy; one that comes again, with nothing written since, is not run again."""

    def __init__(self, tree):
        self.tree, self.said = tree, {}
        self.env = {name: value for name, value in os.environ.items()
                    if not name.startswith(("PYTEST_", "CROWDVEIL_", "MESON", "NINJA"))}
        self.env |= {"CC": suites.cached("gcc"), **suites.COMPILER_CACHE}  # most of it is compiled already

    def follow(self, block):
        command, output = None, ""
        for number, line in enumerate(block.text.rstrip("\n").split("\n"), 1):
            place = Block(block.section, block.line + number, block.kind, [], "")
            if line.startswith("$ "):
                command, output = line[2:], self.run(place, line[2:])
            elif command is None or " ".join(line.split()) not in output.split("\n"):
                place.fail(f"`{command}` did not print \"{line}\"; it printed\n{suites.tail(output, 25)}")

    def run(self, place, command):
        if command not in self.said:
            done = subprocess.run(["bash", "-c", command], cwd=self.tree, env=self.env, text=True, errors="replace",
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  timeout=COMMAND_TIME)
            if done.returncode:
                telling = re.findall(r"^.*(?:error:|FAIL|TIMEOUT|not ok|no `).*$", done.stdout, re.M)
                place.fail(f"`{command}` ended with status {done.returncode}: {' '.join(telling[:1])}\n"
                           + "\n".join(telling[1:10] + ["..."]) + "\n" + suites.tail(done.stdout, 25))
            self.said[command] = "\n".join(" ".join(line.split()) for line in done.stdout.split("\n"))
        return self.said[command]


# --- the tests


@pytest.fixture(scope="module")
def shell(tmp_path_factory):
    """A copy of the tree with the files, rows and lines of all four tutorials, built as the page says."""
    tree = tmp_path_factory.mktemp("tree")
    for path in suites.tracked():
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(suites.ROOT / path, tree / path)
    for block in blocks():
        if block.kind in WRITERS:
            WRITERS[block.kind](tree, block)
    shell = Shell(tree)
    for block in blocks():
        if block.section == SET_UP:
            shell.follow(block)
    return shell


def test_each_block_is_one_that_is_followed():
    for block in blocks():
        if block.section not in (SET_UP, *TUTORIALS) or block.kind not in (*WRITERS, "console"):
            block.fail(f"a block \"{' '.join([block.kind, *block.words])}\" under \"{block.section}\"; expected "
                       f"{', '.join(WRITERS)} or console, under {', '.join((SET_UP, *TUTORIALS))}")


@pytest.mark.parametrize("tutorial", TUTORIALS)
def test_a_tutorial_is_one_file_and_one_row(tutorial):
    """A tutorial also has a line of documentation and a campaign, and commands that build and test it by name."""
    ours = [block for block in blocks() if block.section == tutorial]
    assert [block.kind for block in ours if block.kind != "console"] == WRITES
    commands = "".join(block.text for block in ours if block.kind == "console")
    for needed in ("$ ninja -C build", "crowdveil up ", "$ meson test ", "$ tests/run lint format"):
        assert needed in commands, f"{tutorial}: no command with \"{needed}\""


@pytest.mark.parametrize("tutorial", TUTORIALS)
def test_a_tutorial_works_as_it_stands(shell, tutorial):
    for block in blocks():
        if block.section == tutorial and block.kind == "console":
            shell.follow(block)


def test_nothing_else_was_touched(shell):
    written = {block.words[0] for block in blocks() if block.kind in WRITERS}
    differ = {path for path in suites.tracked() if not filecmp.cmp(suites.ROOT / path, shell.tree / path, False)}
    assert differ <= written, "a command of the tutorials changed what no tutorial names"
