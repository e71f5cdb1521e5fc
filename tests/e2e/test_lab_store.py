# SPDX-License-Identifier: Apache-2.0
"""
Results of an experiment on disk: a run that was killed, split into shards or stopped by a full disk continues and gives
the same numbers; a file of another experiment, or one that is damaged, is refused in one line.
"""
import csv
import io
import os
import pty
import re
import signal
import sqlite3
import subprocess
import sys
import threading

import pytest

from harness import machine
from harness.daemon import PROGRAMS, ROOT, wait_until
from harness.lab import lab, rows_of
from harness.machine import needs
from harness.standstill import step
from harness.volume import volume  # noqa: F401  (a fixture)

# Takes seconds, so that it can be killed in the middle; a job array of three divides its pieces.
NAME, REPLICATES = "long", 750
LONG = """
campaign: long
items: {synthetic: {count: 20, mean: 0.5, variance: 10}}
policy: {name: ppar, alpha: 0.1, tokens_per_round: 6000}
privacy: {mechanism: hybrid, epsilon: 0.25}
limits: {tokens: 50000000}
experiment:
  x: {vary: policy.alpha, values: [0.1, 0.2, 0.3, 0.4]}
  metrics: [ppar-accuracy, ppar-accuracy-filled, undecided, pulls]
"""
PIECES = 4 * REPLICATES
TIME = r"(\d+ min )?\d+ s"

SMALL = """
campaign: small
items: {synthetic: {count: 3, mean: 0.5, variance: 10}}
policy: {name: ppar, alpha: 0.1, tokens_per_round: 50}
privacy: {mechanism: hybrid, epsilon: 1}
limits: {tokens: 3000}
experiment:
  replicates: 6
  x: {vary: policy.alpha, values: [0.1, 0.2, 0.4]}
  series: [{name: sound}, {name: 'as "printed", said', policy.radius: printed}]
  metrics: [ppar-accuracy, pulls]
"""


@pytest.fixture(scope="module")
def command(tmp_path_factory):
    """The arguments of a long run."""
    path = tmp_path_factory.mktemp("long") / "long.yaml"
    path.write_text(LONG)
    return "run", path, "--replicates", REPLICATES, "--json"


@pytest.fixture(scope="module")
def whole(command, tmp_path_factory):
    """The output of an undisturbed run."""
    done = lab(*command, cwd=tmp_path_factory.mktemp("whole"))
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""  # no terminal, and not requested
    return done.stdout


@pytest.fixture
def small(tmp_path):
    """A small experiment's results in tmp_path/out/small.db."""
    (tmp_path / "small.yaml").write_text(SMALL)
    assert lab("run", "small.yaml", "--out", "out", cwd=tmp_path).returncode == 0
    return tmp_path


def start(folder, *args):
    return subprocess.Popen([PROGRAMS["lab"], *map(str, args)], cwd=folder, stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def trials(path):
    """The number of pieces in a file that no process writes."""
    with sqlite3.connect(path) as db:
        count, = db.execute("SELECT count(*) FROM trial").fetchone()
    db.close()
    return count


def stopped_when_stored(path, run):
    """
    The run has some of its results on disk and is stopped: once a second commit has stored trials, the first is
    complete. It gets only a tenth of the time, so that the fastest machine does not finish before the test looks.
    """
    log, sizes = path.with_name(path.name + "-wal"), set()

    def grown():
        step(run)
        assert run.poll() is None, "it is over already"
        content = log.read_bytes() if log.exists() else b""
        if re.search(rb"\[[0-9.,e+-]{20,}\]", content):
            sizes.add(len(content))
        return len(sizes) > 1
    wait_until(grown, f"{log} has trials of two commits")


def refusal(done, status):
    assert done.returncode == status, (done.returncode, done.stderr)
    assert done.stdout == "" and done.stderr.count("\n") == 1, done.stderr
    return done.stderr


# --- resuming


def test_killed_in_the_middle_and_resumed_it_prints_the_same(tmp_path, command, whole):
    """Twice, the second time with another number of threads; finished pieces are not run again."""
    database = tmp_path / "out" / f"{NAME}.db"
    had = 0
    for jobs in (1, 2):
        run = start(tmp_path, *command, "--out", "out", "--jobs", jobs, "--resume")
        stopped_when_stored(database, run)
        run.send_signal(signal.SIGKILL)
        run.communicate()
        assert had < trials(database) < PIECES
        had = trials(database)
    done = lab(*command, "--out", "out", "--resume", "--progress", cwd=tmp_path)
    assert done.returncode == 0 and done.stdout == whole
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"{PIECES - had} of {PIECES - had}, ") and " a second" in last
    assert trials(database) == PIECES


