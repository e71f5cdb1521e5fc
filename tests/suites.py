# SPDX-License-Identifier: Apache-2.0
"""Builds and runs the test suites; tests/run is the way in."""
import argparse
import atexit
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
import time
import xml.etree.ElementTree as ElementTree
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from support import postgres  # noqa: E402
from support.tally import Tally  # noqa: E402

BUILD = ROOT / "build"
PYTHON = "/usr/bin/python3"
CORES = len(os.sched_getaffinity(0))
ON_DISK = Path(tempfile.gettempdir())
MEMORY, ENOUGH = Path("/dev/shm"), 6 << 30
AUTOGROUP = Path("/proc/sys/kernel/sched_autogroup_enabled")


def run(command, quiet=True, **kwargs):
    """The finished process; its output has both streams in one."""
    return subprocess.run([str(part) for part in command], cwd=ROOT, text=True, errors="replace",
                          stdout=subprocess.PIPE if quiet else None, stderr=subprocess.STDOUT if quiet else None,
                          **kwargs)


def work_in_memory():
    """Temporary files from here on, if there is room: a virtual machine whose processors are all busy may have no disk
    for a minute."""
    try:
        info = os.statvfs(MEMORY)
    except OSError:
        return
    if info.f_bavail * info.f_frsize >= ENOUGH and os.access(MEMORY, os.W_OK) and not info.f_flag & os.ST_NOEXEC:
        os.environ["TMPDIR"] = tempfile.tempdir = str(MEMORY)


def schedule_processes():
    """Not sessions, for the time of this run, if this user may say so: Linux 6.18 lets a session that seldom runs, as
    each connection of PostgreSQL is one, wait for ten seconds beside a busy one."""
    try:
        before = AUTOGROUP.read_text()
        if before.strip() != "0":
            AUTOGROUP.write_text("0\n")
            atexit.register(AUTOGROUP.write_text, before)
    except OSError:
        pass


def tail(text, lines=40):
    return "\n".join(text.rstrip().split("\n")[-lines:])


def tracked():
    """Paths of the checkout's tracked files; of an unpacked archive, all outside build folders."""
    listed = run(["git", "-c", f"safe.directory={ROOT}", "ls-files"])
    if listed.returncode == 0:
        return sorted(path for path in set(listed.stdout.split("\n")) if path and (ROOT / path).is_file())
    return sorted(str(path.relative_to(ROOT)) for path in ROOT.rglob("*")
                  if path.is_file() and not re.match(r"build|\.git/", str(path.relative_to(ROOT))))


def own_code():
    return [path for path in tracked() if path.endswith((".c", ".h"))]


# --- building

# What was compiled already, in this checkout or another one, is taken from ccache; so the folder of a build is left out
# of what has to be the same.
COMPILER_CACHE = {"CCACHE_NOHASHDIR": "1"}


def cached(compiler):
    return f"ccache {compiler}" if shutil.which("ccache") else compiler


def configure(folder, compiler, **options):
    """Sets the folder up once; a folder that was set up otherwise gets these options. Returns the error, or None."""
    options = {"werror": "true", "tests": "true", **options}
    wanted = [f"-D{name}={value}" for name, value in options.items()]
    if not (folder / "build.ninja").exists():
        shutil.rmtree(folder, ignore_errors=True)
        done = run(["meson", "setup", folder, *wanted], env=dict(os.environ, CC=cached(compiler)))
        return done.stdout if done.returncode else None
    listed = run(["meson", "introspect", folder, "--buildoptions"])
    present = {entry["name"]: str(entry["value"]).lower() for entry in json.loads(listed.stdout or "[]")}
    if all(present.get(name) == value for name, value in options.items()):
        return None
    done = run(["meson", "configure", folder, *wanted])
    return done.stdout if done.returncode else None


def build(tally, name, folder, compiler, **options):
    """Configures once and builds; True if all of it compiled."""
    started = time.monotonic()
    error = configure(folder, compiler, **options)
    if error is None:
        done = run(["ninja", "-C", folder, "-k", "0"], env=dict(os.environ, **COMPILER_CACHE))
        error = done.stdout if done.returncode else None
    if error is not None:
        # only the failures, without the steps that succeeded
        failures = [line for line in error.split("\n") if not re.match(r"\[\d+/\d+\] |ninja: Entering", line)]
        tally.fail(name, "\n" + tail("\n".join(failures), 60))
        return False
    print(f"{name}: built in {time.monotonic() - started:.0f} s", flush=True)
    tally.ok()
    return True


def main_build(tally):
    return build(tally, "build", BUILD, "gcc")


# --- suites


def reuse(tally):
    """Each tracked file has a licence and a copyright, as reuse reads them. It runs on a copy, which has no other
    files."""
    if shutil.which("reuse") is None:
        tally.skip("lint reuse", "no reuse")
        return
    with tempfile.TemporaryDirectory() as copy:
        run(["cp", "--parents", "-t", copy, *tracked()])
        done = run(["reuse", "--root", copy, "lint"])
    said = done.stdout.replace(f"{copy}/", "")
    errors = [line for line in said.split("\n") if " - ERROR - " in line]  # it exits 0 after some
    tally.check("lint reuse", errors + ([tail(said)] if done.returncode else []))


