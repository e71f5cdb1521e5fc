# SPDX-License-Identifier: Apache-2.0
"""The trust boundary, checked in the programs as they were built.

Each daemon is checked against its rule with three kinds of evidence: the libraries on its link line, the source
files that its debug information names, and its symbols (none may be defined by a library that is made of forbidden
sources). A program that is stripped, optimised across files (LTO) or without its own markers proves nothing and
fails as well.

    /usr/bin/python3 tests/boundary.py [BUILD]
"""
import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path


@dataclass(frozen=True)
class Rule:
    """What one program must not contain (source folders and files, by prefix), and the symbols that it must have."""
    party: str
    program: str
    forbidden: tuple
    names: str  # symbols that only those sources define: they catch a breach if files move
    markers: tuple
    without: str  # for the printed text
    permitted: tuple = ()  # parts of the forbidden folders that it has all the same
    optional: bool = False  # built only where its libraries are

    def forbids(self, path):
        return path.startswith(self.forbidden) and not path.startswith(self.permitted)


CROWD, RANK, ORDER, SHARE = (("proto/codec/" + s, "proto/" + s + ".pb-c", "proto/" + s + ".proto")
                             for s in ("crowd", "rank", "order", "share"))
WORKER_PARTS = ("worker/",)
SPLITS = ("common/prio/shard", "common/prio/prove")   # a token into shares: the worker's
# the client of a database server
SERVER = ("common/pg/", "broker/store/postgres", "broker/store/lineage", "broker/store/term")
CHECKS = ("common/prio/verify", "common/prio/query")  # of a share: both brokers'

RULES = (
    Rule("third-party", "thirdparty/crowdveil-thirdparty",
         ("broker/", "cobroker/", "common/noise/", "common/prio/", "common/base/gold") + WORKER_PARTS + CROWD + ORDER +
         SHARE,
         r"cv_(broker|cobroker|worker|mechanism|dlaplace|privatizer|quality|crowd|order|share|ticket|gold|prio|field"
         r"|xof)_"
         r"|crowdveil__(crowd|order|share)__",
         (r"cv_policy_step$", r"cv_policy_apply$", r"cv_rank_decode$", r"crowdveil__rank__envelope__"),
         "mechanism, noise sampler, privatizer, share of a token, gold item, raw-token or order message"),
    Rule("broker", "broker/crowdveil-broker",
         ("thirdparty/", "cobroker/") + SERVER + SPLITS + WORKER_PARTS,
         r"cv_(cobroker|thirdparty|worker|policy|ppar|privatizer|quality|pg)_|cv_postgres|cv_prio_(shard|prove)",
         (r"cv_mechanism_release$", r"cv_mechanism_draw$", r"cv_crowd_decode$", r"cv_rank_encode$", r"cv_share_decode$",
          r"cv_prio_verify_leader$", r"crowdveil__crowd__envelope__"),
         "policy, quality model, privatizer, splitting of a token or client of a database server"),
    Rule("broker over PostgreSQL", "broker/crowdveil-broker-postgresql",
         ("thirdparty/", "cobroker/") + SPLITS + WORKER_PARTS,
         r"cv_(cobroker|thirdparty|worker|policy|ppar|privatizer|quality)_|cv_prio_(shard|prove)",
         (r"cv_mechanism_release$", r"cv_mechanism_draw$", r"cv_crowd_decode$", r"cv_rank_encode$", r"cv_pg_wait$",
          r"cv_prio_verify_leader$", r"crowdveil__crowd__envelope__"),
         "policy, quality model, privatizer or splitting of a token", optional=True),
    Rule("co-broker", "cobroker/crowdveil-cobroker",
         ("broker/", "thirdparty/", "common/base/gold") + SPLITS + WORKER_PARTS + CROWD + RANK + ORDER,
         r"cv_(broker|thirdparty|worker|policy|ppar|privatizer|quality|crowd|rank|order|ticket|gold|offers|places)_"
         r"|cv_prio_(shard|prove)|crowdveil__(crowd|rank|order)__",
         (r"cv_mechanism_release", r"cv_mechanism_draw$", r"cv_share_decode$", r"cv_prio_verify_helper$",
          r"crowdveil__share__envelope__"),
         "policy, assignment, splitting of a token, order, raw-token or rank message",
         permitted=("broker/both/", "broker/mechanism/")),
    Rule("worker", "worker/crowdveil-worker",
         ("broker/", "cobroker/", "thirdparty/") + CHECKS + RANK + ORDER,
         r"cv_(broker|cobroker|thirdparty|mechanism|policy|ppar|rank|order)_|cv_prio_(verify|query|accepts|decides)"
         r"|crowdveil__(rank|order)__",
         (r"cv_privatizer_", r"cv_quality_", r"cv_crowd_encode$", r"cv_prio_shard", r"crowdveil__crowd__envelope__"),
         "mechanism, policy, check of a share, release or order message"),
)


