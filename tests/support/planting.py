# SPDX-License-Identifier: Apache-2.0
"""
Faults planted in a scratch copy of the sources. A file of faults names functions and statements, not files and lines:

    in cv_anchor_check                      a function, variable or type, in whichever file defines it
      no-anchor-check: have < want => false
      anchor-late (law, batch):             words for its program; its edits may also follow, and in more functions
        return cv_anchor_write(...); =>     an edit begins at this indentation
          late = mark;                      and goes on at a deeper one
          $0
      anchor-ahead: have `=> + 9` < `want => most`

Left of an arrow is C that stands there once, however it is formatted. `...` is the fewest tokens that fit, with all
brackets closed, and of one statement unless the brackets around it are given. Right of the arrow is what stands there
instead: $0 is the left side, $1 what the first `...` of the edit was. With backticks only what they enclose changes.

If several functions have the name, one of them must have the statement. `in NAME beside OTHER` is that of the file
which defines OTHER. A comment begins with `# `.
"""
import argparse
import functools
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
TOKEN = re.compile(r"""/\*.*?\*/|//[^\n]*|^[ \t]*\#(?:\\\n|[^\n])*"""  # what is between tokens
                   r"""|("(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|\.?\d[\w.]*|\w+|\.\.\.|->|\+\+|--|<<=?|>>=?"""
                   r"""|[-+*/%&|^=!<>]=|&&|\|\||\S)""", re.S | re.M)
PAIRS = {"(": ")", "[": "]", "{": "}"}


class Tokens:
    """The tokens of a C text, where each stands in it, and the index of the bracket that closes each bracket."""

    def __init__(self, text):
        found = [match for match in TOKEN.finditer(text) if match[1]]
        self.text, self.words, self.spans = text, [match[1] for match in found], [match.span() for match in found]
        self.closing, opened = {}, []
        for at, word in enumerate(self.words):
            if word in PAIRS:
                opened.append(at)
            elif word in PAIRS.values() and opened:
                self.closing[opened.pop()] = at

    def between(self, first, end):
        return self.text[self.spans[first][0]:self.spans[end - 1][1]] if first < end else ""

    def next(self, at):
        """What follows the token, or the brackets that it opens."""
        return self.closing.get(at, at) + 1

    def definitions(self, name):
        """(first, end) of each definition of the name at file scope."""
        first = at = 0
        while at < len(self.words):
            is_named = has_value = has_body = is_body = False
            while at < len(self.words) and self.words[at] != ";" and not is_body:
                word = self.words[at]
                is_named |= word == name and not has_value and self.words[at + 1] in "([={"
                is_body = word == "{" and self.words[at - 1] == ")" and not has_value
                has_value |= word == "="
                has_body |= word == "{"
                at = self.next(at)
            at += not is_body
            if is_named and (has_value or has_body):
                yield first, at
            first = at

    def match(self, pattern, at, depth=0):
        """None, or, if the pattern stands at this token, (word, first, end) of each `...`, backtick and the end."""
        if not pattern:
            return [("", at, at)]
        first, rest = pattern[0], pattern[1:]
        if first == "`":
            found = self.match(rest, at, depth)
            return found and [(first, at, at), *found]
        if first != "...":
            depth += (first in PAIRS) - (first in PAIRS.values())
            return self.match(rest, at + 1, depth) if self.words[at:at + 1] == [first] else None
        end = at
        while True:
            found = self.match(rest, end, depth)
            if found:
                return [(first, at, end), *found]
            if end == len(self.words) or self.words[end] in PAIRS.values() or self.words[end] == ";" and depth == 0:
                return None
            end = self.next(end)


@functools.cache
def tokens_of(text):
    return Tokens(text)


def planted(sources, where, edit):
    """(path, text with the edit); sources is {path: text}. LookupError if there is not exactly one place for it."""
    name, _, other = where.partition(" beside ")
    defined = [(path, *span) for path, text in sources.items() if name in text and other in text
               for span in tokens_of(text).definitions(name) if not other or any(tokens_of(text).definitions(other))]
    parts = edit.split("`") if "`" in edit else ["", edit, ""]
    changes = [part.partition("=>")[::2] for part in parts[1::2]]
    parts[1::2] = [old for old, _ in changes]
    pattern = Tokens("`".join(parts)).words
    places = [(path, found) for path, first, end in defined for at in range(first, end)
              for found in [tokens_of(sources[path]).match(pattern, at)] if found]
    if len(places) != 1:
        files = ", ".join(sorted({str(path) for path, *_ in places or defined})) or "no file"
        raise LookupError(f"in {where}: {len(places)} statements with {' '.join(pattern)}; expected one; see {files}")
    path, found = places[0]
    tokens = tokens_of(sources[path])
    text, marks = tokens.text, [at for mark, at, _ in found if mark == "`"]
    dots = [tokens.between(*span) for mark, *span in found if mark == "..."]
    for (_, new), first, end in reversed(list(zip(changes, marks[::2], marks[1::2]))):
        said = [tokens.between(first, end), *dots]
        start = tokens.spans[first][0] if first < end else tokens.spans[first - 1][1]
        new = re.sub(r"\$(\d)", lambda match: said[int(match[1])], new.strip())
        text = f"{text[:start]} {new} {text[tokens.spans[end - 1][1]:]}"
    return path, text


