# SPDX-License-Identifier: Apache-2.0
"""`crowdveil-worker --exec`: programs that give the scores."""
import json
import os
import signal
import sys
from pathlib import Path

import pytest

from client.requester import classes, end_name, spec
from harness.daemon import wait_until
from harness.people import given_means

pytestmark = pytest.mark.usefixtures("worker_program")

NAMES = ("Roma", "Golden Wok", 'the "Grill"')
SCORES = (1, .5, 0)
ACCEPT = {"mechanisms": "none"}


class World:
    """A campaign of three items, and a gateway whose scores come from a program."""

    def __init__(self, deployment, broker=None, cobroker=None, **changes):
        self.deployment, self.folder = deployment, deployment.folder
        deployment.up(broker={"limits": {"trusted_thirdparty": True}, **(broker or {})}, cobroker=cobroker)
        items = ", ".join(f"{{name: '{name}'}}" for name in NAMES)
        self.file = self.folder / "campaign.yaml"
        self.file.write_text(f"campaign: test\nitems: {{list: [{items}]}}\npolicy: {{name: ppar, alpha: 0.3}}\n"
                             "privacy: {epsilon: 1}\n")
        with deployment.requester() as requester:
            self.campaign = requester.submit(spec(len(NAMES), **{
                "mechanism": "none", "trusted": True,
                "policy": "ppar-kl", "policy_params": {"alpha": .9, "delta": .5}, "tokens": 10_000,
                **changes})).campaign

    def script(self, text, name="score"):
        path = self.folder / name
        path.write_text(text)
        path.chmod(0o755)
        return str(path)

    def start(self, command, **settings):
        return self.deployment.start_worker("gateway/1-20000", self.file, {
            "exec": command, "accept": ACCEPT, **settings})

    def tokens(self):
        with self.deployment.requester() as requester:
            return requester.describe(self.campaign)[1].progress.tokens

    def finished(self):
        """Completes; the scores are those that the programs gave, each to its item."""
        with self.deployment.requester() as requester:
            finished = requester.watch(self.campaign)
        assert end_name(finished.progress.end) == "complete"
        assert given_means(self.deployment, len(NAMES)) == list(SCORES)
        return finished


def python(body):
    return f"#!{sys.executable}\nimport json, os, sys, time\nSCORES, ITEM = {SCORES}, 'item'\n{body}"


GOOD = python("for line in sys.stdin:\n    print(SCORES[json.loads(line)['item']], flush=True)\n")


def parent_of(name):
    """Processes whose command line contains the name."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if name in (entry / "cmdline").read_bytes().decode(errors="replace"):
                    found.append(int(entry.name))
            except OSError:
                pass
    return found


def test_a_python_script_ranks_the_items(deployment, tmp_path):
    world = World(deployment)
    seen = tmp_path / "seen"
    script = world.script(python(f"""
with open({str(seen)!r}, "w") as seen:
    for line in sys.stdin:
        seen.write(line)
        seen.flush()
        question = json.loads(line)
        print(json.dumps({{"id": question["id"], "score": SCORES[question["item"]], "note": "mine"}}), flush=True)
"""))
    worker = world.start(script, exec_ahead=8)
    finished = world.finished()
    assert worker.wait() == 0
    lines = [json.loads(line) for line in seen.read_text().splitlines()]
    assert {(line["item"], line["name"]) for line in lines} == set(enumerate(NAMES))
    assert {line["campaign"] for line in lines} == {"test"}
    assert len({line["worker"] for line in lines}) >= finished.progress.tokens, "each worker was asked once"
    assert [line["id"] for line in lines] == list(range(1, len(lines) + 1))
    wait_until(lambda: not parent_of(script), "the program ends with its worker")


def test_a_programs_scores_go_to_two_brokers_in_shares(deployment):
    world = World(deployment, cobroker={}, two=True, mechanism="segments", trusted=False, epsilon=10, policy="ppar-kl",
                  policy_params={"alpha": .3, "delta": .1})
    worker = world.start(world.script(GOOD), exec_ahead=8, accept={"mechanisms": "segments"})
    with deployment.requester() as requester:
        finished = requester.watch(world.campaign)
    assert end_name(finished.progress.end) == "complete" and worker.wait() == 0
    assert classes(finished) == ({1: [0], 2: [1], 3: [2]}, [])


def test_a_shell_script_and_its_arguments(deployment):
    world = World(deployment)
    script = world.script("""#!/bin/sh
while read -r line; do
  case "$line" in
    *'"item":0,'*) echo "$1" ;;
    *'"item":1,'*) echo "{\\"score\\": $2}" ;;
    *) echo " $3 " ;;
  esac