def lint(tally):
    from lint import rules, selftest
    tally.check("lint self-test", selftest.faults())
    tally.check("planting self-test", selftest.planting())
    files = {}
    for path in tracked():
        try:
            files[path] = (ROOT / path).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
    for rule in rules.ALL:
        tally.check(f"lint {rule.__name__}", rule(files))
    reuse(tally)


def in_batches(paths, size=40):
    return [paths[at:at + size] for at in range(0, len(paths), size)]


def format_check(tally, fix=False):
    """One case: every file is formatted as clang-format does it."""
    if shutil.which("clang-format") is None:
        tally.skip("format", "no clang-format")
        return
    with ThreadPoolExecutor(CORES) as pool:
        if fix:
            list(pool.map(lambda paths: run(["clang-format", "-i", *paths]), in_batches(own_code())))
        checks = list(pool.map(lambda paths: run(["clang-format", "--dry-run", "-Werror", *paths]),
                               in_batches(own_code())))
    places = Counter(found for done in checks for found in re.findall(r"^(.+?):\d+:\d+: error:", done.stdout, re.M))
    problems = [f"{path}: {count} places are formatted otherwise; `tests/run format --fix` corrects them"
                for path, count in sorted(places.items())]
    if not problems:
        problems = [tail(done.stdout, 5) or f"status {done.returncode}" for done in checks if done.returncode]
    tally.check("format", problems)


def junit_cases(path):
    """(name, 'passed' | 'failed' | 'skipped', message) of each test case of a JUnit file."""
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        name = "::".join(part for part in (case.get("classname"), case.get("name")) if part)
        state, message = "passed", ""
        for child in case:
            if child.tag in ("failure", "error"):
                where = re.findall(r"^\S+\.py:\d+", child.text or "", re.M)[:1]
                state, message = "failed", ": ".join((*where, child.get("message") or (child.text or "")))
            elif child.tag == "skipped" and state == "passed":
                state, message = "skipped", child.get("message") or (child.text or "")
        yield name, state, message.strip()


def count(tally, name, state, message):
    if state == "passed":
        tally.ok()
    elif state == "skipped":
        tally.skip(name, message)
    else:
        tally.fail(name, message)


def meson_test(tally, name, folder, timeout_factor=None, extra_env=None, wrapper=None, names=()):
    """Counts every subtest of every unit test; a program that dies counts as a failure, with its last lines."""
    def attempt(jobs, *chosen):
        """(the programs' results, output)"""
        for old in logs.glob("testlog*"):
            old.unlink()
        done = run(["meson", "test", "-C", folder, "--no-rebuild", "--no-stdsplit", "--num-processes", jobs,
                    *(("--timeout-multiplier", timeout_factor) if timeout_factor else ()),
                    *(("--wrapper", wrapper) if wrapper else ()), *chosen],
                   env=dict(os.environ, **(extra_env or {}), **server))
        written = list(logs.glob("testlog*.json"))  # the wrapper's name is in the file's
        return [json.loads(line) for path in written for line in path.read_text().splitlines()], done.stdout

    logs = folder / "meson-logs"
    with postgres.serving(in_memory=True, trusts=True) as server:
        programs, output = attempt(CORES + 1, *names)
        failed = [program for program in programs if program["result"] not in ("OK", "EXPECTEDFAIL", "SKIP")]
        for program in failed if len(failed) <= AGAIN else ():
            again, _ = attempt(1, program["name"].split(" / ")[-1])
            if [one["result"] for one in again] == ["OK"]:
                tally.flake(f"{name} {program['name']}", first_problem(program))
                programs[programs.index(program)] = again[0]
    if not programs:
        tally.fail(name, tail(output) or "no tests are registered; expected some under tests/unit")
    tally.fuzzed = {}
    for program in programs:
        count_program(tally, name, program)
    inputs = sum(tally.fuzzed.values())
    tally.notes.append(f"{name}: {inputs} fuzz inputs replayed through {len(tally.fuzzed)} harnesses")


# a line of TAP; the line before it has the reason for a skip, see tests/support/machine.h
POINT = re.compile(r"^(?:# skipped: (.*)\n)?(not )?ok\b[ \d]*-?[ \t]*([^#\n]*)(#\s*(?:skip|todo)[^\n]*)?", re.M | re.I)


def first_problem(program):
    """The first line that tells why it failed, or how it ended."""
    output = program.get("stdout", "") + program.get("stderr", "")
    told = re.search(r"^(?:not ok|.*(?:error|Error|ERROR)).*", output, re.M)
    return told[0].strip() if told else f"{program['result']}, status {program.get('returncode')}"