def read(path):
    """{fault: (words, [[where, edit], ...])} of a file of faults."""
    faults, where, edits = {}, "", []
    for number, line in enumerate(path.read_text().split("\n"), 1):
        text = line.strip()
        indent = len(line) - len(text)
        if not text or text.startswith("# "):
            continue
        if indent == 0:
            where = text.removeprefix("in ")
        elif indent == 2:
            heading = re.fullmatch(r"([\w-]+)(?: \((.+)\))?:(.*)", text)
            if heading is None:
                raise SystemExit(f"{path}:{number}: {text}: expected FAULT: or FAULT (WORDS):")
            words, edits = faults.setdefault(heading[1], ([], []))
            words += heading[2].split(", ") if heading[2] else []
            text = heading[3]
        if indent in (2, 4) and text:
            edits.append([where, text])
        elif indent > 4:
            edits[-1][1] += f"\n{line}"
    for name, (_, edits) in faults.items():
        for where, edit in edits:
            if "=>" not in edit:
                raise SystemExit(f"{path}: {name}: {edit}: expected C => C")
    return faults


class Scratch:
    """A copy of the sources with a build folder; a context manager, which removes it at the end."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="cv-planted-")
        self.tree, self.build = Path(self.folder.name) / "tree", Path(self.folder.name) / "build"
        self.sources, self.changed = {}, {}
        compiler = "ccache gcc" if shutil.which("ccache") else "gcc"  # each restored source has been compiled before
        self.environ = {"CC": compiler, "CCACHE_NOHASHDIR": "1", **os.environ}

    def __enter__(self):
        shutil.copytree(ROOT, self.tree, ignore=shutil.ignore_patterns("build*", ".git", "__pycache__"))
        subprocess.run(["meson", "setup", "-Dwerror=false", "-Dbuildtype=debugoptimized", self.build, self.tree],
                       check=True, capture_output=True, env=self.environ)
        for path in (path.relative_to(self.tree) for path in self.tree.rglob("*.[ch]")):
            if path.parts[0] != "tests" or path.parts[1] == "sim":
                self.sources[path] = (self.tree / path).read_text()
        return self

    def __exit__(self, *_):
        self.folder.cleanup()

    def plant(self, edits):
        """None, or why it cannot be planted."""
        changed = {}
        try:
            for where, edit in edits:
                changed.update([planted({**self.sources, **changed}, where, edit)])
        except LookupError as problem:
            return f"NOT PLANTED {problem}"
        self.changed = changed
        for path, text in changed.items():
            (self.tree / path).write_text(text)
        return None

    def restore(self):
        for path in self.changed:
            (self.tree / path).write_text(self.sources[path])
        self.changed = {}

    def compile(self, target):
        """None, or the end of the compiler's output."""
        done = subprocess.run(["ninja", "-C", self.build, target], capture_output=True, text=True, env=self.environ)
        return None if done.returncode == 0 else f"DOES NOT BUILD\n{done.stdout[-900:]}"


def main(program, about, target, heading, judge, runs):
    """Plants the faults of PROGRAM.txt one at a time, builds the target, and prints a table of what the judge says:
    judge(build folder, words, its program's options) is (whether it is right, a line). Returns the exit status."""
    faults = read(Path(program).with_suffix(".txt"))
    parser = argparse.ArgumentParser(description=about.split("\n", maxsplit=1)[0])
    parser.add_argument("--runs", type=int, metavar="N", default=runs, help="for each fault (%(default)s)")
    parser.add_argument("--jobs", type=int, metavar="N", help="at a time")
    parser.add_argument("names", nargs="*", metavar="NAME", help="faults to plant; all by default")
    options = parser.parse_args()
    names, wrong = options.names or list(faults), []
    for name in names:
        if name not in faults:
            parser.error(f'unknown fault "{name}"; expected {", ".join(faults)}')
    chosen = ["--runs", str(options.runs)] + (["--jobs", str(options.jobs)] if options.jobs else [])
    with Scratch() as scratch:
        print(f"{'planted fault':38} {heading}", flush=True)
        for name in names:
            words, edits = faults[name]
            problem = scratch.plant(edits) or scratch.compile(target)
            is_right, line = (False, problem) if problem else judge(scratch.build, words, chosen)
            scratch.restore()
            print(f"{name:38} {line}", flush=True)
            wrong += [] if is_right else [name]
    print(f"{len(names) - len(wrong)} of {len(names)} planted faults as expected" +
          (f"; wrong: {', '.join(wrong)}" if wrong else ""))
    return 1 if wrong else 0