def test_more_replicates_later_are_as_many_at_once(small):
    at_once = lab("run", "small.yaml", "--replicates", 9, "--json", cwd=small)
    later = lab("run", "small.yaml", "--replicates", 9, "--json", "--out", "out", "--resume", "--progress", cwd=small)
    assert later.returncode == 0 and later.stdout == at_once.stdout
    assert later.stderr.startswith("9 of 9, ")  # three more of each of three settings
    fewer = lab("run", "small.yaml", "--replicates", 4, "--json", "--out", "out", "--resume", cwd=small)
    assert fewer.stdout == lab("run", "small.yaml", "--replicates", 4, "--json", cwd=small).stdout


def test_a_full_disk_is_one_line_and_loses_nothing(tmp_path, volume, command, whole):  # noqa: F811
    disk = volume(tmp_path / "out", mib=32)
    database = tmp_path / "out" / f"{NAME}.db"
    run = start(tmp_path, *command, "--out", "out")
    stopped_when_stored(database, run)
    disk.fill()
    run.send_signal(signal.SIGCONT)
    output, error = run.communicate(timeout=60)
    assert run.returncode == 1 and output == ""
    assert error.count("\n") == 1 and str(database.name) in error and "full" in error, error
    again = lab(*command, "--out", "out", "--resume", cwd=tmp_path)
    assert again.returncode == 1 and again.stderr.count("\n") == 1
    disk.make_room()
    resumed = start(tmp_path, *command, "--out", "out", "--resume", "--progress")
    output, error = resumed.communicate(timeout=120)
    assert resumed.returncode == 0 and output == whole
    assert int(error.splitlines()[-1].split()[0]) < PIECES, "nothing of the first run was left"


def test_a_disk_that_is_full_from_the_start_leaves_nothing_in_the_way(tmp_path, volume):  # noqa: F811
    (tmp_path / "small.yaml").write_text(SMALL)
    disk = volume(tmp_path / "out", mib=1)
    disk.fill()
    refusal(lab("run", "small.yaml", "--out", "out", cwd=tmp_path), 1)
    disk.make_room()
    assert lab("run", "small.yaml", "--out", "out", "--json", cwd=tmp_path).returncode == 0


# --- refusals


def test_results_that_are_there_are_not_overwritten(small):
    line = refusal(lab("run", "small.yaml", "--out", "out", cwd=small), 2)
    assert "out/small.db: already has results; --resume" in line


@pytest.mark.parametrize("options, change, told", [
    (["--seed", 2], None, "results of seed 1; expected seed 2"),
    (["--token-level"], None, "sums drawn at once; expected tokens drawn one by one"),
    ([], ("epsilon: 1", "epsilon: 2"), "another text of experiment small, different from line 5 on"),
    ([], ("metrics: [ppar-accuracy, pulls]", "metrics: [ppar-accuracy]"), "different from line 11 on"),
])
def test_results_of_another_experiment_are_not_gone_on_with(small, options, change, told):
    database = small / "out/small.db"
    before = database.read_bytes()
    if change is not None:
        (small / "small.yaml").write_text(SMALL.replace(*change))
    line = refusal(lab("run", "small.yaml", "--out", "out", "--resume", *options, cwd=small), 2)
    assert "out/small.db: " in line and told in line
    assert database.read_bytes() == before


def test_results_of_other_data_are_not_gone_on_with(tmp_path):
    """The campaign's own file, relative to it; and another one in its place, relative to the working folder."""
    (tmp_path / "sub").mkdir()
    text = SMALL.replace("{synthetic: {count: 3, mean: 0.5, variance: 10}}",
                         "{source: csv, path: scores.csv, item: item, score: score, scale: [0, 1], replacement: true}")
    (tmp_path / "sub/small.yaml").write_text(text)
    (tmp_path / "sub/scores.csv").write_text("item,score\na,1\na,0\nb,1\nb,1\n")
    (tmp_path / "other.csv").write_text("item,score\na,1\na,0\nb,0\nb,1\n")
    run = ("run", "sub/small.yaml", "--out", "out", "--resume", "--json")
    first = lab(*run, cwd=tmp_path)
    assert first.returncode == 0, first.stderr
    line = refusal(lab(*run, "--data", "other.csv", cwd=tmp_path), 2)
    assert "results of other data" in line and "scores.csv of 27 bytes" in line and "other.csv of 27 bytes" in line
    (tmp_path / "moved.csv").write_bytes((tmp_path / "sub/scores.csv").read_bytes())
    assert lab(*run, "--data", "moved.csv", cwd=tmp_path).stdout == first.stdout
    (tmp_path / "sub/scores.csv").write_text("item,score\na,1\na,0\nb,1\nb,0\n")
    assert "results of other data" in refusal(lab(*run, cwd=tmp_path), 2)
    os.unlink(tmp_path / "sub/scores.csv")
    assert lab("export", "out/small.db", cwd=tmp_path).returncode == 0, "what was found is read without the data"


