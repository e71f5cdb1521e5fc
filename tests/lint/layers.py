# SPDX-License-Identifier: Apache-2.0
"""The one table of what may include what: common <- pure parts <- cores <- shells.

A file belongs to the first row whose pattern matches its path (fnmatch: `*` crosses folders). `pure` says no libuv,
OpenSSL, SQLite, protobuf, files, clock or global randomness. `may` names the rows whose headers its files may include;
a row may always include its own.
"""
from dataclasses import dataclass


@dataclass(frozen=True)
class Layer:
    name: str
    patterns: tuple
    pure: bool
    may: tuple


BASE = ("base",)
COMMON = ("base", "sys", "crypto", "daemon", "db", "net", "config", "link", "admin", "sandbox")

LAYERS = (
    # common: the ground, in the order in which its parts may know each other
    Layer("sys", ("common/base/log.[ch]", "common/base/finding.[ch]", "common/base/clock.[ch]"), False, BASE),
    Layer("base", ("common/base/*",), True, ()),
    Layer("noise", ("common/noise/*",), True, BASE),
    Layer("crypto", ("common/crypto/*",), False, BASE),
    Layer("daemon", ("common/daemon/*",), True, BASE),
    Layer("db", ("common/db/*",), False, BASE + ("sys",)),
    Layer("identity", ("common/net/identity.[ch]", "common/net/frame.[ch]"), True, BASE),
    Layer("net", ("common/net/*",), False, BASE + ("sys", "identity")),
    Layer("link", ("common/config/link.[ch]",), False, BASE + ("sys", "config")),
    Layer("config", ("common/config/*",), False, BASE),
    Layer("admin", ("common/admin/*",), False, BASE + ("sys", "config")),
    Layer("sandbox", ("common/sandbox/*",), False, BASE + ("crypto", "net", "config")),
    # the wire: only these files know protobuf; each codec knows its own schema and the shared one
    Layer("chain", ("proto/codec/chain.[ch]",), True, BASE + ("wire", "rank")),
    Layer("wire", ("proto/codec/frame.h",), True, BASE),
    Layer("codec-base", ("proto/codec/base.[ch]",), False, BASE + ("wire",)),
    Layer("crowd", ("proto/codec/crowd.[ch]",), False, BASE + ("wire", "codec-base")),
    Layer("rank", ("proto/codec/rank.[ch]",), False, BASE + ("wire", "codec-base", "chain")),
    Layer("order", ("proto/codec/order.[ch]",), False, BASE + ("wire", "codec-base", "rank")),
    # the pure parts: each knows the ground only, so that no party links another's
    Layer("mechanism", ("broker/mechanism/*",), True, BASE + ("noise",)),
    Layer("policy", ("thirdparty/policy/*",), True, BASE),
    Layer("quality", ("worker/quality/*",), True, BASE + ("config",)),
    Layer("privatizer", ("worker/privatizer/*",), True, BASE + ("noise",)),
    # the three daemons: cores, then shells; none knows another
    Layer("broker", ("broker/*",), False,
          COMMON + ("identity", "wire", "crowd", "rank", "order", "chain", "mechanism", "noise")),
    # the two that the requester's side uses, too: a policy run again, and a data file as scores
    Layer("replay", ("thirdparty/replay*.[ch]",), False, BASE + ("thirdparty", "policy")),
    Layer("source", ("worker/source.[ch]", "worker/csv.[ch]", "worker/records.[ch]",
                     "worker/taxi.[ch]"), False,
          BASE + ("config", "quality")),
    Layer("thirdparty", ("thirdparty/*",), False, COMMON + ("identity", "wire", "rank", "chain", "policy", "replay")),
    Layer("worker", ("worker/*",), False,
          COMMON + ("identity", "wire", "crowd", "quality", "privatizer", "noise", "source")),
    # a campaign file made ready, and what a result is measured against; experiments want the same
    Layer("prepare", ("deploy/launcher/prepare.[ch]", "deploy/launcher/accuracy.[ch]", "deploy/launcher/worth.[ch]"),
          False, BASE + ("crypto", "config", "policy", "quality", "source")),
    # the requester's side; it runs a policy again to verify, and reads data as the workers do
    Layer("launcher", ("deploy/*",), False,
          COMMON + ("identity", "wire", "order", "rank", "chain", "policy", "replay", "quality", "source",
                    "prepare")),
    # an audit looks at the whole way from a worker's score to the third-party's view, through the cores
    Layer("audit", ("lab/audit/*",), False,
          COMMON + ("noise", "mechanism", "quality", "privatizer", "identity", "wire", "crowd", "rank", "order",
                    "chain", "broker", "worker", "lab")),
    Layer("sampler", ("lab/sampler/*",), True, BASE),
    Layer("lab", ("lab/*",), False,
          COMMON + ("noise", "mechanism", "policy", "quality", "privatizer", "sampler", "source", "prepare")),
)

