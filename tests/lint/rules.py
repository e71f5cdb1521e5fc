# SPDX-License-Identifier: Apache-2.0
"""The lints: each takes the tracked files as {path: text} and yields `path:line: what; expected ...`."""
import fnmatch
import posixpath
import re

from . import layers as table

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^">]+)[">]', re.M)
CALL = re.compile(r"(?<![\w.>])([A-Za-z_]\w*)\s*\(")
CODE = (".c", ".h")


def matches(path, patterns):
    return any(fnmatch.fnmatchcase(path, pattern) for pattern in patterns)


def layer_of(path, layers=table.LAYERS):
    return next((layer for layer in layers if matches(path, layer.patterns)), None)


def line_of(text, at):
    return text.count("\n", 0, at) + 1


def blank(text, keep_strings=False):
    """The same text with blanks for comments and the contents of literals, so that positions stay the same."""
    pattern = r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\''

    def wipe(match):
        piece = match.group()
        if piece[0] in "\"'":
            return piece if keep_strings else piece[0] + " " * (len(piece) - 2) + piece[-1]
        return re.sub(r"[^\n]", " ", piece)
    return re.sub(pattern, wipe, text, flags=re.S)


def code_files(files):
    return {path: text for path, text in files.items() if path.endswith(CODE)}


def includes(text):
    """(line, '<' or '\"', name) of each include."""
    code = blank(text, keep_strings=True)
    return [(line_of(code, m.start()), m.group(1), m.group(2)) for m in INCLUDE.finditer(code)]


def direction(files):
    """Includes go from shells to cores to pure parts to common, never upward or across."""
    for path, text in sorted(code_files(files).items()):
        own = layer_of(path)
        is_test = matches(path, (table.TESTS,))
        if own is None and not is_test:
            yield f"{path}:1: no row for this file in tests/lint/layers.py; expected one that says what it may include"
            continue
        for line, kind, name in includes(text):
            schema = re.fullmatch(r"(\w+)\.pb-c\.h", name)
            if schema:
                yield from generated(path, line, schema.group(1), is_test)
                continue
            if kind == "<" or is_test:
                continue
            if name not in files:
                yield f'{path}:{line}: "{name}" is not a tracked file; expected a path from the root of the tree'
                continue
            if matches(name, (table.TESTS,)):
                yield f'{path}:{line}: includes "{name}"; expected nothing of tests/ outside tests/'
                continue
            other = layer_of(name)
            if other is not None and other is not own and other.name not in own.may:
                yield (f'{path}:{line}: {own.name} includes "{name}" of {other.name}; '
                       f"expected only {', '.join(own.may) or 'its own folder'}")


def generated(path, line, schema, is_test):
    """A generated header belongs to its own codec; the shared schema to codec-base and every codec."""
    allowed = {f"proto/codec/{schema}.c", f"proto/codec/{schema}.h"}
    in_codec = path.startswith("proto/codec/")
    if is_test or path in allowed or (schema == "base" and in_codec):
        return
    yield f"{path}:{line}: includes {schema}.pb-c.h; expected protobuf to stop at proto/codec/{schema}.c"


def purity(files):
    """Pure parts use no loop, no TLS, no database, no protobuf, no file, no clock."""
    for path, text in sorted(code_files(files).items()):
        own = layer_of(path)
        if own is None or not own.pure or matches(path, (table.TESTS,)):
            continue
        for line, _, name in includes(text):
            if any(name == bad or bad[-1] == "/" and name.startswith(bad) or bad[0] == "." and name.endswith(bad)
                   for bad in table.IMPURE_HEADERS):
                yield f"{path}:{line}: pure code includes {name}; expected it in a shell"
        allowed = table.IMPURE_ALLOWED.get(path, ())
        for line, name in calls(text):
            if name in table.IMPURE_CALLS and name not in allowed:
                yield f"{path}:{line}: pure code calls {name}(); expected it in a shell"


def calls(text):
    code = blank(text)
    return [(line_of(code, m.start()), m.group(1)) for m in CALL.finditer(code)]


def banned(files):
    """Calls and headers that have a safer alternative."""
    for path, text in sorted(code_files(files).items()):
        is_test = matches(path, (table.TESTS,))
        for line, name in calls(text):
            if name in table.BANNED_CALLS and not (is_test and name in table.ALLOWED_IN_TESTS):
                yield f"{path}:{line}: calls {name}(); expected {table.BANNED_CALLS[name]}"
        for line, _, name in includes(text):
            if name in table.BANNED_HEADERS:
                yield f"{path}:{line}: includes {name}; expected {table.BANNED_HEADERS[name]}"


