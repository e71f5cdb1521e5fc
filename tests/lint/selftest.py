# SPDX-License-Identifier: Apache-2.0
"""The lints' own test: small made-up trees, each with one fault that its lint must report. And that of the planting of
faults."""
from support.planting import Tokens, planted

from . import rules

# REUSE-IgnoreStart
SPDX = "/* SPDX-License-Identifier: Apache-2.0 */\n"
# REUSE-IgnoreEnd
HEADER = SPDX + "#ifndef CV_X_H\n#define CV_X_H\n#endif\n"


def tree(**extra):
    good = {
        "common/base/err.h": HEADER, "common/crypto/crypto.h": HEADER, "broker/mechanism/mechanism.h": HEADER,
        "thirdparty/policy/policy.h": HEADER, "worker/quality/quality.h": HEADER, "proto/codec/crowd.h": HEADER,
        "tests/support/near.h": HEADER, "common/campaign/campaign.h": HEADER, "lab/report/figure.h": HEADER,
        "docs/a.md": SPDX + "`tree` and `coin`\n",
        "common/base/mechanisms.h": HEADER.replace("#endif", '#define CV_ROWS(ROW) ROW(tree, "tree", 1)\n#endif'),
        "common/base/local.h": HEADER.replace("#endif", '#define CV_COINS(ROW) ROW(flip, COIN, "coin")\n#endif'),
        "broker/core.h": HEADER.replace("#endif", "struct cv_broker_arm {\n  int x;\n};\n#endif"),
        "broker/main.c": SPDX + '#include "broker/core.h"\n#include "common/base/err.h"\n',
    }
    good.update(extra)
    return good


