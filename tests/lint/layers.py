# SPDX-License-Identifier: Apache-2.0
"""The table of permitted includes: common <- pure parts <- cores <- shells.

A file belongs to the first row whose pattern matches its path (fnmatch: `*` crosses folders). `pure` forbids libuv,
OpenSSL, SQLite, protobuf, files, clock and global randomness. `may` names the rows whose headers its files may
include; a row may always include its own.
"""
from dataclasses import dataclass


@dataclass(frozen=True)
class Layer:
    name: str
    patterns: tuple
    pure: bool
    may: tuple


BASE = ("base",)
COMMON = ("base", "sys", "crypto", "turn", "daemon", "db", "net", "config", "channel", "admin", "door", "page",
          "sandbox")

LAYERS = (
    # common, in the order of its parts: a part may include those before it
    Layer("sys", ("common/base/log.[ch]", "common/base/finding.[ch]", "common/base/clock.[ch]",
                  "common/base/files.[ch]", "common/base/ip.[ch]", "common/base/private.[ch]"), False, BASE),
    Layer("base", ("common/base/*",), True, ()),
    Layer("noise", ("common/noise/*",), True, BASE),
    # Prio3: a worker splits tokens, the brokers check shares; what does the one never uses what does the other
    Layer("prio-shard", ("common/prio/shard.[ch]", "common/prio/prove.[ch]"), True, BASE + ("prio",)),
    Layer("prio-verify", ("common/prio/verify.[ch]", "common/prio/query.[ch]"), True, BASE + ("prio",)),
    Layer("prio", ("common/prio/*",), True, BASE),
    Layer("crypto", ("common/crypto/*",), False, BASE),
    Layer("turn", ("common/daemon/turn.[ch]", "common/daemon/watchdog.[ch]"), True, BASE),
    Layer("db", ("common/db/*",), False, BASE + ("sys",)),
    Layer("pg", ("common/pg/*",), False, BASE + ("sys",)),
    Layer("identity", ("common/net/identity.[ch]", "common/net/frame.[ch]"), True, BASE),
    Layer("net", ("common/net/*",), False, BASE + ("sys", "identity")),
    Layer("channel", ("common/config/channel.[ch]",), False, BASE + ("sys", "config")),
    Layer("config", ("common/config/*",), False, BASE),
    Layer("campaign", ("common/campaign/*",), False, BASE + ("config",)),
    Layer("admin", ("common/admin/*",), False, BASE + ("sys", "config")),
    Layer("door", ("common/page/door.[ch]", "common/page/jot.[ch]"), True, BASE + ("admin",)),
    Layer("page", ("common/page/*",), False, BASE + ("sys", "net", "config", "admin", "door")),
    Layer("sandbox", ("common/sandbox/*",), False, BASE + ("crypto", "net", "config")),
    Layer("daemon", ("common/daemon/*",), False,
          BASE + ("sys", "crypto", "turn", "db", "identity", "net", "config", "channel", "admin", "door", "page",
            "sandbox")),
    # the wire format: only these files use protobuf; each codec uses its own schema and the shared one
    Layer("chain", ("proto/codec/chain.[ch]",), True, BASE),
    Layer("wire", ("proto/codec/frame.h",), True, BASE),
    Layer("share-chain", ("proto/codec/share_chain.c",), True, BASE + ("wire", "share")),
    Layer("codec-base", ("proto/codec/base.[ch]",), False, BASE + ("wire",)),
    Layer("crowd", ("proto/codec/crowd.[ch]",), False, BASE + ("wire", "codec-base")),
    Layer("rank", ("proto/codec/rank.[ch]",), False, BASE + ("wire", "codec-base")),
    Layer("share", ("proto/codec/share.[ch]",), False, BASE + ("wire", "codec-base")),
    Layer("order", ("proto/codec/order.[ch]",), False, BASE + ("wire", "codec-base", "rank")),
    # the pure parts: each uses only common, so that no party links another's
    Layer("mechanism", ("broker/mechanism/*",), True, BASE + ("noise", "prio")),
    Layer("policy", ("thirdparty/policy/*",), True, BASE),
    Layer("quality", ("worker/quality/*",), True, BASE + ("config",)),
    Layer("privatizer", ("worker/privatizer/*",), True, BASE + ("noise",)),
    # what both brokers have: what may leave, and the keys and the anchor of a database
    Layer("both", ("broker/both/chunks.[ch]", "broker/both/gate.[ch]", "broker/both/ledger.[ch]", "broker/both/mark.h",
                   "broker/both/recover.[ch]", "broker/both/recovery.[ch]"), True,
          BASE + ("mechanism",)),
    Layer("rotate", ("broker/both/rotate.[ch]",), False, COMMON + ("identity", "vault")),
    Layer("recovering", ("broker/both/claims.[ch]", "broker/both/recovering.[ch]"), False,
          COMMON + ("identity", "both", "vault")),
    Layer("holding", ("broker/both/holding.[ch]",), True, BASE + ("door",)),
    Layer("vault", ("broker/both/*",), False, BASE + ("crypto", "db", "both")),
    # the broker's database, in a file or on a server; only the program of the latter is linked with its client
    Layer("lineage", ("broker/store/lineage.[ch]",), True, BASE + ("both",)),
    Layer("term", ("broker/store/term.[ch]",), False, BASE + ("crypto", "both", "vault", "lineage")),
    # who of several brokers is active; the database is behind remote.h
    Layer("remote", ("broker/store/remote.h",), False, BASE + ("crypto", "both")),
    Layer("standby", ("broker/standby.[ch]",), True, BASE + ("admin", "remote")),
    Layer("backend", ("broker/store/backend.h", "broker/store/sealed.[ch]"), False, BASE + ("both", "vault", "broker")),
    Layer("postgres", ("broker/store/postgres*.[ch]",), False,
          BASE + ("sys", "crypto", "pg", "both", "vault", "lineage", "term", "remote", "backend", "broker")),
    # the three daemons: cores, then shells; none includes another
    Layer("broker", ("broker/*",), False,
          COMMON + ("identity", "wire", "crowd", "rank", "order", "share", "chain", "mechanism", "both", "holding",
                    "vault", "rotate", "recovering", "noise", "prio", "prio-verify", "remote", "standby", "backend",
                    "postgres")),
    Layer("cobroker", ("cobroker/*",), False,
          COMMON + ("identity", "wire", "share", "chain", "mechanism", "both", "holding", "vault", "rotate",
                    "recovering", "noise", "prio", "prio-verify")),
    # two parts that the requester's side uses, too: running a policy again, and scores from a data file
    Layer("replay", ("thirdparty/replay*.[ch]",), False, BASE + ("thirdparty", "policy")),
    Layer("source", ("worker/source.[ch]", "worker/budget.[ch]", "worker/bytes.[ch]", "worker/column.[ch]",
                     "worker/data.[ch]", "worker/duels.[ch]", "worker/feed*.[ch]", "worker/records.[ch]",
                     "worker/remarks.[ch]", "worker/spelling.h", "worker/spill.[ch]",
                     "worker/starved.[ch]", "worker/tally.[ch]", "worker/taxi.[ch]"), False,
          BASE + ("config", "campaign", "quality")),
    Layer("thirdparty", ("thirdparty/*",), False, COMMON + ("identity", "wire", "rank", "chain", "policy", "replay")),
    Layer("worker", ("worker/*",), False,
          COMMON + ("campaign", "identity", "wire", "crowd", "share", "quality", "privatizer", "noise", "source",
                    "prio", "prio-shard")),
    # a campaign file, prepared and checked against the parties' tables; below the requester and the experiments
    Layer("bound", ("prepare/bound.[ch]",), True, BASE + ("policy", "quality")),
    Layer("prepare", ("prepare/*",), False,
          BASE + ("crypto", "campaign", "policy", "quality", "source", "bound")),
    # a campaign in one process, with the deployed algorithms; below the requester and the experiments
    Layer("sampler", ("simulate/sampler/*",), True, BASE),
    Layer("simulate", ("simulate/*",), False,
          BASE + ("config", "campaign", "noise", "mechanism", "policy", "quality", "privatizer", "sampler", "source",
                  "prepare")),
    # the requester's side; it runs a policy again to verify, and reads data as the workers do
    Layer("launcher", ("deploy/*",), False,
          COMMON + ("campaign", "identity", "wire", "order", "rank", "chain", "mechanism", "policy", "replay",
                    "quality", "source", "prepare", "bound", "simulate")),
    # an audit covers the whole path from a worker's score to the third-party's view, through the cores
    Layer("audit", ("lab/audit/*",), False,
          COMMON + ("campaign", "noise", "mechanism", "both", "quality", "privatizer", "identity", "wire", "crowd",
                    "rank", "order", "chain", "share", "share-chain", "prio", "prio-shard", "prio-verify", "broker",
                    "cobroker", "source", "worker", "lab")),
    # the lab: results and their file, experiments as data, running and judging, presentation, the commands
    Layer("numbers", ("lab/result/result.[ch]", "lab/judge/statistic.[ch]"), False, BASE + ("config",)),
    Layer("archive", ("lab/result/archive.[ch]", "lab/result/origin.[ch]", "lab/result/merge.[ch]"), False,
          BASE + ("crypto", "db", "numbers")),
    Layer("experiment", ("lab/experiment/experiment.h",), False, BASE + ("config", "campaign", "source", "numbers")),
    Layer("report", ("lab/report/*",), False, BASE + ("config", "numbers", "experiment", "lab")),
    Layer("command", ("lab/main.c", "lab/command/*"), False,
          BASE + ("sys", "config", "numbers", "archive", "experiment", "lab", "report", "audit")),
    Layer("lab", ("lab/*",), False,
          BASE + ("config", "campaign", "noise", "mechanism", "policy", "quality", "privatizer", "sampler", "source",
                  "prepare", "bound", "simulate", "numbers", "archive", "experiment")),
)