def spdx(files):
    """Every file has an SPDX line in its first lines."""
    for path, text in sorted(files.items()):
        if matches(path, table.SPDX_EXEMPT):
            continue
        if not any("SPDX-License-Identifier: Apache-2.0" in line for line in text.split("\n")[:3]):
            yield f"{path}:1: no SPDX line; expected `SPDX-License-Identifier: Apache-2.0` in the first three lines"


def guards(files):
    """Every header has an include guard, whose name is made from its path."""
    for path, text in sorted(files.items()):
        if path.endswith(".h") and not re.search(r"^#ifndef CV_\w+_H\n#define CV_\w+_H\n", text, re.M):
            yield f"{path}:1: no include guard; expected #ifndef CV_..._H and #define CV_..._H"


def layout(files):
    """Lines of 120 columns, no tabs, no blanks at the end, a newline at the end, files of about 800 lines."""
    for path, text in sorted(files.items()):
        if matches(path, table.SPDX_EXEMPT):
            continue
        lines = text.split("\n")
        if text and not text.endswith("\n"):
            yield f"{path}:{len(lines)}: no newline at the end of the file; expected one"
        for number, line in enumerate(lines, 1):
            if line != line.rstrip():
                yield f"{path}:{number}: blanks at the end of the line; expected none"
            if path.endswith(CODE + (".py", ".proto", ".build")) and "\t" in line:
                yield f"{path}:{number}: a tab; expected spaces"
            if path.endswith(CODE + (".py", ".proto")) and len(line) > 120:
                yield f"{path}:{number}: {len(line)} columns; expected 120 at most"
        if path.endswith(CODE) and len(lines) > table.FILE_LINES_ALLOWED.get(path, table.FILE_LINES):
            yield f"{path}:1: {len(lines)} lines; expected about {table.FILE_LINES} at most"


# `struct cv_x {` and `enum cv_x {` in a header, and a function's declaration, starting a line.
DECLARED = re.compile(r"^(?:(?:struct|enum|union)\s+(cv_\w+)\s*\{|(?:CV_MUST_USE |static inline |_Noreturn )*"
                      r"[a-z][\w ]*?[ *]+(cv_\w+)\()", re.M)


def room_of(path):
    """The folder that owns the names in a header: a folder below common/, proto/ and the parties, else the top
    folder."""
    parts = path.split("/")
    return "/".join(parts[:2] if parts[0] in table.ROOMS_INSIDE and len(parts) > 2 else parts[:1])


def names(files):
    """A name is declared in one header, and the first word after cv_ belongs to one folder."""
    declared, owner = {}, {}
    for path, text in sorted(files.items()):
        if not path.endswith(".h") or matches(path, (table.TESTS,)):
            continue
        code = blank(text)
        for match in DECLARED.finditer(code):
            kind, name = ("tag", match.group(1)) if match.group(1) else ("function", match.group(2))
            place, room = f"{path}:{line_of(code, match.start())}", room_of(path)
            other = declared.setdefault((kind, name), path)
            if other != path:
                yield f"{place}: {name} is declared in {other}, too; expected one header to declare it"
            word = name.split("_")[1]
            home, example = owner.setdefault(word, (room, name))
            if home != room:
                yield f"{place}: {name} of {room} begins as {example} of {home}; expected cv_{word}_ in one folder only"


# A call that compares texts; the name of a choice in it; the names in both tables.
COMPARED = re.compile(r"\b(?:strn?cmp|strn?casecmp|memcmp)\s*\(([^;{]*)")
CHOSEN = re.compile(r"\b(mechanism|privatizer)(?:\.|->)name\b")
ROWS = {"mechanism": ("common/base/mechanisms.h", re.compile(r'\bROW\(\w+, "([^"]+)"')),
        "privatizer": ("common/base/local.h", re.compile(r'\bROW\(\w+, \w+, "([^"]+)"'))}
LITERAL = re.compile(r'"((?:\\.|[^"\\\n])*)"')


def traits(files):
    """Third-party and worker know a mechanism or a privatizer only by its traits, never by its name."""
    known = {name: kind for kind, (path, row) in ROWS.items() for name in row.findall(files.get(path, ""))}
    for path, text in sorted(code_files(files).items()):
        if not matches(path, table.BY_TRAITS):
            continue
        code = blank(text, keep_strings=True)
        for match in COMPARED.finditer(code):
            chosen = CHOSEN.search(match.group(1))
            if chosen:
                yield (f"{path}:{line_of(code, match.start())}: compares the name of a {chosen.group(1)}; "
                       "expected its traits (common/base/mechanisms.h, common/base/local.h)")
        for match in LITERAL.finditer(code):
            kind, before = known.get(match.group(1)), code[:match.start()].rstrip()
            if kind and not before.endswith(".fallback ="):
                yield f"{path}:{line_of(code, match.start())}: names {kind} {match.group()}; expected its traits"