def count_program(tally, name, program):
    label = f"{name} {program['name']}"
    output = program.get("stdout", "") + program.get("stderr", "")
    replayed = re.search(r"^(\d+) inputs$", output, re.M)
    if program["result"] == "OK" and "fuzz-" in label and replayed:
        tally.fuzzed[label] = int(replayed[1])
    points = POINT.findall(output)
    failed_before = tally.failed
    for why, bad, case, directive in points:
        state = "skipped" if directive or why and not bad else "failed" if bad else "passed"
        count(tally, f"{label}: {case.strip()}", state, why or directive.strip("# "))
    if program["result"] in ("OK", "EXPECTEDFAIL"):
        if not points:
            tally.ok()
    elif program["result"] == "SKIP":
        if not points:
            tally.skip(label, "skipped by the test")
    elif tally.failed == failed_before:
        tally.fail(label, f"{program['result']}, status {program.get('returncode')}")
    if tally.failed > failed_before:
        print(tail("\n".join(line for line in output.split("\n") if not line.startswith("ok ")), 25), flush=True)


def unit(tally):
    """Of the failing allocations every fourth one; the suite of the sanitizer has others, and `long` has all."""
    meson_test(tally, "unit", BUILD, extra_env={"ALLOC_FAULT_TIMES": "4"})


def unit_names(folder):
    """Names of the tests, as `meson test` takes them."""
    listed = run(["meson", "introspect", folder, "--tests"])
    return [entry["name"] for entry in json.loads(listed.stdout or "[]")]


# --- the same tests under sanitizers


class Watched:
    """A build in a folder of its own, whose programs write sanitizer reports into files: no test reads a daemon's
    stderr."""

    def __init__(self, tally, name, what, sanitizers):
        self.tally, self.folder = tally, ROOT / f"build-{name}"
        self.reports = self.folder / "reports"
        self.built = build(tally, f"build with {what}", self.folder, "gcc", b_sanitize=sanitizers, optimization="1",
                           b_lundef="false")

    def env(self, **options):
        """The sanitizers' environment; empties the folder of reports."""
        shutil.rmtree(self.reports, ignore_errors=True)
        self.reports.mkdir()
        return {"CROWDVEIL_SANITIZED": "1",
                **{name: f"{value}:log_path={self.reports}/{name.split('_')[0].lower()}"
                   for name, value in options.items()}}

    def check(self, suite):
        found = [f"{path.name}\n{tail(path.read_text(errors='replace'), 60)}" for path in self.reports.iterdir()]
        self.tally.check(f"{suite}: reports of programs", found)


def with_asan(tally):
    return Watched(tally, "asan", "address and undefined-behaviour sanitizers", "address,undefined")


ASAN = {"ASAN_OPTIONS": "abort_on_error=1:detect_leaks=1:strict_string_checks=1",
        "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1"}


# Worlds that the sanitizer sees over a file; over a server they wait for it, and other programs use all of that code.
# And statistics, which draw millions of times what others draw sometimes, and longer schedules of what `sim` has.
NOT_UNDER_ASAN = ("broker_core_postgres", "broker_graph_postgres", "broker_pairs_postgres", "sim-soak",
                  "unit-lab-audit", "unit-lab-measure", "unit-sampler-normal")


def asan(tally):
    """Of the failing allocations every eighth one, from the third on: none that the unit suite has."""
    watched = with_asan(tally)
    if watched.built:
        names = [name for name in unit_names(watched.folder) if name not in NOT_UNDER_ASAN]
        meson_test(tally, "asan", watched.folder, 16, {**ASAN, "ALLOC_FAULT_FROM": "3", "ALLOC_FAULT_TIMES": "8"},
                   names=names)


# Freed memory is held in quarantine to detect later use; only little of it, since tests measure a daemon's memory.
BRIEF = {"ASAN_OPTIONS": ASAN["ASAN_OPTIONS"] + ":quarantine_size_mb=8"}


def asan_e2e(tally, extra=()):
    watched = with_asan(tally)
    if watched.built:
        pytest(tally, "asan-e2e", "tests/e2e", *extra, marks=NORMAL, folder=watched.folder,
               env=watched.env(**{**ASAN, **BRIEF}))
        watched.check("asan-e2e")


# Unit tests and end-to-end tests of what has several threads: the loop, the storage thread, the resolver's threads.
THREADED = ("net-peer", "net-tls", "net-admin", "net-probe", "unit-db", "unit-committer")
THREADED_E2E = ("tests/e2e/test_ranking.py", "tests/e2e/test_restart.py", "tests/e2e/test_crowd.py")


def tsan(tally):
    watched = Watched(tally, "tsan", "thread sanitizer", "thread")
    if watched.built:
        env = watched.env(TSAN_OPTIONS="halt_on_error=0:exitcode=66:second_deadlock_stack=1")
        meson_test(tally, "tsan", watched.folder, 16, env, names=THREADED)
        pytest(tally, "tsan", *THREADED_E2E, marks="not long", folder=watched.folder, env=env)
        watched.check("tsan")