done
""")
    worker = world.start(f"{script} 1e0 \"0.5\" '0.0'", exec_processes=3)
    world.finished()
    assert worker.wait() == 0


def test_the_program_gets_nothing_of_the_workers(deployment, tmp_path):
    """No descriptor but its three pipes, no variable of the environment, no capability; and it cannot read its memory
    or trace it."""
    world = World(deployment)
    told = tmp_path / "told.json"
    script = world.script(python(f"""
fds = {{fd: os.readlink(f"/proc/self/fd/{{fd}}") for fd in os.listdir("/proc/self/fd") if fd != "3"}}
status = open("/proc/self/status").read()
try:
    os.readlink(f"/proc/{{os.getppid()}}/exe")
    reads = "its parent"
except OSError:
    reads = "nothing"
json.dump({{"fds": fds, "environment": dict(os.environ), "status": status, "sid": os.getsid(0) == os.getpid(),
           "reads": reads}}, open({str(told)!r}, "w"))
for line in sys.stdin:
    print(SCORES[json.loads(line)['item']], flush=True)
"""))
    environment = {**os.environ, "SECRET_OF_THE_OPERATOR": "1"}
    worker = world.deployment.start_worker("gateway/1-20000", world.file, {"exec": script, "accept": ACCEPT},
                                           env=environment)
    world.finished()
    assert worker.wait() == 0
    found = json.loads(told.read_text())
    assert sorted(found["fds"]) == ["0", "1", "2"] and all(
        to.startswith("pipe:") for to in found["fds"].values()), found
    assert set(found["environment"]) <= {"PATH", "LANG", "LC_CTYPE"}, found["environment"]
    assert "NoNewPrivs:\t1" in found["status"] and "CapEff:\t0000000000000000" in found["status"]
    assert found["sid"]
    sandbox = worker.wait_for(r"sandbox: .*").group(0)
    assert "seccomp: OFF" not in sandbox, "the worker's own sandbox is as without a program"


@pytest.mark.parametrize("name, body, said", [
    ("dies", "sys.exit(3)", r"program \d: it ended with status 3; it is started again in 100 ms"),
    ("is killed", "os.kill(os.getpid(), 9)", r"program \d: it ended with signal 9; it is started again in"),
    ("garbage", "print('0,7', flush=True)",
     r"program \d: it answered a line of 3 bytes; expected a number from 0 to 1"),
    ("too much", "print(1.5, flush=True)", r"program \d: it answered a number outside 0 to 1; expected"),
    ("not a number", "print('NaN', flush=True)", r"it answered a line of 3 bytes"),
    ("two answers", "print(f'{SCORES[json.loads(line)[ITEM]]}\\n0.2', flush=True)",
     r"program \d: it wrote a line without a question"),
    ("another's", "print('{\"id\": 77777, \"score\": 0.5}', flush=True)",
     r"program \d: it answered a question that it has not been asked"),
    ("hangs", "time.sleep(1000)", r"program \d: no answer within 400 ms \(exec_timeout\); it is started again"),
    ("closes", "os.close(1); time.sleep(1000)", r"program \d: it has closed its standard output"),
    ("endless", "sys.stdout.write('0' * 100000); sys.stdout.flush(); time.sleep(1000)",
     r"program \d: it answered a line of 4096 bytes"),
])
def test_a_program_that_misbehaves_is_started_again_and_the_campaign_completes(deployment, name, body, said):
    """It misbehaves at each fifth question; what it was asked is asked again."""
    world = World(deployment)
    script = world.script(python(f"""
for n, line in enumerate(sys.stdin):
    if n == 4:
        {body}
    print(SCORES[json.loads(line)['item']], flush=True)
"""))
    # only the one that hangs has to answer in little time: a slow machine may need more to start four of them
    worker = world.start(script, exec_timeout="400ms" if name == "hangs" else "20s", exec_processes=4)
    worker.wait_for(said, timeout=60)
    assert "0,7" not in worker.text(), "an answer may be a score"
    world.finished()
    assert worker.wait() == 0
    wait_until(lambda: not parent_of(script), "no program is left")


def test_one_that_forks_leaves_nobody_behind(deployment):
    """A grandchild that holds the pipes, and one that has left the session."""
    world = World(deployment)
    script = world.script(python("""
if os.fork() == 0:
    time.sleep(1000)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(1000)
    os._exit(0)
for n, line in enumerate(sys.stdin):
    if n == 5:
        sys.exit(1)
    print(SCORES[json.loads(line)['item']], flush=True)
"""))
    worker = world.start(script)
    worker.wait_for("it ended with status 1")
    world.finished()
    assert worker.wait() == 0
    wait_until(lambda: not parent_of(script), "every descendant is gone")


def test_a_killed_worker_leaves_no_program(deployment):
    world = World(deployment)
    script = world.script(GOOD)
    worker = world.start(script)
    wait_until(lambda: parent_of(script), "it runs")
    worker.signal(signal.SIGKILL)
    wait_until(lambda: not parent_of(script), "the runner ends what it started")


def test_a_program_may_decline(deployment):
    world = World(deployment)
    script = world.script(python("""