# tests may include everything; nothing but tests may include tests
TESTS = "tests/*"

# Folders whose subfolders each own their names (see rules.names).
ROOMS_INSIDE = ("common", "proto", "broker", "cobroker", "thirdparty", "worker", "deploy")

# Parts that know mechanisms and privatizers by their traits only (see rules.traits).
BY_TRAITS = ("thirdparty/*", "worker/*")

# System headers that pure code must not include.
IMPURE_HEADERS = ("uv.h", "uv/", "openssl/", "sqlite3.h", "libpq-fe.h", "protobuf-c/", ".pb-c.h", "time.h",
                  "sys/time.h",
                  "sys/socket.h", "sys/stat.h", "sys/mman.h", "netinet/", "arpa/", "netdb.h", "unistd.h", "fcntl.h",
                  "signal.h", "pthread.h", "threads.h", "microhttpd.h", "jansson.h", "yaml.h", "locale.h", "poll.h")
# Formatting into a buffer is pure, so <stdio.h> and <stdlib.h> are allowed; these calls are not.
IMPURE_CALLS = ("printf", "fprintf", "vprintf", "vfprintf", "dprintf", "puts", "fputs", "putchar", "fputc", "fopen",
                "fdopen", "fread", "fwrite", "fgets", "getline", "scanf", "fscanf", "perror", "getenv", "setenv",
                "time", "clock", "clock_gettime", "rand", "srand", "random", "drand48", "getrandom", "exit", "remove")
# Files whose purpose is one impure call.
IMPURE_ALLOWED = {"common/base/err.c": ("fprintf",)}  # CV_REQUIRE prints its place before it aborts

# Calls that no file of the project may make, and what to use instead.
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
SPDX_EXEMPT = ("LICENSE", "LICENSES/*", "page/vendor/*", "*.json", "*.csv", "*.png", "*.svg", "*.pem",
               "tests/fuzz/corpus/*", "tests/data/*/*", "*.bin", "deploy/debian/changelog", "deploy/debian/copyright",
               "deploy/debian/source/format")
