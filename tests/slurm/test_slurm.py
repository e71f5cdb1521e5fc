# SPDX-License-Identifier: Apache-2.0
"""
The laboratory's job array under a real Slurm of one node: tasks that are killed, lost with their node and run again,
and a merge that gives the same bytes as one process.
"""
import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/e2e"))

from harness.daemon import PROGRAMS, wait_until  # noqa: E402
from harness.lab import lab  # noqa: E402

TASKS, REPLICATES = 3, 1500
EXPERIMENT = """
campaign: array
items: {synthetic: {count: 20, mean: 0.5, variance: 10}}
policy: {name: ppar, alpha: 0.1, tokens_per_round: 6000}
privacy: {mechanism: hybrid, epsilon: 0.25}
limits: {tokens: 50000000}
experiment:
  x: {vary: policy.alpha, values: [0.1, 0.2]}
  metrics: [accuracy, undecided, pulls]
"""
CONFIGURATION = """
ClusterName=crowdveil
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
# A requeued task waits until its old credential has expired.
AuthInfo=socket={folder}/munge.socket,cred_expire=5
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
SlurmdParameters=config_overrides
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
KillWait=2
MinJobAge=3600
ReturnToService=2
NodeName={host} NodeAddr=127.0.0.1 CPUs=16 RealMemory=8000 State=UNKNOWN
PartitionName=all Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""


def free_ports(n):
    probes = [socket.socket() for _ in range(n)]
    for probe in probes:
        probe.bind(("127.0.0.1", 0))
    ports = [probe.getsockname()[1] for probe in probes]
    for probe in probes:
        probe.close()
    return ports


class Cluster:
    def __init__(self, folder):
        self.folder, self.daemons, self.host = folder, {}, socket.gethostname().split(".")[0]
        for name in ("state", "spool"):
            (folder / name).mkdir()
        (folder / "munge.key").write_bytes(os.urandom(128))
        (folder / "munge.key").chmod(0o600)
        (folder / "slurm.conf").write_text(CONFIGURATION.format(folder=folder, host=self.host, ports=free_ports(2)))
        self.env = dict(os.environ, SLURM_CONF=str(folder / "slurm.conf"), CROWDVEIL_LAB=str(PROGRAMS["lab"]))

    def start(self):
        self.launch("munged", "-F", "--force", *(f"--{what}={self.folder}/munge.{what.split('-')[0]}" for what in (
            "socket", "key-file", "pid-file", "seed-file", "log-file")))
        wait_until(lambda: (self.folder / "munge.socket").exists(), "munged")
        self.launch("slurmctld", "-D")
        self.launch("slurmd", "-D", "-N", self.host)
        wait_until(lambda: self.node_state() == "IDLE", "the node is idle")

    def launch(self, name, *args):
        log = (self.folder / f"{name}.out").open("a")
        program = "/usr/sbin/" + name
        self.daemons[name] = subprocess.Popen([program, *args], env=self.env, stdin=subprocess.DEVNULL, stdout=log,
                                              stderr=log)

    def close(self):
        self.run("scancel", "--full", "--user=root")
        for daemon in reversed(self.daemons.values()):
            daemon.send_signal(signal.SIGTERM)
            try:
                daemon.wait(20)
            except subprocess.TimeoutExpired:
                daemon.kill()

    def run(self, *command, **env):
        return subprocess.run([str(word) for word in command], env={**self.env, **env}, cwd=self.folder, text=True,
                              capture_output=True, timeout=60)

    def ask(self, *command, **env):
        done = self.run(*command, **env)
        assert done.returncode == 0, (command, done.stderr)
        return done.stdout

    def node_state(self):
        found = re.search(r"State=([A-Z]+)", self.run("scontrol", "show", "node", self.host).stdout)
        return found and found[1]

    def submit(self, array, *args, **env):
        """The number of the job array."""
        said = self.ask("sbatch", "--parsable", f"--array={array}", "--cpus-per-task=1", "--mem=100M",
                        ROOT / "deploy/slurm/experiment.sbatch", *args, **env)
        return int(said.split(";")[0])

    def task(self, job, index):
        """What Slurm knows of a task."""
        return dict(word.split("=", 1) for word in self.ask("scontrol", "show", "job", f"{job}_{index}").split()
                    if "=" in word)

    def await_state(self, job, index, *states):
        wait_until(lambda: self.task(job, index)["JobState"] in states, f"task {index}: {' or '.join(states)}", 120)

    def log(self, job, index):
        return (self.folder / f"crowdveil-lab-{job}-{index}.log").read_text()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    made = Cluster(tmp_path_factory.mktemp("slurm"))
    (made.folder / "array.yaml").write_text(EXPERIMENT)
    try:
        made.start()
        yield made
    finally:
        made.close()


@pytest.fixture(scope="module")
def whole(cluster):
    """What one process prints."""
    done = lab("run", "array.yaml", "--replicates", REPLICATES, "--json", cwd=cluster.folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


def shard(cluster, folder, index):
    return cluster.folder / folder / f"array-{index}-of-{TASKS}.db"


def stored(path):
    """The rows that are on disk, by the file's own numbers; no process writes it."""
    with closing(sqlite3.connect(path)) as db:
        return {row[0]: row[1:] for row in db.execute("SELECT rowid, * FROM trial")}