# tests may include everything; nothing but tests may include tests
TESTS = "tests/*"

# Headers of the system that pure code does without.
IMPURE_HEADERS = ("uv.h", "uv/", "openssl/", "sqlite3.h", "protobuf-c/", ".pb-c.h", "time.h", "sys/time.h",
                  "sys/socket.h", "sys/stat.h", "sys/mman.h", "netinet/", "arpa/", "netdb.h", "unistd.h", "fcntl.h",
                  "signal.h", "pthread.h", "threads.h", "microhttpd.h", "jansson.h", "yaml.h", "locale.h", "poll.h")
# Formatting into a buffer is pure, so <stdio.h> and <stdlib.h> may be there; these calls may not.
IMPURE_CALLS = ("printf", "fprintf", "vprintf", "vfprintf", "dprintf", "puts", "fputs", "putchar", "fputc", "fopen",
                "fdopen", "fread", "fwrite", "fgets", "getline", "scanf", "fscanf", "perror", "getenv", "setenv",
                "time", "clock", "clock_gettime", "rand", "srand", "random", "drand48", "getrandom", "exit", "remove")
# Where one impure call is the point of the file.
IMPURE_ALLOWED = {"common/base/err.c": ("fprintf",)}  # CV_REQUIRE says where it failed before it aborts

# Calls that no file of ours makes, and what to use.
BANNED_CALLS = {
    "assert": "CV_REQUIRE (our own bugs) or the error path (a peer's or a file's)",
    "sprintf": "snprintf", "vsprintf": "vsnprintf", "strcpy": "snprintf or memcpy with a checked length",
    "strcat": "snprintf", "strncpy": "snprintf or memcpy with a checked length", "strncat": "snprintf",
    "stpcpy": "snprintf", "gets": "fgets", "strtok": "strtok_r", "atoi": "strtol with checks",
    "atol": "strtol with checks", "atoll": "strtoll with checks", "atof": "strtod with checks",
    "scanf": "strtol and friends", "sscanf": "strtol and friends", "fscanf": "strtol and friends",
    "alloca": "the heap or an arena", "rand": "struct cv_rng", "srand": "struct cv_rng", "random": "struct cv_rng",
    "system": "uv_spawn", "popen": "uv_spawn", "tmpnam": "mkstemp", "mktemp": "mkstemp", "tempnam": "mkstemp",
    "localtime": "gmtime_r", "gmtime": "gmtime_r", "ctime": "strftime", "asctime": "strftime",
    "setjmp": "enum cv_err", "longjmp": "enum cv_err",
    "usleep": "a timer of the loop", "sleep": "a timer of the loop",
}
ALLOWED_IN_TESTS = ("atol", "atof", "atoi", "strcpy", "setjmp", "system")
BANNED_HEADERS = {"assert.h": "CV_REQUIRE", "alloca.h": "the heap or an arena"}

# Longer files are split; see the list of exceptions with its reasons.
FILE_LINES = 800
FILE_LINES_ALLOWED = {}

# Files that cannot carry an SPDX line.
SPDX_EXEMPT = ("LICENSE", "*.json", "*.csv", "*.png", "*.svg", "*.pem", "tests/fuzz/corpus/*", "tests/data/*/*",
               "*.bin")