# (lint, path, text, text of the finding; None: no finding)
CASES = (
    (rules.direction, "broker/a.c", '#include "thirdparty/policy/policy.h"\n', "broker includes"),
    (rules.direction, "thirdparty/a.c", '#include "broker/mechanism/mechanism.h"\n', "thirdparty includes"),
    (rules.direction, "thirdparty/a.c", '#  include "proto/codec/crowd.h"\n', "thirdparty includes"),
    (rules.direction, "worker/a.c", '#include "thirdparty/policy/policy.h"\n', "worker includes"),
    (rules.direction, "common/base/a.c", '#include "broker/core.h"\n', "base includes"),
    (rules.direction, "broker/mechanism/a.c", '#include "broker/core.h"\n', "mechanism includes"),
    (rules.direction, "broker/a.c", '#include "tests/support/near.h"\n', "nothing of tests/"),
    (rules.direction, "broker/a.c", '#include "core.h"\n', "a path from the root"),
    (rules.direction, "broker/a.c", "#include <crowd.pb-c.h>\n", "protobuf to stop"),
    (rules.direction, "proto/codec/rank.c", "#include <crowd.pb-c.h>\n", "protobuf to stop"),
    (rules.direction, "elsewhere/a.c", "", "no row for"),
    (rules.direction, "common/campaign/a.c", '#include "thirdparty/policy/policy.h"\n', "campaign includes"),
    (rules.direction, "broker/a.c", '#include "common/campaign/campaign.h"\n', "broker includes"),
    (rules.direction, "lab/run/a.c", '#include "lab/report/figure.h"\n', "lab includes"),
    (rules.direction, "broker/a.c", '// #include "thirdparty/policy/policy.h"\n', None),
    (rules.direction, "broker/a.c", '#include "broker/mechanism/mechanism.h"\n', None),
    (rules.purity, "thirdparty/policy/a.c", "#include <openssl/evp.h>\n", "openssl/evp.h"),
    (rules.purity, "broker/mechanism/a.c", "#include <time.h>\n", "time.h"),
    (rules.purity, "worker/privatizer/a.c", "int f(void) {\n  return rand ();\n}\n", "rand()"),
    (rules.purity, "worker/quality/a.c", 'void f(void) {\n  printf("x");\n}\n', "printf()"),
    (rules.purity, "worker/quality/a.c", 'void f(void) {\n  snprintf(b, 3, "printf(");\n}\n', None),
    (rules.banned, "broker/a.c", "void f(void) {\n  strcpy(a, b);\n}\n", "strcpy()"),
    (rules.banned, "broker/a.c", "void f(void) {\n  assert(a);\n}\n", "assert()"),
    (rules.banned, "broker/a.c", "#include <assert.h>\n", "assert.h"),
    (rules.banned, "broker/a.c", "/* strcpy(a) */ void f(void) {\n  my_strcpy(a); x->gets(b); // gets(c)\n}\n", None),
    (rules.spdx, "broker/a.py", "print()\n", "no SPDX line"),
    (rules.guards, "broker/a.h", "int f(void);\n", "no include guard"),
    (rules.names, "worker/a.h", "struct cv_broker_arm {\n", "expected one header"),
    (rules.names, "worker/a.h", "CV_MUST_USE enum cv_err cv_broker_new(int x);\n", "in one folder only"),
    (rules.names, "broker/a.h", "struct cv_broker_arm *cv_broker_find(int x);\n", None),
    (rules.traits, "thirdparty/policy/a.c", 'bool a = strcmp(a->mechanism.name, "rot13") == 0;\n', "compares the name"),
    (rules.traits, "thirdparty/a.c", "bool a = strcmp(\n    name, terms->privatizer.name);\n", "of a privatizer"),
    (rules.traits, "thirdparty/policy/a.c", 'return cv_needs(spec, "tree", why);\n', 'names mechanism "tree"'),
    (rules.traits, "worker/a.c", 'bool a = is(name, "coin");\n', 'names privatizer "coin"'),
    (rules.traits, "worker/a.c", '    .fallback = "tree",\n', None),
    (rules.traits, "worker/a.c", 'say("policy %s of a tree", spec->mechanism.name, "trees"); /* "tree" */\n', None),
    (rules.traits, "broker/a.c", 'bool a = strcmp(spec->mechanism.name, "tree") == 0;\n', None),
    (rules.documented, "thirdparty/policy/classes.h", "  ROW(a, a_b) \\\n", "no `a-b` in docs/*.md"),
    (rules.documented, "common/config/rewards.h", '  ROW(a, A, "a-b", 1)\n  ROW(c, "tree")\n', "no `a-b` in docs"),
    (rules.documented, "common/config/rewards.h", '  ROW(c, "tree")\n', None),
    (rules.documented, "common/campaign/a.c", '    {.key = "depth"},\n', "no `depth` in docs/*.md"),
    (rules.named, "docs/b.md", SPDX + "see `broker/gone.c`\n", "expected a tracked file"),
    (rules.named, "docs/b.md", SPDX + "see `broker/core.h` and `core.c`\n", None),
    (rules.linked, "docs/b.md", SPDX + "see [a](gone.md)\n", "links to gone.md"),
    (rules.linked, "docs/b.md", SPDX + "# One `b`, two\n[a](#one-b) [b](#one-b-two)\n", "links to #one-b;"),
    (rules.linked, "docs/b.md", SPDX + "# One `b`, two\n[b](b.md#one-b-two) [c](https://example.org/x)\n", None),
    (rules.packed, "meson.build", "# SPDX\nsubdir('broker')\n", "meson.build:2: no !broker in .dockerignore"),
    (rules.packed, "meson.build", "if tests\n  subdir('tests')\nendif\n", None),
    (rules.released, "meson.build", "project('crowdveil', 'c', version: '1.2.3')\n", "expected tests/data/1.2.3"),
    (rules.released, "meson.build", "project('crowdveil', 'c', version: '1.2.3-dev')\n", None),
    (rules.layout, "broker/a.c", "int x;  \n", "blanks at the end"),
    (rules.layout, "broker/a.c", "\tint x;\n", "a tab"),
    (rules.layout, "broker/a.c", "int x;", "no newline"),
    (rules.layout, "broker/a.c", "x" * 121 + "\n", "121 columns"),
    (rules.layout, "broker/a.c", "int x;\n" * 801, "802 lines"),
)