for n, line in enumerate(sys.stdin):
    print(("decline", '{"decline": true}')[n % 2] if n % 7 in (0, 3) else SCORES[json.loads(line)['item']], flush=True)
"""))
    worker = world.start(script, exec_processes=2)
    deployment.broker.wait_for("assignment declined: the program declined")
    world.finished()
    assert worker.wait() == 0


def test_a_late_answer_is_told_and_not_used(deployment):
    world = World(deployment, broker={"lease": "300ms"})
    script = world.script(python("""
for n, line in enumerate(sys.stdin):
    if n == 3:
        time.sleep(1)
    print(SCORES[json.loads(line)['item']], flush=True)
"""))
    worker = world.start(script)
    worker.wait_for(r"no score within the broker's lease: the assignment was declined; expected a faster program, more "
                    r"of them \(exec_processes\), or a longer lease at the broker")
    deployment.broker.wait_for("assignment declined: no answer within the lease")
    world.finished()
    assert worker.wait() == 0


def test_its_standard_error_is_in_the_log_clean_and_bounded(deployment):
    world = World(deployment)
    script = world.script(python("""
sys.stderr.write("loading \\x1b[31mthe model\\n")
sys.stderr.flush()
for n, line in enumerate(sys.stdin):
    for i in range(50):
        print("noise", "x" * 10000, file=sys.stderr, flush=True)
    print(SCORES[json.loads(line)['item']], flush=True)
"""))
    worker = world.start(script)
    worker.wait_for(r"info: exec: program 1: loading \?\[31mthe model$")
    world.finished()
    assert worker.wait() == 0
    noise = [line for line in worker.lines if "program 1: noise" in line]
    assert 50 <= len(noise) <= 160 and all(len(line) < 1200 for line in noise)


@pytest.mark.parametrize("command, said", [
    ("/no/such/program", "exec: /no/such/program: No such file or directory; expected a program that may be run"),
    ("no-such-program --x", "exec: no-such-program: No such file or directory; expected a program that may be run"),
    ("/etc/passwd", "exec: /etc/passwd: Permission denied; expected a program that may be run"),
    ("' ", "exec: expected a program and up to 63 arguments, with closed quotes"),
    ("", "exec: expected a program and up to 63 arguments, with closed quotes"),
])
def test_a_command_that_is_none_is_told_at_the_start(deployment, command, said):
    world = World(deployment)
    worker = world.start(command)
    assert worker.wait() == 2
    assert [line for line in worker.lines if said in line] == worker.lines, worker.lines


def test_another_user_for_the_programs(deployment, tmp_path):
    if os.geteuid() != 0:
        pytest.skip("only root may change the user")
    world = World(deployment)
    told = Path("/tmp") / f"crowdveil-exec-{os.getpid()}"
    script = world.script(python("print(os.getuid(), open('/proc/self/status').read(), file=sys.stderr, flush=True)\n" +
                                 GOOD.split("\n", 3)[3]))
    for folder in [*Path(script).parents][:-2]:  # the tests' own folders are closed to others
        if folder.owner() == "root" and folder != Path("/tmp"):
            folder.chmod(folder.stat().st_mode | 0o011)
    worker = world.start(script, exec_user="nobody")
    worker.wait_for(r"program 1: 65534")
    world.finished()
    assert worker.wait() == 0
    assert not told.exists()
    refused = world.start(script, exec_user="no-such-user")
    assert refused.wait() == 2 and "exec: user: unknown user no-such-user" in refused.text()


def test_a_program_compares_two_items(deployment):
    """Pairs: the line names both, and the answer is one bit. A program that answers something else is told, and started
    again."""
    world = World(deployment, pairs=True)
    world.file.write_text(world.file.read_text().replace("items: {", "items: {rewards: pairs, "))
    script = world.script(python("""
started = os.path.join(os.path.dirname(__file__), "started")
if not os.path.exists(started):
    open(started, "w").close()
    sys.stdin.readline()
    print(0.7, flush=True)
for line in sys.stdin:
    asked = json.loads(line)
    assert asked["versus"] != asked["item"] and asked["versus_name"] != asked["name"]
    print(1 if SCORES[asked["item"]] > SCORES[asked["versus"]] else 0, flush=True)
"""))
    worker = world.start(script, exec_ahead=8)
    with deployment.requester() as requester:
        finished = requester.watch(world.campaign)
    assert end_name(finished.progress.end) == "complete", worker.text()
    worker.wait_for("program 1: it answered a comparison with another number; expected 1 if the item is better")
    # the best wins against both others, the worst against none
    assert given_means(deployment, len(NAMES))[::2] == [1, 0]
