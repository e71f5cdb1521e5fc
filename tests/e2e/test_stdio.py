# SPDX-License-Identifier: Apache-2.0
"""Programs whose standard input, output or error is closed, full or has no reader, and whose limits are small."""
import itertools
import os
import re
import resource
import signal
import subprocess
import tempfile

import pytest

from harness.admin import metrics
from harness.commands import as_requester, crowdveil
from harness.daemon import PROGRAMS, ROOT, wait_until

FIRST = ROOT / "deploy/campaigns/first.yaml"
CLOSED = [fds for n in (1, 2, 3) for fds in itertools.combinations((0, 1, 2), n)]


def run(*words, closed=(), before=None, **more):
    """Runs a program without these descriptors; returns its status and what it wrote to the others."""
    def prepare():
        for fd in closed:
            os.close(fd)
        if before is not None:
            before()

    more = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more}
    done = subprocess.run([*map(str, words)], stdin=subprocess.DEVNULL, preexec_fn=prepare, text=True, timeout=120,
                          check=False, **more)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("closed", CLOSED, ids=str)
def test_up_without_a_descriptor(closed):
    status, told, error = run(PROGRAMS["crowdveil"], "up", FIRST, closed=closed)
    assert status == (1 if 1 in closed else 0), error
    if 1 not in closed:
        assert "items decided" in told
    assert error == ("crowdveil: standard output: Bad file descriptor\n" if 1 in closed and 2 not in closed else "")


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("closed", CLOSED, ids=str)
def test_help_without_a_descriptor(name, closed):
    if not PROGRAMS[name].exists():
        pytest.skip("not built")
    status, told, error = run(PROGRAMS[name], "--help", closed=closed)
    assert status == (1 if 1 in closed else 0), error
    assert told == "" or told.startswith("Usage: ")
    assert error.endswith(": standard output: Bad file descriptor\n") == (1 in closed and 2 not in closed)
    with open(os.devnull, "wb") as nowhere:
        assert run(PROGRAMS[name], "--help", closed=closed, stdout=nowhere)[0] == (1 if 1 in closed else 0)


@pytest.mark.parametrize("words", [("up", FIRST), ("up", FIRST, "--json"), ("check", FIRST), ("check", "--json", FIRST),
                                   ("check", "--keys"), ("plan", FIRST, "--seconds", "1"),
                                   ("plan", FIRST, "--seconds", "1", "--json"), ("profiles", "--json")],
                         ids=lambda words: " ".join(os.path.basename(word) for word in words))
def test_a_lost_result_is_no_success(words):
    with open("/dev/full", "w", encoding="utf-8") as full:
        status, _, error = run(PROGRAMS["crowdveil"], *words, stdout=full)
    assert status == 1
    last = error.splitlines()[-1]
    assert last.startswith("crowdveil") and last.endswith("standard output: No space left on device"), error
    reads, writes = os.pipe()
    os.close(reads)
    with os.fdopen(writes, "w") as nobody:
        status, _, error = run(PROGRAMS["crowdveil"], *words, stdout=nobody)
    assert status == 1, "a reader that has gone"


def test_a_file_that_is_as_large_as_it_may_be(tmp_path):
    with (tmp_path / "out").open("w") as out:
        status, _, error = run(PROGRAMS["crowdveil"], "check", "--keys", stdout=out,
                               before=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100)))
    assert (status, error) == (1, "crowdveil: standard output: File too large\n")


def test_a_pipe_that_does_not_block():
    """Another program has made it so: waiting for its reader loses nothing."""
    reads, writes = os.pipe()
    os.set_blocking(writes, False)
    with subprocess.Popen([PROGRAMS["crowdveil"], "check", "--keys"], stdout=writes) as running:
        os.close(writes)
        with os.fdopen(reads, "rb") as told:
            slow = b"".join(iter(lambda: told.read(512), b""))
    assert running.returncode == 0
    assert slow == subprocess.run([PROGRAMS["crowdveil"], "check", "--keys"], capture_output=True, check=True).stdout


