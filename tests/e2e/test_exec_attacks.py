# SPDX-License-Identifier: Apache-2.0
"""What a program of `crowdveil-worker --exec` does against the process that starts it, and to outlive its worker."""
import fcntl
import json
import os
import signal
from contextlib import suppress
from pathlib import Path

import pytest

from harness import machine
from harness.daemon import wait_until
from test_exec import ACCEPT, World, parent_of, python

pytestmark = pytest.mark.usefixtures("worker_program")

# Four that nobody waits for, in sessions of their own, who ignore what can be ignored; then the attack; then answers.
HOSTILE = """
import ctypes, fcntl, resource, signal, threading
held = open(__file__)  # by all that come of it
fcntl.flock(held, fcntl.LOCK_SH)
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
SPAWNER, GETFD, SENDSIGNAL, OPENPID = os.getppid(), 438, 424, 434
def attempt(what, *args):
    try:
        return what(*args)
    except OSError:
        return None
def outlive(hops=False):
    if os.fork():
        return
    os.setsid()
    libc.prctl(1, 0)  # no signal when its parent dies
    for number in set(range(1, 65)) - {9, 19, 32, 33}:
        attempt(signal.signal, number, signal.SIG_IGN)
    if os.fork():
        os._exit(0)
    for _ in range(6000 if hops else 1):  # a test that fails cannot catch one that hops: it ends by itself
        time.sleep(.01 if hops else 1000)
        if hops and os.fork():
            os._exit(0)
    os._exit(0)
def seen():
    # the spawner and its parent, by the numbers that /proc has
    own = int(os.readlink("/proc/self"))
    for _ in range(2):
        with open(f"/proc/{own}/stat") as file:
            own = int(file.read().rsplit(")", 1)[1].split()[1])
        if own < 2 or "crowdveil" not in open(f"/proc/{own}/comm").read():
            return
        yield own
def attack():
    BODY
for n in range(4):
    outlive()
attempt(attack)
for line in sys.stdin:
    print(SCORES[json.loads(line)['item']], flush=True)
"""

ATTACKS = {
    "kills it": "os.kill(SPAWNER, 9)",
    "stops it": "os.kill(SPAWNER, signal.SIGSTOP)",
    "sends every signal": "[attempt(os.kill, SPAWNER, number) for number in range(1, 65)]",
    "kills its group": "group = os.getpgid(SPAWNER); group > 0 and os.killpg(group, 9)",
    "traces it": "[(libc.ptrace(16, pid, None, None), libc.ptrace(0x4206, pid, None, None), libc.ptrace(8, pid, None, "
                 "None)) for pid in (SPAWNER, *seen())]",
    "writes its memory": "[open(f'/proc/{pid}/mem', 'r+b').close() for pid in (SPAWNER, *seen())]",
    "finds it in /proc": "[attempt(os.kill, pid, 9) for pid in seen()]",
    "signals its folder in /proc": "[libc.syscall(SENDSIGNAL, os.open(f'/proc/{pid}', os.O_RDONLY), 9, None, 0) "
                                   "for pid in (SPAWNER, *seen())]",
    "signals its descriptor": "libc.syscall(SENDSIGNAL, libc.syscall(OPENPID, SPAWNER, 0), 9, None, 0)",
    "takes its socket": "[libc.syscall(GETFD, libc.syscall(OPENPID, SPAWNER, 0), fd, 0) for fd in range(3, 64)]",
    "enters its namespaces": "[libc.setns(os.open(f'/proc/{pid}/ns/pid', os.O_RDONLY), 0) for pid in (1, *seen())]; "
                             "os.fork() or [attempt(os.kill, pid, 9) for pid in seen()]",
    "hops": "[outlive(hops=True) for _ in range(8)]",
    "hides in namespaces": "libc.unshare(0x10000000) or libc.unshare(0x20020000) or outlive(hops=True)",
    "leaves its dead": "[os.fork() or os._exit(os.fork() and 0) for _ in range(300)]",
    "shrinks its pipes": "[attempt(fcntl.fcntl, fd, 1031, 4096) for fd in (0, 1, 2)]",
    "fills its pipes": "[threading.Thread(target=os.write, args=(2, b'x' * (1 << 22)), daemon=True).start()]",
}
# Also of the workers of other tests that run at the same time, whose programs then do not start.
USES_UP = """
    import array, socket
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    if os.fork():
        time.sleep(1)
        os.kill(os.getpid(), 9)
    os.setsid()
    kept = []
    try:
        while len(kept) < 4096:
            kept.append(socket.socketpair())
            kept[-1][0].sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0] * 250))])
    finally:
        time.sleep(1000)
"""
# These end the program, and may end the spawner and with it the worker, which says so.
DEADLY = {
    "uses up what its user may send": USES_UP,
    "lets itself be traced": "libc.ptrace(0, 0, None, None); os.kill(os.getpid(), signal.SIGSTOP)",
    "limits its time": "resource.prlimit(SPAWNER, resource.RLIMIT_CPU, (0, 0)); os.kill(os.getpid(), 9)",
    "limits its files": "resource.prlimit(SPAWNER, resource.RLIMIT_NOFILE, (0, 0)); os.kill(os.getpid(), 9)",
}
AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root may change the user")
# How the worker is started, and the user of its programs.
WAYS = [
    pytest.param(machine.without_rights(), None, id="user namespace", marks=machine.needs(machine.user_namespaces)),
    pytest.param((), None, id="own user", marks=AS_ROOT),
    pytest.param((), "nobody", id="nobody", marks=AS_ROOT),
]


