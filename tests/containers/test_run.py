# SPDX-License-Identifier: Apache-2.0
"""deploy/compose/run: every compose file ends well, a usage error gives one line, and nothing is left behind."""
import os
import re
import shutil
import signal
import sqlite3
import subprocess

import pytest

import engine
from project import wait_until

RUN = engine.COMPOSE / "run"


def run(*args, **kwargs):
    """(status, standard output, standard error)"""
    done = subprocess.run([RUN, *map(str, args)], env=kwargs.pop("env", engine.environment()), text=True,
                          capture_output=True, stdin=subprocess.DEVNULL, timeout=300, **kwargs)
    return done.returncode, done.stdout, done.stderr


def left(name):
    """The containers, networks and volumes of a project that still exist."""
    of = f"crowdveil-{name}"
    return [line for kind in (("ps", "-aq"), ("volume", "ls", "-q"), ("network", "ls", "-q"))
            for line in engine.output(*kind, "--filter", f"label=com.docker.compose.project={of}").split()
            ] + [line for kind in ("volume", "network")
                 for line in engine.output(kind, "ls", "--format", "{{.Name}}").split() if line.startswith(f"{of}_")]


@pytest.fixture(autouse=True)
def nothing_left():
    yield
    for name in (*engine.ALL, "boundary"):
        if left(name):
            run(name, "--down")


def check_table(printed, row, rows):
    assert len(re.findall(f"^{row}", printed, re.M)) == rows and re.search("^ended +complete", printed, re.M), printed


def test_own_data_ends_well():
    status, printed, errors = run("own-data", "--no-build")
    assert status == 0, printed + errors
    check_table(printed, r" +\d  [A-Z]", 6)
    assert left("own-data") == []


def test_two_brokers_over_postgresql_end_well():
    status, printed, errors = run("ha", "--no-build")
    assert status == 0, printed + errors
    check_table(printed, r" +\d+  item ", 20)
    assert left("ha") == []


def test_a_recruitment_ends_well_and_a_kept_deployment_goes_on():
    """--keep leaves it running; another run submits to the same parties, and --down removes them."""
    status, printed, errors = run("recruit", "--no-build", "--keep")
    assert status == 0 and "campaign 1\n" in printed and "still running: " in errors, printed + errors
    check_table(printed, r"worker \d+ ", 20)
    status, printed, errors = run("recruit", "--no-build", "--keep")
    assert status == 0 and "campaign 2\n" in printed, printed + errors
    assert run("recruit", "--down") == (0, "", "") and left("recruit") == []


def test_the_boundary_of_a_ranking(say):
    """Also builds the images as a user would, and ranks."""
    status, printed, errors = run("boundary")
    assert status == 0, printed + errors
    assert "complete, every item is ranked" in printed
    assert "every party has only the access it needs" in printed
    assert "VIOLATION" not in printed
    parts = dict(re.findall(r"^(worker-1|broker|thirdparty|requester)\n((?:  .*\n)+)", printed, re.M))
    assert set(parts) == {"worker-1", "broker", "thirdparty", "requester"}
    for party in ("worker-1", "requester"):
        assert re.search(r"broker:7401 by name +reached\n", parts[party])
        assert re.search(r"thirdparty:7402 by name +no such name\n", parts[party])
        assert len(re.findall(r"thirdparty:7402 by the bridge [0-9.]+ +(?:not reachable|refused)", parts[party])) == 2
        assert len(re.findall(r"thirdparty:7402 at [0-9.]+ on ranking +not reachable", parts[party])) == 1
    assert re.search(r"thirdparty:7402 by name +reached\n", parts["broker"])
    assert re.search(r"worker-1:7401 at [0-9.]+ on crowd +not reachable", parts["thirdparty"])
    assert not re.search("reached(?!; TLS refuses the certificate)", parts["thirdparty"]), "it dials no party"
    assert "thirdparty.db" in parts["thirdparty"] and "broker.db" not in parts["thirdparty"]
    assert "broker.db" in parts["broker"] and "seal" in parts["broker"]
    for party, part in parts.items():
        assert part.count("key.pem") == 1 and "ca.key" not in part, party
        assert "CapEff: 0000000000000000" in part and "root read-only" in part, party
    assert left("boundary") == []


# Its first round needs more tokens than three workers have, so it does not end by itself.
UNENDING = """
campaign: unending
items: {synthetic: {count: 2}}
policy: {name: ppar, alpha: 0.1, tokens_per_round: 1000}
privacy: {epsilon: 1}
limits: {idle: 1h}
"""