def program_of(path):
    """The process of the task that writes this file."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
                files = {os.readlink(fd) for fd in (entry / "fd").iterdir()}
            except OSError:
                continue
            if words[0].endswith(b"crowdveil-lab") and str(path) in files:
                return int(entry.name)
    return None


def await_program(path):
    found = []

    def look():
        found[:] = [program_of(path)]
        return found[0] is not None and path.stat().st_size > 0
    wait_until(look, f"a task writes {path.name}", 120, .02)
    return found[0]


def test_tasks_that_die_and_nodes_that_fail_change_nothing(cluster, whole):
    job = cluster.submit(f"1-{TASKS}", "array.yaml", "parts", "--replicates", REPLICATES)
    second = shard(cluster, "parts", 2)
    victim = await_program(second)
    # One task is killed, as by the kernel when memory runs out, and run again by hand.
    os.kill(victim, signal.SIGKILL)
    cluster.await_state(job, 2, "FAILED")
    assert cluster.task(job, 2)["ExitCode"] == "137:0" or cluster.task(job, 2)["ExitCode"] == "0:9"
    cluster.ask("scontrol", "requeue", f"{job}_2")
    # The node fails with all that runs on it, and comes back: its tasks are requeued by Slurm.
    await_program(shard(cluster, "parts", 3))
    cluster.ask("scontrol", "update", f"nodename={cluster.host}", "state=down", "reason=test")
    wait_until(lambda: program_of(shard(cluster, "parts", 3)) is None, "the node's tasks are gone")
    cluster.run("scontrol", "update", f"nodename={cluster.host}", "state=resume")  # it may be back by itself
    wait_until(lambda: cluster.node_state() in ("IDLE", "MIXED", "ALLOCATED"), "the node is back")
    for index in range(1, TASKS + 1):
        cluster.await_state(job, index, "COMPLETED")
    assert int(cluster.task(job, 2)["Restarts"]) >= 1 and int(cluster.task(job, 3)["Restarts"]) >= 1
    (cluster.folder / "all").mkdir()
    merged = lab("merge", "all/array.db", *(shard(cluster, "parts", index) for index in range(1, TASKS + 1)),
                 cwd=cluster.folder)
    assert merged.returncode == 0 and merged.stdout.endswith(", complete\n"), merged.stderr
    assert lab("export", "all/array.db", "--format", "json", cwd=cluster.folder).stdout == whole
    drawn = lab("run", "array.yaml", "--replicates", REPLICATES, "--json", "--out", "all", "--resume",
                cwd=cluster.folder)
    assert drawn.stdout == whole, drawn.stderr


def test_what_a_killed_task_has_stored_is_not_run_again(cluster, whole):
    job = cluster.submit(f"1-{TASKS}", "array.yaml", "again", "--replicates", REPLICATES)
    path = shard(cluster, "again", 1)
    victim = await_program(path)
    wait_until(lambda: path.with_name(path.name + "-wal").exists() and
               path.with_name(path.name + "-wal").stat().st_size > 100_000, "the task has stored something", 60, .01)
    os.kill(victim, signal.SIGKILL)
    cluster.await_state(job, 1, "FAILED")
    before = stored(path)
    assert before, "nothing was stored"
    # The whole list again, as after a look at the failed ones: SHARDS says how many there are.
    again = cluster.submit("1", "array.yaml", "again", "--replicates", REPLICATES, SHARDS=str(TASKS))
    cluster.await_state(again, 1, "COMPLETED")
    after = stored(path)
    assert len(after) > len(before) and all(after[row] == content for row, content in before.items())


def test_an_array_that_does_not_begin_with_one_is_refused(cluster):
    job = cluster.submit("2-3", "array.yaml", "wrong")
    cluster.await_state(job, 2, "FAILED")
    assert cluster.task(job, 2)["ExitCode"] == "2:0"
    wait_until(lambda: cluster.log(job, 2), "the task's log")
    assert cluster.log(job, 2) == "experiment.sbatch: --array is not 1-N; expected SHARDS=N, the number of shards\n"
    assert not (cluster.folder / "wrong").exists()