def faults():
    """The faults of the lints themselves; none, if they work."""
    for rule in rules.ALL:
        found = list(rule(tree()))
        if found:
            yield f"{rule.__name__} finds fault with a good tree: {found[0]}"
    for rule, path, text, expected in CASES:
        found = [line for line in rule(tree(**{path: text})) if line.startswith(path + ":")]
        if (expected is None) != (not found) or (expected and not any(expected in line for line in found)):
            yield f"{rule.__name__} on {path} with {text[:40]!r}: expected {expected!r}, found {found}"


PLANTED_IN = {
    "a.c": """
static int say(int a);
struct row { int a; } rows[] = {{1}, {2}};
/* draw(1, 2); */
static int draw(int n) {
  for (int i = 0; i < n; i++) { say(draw(1, i)); }
  if (n > most) {
    return say("n>most"); // draw(1, 2);
  }
  return n > 3 ? say((n)) : 0;
}
""",
    "b.c": """
static int say(int a) { return a; }
static int draw(int n) {
  do { n = say(n) + 7; } while (n < 9);
  return say(say(n));
}
int only_b(void) { return 1; }
"""}
# (where, edit, what it changes, into what) or (where, edit, part of the message, None)
PLANTINGS = (
    ("draw", "n > most => 0", "if (n > most)", "if (0)"),
    ("draw", "return say(\n\"n>most\" )  ; => return $0", 'return say("n>most");', 'return return say("n>most");'),
    ("draw", "for (...) {... } => while (0) { $2 $1 }", "for (int i = 0; i < n; i++) { say(draw(1, i)); }",
     "while (0) { say(draw(1, i)); int i = 0; i < n; i++ }"),
    ("draw", "if (...) { => if (!($1)) {", "if (n > most)", "if (!(n > most))"),
    ("draw", "return n > ... ? ...; => return $2;", "return n > 3 ? say((n)) : 0;", "return say((n)) : 0;"),
    ("draw", "n = say(n) `=> * 2` + `7 => 8`;", "say(n) + 7", "say(n) * 2 + 8"),
    ("draw", "while (...); =>", "while (n < 9);", ""),
    ("rows", "{2} => {3}", "{2}", "{3}"),
    ("row", "int a; => int a, b;", "row { int a; }", "row { int a, b; }"),
    ("say", "return => return 1 +", "return a", "return 1 + a"),
    ("draw beside only_b", "return ...; => return 0;", "return say(say(n));", "return 0;"),
    ("draw", "return say => return", "in draw: 2 statements with ` return say `; expected one; see ", None),
    ("draw", "i < ... ) => 1)", "in draw: 0 statements with ` i < ... )", None),
    ("draw", "say(...) + 8 => 1", "in draw: 0 statements with ` say ( ... ) + 8", None),
    ("draw", "return n ... most => 1", ": 0 statements", None),
    ("gone", "a => b", "in gone: 0 statements with ` a `; expected one; see no file", None),
)


def words(text):
    return " ".join(Tokens(text).words)


def planting():
    """The faults of the planting of faults. It finds each statement also if it is moved and formatted otherwise."""
    for where, edit, old, new in PLANTINGS:
        good = words("".join(PLANTED_IN.values()))
        expected = old if new is None else words(good.replace(words(old), words(new)))
        moved = {f"lib/{path}": words(text).replace(" ", "\n") for path, text in PLANTED_IN.items()}
        for sources in (PLANTED_IN, moved):
            try:
                path, text = planted(sources, where, edit)
                done = words("".join({**sources, path: text}.values()))
            except LookupError as problem:
                done = str(problem)
            if done != expected if new is not None else expected not in done:
                yield f"in {where}: {edit}: expected {expected}, found {done}"