VALGRIND = ("valgrind -q --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite,possible"
            " --soname-synonyms=somalloc=nouserintercepts")  # so that alloc_fault.c's malloc stays in use
# These take minutes each; the address sanitizer covers them.
NOT_UNDER_VALGRIND = {"sim": "thousands of schedules", "unit-lab-audit": "millions of draws",
                      "prio-secrets": "runs valgrind itself",
                      "broker_memory_postgres": "begins hundreds of sessions",
                      "broker_postgres_memory": "begins hundreds of sessions",
                      "sandbox": "valgrind knows neither Landlock's nor seccomp's system call"}


def valgrind(tally):
    if shutil.which("valgrind") is None:
        tally.skip("valgrind", "no valgrind")
        return
    names = [name for name in unit_names(BUILD) if name not in NOT_UNDER_VALGRIND]
    meson_test(tally, "valgrind", BUILD, 40, {"ALLOC_FAULT_STEP": "211"}, VALGRIND, names)


def clang(tally):
    if shutil.which("clang") is None:
        tally.skip("build with clang", "no clang")
        return
    build(tally, "build with clang", ROOT / "build-clang", "clang", optimization="0", debug="false", tests="false")


def tidy(tally):
    if shutil.which("clang-tidy") is None:
        tally.skip("tidy", "no clang-tidy")
        return
    clang(tally)
    sources = [path for path in own_code() if path.endswith(".c") and not path.startswith("tests/")]
    with ThreadPoolExecutor(CORES) as pool:
        results = pool.map(lambda path: run(["clang-tidy", "--quiet", "-p", ROOT / "build-clang", path]), sources)
    problems = []
    for path, done in zip(sources, results):
        if done.returncode:
            found = [line for line in done.stdout.split("\n") if re.search(r": (error|warning|note):", line)]
            problems += [path, *(found or [f"status {done.returncode}"])]
    tally.check("tidy", problems)


def structure(tally, say=print):
    import boundary as checker
    for name, problems in checker.checks(BUILD, say):
        tally.check(f"boundary {name}", problems)


def boundary(tally):
    structure(tally)
    print("files, logs, answers, traffic and memory, searched for known tokens and sums", flush=True)
    pytest(tally, "boundary", "-rP", *EVIDENCE, dist="load")


# End-to-end tests that show what a party can and cannot see; they belong to the boundary suite.
EVIDENCE = ("tests/e2e/test_secrets.py", "tests/e2e/test_network.py")


PROCESSES = min(CORES + 4, 8)  # of one run of pytest; a test waits more than it computes


def pytest(tally, suite, *args, marks="", jobs=PROCESSES, dist="loadfile", folder=BUILD, env=None):
    """
    Runs the tests on the programs in this build folder: `jobs` files at a time (or tests, with `dist` "load"), and
    afterwards, one by one, the tests that are marked `alone`. `marks` selects tests, as pytest's -m does.
    """
    told = folder / f"{suite}.json"
    told.unlink(missing_ok=True)
    env = dict(os.environ, CROWDVEIL_BUILD=str(folder), CROWDVEIL_TOLD=str(told),
               PYTHONPYCACHEPREFIX=str(folder / "pycache"), **(env or {}))
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    if jobs == 1:
        pytest_once(tally, suite, folder / f"{suite}.xml", env, "-m", marks, *args)
    else:
        also = f"{marks} and " if marks else ""
        for beside, part, chosen in (True, suite, f"{also}not alone"), (False, f"{suite}-alone", f"{also}alone"):
            found = min(jobs, collected(env, "-m", chosen, *args))
            if found:
                pytest_once(tally, suite, folder / f"{part}.xml", env, "-m", chosen, *args,
                            *(("-n", str(found), "--dist", dist) if beside else ()))
    if told.exists():
        tally.notes += [f"{suite}: {line}" for line in json.loads(told.read_text())["lines"]]


NO_TESTS = 5  # pytest's status
AGAIN = 8     # at most so many failed tests are run once more
NORMAL = "not long and not before"