def truncate(path):
    path.write_bytes(path.read_bytes()[:9000])


def overwrite(path):
    path.write_bytes(b"no database" * 1000)


def newer(path):
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA user_version = 99")
    db.close()


def change(sql):
    def apply(path):
        with sqlite3.connect(path) as db:
            db.execute(sql)
        db.close()
    return apply


@pytest.mark.parametrize("harm, told", [
    (truncate, "damaged|malformed"), (overwrite, "not a database"), (newer, "later release"),
    (change("UPDATE trial SET numbers = '[1]' WHERE id = 3"), "table trial, row id 3, setting "),
    (change("UPDATE trial SET setting = 3 WHERE id = 3"), "table trial, row id 3, setting 3: not as it was stored"),
    (change("UPDATE experiment SET text = text || '#'"), "table experiment: a row was changed"),
    (change("DELETE FROM metric"), "table metric: 0 rows; expected the 2 that were stored"),
    (change("DROP TABLE trial"), "no such table"),
])
def test_a_file_that_is_no_longer_whole_is_refused_by_all(small, harm, told):
    database = small / "out/small.db"
    harm(database)
    before = database.read_bytes()
    for args in (("run", "small.yaml", "--out", "out", "--resume"), ("export", "out/small.db"),
                 ("export", "out/small.db", "--trials"), ("merge", "all.db", "out/small.db")):
        done = lab(*args, cwd=small)
        assert done.returncode == 1 and done.stderr.count("\n") == 1, (args, done.stderr)
        assert "out/small.db: " in done.stderr and re.search(told, done.stderr), (args, done.stderr)
    assert not (small / "all.db").exists() and database.read_bytes() == before


def test_a_second_process_is_refused_while_one_runs(tmp_path, command):
    run = start(tmp_path, *command, "--out", "out")
    stopped_when_stored(tmp_path / "out" / f"{NAME}.db", run)
    for args in ((*command, "--out", "out", "--resume"), ("export", f"out/{NAME}.db"),
                 ("merge", "all.db", f"out/{NAME}.db")):
        assert "in use by a running program" in refusal(lab(*args, cwd=tmp_path), 1)
    run.send_signal(signal.SIGCONT)
    assert len(run.communicate(timeout=120)[0].splitlines()) > 8 and run.returncode == 0


PRESET = ("run", "mechanisms")


@pytest.mark.parametrize("args", [
    (*PRESET, "--resume"), (*PRESET, "--shard", "1/2"), (*PRESET, "--shard", "3/2", "--out", "o"),
    (*PRESET, "--shard", "1", "--out", "o"), (*PRESET, "--replicates", 10**9, "--out", "o"), ("merge",),
    ("merge", "all.db"), ("merge", "all.db", "none.db"), ("export",), ("export", "none.db"),
    ("export", "none.db", "--trials", "--format", "json"), ("export", "none.db", "--format", "xml")])
def test_usage(tmp_path, args):
    refusal(lab(*args, cwd=tmp_path), 2)
    assert list(tmp_path.glob("*.db")) == []


# --- shards


def task(folder, index, count, script_args, **more):
    """One task of a job array, started as Slurm does."""
    settings = dict(os.environ, CROWDVEIL_LAB=str(PROGRAMS["lab"]), SLURM_ARRAY_TASK_ID=str(index),
                    SLURM_ARRAY_TASK_COUNT=str(count), SLURM_ARRAY_TASK_MIN="1", SLURM_ARRAY_TASK_MAX=str(count),
                    SLURM_CPUS_PER_TASK="1") | more
    return subprocess.run(["bash", ROOT / "deploy/slurm/experiment.sbatch", *map(str, script_args)], cwd=folder,
                          env=settings, capture_output=True, text=True, timeout=240, stdin=subprocess.DEVNULL)