# Rows that a campaign can name: the header, and the name in its ROW(...), or the class, with _ for each dash.
CHOICES = (("thirdparty/policy/classes.h", re.compile(r"^ +ROW\(\w+, (\w+)\)", re.M)),
           ("common/base/mechanisms.h", re.compile(r'^ +ROW\(\w+, "([^"]+)"', re.M)),
           ("common/base/local.h", re.compile(r'^ +ROW\(\w+, \w+, "([^"]+)"', re.M)),
           ("common/config/rewards.h", re.compile(r'^ +ROW\(\w+, (?:\w+, )?"([^"]+)"', re.M)))


KEY = re.compile(r'\.key = "(\w+)"')


def documented(files):
    """Every name that a campaign can use and every key of its file is documented in docs/."""
    docs = "".join(text for path, text in files.items() if matches(path, ("docs/*.md",)))
    for path, row in CHOICES:
        for match in row.finditer(files.get(path, "")):
            name = match.group(1).replace("_", "-")
            if f"`{name}`" not in docs:
                yield f"{path}:{line_of(files[path], match.start())}: no `{name}` in docs/*.md; expected a line on it"
    for path in sorted(files):
        if matches(path, ("common/campaign/*.c",)):
            for match in KEY.finditer(files[path]):
                if not re.search(rf"`{match.group(1)}`|\b{match.group(1)}:", docs):
                    yield (f"{path}:{line_of(files[path], match.start())}: no `{match.group(1)}` in docs/*.md; "
                           "expected a line on it")



NAMED = re.compile(r"`([\w.-]+(?:/[\w.-]+)+\.(?:c|h|py|proto|yaml|md))`")


def named(files):
    """A file that a document names in backquotes, with its folder, exists."""
    for path, text in sorted(files.items()):
        if not path.endswith(".md") or matches(path, (table.TESTS,)) or path == "CHANGELOG.md":
            continue
        made = set(re.findall(r"^```\w+ (\S+)$", text, re.M))  # created by a reader who follows the document
        for match in NAMED.finditer(text):
            if match.group(1) not in files and match.group(1) not in made:
                yield f"{path}:{line_of(text, match.start())}: names `{match.group(1)}`; expected a tracked file"


LINK = re.compile(r"\]\(([^)\s#]*)(?:#([^)\s]+))?\)")


def anchors(text):
    """Of a document's headings, as its readers make them."""
    heads = re.findall(r"^#+ (.+)$", text, re.M)
    return {re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-") for head in heads}


def linked(files):
    """A link from a document to another, or to a heading, leads there."""
    for path, text in sorted(files.items()):
        if not path.endswith(".md") or matches(path, (table.TESTS,)):
            continue
        for match in LINK.finditer(text):
            to, anchor = match.groups()
            if ":" in to:
                continue
            target = posixpath.normpath(posixpath.join(posixpath.dirname(path), to)) if to else path
            if target not in files or (anchor and anchor not in anchors(files[target])):
                yield (f"{path}:{line_of(text, match.start())}: links to {match.group()[2:-1]}; "
                       "expected a tracked file and one of its headings")


SUBDIR = re.compile(r"^subdir\('([\w/]+)'\)$", re.M)


def packed(files):
    """Every folder that the build always enters is in the images' build context, .dockerignore."""
    kept = re.findall(r"^!(\S+)$", files.get(".dockerignore", ""), re.M)
    for match in SUBDIR.finditer(files.get("meson.build", "")):
        folder = match.group(1)
        if not any(path == folder or path.startswith(folder + "/") for path in kept):
            yield f"meson.build:{line_of(files['meson.build'], match.start())}: no !{folder} in .dockerignore"


def released(files):
    """A released version has its databases in tests/data, by which tests/run before finds its commit."""
    match = re.search(r"^project\('crowdveil', 'c', version: '([\d.]+)'", files.get("meson.build", ""), re.M)
    if match and f"tests/data/{match[1]}/anchor" not in files:
        yield (f"meson.build:{line_of(files['meson.build'], match.start())}: version {match[1]} is a release; expected "
               f"tests/data/{match[1]}, which tests/data/make makes (tests/data/README.md)")


ALL = (direction, purity, banned, spdx, guards, layout, names, traits, documented, named, linked, packed, released)