def collected(env, *args):
    """
    How many tests would run. All processes find them compiled afterwards; each would compile them by itself otherwise.
    After an error it is a large number: the run tells.
    """
    done = run([PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--collect-only", *args], env=env)
    return sum("::" in line for line in done.stdout.split("\n")) if done.returncode in (0, NO_TESTS) else PROCESSES


def pytest_once(tally, suite, report, env, *args):
    """Counts the cases. Those that fail, if they are few, are run once more, one by one."""
    cases = pytest_cases(tally, suite, report, env, *args)
    failed = [case for case in cases if case[1] == "failed"]
    for case in failed if len(failed) <= AGAIN else ():
        name, _, message = case
        module, _, test = name.partition("::")
        again = pytest_cases(tally, suite, report.with_suffix(".again.xml"), env, "-m", "",
                             f"{module.replace('.', '/')}.py::{test}")
        if [state for _, state, _ in again] == ["passed"]:
            tally.flake(f"{suite} {name}", message.split("\n")[0])
            cases[cases.index(case)] = again[0]
    for name, state, message in cases:
        count(tally, f"{suite} {name}", state, message.split("\n")[0])


def pytest_cases(tally, suite, report, env, *args):
    """(name, state, message) of each case of one run of pytest."""
    report.unlink(missing_ok=True)
    folder = tempfile.mkdtemp(prefix="cv-", dir=env.get("TMPDIR"))  # short: paths of Unix sockets are limited
    done = run([PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}", "--tb=short",
                f"--basetemp={folder}", *args], quiet=False, env=env)
    if done.returncode in (0, NO_TESTS):
        shutil.rmtree(folder, ignore_errors=True)
    else:
        run(["mv", folder, ON_DISK])
        print(f"{suite}: the tests' files are in {ON_DISK / Path(folder).name}", flush=True)
    if not report.exists():
        tally.fail(suite, f"pytest ended with status {done.returncode} and no report")
        return []
    cases = list(junit_cases(report))
    if done.returncode not in (0, NO_TESTS) and all(state != "failed" for _, state, _ in cases):
        tally.fail(suite, f"pytest ended with status {done.returncode}, see above")
    tally.notes += [f"{suite}: {entry.get('value')}" for entry in ElementTree.parse(report).getroot().iter("property")
                    if entry.get("name") == "say"]
    return cases


def e2e(tally, extra=()):
    pytest(tally, "e2e", "tests/e2e", marks=NORMAL, *(f"--ignore={path}" for path in EVIDENCE), *extra)


def long(tally):
    meson_test(tally, "long", BUILD, names=[name for name in unit_names(BUILD) if "memory" in name])
    pytest(tally, "long", "tests/e2e", marks="long")


def released_versions():
    folders = (path.name for path in (ROOT / "tests/data").iterdir() if path.is_dir())
    return sorted(folders, key=lambda version: [int(part) for part in version.split(".")])


def release(version):
    """Its commit, which added its folder to tests/data; or (None, reason)."""
    git = ["git", "-c", f"safe.directory={ROOT}"]
    shallow = run([*git, "rev-parse", "--is-shallow-repository"])
    done = run([*git, "log", "--diff-filter=A", "--format=%H", "--", f"tests/data/{version}/anchor"])
    if shallow.returncode or shallow.stdout.strip() != "false" or not done.stdout.strip():
        return None, f"the checkout does not have the history up to version {version}"
    return done.stdout.split()[-1], None


def build_before(version):
    """(build folder of its programs outside the tree, None), made once; or (None, reason)."""
    commit, reason = release(version)
    if commit is None:
        return None, reason
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "crowdveil" / commit[:12]
    if not (folder / "complete").exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        archive = subprocess.run(["git", "-c", f"safe.directory={ROOT}", "archive", commit], cwd=ROOT,
                                 capture_output=True)
        if archive.returncode:
            return None, f"git has no archive of {commit[:8]}"
        subprocess.run(["tar", "-x", "-C", folder], input=archive.stdout, check=True)
        for command in (["meson", "setup", "-Ddebug=false", "-Dtests=false", folder / "build", folder],
                        ["ninja", "-C", folder / "build"]):
            done = run(command)
            if done.returncode:
                return None, f"{commit[:8]} cannot be built: {tail(done.stdout, 3)}"
        (folder / "complete").touch()
    return folder / "build", None


def before(tally):
    """Programs of the version that was released last beside those of this one."""
    versions = released_versions()
    folder, reason = build_before(versions[-1]) if versions else (
        BUILD, "no version has been released yet: this version's own programs take the part of an earlier one's")
    if reason:
        tally.skip("before", reason)
    if folder:
        pytest(tally, "before", "tests/e2e/test_peers_before.py", "tests/e2e/test_takeover_drill.py", marks="before",
               dist="load", env={"CROWDVEIL_BEFORE": str(folder)})


def containers(tally, extra=()):
    """Images and compose files under podman, if it can be installed."""
    done = run([ROOT / "deploy/bootstrap", "containers"])
    if done.returncode:
        tally.skip("containers", f"no engine can be installed: {tail(done.stdout, 1)}")
        return
    pytest(tally, "containers", "tests/containers", *extra, jobs=1)


BROWSERS = 2


def python(tally):
    """The Python package: its types, and its tests, which need no program."""
    if shutil.which("mypy") is None:
        tally.skip("python: types", "no mypy")
    else:
        done = run(["mypy", "--config-file", "python/pyproject.toml", "--cache-dir", "/dev/null", "python/crowdveil"])
        tally.check("python: types", [tail(done.stdout)] if done.returncode else [])
    pytest(tally, "python", "python/tests", dist="load")


def page(tally, extra=()):
    """The page in a headless browser, if it can be installed."""
    done = run([ROOT / "deploy/bootstrap", "page"])
    if done.returncode:
        tally.skip("page", f"no browser can be installed: {tail(done.stdout, 1)}")
        return
    pytest(tally, "page", "tests/page", *extra, jobs=BROWSERS, dist="load")


def package(tally, extra=()):
    """The Debian packages, the units of systemd and the shells' completion."""
    done = run([ROOT / "deploy/bootstrap", "package"])
    if done.returncode:
        tally.skip("package", f"the tools for packages cannot be installed: {tail(done.stdout, 1)}")
        return
    pytest(tally, "package", "tests/package", *extra, jobs=1, env={"TMPDIR": str(ON_DISK)})  # systems with devices


def model(tally):
    """The term of several brokers over one database, explored by Spin, and planted faults, each of which it finds."""
    done = run([ROOT / "deploy/bootstrap", "model"])
    if done.returncode:
        tally.skip("model", f"Spin cannot be installed: {tail(done.stdout, 1)}")
        return
    done = run([ROOT / "tests/model/check"])
    print("".join(f"{line[2:]}\n" for line in done.stdout.splitlines() if line.startswith("# ")), end="", flush=True)
    count_program(tally, "model", {"name": "check", "stdout": done.stdout, "returncode": done.returncode,
                                   "result": "OK" if done.returncode == 0 else "FAIL"})


def slurm(tally):
    """The laboratory's job array under a real Slurm of one node."""
    done = run([ROOT / "deploy/bootstrap", "slurm"])
    if done.returncode:
        tally.skip("slurm", f"Slurm cannot be installed: {tail(done.stdout, 1)}")
        return
    pytest(tally, "slurm", "tests/slurm", jobs=1)


def contributing(tally):
    """CONTRIBUTING.md, followed word for word in a copy of the tree."""
    pytest(tally, "contributing", "tests/contributing", jobs=1)


# Schedules in a run of all suites. From SIM_MUST schedules on, every event that the simulation can reach must be
# reached.
SIM_RUNS, SIM_MUST, SIM_FIRST = 1000, 10000, 1001


def sim(tally, runs=None, first=None):
    """`runs` given: that many schedules over new seeds, taken from the time of day, or from the seed `first` on."""
    if first is None:
        first = SIM_FIRST if runs is None else int(time.time()) * 1000
    runs = runs or SIM_RUNS
    print(f"{runs} schedules from seed {first}; again: tests/run sim --long {runs} --from {first}", flush=True)
    command = [BUILD / "tests/sim/sim", "--runs", runs, "--from", first, "--jobs", CORES, "--progress"]
    command += ["--must"] if runs >= SIM_MUST else []
    done = subprocess.run([str(part) for part in command], cwd=ROOT, text=True, stdout=subprocess.PIPE)
    print(done.stdout, end="", flush=True)
    tally.notes += [f"sim: {line}" for line in done.stdout.splitlines()[-1:]]
    tally.check(f"{runs} simulated schedules", [f"status {done.returncode}, see above"] if done.returncode else [])


# Tests that the quick suite leaves out: 5 to 25 s each.
NOT_QUICK = {"broker_memory": "every allocation fails in turn", "broker_memory_graph": "the same",
             "broker_memory_hires": "the same", "broker_memory_two": "the same", "thirdparty_memory": "the same",
             "unit-lab-audit": "millions of draws", "unit-sampler-binomial": "the same",
             "unit-sampler-normal": "the same",
             "net-tls": "waits for every time limit", "net-bounds": "megabytes of every frame",
             "sim": "the quick suite has schedules of its own", "sim-soak": "the same"}
QUICK_RUNS = 300


def quick(tally):
    """A part of every default suite; its end-to-end tests are those that are marked `quick`."""
    lint(tally)
    format_check(tally)
    meson_test(tally, "unit", BUILD, names=[name for name in unit_names(BUILD) if name not in NOT_QUICK])
    sim(tally, QUICK_RUNS, SIM_FIRST)
    structure(tally, say=lambda line: None)
    pytest(tally, "quick", "tests/e2e", marks="quick")


VECTORS = ("tests/vectors/vdaf", "tests/vectors/own")


def vectors(tally, folder=None):
    """Test vectors of Prio3 in the format of the draft: the committed ones and random ones, or those of a folder."""
    replay = BUILD / "tests/vectors/replay"
    check_program(tally, "vectors", replay, *((Path(folder).absolute(),) if folder else VECTORS))
    if not folder:
        check_program(tally, "vectors: planted", ROOT / "tests/vectors/planted", replay)
        for name, command in (("own are the reference's", ("make", "--check")), ("agreement", ("agree", replay))):
            done = run([ROOT / "tests/vectors" / command[0], *command[1:]])
            tally.notes += [f"vectors: {line[2:]}" for line in done.stdout.splitlines() if line.startswith("# ")]
            tally.check(f"vectors: {name}", [tail(done.stdout)] if done.returncode else [])


def check_program(tally, label, *command):
    """Counts the points of a program that prints TAP."""
    done = run(command)
    count_program(tally, label, {"name": Path(command[0]).name, "stdout": done.stdout, "returncode": done.returncode,
                                 "result": "OK" if done.returncode == 0 else "FAIL"})


def mutations(tally):
    done = run([ROOT / "tests/sim/mutations"], quiet=False)
    tally.check("planted faults are found", [f"status {done.returncode}, see above"] if done.returncode else [])


def recall(tally):
    done = run([ROOT / "tests/audit/recall"], quiet=False)
    tally.check("the audit finds planted faults", [f"status {done.returncode}, see above"] if done.returncode else [])


def fuzz(tally, seconds):
    """Every harness for an equal share of the time; with libFuzzer, or with AFL++ if FUZZER=afl."""
    harnesses = sorted(path.name for path in (ROOT / "tests/fuzz/corpus").iterdir())
    share = max(1, seconds // len(harnesses))
    done = run([ROOT / "tests/fuzz/run", share], quiet=False)
    tally.check(f"{len(harnesses)} harnesses, {share} s each",
                [f"tests/fuzz/run ended with status {done.returncode}; see the table"] if done.returncode else [])


SUITES = {"quick": quick, "lint": lint, "format": format_check, "unit": unit, "boundary": boundary, "e2e": e2e,
          "contributing": contributing, "before": before, "page": page, "clang": clang, "asan": asan,
          "containers": containers, "package": package, "tidy": tidy, "sim": sim, "mutations": mutations,
          "recall": recall, "long": long, "fuzz": fuzz, "asan-e2e": asan_e2e, "tsan": tsan, "valgrind": valgrind,
          "python": python, "vectors": vectors, "model": model,
          "slurm": slurm}
ON_BUILD = ("quick", "unit", "boundary", "e2e", "before", "containers", "package", "page", "sim", "slurm", "long",
            "valgrind", "vectors")
DEFAULT = ("lint", "format", "unit", "vectors", "python", "sim", "boundary", "e2e")
WATCHED = ("page", "e2e", "contributing", "before", "clang", "asan")
BESIDE = (("containers", "slurm"), ("package", "model"))  # the first of each spends most of its time waiting


class Beside:
    """Suites that run one by one in another process beside the others; join() prints their report."""

    def __init__(self, suites):
        self.suites, self.log = suites, tempfile.TemporaryFile("w+", errors="replace")
        self.process = subprocess.Popen([PYTHON, "-B", __file__, *suites], stdout=self.log, stderr=subprocess.STDOUT)

    def join(self, tally):
        status = self.process.wait()
        self.log.seek(0)
        report = self.log.read()
        print(report, end="", flush=True)
        tally.failures += dict.fromkeys(re.findall(r"^FAILED .+", report, re.M))
        counts = re.findall(r"^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$", report, re.M)
        if not counts or status not in (0, 1):
            tally.fail(", ".join(self.suites), f"ended with status {status} and without its counts")
            return
        tally.passed, tally.failed, tally.skipped = (
            sum_ + int(more or 0) for sum_, more in zip((tally.passed, tally.failed, tally.skipped), counts[-1]))


def whole(text):
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f'"{text}" is not a whole number above 0')
    return int(text)


# What each suite does, and about how long it takes on two free cores, from a built tree.
ABOUT = {
    "quick": ("a part of each default suite: lint, format, unit tests without the slow ones, "
              f"{QUICK_RUNS} simulated schedules, the trust boundary in the programs, and a few end-to-end tests: "
              "rankings, a recruitment, restarts after kill -9, refusals", "50 s"),
    "lint": ("rules for the code that no compiler checks", "2 s"),
    "format": ("all C files are formatted as clang-format does it", "2 s"),
    "unit": ("unit tests, and the corpus of every fuzz harness", "55 s"),
    "vectors": ("test vectors of Prio3: the draft's, own ones, random ones of a Python reference, and changed ones, "
                "which must fail", "5 s"),
    "python": ("the Python package: types (mypy), and tests with hypothesis that need no program", "30 s"),
    "sim": (f"{SIM_RUNS} simulated schedules of crashes, cuts and failing disks", "10 s"),
    "boundary": ("what each party's program, files, traffic and memory contain", "30 s"),
    "e2e": ("end-to-end tests: the programs on this machine", "200 s"),
    "clang": ("build with clang", ""),
    "asan": ("unit tests with the address and undefined-behaviour sanitizers", ""),
    "containers": ("images and compose files under podman", ""),
    "package": ("Debian packages, built twice, installed, run and removed in a clean system; systemd's units; "
                "completion in bash and zsh", "100 s"),
    "contributing": ("follows the tutorials of CONTRIBUTING.md in a copy of the tree", "170 s"),
    "page": ("the page in a headless browser; its pictures are in build/page", "60 s"),
    "before": ("programs of the version released last, built once from the repository's history, beside those of this "
               "one", "60 s, the first time 120 s more"),
    "model": ("a model of several brokers over one database, explored by Spin in every state; planted faults, each of "
              "which it has to find", "60 s"),
    "slurm": ("the laboratory's job array under a real Slurm: tasks that die, a node that fails, a merge", "30 s"),
    "tidy": ("clang-tidy", ""),
    "mutations": ("plants faults in the code; sim must find each", ""),
    "recall": ("plants faults in the code; the privacy audit must find each", ""),
    "long": ("hundreds of kills; parties that are stopped or cut off for longer than any default timeout; every single "
             "allocation fails", ""),
    "fuzz": ("fuzzing: every harness for an equal share of --seconds", ""),
    "asan-e2e": ("e2e with the address and undefined-behaviour sanitizers", ""),
    "tsan": ("tests of code with several threads, with the thread sanitizer", ""),
    "valgrind": ("unit tests under valgrind", ""),
}


def about_suites():
    lines = ["suites, with their approximate times on two free cores, from a built tree:"]
    column = max(map(len, ABOUT)) + 4
    for name, (what, takes) in ABOUT.items():
        lines += textwrap.wrap(f"{what} ({takes or 'minutes'})", 100, initial_indent=f"  {name}".ljust(column),
                               subsequent_indent=" " * column)
    more = ", ".join(suite for suite in (*WATCHED, *sum(BESIDE, ())) if suite not in DEFAULT)
    for text in (f"Without SUITE the default suites run, in some six minutes: {', '.join(DEFAULT)}. With --ci also "
                 f"{more}. With --long or --from only sim, with --folder only vectors. A test is skipped, with the "
                 "reason, if this machine lacks what it needs (the name localhost, pseudo-terminals, namespaces, "
                 "access to another program's memory).",
                 "Exit status: 0 if no test failed, 1 if one failed, 2 for a usage error."):
        lines += ["", *textwrap.wrap(text, 100)]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(prog="tests/run", description="Builds Crowdveil and runs its test suites.",
                                     epilog=about_suites(), formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suite", nargs="*", metavar="SUITE", help="suites to run, from the list below")
    parser.add_argument("--ci", action="store_true", help="without SUITE: also the suites of continuous integration")
    parser.add_argument("--fix", action="store_true", help="with format: reformat the files first")
    parser.add_argument("--long", type=whole, metavar="N", help="with sim: run N schedules with new seeds")
    parser.add_argument("--from", type=whole, metavar="SEED", dest="first", help="with sim: start at this seed")
    parser.add_argument("-k", metavar="EXPRESSION",
                        help="with e2e, asan-e2e, containers, package and page: only tests whose names match, as for "
                             "pytest -k")
    parser.add_argument("--folder", metavar="DIR",
                        help="with vectors: replay the test vectors (*.json) of this folder, in the format of "
                             "draft-irtf-cfrg-vdaf")
    parser.add_argument("--seconds", metavar="N", type=whole, default=600,
                        help="with fuzz: total time, %(default)s by default; see also tests/fuzz/run --help")
    args = parser.parse_args()
    for suite in args.suite:
        if suite not in SUITES:
            parser.error(f'unknown suite "{suite}"; expected {", ".join(SUITES)}')
    if args.folder and not Path(args.folder).is_dir():
        parser.error(f'--folder "{args.folder}" is not a folder; expected one with test vectors, *.json')
    work_in_memory()
    schedule_processes()
    tally = Tally()
    alone = ["sim"] if args.long or args.first else ["vectors"] if args.folder else []
    of_ci = [*(suite for suite in DEFAULT if suite not in WATCHED), *WATCHED]
    wanted = args.suite or alone or (of_ci if args.ci else DEFAULT)
    built = not any(suite in ON_BUILD for suite in wanted) or main_build(tally)
    beside = []
    if args.ci and not args.suite and built:
        run([ROOT / "deploy/bootstrap", "page", *sum(BESIDE, ())])  # at once: two of apt would get in each other's way
        beside = [Beside(suites) for suites in BESIDE]
    for suite in wanted:
        started, before = time.monotonic(), (tally.passed, tally.failed, tally.skipped)
        print(f"=== {suite}", flush=True)
        if suite in ON_BUILD and not built and suite != "unit":
            tally.fail(suite, "not run: the build failed")
            continue
        if suite == "format":
            format_check(tally, args.fix)
        elif suite in ("e2e", "asan-e2e", "containers", "package", "page"):
            SUITES[suite](tally, ("-k", args.k) if args.k else ())
        elif suite == "fuzz":
            fuzz(tally, args.seconds)
        elif suite == "sim":
            sim(tally, args.long, args.first)
        elif suite == "vectors":
            vectors(tally, args.folder)
        else:
            SUITES[suite](tally)
        passed, failed, skipped = (now - was for now, was in
                                   zip((tally.passed, tally.failed, tally.skipped), before))
        print(f"--- {suite}: {passed} passed, {failed} failed, {skipped} skipped, "
              f"{time.monotonic() - started:.0f} s", flush=True)
    for suites in beside:
        suites.join(tally)
    for line in (*tally.notes, *tally.failures):
        print(line)
    print(tally.line())
    return 1 if tally.failed else 0


if __name__ == "__main__":
    sys.exit(main())