@dataclass
class Evidence:
    """The evidence in a program."""
    links: list = field(default_factory=list)    # libraries on the link line
    sources: list = field(default_factory=list)  # from the debug information
    symbols: set = field(default_factory=set)    # defined
    needs: set = field(default_factory=set)      # undefined
    lto: bool = False


def output(*command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, errors="replace")
    return done.stdout if done.returncode == 0 else ""


def symbols_of(path):
    defined, undefined = set(), set()
    for line in output("nm", "-P", path).splitlines():
        parts = line.split()
        if len(parts) >= 2 and len(parts[1]) == 1:
            (undefined if parts[1] in "Uw" else defined).add(parts[0].split("@")[0])
    return defined, undefined


library_symbols = cache(symbols_of)  # of an archive, which does not change during the run


def sources_of(path):
    """Source files named by the debug information; and whether the program was made with LTO."""
    text = output("readelf", "--debug-dump=info", "--dwarf-depth=1", path)
    names = re.findall(r"DW_AT_name\s*:(?:.*\):)?\s*(\S+\.c)\s*$", text, re.M)
    return sorted(set(names)), bool(re.search(r"DW_AT_producer.*(GIMPLE|-flto)", text))


class Tree:
    """Meson's description of the build: which library is made of which sources."""

    def __init__(self, build):
        self.build = Path(build).resolve()
        info = json.loads((self.build / "meson-info" / "meson-info.json").read_text())
        self.root = Path(info["directories"]["source"])
        self.targets = json.loads(output("meson", "introspect", self.build, "--targets") or "[]")
        options = json.loads(output("meson", "introspect", self.build, "--buildoptions") or "[]")
        self.options = {option["name"]: option["value"] for option in options}

    def relative(self, path):
        """The path from the root of the tree (or of the build, for a generated file); relative paths start at the
        build."""
        path = Path(os.path.normpath(self.build / path))
        for top in (self.build, self.root):
            if path.is_relative_to(top):
                return str(path.relative_to(top))
        return str(path)

    def libraries(self, rule):
        """Archives with a source that the rule forbids."""
        for target in self.targets:
            if target["type"] not in ("static library", "shared library"):
                continue
            sources = [self.relative(path) for group in target["target_sources"]
                       for path in group["sources"] + group["generated_sources"]]
            if any(rule.forbids(source) for source in sources if source.endswith(".c")):
                yield Path(target["filename"][0])

    def examine(self, path, link_line=None):
        """Evidence of a program, given by its path in the build folder; the link line is Ninja's unless given."""
        if link_line is None:
            link_line = output("ninja", "-C", self.build, "-t", "commands", "-s", path)
        defined, undefined = symbols_of(self.build / path)
        sources, lto = sources_of(self.build / path)
        links = re.findall(r"(?<!\S)(?:\S+\.(?:a|so)(?:\.\d+)*|-l\S+)(?=\s|$)", link_line)
        return Evidence(links, [self.relative(source) for source in sources], defined, undefined, lto)


def judge(rule, seen, libraries, tree):
    """(what was checked, problems) for each check of one program's evidence against a rule."""
    names = {library.name for library in libraries}
    owned = {}
    for library in libraries:
        for symbol in filter(is_global_name, library_symbols(library)[0]):
            owned.setdefault(symbol, library.name)
    # a name that a permitted library of this program also defines proves nothing about the forbidden one
    for link in seen.links:
        if link.endswith(".a") and Path(link).name not in names:
            for symbol in library_symbols(tree.build / link)[0]:
                owned.pop(symbol, None)

    found = [link for link in seen.links if Path(link).name in names]
    yield "link line", ([f"{rule.program} links {link}" for link in found] or
                        ([] if seen.links else [f"{rule.program}: no link line was found; expected its libraries"]))

    found = [source for source in seen.sources if rule.forbids(source)]
    yield "sources", ([f"{rule.program} is built from {source}" for source in found] or
                      ([] if seen.sources else [f"{rule.program} has no debug information; expected -g"]))

    found = sorted(symbol for symbol in seen.symbols
                   if symbol in owned or re.match(rule.names, symbol))
    found += sorted({"dlopen", "dlsym", "dlmopen"} & seen.needs)
    yield "symbols", [f"{rule.program} has {symbol}" + (f" of {owned[symbol]}" if symbol in owned else "")
                      for symbol in found]

    missing = [marker for marker in rule.markers if not any(re.match(marker, symbol) for symbol in seen.symbols)]
    problems = [f"{rule.program} has no symbol {marker}; expected it in a {rule.party}" for marker in missing]
    if not seen.symbols:
        problems = [f"{rule.program} is stripped or missing; expected its symbol table"]
    if seen.lto or tree.options.get("b_lto"):
        problems.append(f"{rule.program} is optimised across files; expected a build without LTO")
    yield "own markers", problems