class Hostile(World):
    def __init__(self, deployment, way, body, user=None, **settings):
        super().__init__(deployment)
        self.path = self.script(python(HOSTILE.replace("BODY", body)))
        for folder in [*Path(self.path).parents][:-2]:  # the tests' own folders are closed to others
            if os.geteuid() == 0 and folder.owner() == "root" and folder != Path("/tmp"):
                folder.chmod(folder.stat().st_mode | 0o011)
        self.worker = deployment.start_worker("gateway/1-20000", self.file, {
            "exec": self.path, "accept": ACCEPT, **({"exec_user": user} if user else {}), **settings}, prefix=way)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for pid in parent_of(self.path):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def is_held(self):
        """Whether a process of the program's is alive. A look at /proc would miss one that goes from fork to fork."""
        with open(self.path) as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
        return False

    def is_over(self):
        wait_until(lambda: not self.is_held(), "nobody is left")


def spawner_of(worker):
    """The process of the machine that starts the worker's programs."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, fields = stat.read_text().rsplit(")", 1)
        except OSError:
            continue
        if name.endswith("(crowdveil-exec") and int(fields.split()[1]) == worker.pid:
            return int(stat.parent.name)
    return None


@pytest.mark.parametrize("way, user", WAYS)
@pytest.mark.parametrize("body", ATTACKS.values(), ids=ATTACKS)
def test_a_program_has_no_power_over_its_spawner(deployment, body, way, user):
    with Hostile(deployment, way, body, user) as world:
        world.worker.wait_for("exec: programs run in a PID namespace of their own, and end with the worker")
        world.finished()
        assert world.worker.wait() == 0
        world.is_over()


@pytest.mark.parametrize("way, user", WAYS)
@pytest.mark.parametrize("body", [pytest.param(body, id=name, marks=[pytest.mark.alone] if body == USES_UP else [])
                                  for name, body in DEADLY.items()])
def test_one_that_ends_its_spawner_ends_itself(deployment, body, way, user):
    """The worker goes on, or says why it does not."""
    with Hostile(deployment, way, body, user) as world:
        world.worker.wait_for("started again in 400 ms|Too many open files|no program can be started any more")
        world.worker.stop()
        world.is_over()


@pytest.mark.parametrize("way, user", WAYS)
@pytest.mark.parametrize("end", ["worker", "spawner"])
def test_nothing_outlives_a_worker_or_spawner_that_is_killed(deployment, end, way, user):
    body = ATTACKS["hops"] + "; print('they hop', file=sys.stderr, flush=True); time.sleep(1000)"
    with Hostile(deployment, way, body, user) as world:
        world.worker.wait_for("program 1: they hop")
        os.kill(world.worker.pid if end == "worker" else spawner_of(world.worker), signal.SIGKILL)
        world.is_over()
        assert world.worker.wait() == (-signal.SIGKILL if end == "worker" else 1)


@AS_ROOT
@machine.needs(machine.bounded_capabilities)
def test_where_no_namespace_is_permitted_the_worker_says_what_programs_can_do(deployment):
    """Here a program does kill its spawner, which ends the worker, and only with `require` is that not begun."""
    way = machine.without_rights()
    with Hostile(deployment, way, ATTACKS["kills it"], "nobody") as world:
        world.worker.wait_for(r"warning: exec: programs have no PID namespace of their own \(.*not permitted\): one "
                              "can kill the process that starts them, and end the worker, and then outlive it")
        assert world.worker.wait() == 1
        assert "no program can be started any more: the process that runs them has ended" in world.worker.text()
        assert world.is_held(), "a control: here some do outlive it"
        refused = deployment.start_worker("gateway/1-20000", world.file, {
            "exec": world.path, "accept": ACCEPT, "exec_user": "nobody", "sandbox": "require"}, prefix=way)
        assert refused.wait() == 1
        assert "sandbox is require, but a PID namespace for the programs is not available" in refused.text()


@machine.needs(machine.own_proc)
def test_a_program_sees_its_own_processes_and_its_user(deployment, tmp_path):
    """Numbers in /proc are those that it has itself, so that what looks there works as before."""
    told = tmp_path / "told"
    with Hostile(deployment, machine.without_rights(), f"""
    names = [entry for entry in os.listdir("/proc") if entry.isdigit()]
    with open({str(told)!r}, "w") as file:
        json.dump([os.readlink("/proc/self") == str(os.getpid()), len(names) < 12, os.getuid(), os.getcwd()], file)
""") as world:
        world.finished()
    assert json.loads(told.read_text()) == [True, True, os.getuid(), os.getcwd()]