def test_lost_lines_of_the_table_fail():
    """With --json the table is on standard error."""
    with open("/dev/full", "w", encoding="utf-8") as full:
        status, told, _ = run(PROGRAMS["crowdveil"], "up", FIRST, "--json", stderr=full)
    assert status == 1 and told.startswith('{"campaign"')


def nobody(limit=None, value=0):
    """Root has no limit of processes."""
    def become():
        os.setgid(65534)
        os.setuid(65534)
        if limit is not None:
            resource.setrlimit(limit, (value, value))

    return become


@pytest.fixture
def of_nobody():
    if os.geteuid() != 0 or run(PROGRAMS["crowdveil"], "check", FIRST, before=nobody(), cwd="/")[0] != 0:
        pytest.skip("needs root, and a tree that others may read")
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        os.chown(folder, 65534, 65534)
        yield folder


@pytest.mark.parametrize("limit, values, reason", [
    (resource.RLIMIT_NPROC, range(1, 31, 2), "Resource temporarily unavailable|resource temporarily unavailable|room"),
    (resource.RLIMIT_NOFILE, (8, 16, 20, 32, 64), "Too many open files|need [0-9]+ open files"),
    (resource.RLIMIT_AS, range(24 << 20, 100 << 20, 8 << 20), "Resource temporarily unavailable|annot allocate"),
    (resource.RLIMIT_FSIZE, (100, 1000, 50000, 200000), "File too large"),
], ids=("processes", "descriptors", "memory", "files"))
def test_limits_are_told_in_one_line(limit, values, reason, of_nobody):
    """As of a container; libuv would end the process without a word."""
    seen = set()
    for value in values:
        status, _, error = run(PROGRAMS["crowdveil"], "up", FIRST, before=nobody(limit, value), cwd="/",
                               env=dict(os.environ, TMPDIR=of_nobody))
        assert status in (0, 1, 2), f"{value}: {error}"
        if status != 0:
            assert error.count("\n") == 1 and re.search(reason, error), f"{value}: {error}"
        seen.add(status)
    assert 1 in seen


@pytest.mark.skipif(not PROGRAMS["lab"].exists(), reason="not built")
def test_files_say_why_they_cannot_be_written(tmp_path):
    """Of many blocks: the first fails, and later calls have errors of their own."""
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
    status, _, error = run(PROGRAMS["lab"], "run", "ppar-fig4", "--replicates", "1", "--jobs", "1", "--out",
                           tmp_path / "out", before=limit)
    assert status == 1 and "File too large" in error, error


@pytest.mark.parametrize("error", ["2>&-", "2>/dev/full"], ids=["closed", "full"])
def test_a_daemon_serves_on_without_its_log(deployment, tmp_path, error):
    """And without an input; the lines are counted."""
    shell = ["/bin/sh", "-c", f'exec "$0" "$@" <&- {error}']
    deployment.prefixes = {"broker": shell, "thirdparty": shell}
    deployment.up(broker={"admin": str(tmp_path / "b.sock")})
    done = crowdveil("status", *as_requester(deployment))
    assert done.returncode == 0, done.stderr
    deployment.broker.signal(signal.SIGUSR1)
    wait_until(lambda: metrics(tmp_path / "b.sock")["crowdveil_log_lines_lost_total"] > 0, "a line that is lost")
    assert deployment.broker.stop() == 0 and deployment.thirdparty.stop() == 0


def test_up_without_a_null_device():
    """As in a container that has none."""
    shell = 'mount -t tmpfs none /dev && exec "$0" up "$1"'
    done = subprocess.run(["unshare", "-m", "/bin/sh", "-c", shell, PROGRAMS["crowdveil"], FIRST], text=True,
                          capture_output=True, check=False, timeout=120, stdin=subprocess.DEVNULL,
                          env=dict(os.environ, TMPDIR="/tmp"))
    if "unshare" in done.stderr or "mount:" in done.stderr:
        pytest.skip("no namespaces")
    assert done.returncode == 0 and "items decided" in done.stdout, done.stderr