def test_ctrl_c_cleans_up(tmp_path):
    folder = tmp_path / "unending"
    folder.mkdir()
    (folder / "campaign.yaml").write_text(UNENDING)
    for each in (tmp_path, *tmp_path.parents[:2], folder):
        each.chmod(each.stat().st_mode | 0o055)
    arguments = ("own-data", folder, "--no-build", "--workers", "3")
    printed = tmp_path / "printed"
    # a shell's background command ignores SIGINT, and so would everything below it
    with printed.open("w") as output:
        running = subprocess.Popen([RUN, *arguments], env=engine.environment(), stdin=subprocess.DEVNULL,
                                   stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
                                   preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    wait_until(lambda: "campaign 1\n" in printed.read_text(), f"the campaign runs: {printed.read_text()}", 120)
    assert run(*arguments)[0::2] == (2, "run: own-data is already running\n")
    os.killpg(running.pid, signal.SIGINT)  # as a terminal does
    assert running.wait(timeout=120) == 128 + signal.SIGINT, printed.read_text()
    assert left("own-data") == []


def path_without(tmp_path, *absent):
    """A PATH with links to all programs except these."""
    for folder in ("/usr/sbin", "/usr/bin", "/sbin", "/bin"):
        for name in os.listdir(folder):
            link = tmp_path / name
            if name not in absent and not os.path.lexists(link):
                link.symlink_to(f"{folder}/{name}")
    return dict(engine.environment(), PATH=str(tmp_path))


def refused(status, printed, errors, *words):
    assert status == 2 and printed == "" and errors.count("\n") == 1, (status, printed, errors)
    assert all(word in errors for word in words), errors


def test_no_engine(tmp_path):
    env = path_without(tmp_path, "docker", "podman", "docker-compose", "podman-compose")
    refused(*run("rank", env=env), "no container engine answers", "expected docker", "podman")


def test_half_an_engine(tmp_path):
    env = path_without(tmp_path, "docker", "docker-compose", "podman-compose")
    refused(*run("rank", env=env), "podman-compose is not")


def test_an_engine_that_does_not_answer(tmp_path):
    env = path_without(tmp_path, "docker", "podman", "docker-compose")
    fake = tmp_path / "docker"
    fake.write_text("#!/bin/sh\necho no daemon >&2\nexit 1\n")
    fake.chmod(0o755)
    refused(*run("rank", env=env), "its daemon does not answer")


@pytest.mark.parametrize("args,words", [
    (["rannk"], ["rannk", "recruit"]), (["rank", "--sed", "1"], ["--sed"]), (["rank", "--seed", "x"], ["--seed", "x"]),
    (["rank", "--seed"], ["no value"]), (["rank", "folder"], ["only own-data"]),
    (["recruit", "--campaign", "x"], ["--campaign"]), (["own-data", "/nowhere"], ["/nowhere"]),
    (["own-data", "--campaign", "other"], ["other.yaml"]), (["own-data", "--workers", "2"], ["--workers"]),
    (["own-data", "--tokens", "0"], ["--tokens"]),
    (["../x"], ["../x"])])
def test_wrong_use_is_one_line(args, words):
    refused(*run(*args), *words)


def test_data_that_the_containers_cannot_read(tmp_path):
    """The requester reports it in one line; it reads the same file as the workers."""
    folder = tmp_path / "mine"
    shutil.copytree(engine.COMPOSE / "own-data", folder)
    (folder / "ratings.csv").chmod(0o600)
    for each in (tmp_path, *tmp_path.parents[:-2]):
        each.chmod(0o755)
    status, printed, errors = run("own-data", folder, "--no-build")
    lines = [line for line in (printed + errors).strip().split("\n") if not line.startswith("run: starting")]
    assert status == 2 and len(lines) == 1, (status, lines)
    assert "/data/ratings.csv: cannot be opened: Permission denied" in lines[0], lines
    assert left("own-data") == []


def test_volumes_of_another_version():
    """State written by a newer version: the party's own line is printed, and the party is not restarted for ever."""
    volume = "crowdveil-rank_rank-thirdparty-state"
    engine.podman("volume", "create", volume)
    folder = engine.output("volume", "inspect", "--format", "{{.Mountpoint}}", volume)
    with sqlite3.connect(f"{folder}/thirdparty.db") as db:
        db.execute("CREATE TABLE meta (version INTEGER)")
        db.execute("PRAGMA application_id = 0x43565450")  # of a third-party's database
        db.execute("PRAGMA user_version = 999")
    for path in (folder, f"{folder}/thirdparty.db"):
        os.chown(path, engine.USER, engine.USER)
    status, printed, errors = run("rank", "--no-build")
    assert status == 1 and re.search("^run: thirdparty cannot run: .*999", errors, re.M), printed + errors
    assert left("rank") == []