def is_global_name(symbol):
    """Whether the name belongs to the project: statics like `grow` may be in any file."""
    return symbol.startswith(("cv_", "crowdveil__"))


def story(rule, seen, libraries, say):
    folders = {}
    for source in seen.sources:
        folders[str(Path(source).parent)] = folders.get(str(Path(source).parent), 0) + 1
    own = [Path(link).name for link in seen.links if link.endswith(".a")]
    shared = [Path(link).name for link in seen.links if not link.endswith(".a")]
    kept_out = sorted(library.name for library in libraries)
    say(f"{rule.party}: build/{rule.program}, must not contain: {rule.without}")
    say(f"  links {' '.join(own)}")
    say(f"  and {' '.join(shared)}")
    say(f"  built from {', '.join(f'{folder} ({count})' for folder, count in sorted(folders.items()))}")
    say(f"  kept out: {' '.join(kept_out)}: {len(seen.symbols)} symbols, none of these libraries'")
    for marker in rule.markers:
        hits = sorted(symbol for symbol in seen.symbols if re.match(marker, symbol))
        say(f"  knows {', '.join(hits[:3]) or 'NOT ' + marker}")


def plant(build, library):
    """A program that links a forbidden library (its undefined symbols are left open), to check that it is caught."""
    path = build / "boundary-plant"
    archives = ["-Wl,--whole-archive", str(library), "-Wl,--no-whole-archive", "-Wl,--unresolved-symbols=ignore-all"]
    done = subprocess.run(["gcc", "-g", "-x", "c", "-", "-x", "none", "-o", path, *archives], text=True,
                          input="int main(void) { return 0; }\n", capture_output=True)
    if done.returncode:
        raise RuntimeError(f"the planted program does not link: {done.stderr.splitlines()[-1:]}")
    return path, " ".join(archives)


def self_check(tree, rule, real):
    """Problems of the checker itself: each check must detect the kind of breach that it is meant for."""
    libraries = list(tree.libraries(rule))
    if not libraries:
        yield f"no library has sources that the {rule.party} must not contain; expected some: were folders moved?"
        return
    for library in libraries:
        path, line = plant(tree.build, library)
        caught = dict(judge(rule, tree.examine(path, line), libraries, tree))
        path.unlink()
        for check in ("link line", "sources", "symbols"):
            if not caught[check]:
                yield f"a {rule.party} with {library.name} planted was not caught by its {check}"
    stripped = tree.build / "boundary-plant"
    subprocess.run(["strip", "-o", stripped, tree.build / rule.program], check=False)
    caught = dict(judge(rule, tree.examine(stripped), libraries, tree))
    stripped.unlink(missing_ok=True)
    if not caught["own markers"]:
        yield f"a stripped {rule.party} was not caught"
    for other in (one for one in RULES if one.party in real):
        if other is not rule and not any(problems for _, problems in judge(rule, real[other.party], libraries, tree)):
            yield f"the {other.party}'s program passes as a {rule.party}"


def checks(build, say=lambda line: None):
    """Yields (name, problems) for every check of every party, and prints the evidence."""
    tree = Tree(build)
    rules = [rule for rule in RULES if not rule.optional or (tree.build / rule.program).exists()]
    missing = [rule.program for rule in rules if not (tree.build / rule.program).exists()]
    yield "programs", [f"build/{program} is missing; expected it to be built" for program in missing]
    if missing:
        return
    real = {rule.party: tree.examine(rule.program) for rule in rules}
    for rule in rules:
        libraries = list(tree.libraries(rule))
        story(rule, real[rule.party], libraries, say)
        for what, problems in judge(rule, real[rule.party], libraries, tree):
            yield f"{rule.party}: {what}", problems
        yield f"{rule.party}: a planted breach is caught", list(self_check(tree, rule, real))


def main():
    build = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent / "build"
    failed = 0
    for name, problems in checks(build, print):
        print(f"{'FAILED' if problems else 'ok'} {name}")
        for problem in problems:
            print(f"  {problem}")
        failed += bool(problems)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