def test_a_job_array_and_a_merge_print_what_one_run_prints(tmp_path, command, whole):
    experiment, *options = command[1:]
    for index in (2, 1, 3):
        done = task(tmp_path, index, 3, (experiment, "parts", *options))
        assert done.returncode == 0, done.stderr
        assert done.stderr.splitlines()[-1].startswith(f"{PIECES // 3} of {PIECES // 3}, ")
    requeued = task(tmp_path, 2, 3, (experiment, "parts", *options))
    assert requeued.returncode == 0 and requeued.stderr == ""
    parts = [f"parts/{NAME}-{i}-of-3.db" for i in (1, 2, 3)]
    assert [trials(tmp_path / part) for part in parts] == [PIECES // 3] * 3
    (tmp_path / "all").mkdir()
    merged = lab("merge", f"all/{NAME}.db", *parts, cwd=tmp_path)
    assert merged.stdout == (f"all/{NAME}.db: {PIECES} of {PIECES} pieces (4 settings, {REPLICATES} replicates), "
                             "complete\n"), merged.stderr
    assert lab("export", f"all/{NAME}.db", "--format", "json", cwd=tmp_path).stdout == whole
    drawn = lab(*command, "--out", "all", "--resume", "--progress", cwd=tmp_path)
    assert drawn.stdout == whole and drawn.stderr == "", "something was run again"
    assert (tmp_path / "all" / f"{NAME}.dat").exists()
    some = lab("merge", "some.db", *parts[1:], cwd=tmp_path)
    assert some.returncode == 0 and some.stdout.endswith(f", {PIECES // 3} missing\n")


def test_tasks_that_are_no_shards_are_refused(tmp_path):
    (tmp_path / "small.yaml").write_text(SMALL)
    one_of_the_list = {"SLURM_ARRAY_TASK_MIN": "7", "SLURM_ARRAY_TASK_MAX": "7"}
    alone = task(tmp_path, 7, 1, ("small.yaml", "parts"), **one_of_the_list)
    assert alone.returncode == 2 and "expected SHARDS=N" in alone.stderr
    named = task(tmp_path, 7, 1, ("small.yaml", "parts"), SHARDS="9", **one_of_the_list)
    assert named.returncode == 0 and (tmp_path / "parts/small-7-of-9.db").exists()
    assert task(tmp_path, 1, 1, ("small.yaml",)).returncode == 2


def test_what_does_not_belong_together_is_not_merged(small):
    assert lab("run", "small.yaml", "--out", "two", "--seed", 2, cwd=small).returncode == 0
    line = refusal(lab("merge", "all.db", "out/small.db", "two/small.db", cwd=small), 2)
    assert "two/small.db: results of seed 2; expected seed 1" in line
    (small / "three").mkdir()
    (small / "three/small.db").write_bytes((small / "out/small.db").read_bytes())
    change("UPDATE trial SET numbers = '[0.25,1.0,1.0,1.0]' WHERE setting = 1 AND replicate = 4")(
        small / "three/small.db")
    assert "table trial, row id " in refusal(lab("merge", "all.db", "out/small.db", "three/small.db", cwd=small), 1)
    change("DELETE FROM proof")(small / "three/small.db")  # by a person who removes the codes, too
    assert "table trial, row id " in refusal(lab("merge", "all.db", "out/small.db", "three/small.db", cwd=small), 1)
    line = refusal(lab("merge", "out/small.db", "two/small.db", cwd=small), 2)
    assert "out/small.db: already exists" in line
    assert not list(small.glob("all.db*"))


# --- for other programs


def read_csv(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_an_export_says_what_the_run_said(small):
    rows = rows_of(lab("run", "small.yaml", "--out", "out", "--resume", "--json", cwd=small))
    table = read_csv(lab("export", "out/small.db", cwd=small).stdout)
    assert len(rows) == len(table) == 2 * 3 * 2
    for row, line in zip(rows, table):
        assert (line["preset"], line["series"], line["metric"]) == (row["preset"], row["series"], row["metric"])
        assert float(line["x"]) == row["x"] and float(line["mean"]) == row["mean"] and int(line["n"]) == row["n"] == 6
        assert float(line["se"]) == row["se"]
    assert {row["series"] for row in rows} == {"sound", 'as "printed", said'}


def test_every_trial_is_exported_and_its_mean_is_the_summarys(small):
    lines = read_csv(lab("export", "out/small.db", "--trials", cwd=small).stdout)
    assert len(lines) == 2 * 3 * 2 * 6
    for row in rows_of(lab("export", "out/small.db", "--format", "json", cwd=small)):
        mine = [line for line in lines if line["series"] == row["series"] and line["metric"] == row["metric"] and
                float(line["x"]) == row["x"]]
        assert [int(line["replicate"]) for line in mine] == [1, 2, 3, 4, 5, 6]
        assert abs(sum(float(line["value"]) for line in mine) / 6 - row["mean"]) <= 1e-12 * abs(row["mean"])


def test_the_file_can_be_read_with_sqlite(small):
    with sqlite3.connect(small / "out/small.db") as db:
        found = {row[:3]: row[3:] for row in db.execute("SELECT series, x, metric, mean, n FROM summary")}
        name, text, seed = db.execute("SELECT name, text, seed FROM experiment").fetchone()
    db.close()
    assert (name, text, seed) == ("small", SMALL, 1)
    rows = rows_of(lab("export", "out/small.db", "--format", "json", cwd=small))
    assert len(found) == len(rows)
    for row in rows:
        mean, n = found[row["series"], row["x"], row["metric"]]
        assert abs(mean - row["mean"]) <= 1e-9 * abs(row["mean"]) and n == row["n"]


# --- progress


@needs(machine.pseudo_terminals)
def test_a_terminal_has_one_line_that_is_written_over(tmp_path, command):
    """And standard output contains only the result."""
    ours, its = pty.openpty()
    run = subprocess.Popen([PROGRAMS["lab"], *map(str, command)], cwd=tmp_path, stdin=subprocess.DEVNULL,
                           stdout=subprocess.PIPE, stderr=its, text=True)
    os.close(its)
    shown = bytearray()

    def read():
        try:
            while part := os.read(ours, 4096):
                shown.extend(part)
        except OSError:  # the other end is closed
            pass
    reader = threading.Thread(target=read)
    reader.start()
    # slow enough for a line in the middle, on any machine
    wait_until(lambda: step(run) or b" left" in shown or run.poll() is not None, "how much time is left")
    run.send_signal(signal.SIGCONT)
    reader.join()
    os.close(ours)
    assert all(line.startswith("{") for line in run.communicate()[0].splitlines())
    assert run.returncode == 0
    lines = shown.decode().replace("\x1b[K", "").strip().split("\r")
    assert lines[0] == f"0 of {PIECES}, 0 s" and lines[-1].startswith(f"{PIECES} of {PIECES}, "), lines
    assert shown.count(b"\n") == 1 and shown.endswith(b"\n")
    assert any(re.fullmatch(rf"\d+ of \d+, \S+ a second, {TIME}, about {TIME} left", line) for line in lines), lines


CURVES = """
campaign: curves
items: {synthetic: {count: 1}}
policy: {name: ppar, alpha: 0.1, tokens_per_round: 1}
privacy: {mechanism: hybrid, epsilon: 1}
limits: {tokens: 200}
experiment:
  replicates: 720
  x: {pulls: 200}
  series: [{name: a}, {name: b}, {name: c}, {name: d}, {name: e}, {name: f}]
  measure: noise
  metrics: [noise]
"""


# A process counts the memory of the one that started it, too, and the tests' own may be large: a small one starts it.
PEAK = """
import os, sys
quiet = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in (0, 1)]
_, status, usage = os.wait4(os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=quiet), 0)
print(os.waitstatus_to_exitcode(status), usage.ru_maxrss)
"""


def test_many_curves_take_little_memory(tmp_path):
    """720 replicates of six curves of 200 points, run, read again and merged: 500 MiB at most."""
    (tmp_path / "curves.yaml").write_text(CURVES)
    for args in (("run", "curves.yaml", "--out", "out", "--json"), ("merge", "all.db", "out/curves.db"),
                 ("export", "all.db", "--trials"), ("export", "all.db")):
        run = subprocess.run([sys.executable, "-c", PEAK, PROGRAMS["lab"], *args], cwd=tmp_path, check=True,
                             capture_output=True, text=True)
        status, peak = map(int, run.stdout.split())
        assert status == 0 and peak < 500 * 1024, args
    assert trials(tmp_path / "all.db") == 720
