# SPDX-License-Identifier: Apache-2.0
"""`crowdveil up --worker-processes N`: the last N workers have a program and a certificate of their own."""
import json
import os
import re
import shutil
import signal
import subprocess

import pytest

from harness.commands import crowdveil
from harness.daemon import PROGRAMS, ROOT, Daemon, wait_until

pytestmark = pytest.mark.usefixtures("worker_program")

CAMPAIGNS = ROOT / "deploy/campaigns"
EVERY_TOKEN = ("--seed", "3", "--unsafe-noise-seed", "7")  # with other seeds half a round may be left over
ACCEPTED = re.compile(r"^crowdveil-worker: (\d+) tokens accepted", re.M)


def up(campaign, state, *options):
    done = crowdveil("up", campaign, "--json", "--state", state, *options)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr


def logs(state):
    """The summary of every worker's program, by name."""
    paths = [*state.glob("gateway-*.log"), *state.glob("worker-*.log")]
    return {path.stem: path.read_text() for path in paths}


def accepted(state):
    return {name: int(ACCEPTED.search(text).group(1)) for name, text in logs(state).items()}


def tie(folder, tokens):
    """Two items that are never separated: the campaign uses every token that it may."""
    path = folder / "tie.yaml"
    text = (CAMPAIGNS / "full-ranking.yaml").read_text()
    text = text.replace("Mill, mean: 0.33", "Mill, mean: 0.51")
    text = text.replace("alpha: 0,", "alpha: 0, boundary: feed, tails: chernoff,")
    path.write_text(text.replace("tokens: 1000000", f"tokens: {tokens}"))
    return path


def test_each_of_them_is_one_person_and_gives_what_one_gives(tmp_path):
    """As many workers as tokens are wanted: the end needs every worker's token."""
    state = tmp_path / "state"
    result, said = up(tie(tmp_path, 20_000), state, "--worker-processes", "3", "--gateways", "2", *EVERY_TOKEN)
    assert "19,997 workers on 2 gateways and 3 on their own" in said and "ended       token limit" in said
    people = [f"worker-{number}" for number in (19998, 19999, 20000)]
    given = accepted(state)
    assert sorted(given) == ["gateway-1", "gateway-2", *people]
    assert [given[name] for name in people] == [1, 1, 1] and sum(given.values()) == result["tokens"] == 20_000
    assert result["classes"] == [["Roma"], ["Golden Wok"], ["Corner Grill"]], "as without them"
    for name in people:
        assert f"connected as {name.replace('-', '/')}\n" in logs(state)[name]
        assert f'tls/{name}/{name}.pem"' in (state / f"{name}.yaml").read_text()
        subject = subprocess.run(["openssl", "x509", "-in", state / "tls" / name / f"{name}.pem", "-noout", "-ext",
                                  "subjectAltName"], capture_output=True, text=True, check=True).stdout
        assert f"URI:crowdveil:{name.replace('-', '/')}\n" in subject
    assert "connected as gateway/1-9999\n" in logs(state)["gateway-1"]
    assert "connected as gateway/10000-19997\n" in logs(state)["gateway-2"]
    assert "identity worker/20000: key, CA and role match" in crowdveil("doctor", state).stdout


@pytest.mark.parametrize("name", ["first", "per-item", "dpu", "kl-local", "exp3", "taxi"])
def test_every_kind_of_campaign_ends_as_without(tmp_path, name):
    """A ranking is wrong with a probability of at most delta, which is made one in ten million."""
    text, path = (CAMPAIGNS / f"{name}.yaml").read_text(), tmp_path / f"{name}.yaml"
    assert ("delta: 0.1" in text) == (name in ("first", "per-item"))
    path.write_text(text.replace("delta: 0.1", "delta: 0.0000001"))
    shutil.copy(CAMPAIGNS / "taxi.csv", tmp_path)
    result, said = up(path, tmp_path / "state", "--worker-processes", "2", "--seed", "3")
    assert re.search(r"^[\d,]+ workers on 2 gateways and 2 on their own", said, re.M)
    assert "ended       complete" in said
    assert sum(accepted(tmp_path / "state").values()) == result["tokens"]
    if "accuracy" in result:
        assert result["accuracy"] == 1.0
    if name == "dpu":  # a recruitment: they are hired like the others
        assert [arm["pulls"] for arm in result["arms"] if arm["pulls"] == 0] == []


def test_as_many_as_there_may_be(tmp_path):
    campaign = tie(tmp_path, 20_000)
    _, said = up(campaign, tmp_path / "state", "--worker-processes", "32", "--gateways", "32", *EVERY_TOKEN)
    assert "19,968 workers on 32 gateways and 32 on their own" in said
    given = accepted(tmp_path / "state")
    assert sorted(given.values())[:32] == [1] * 32 and len(given) == 64 and sum(given.values()) == 20_000
    _, said = up(CAMPAIGNS / "dpu.yaml", tmp_path / "few", "--worker-processes", "19", "--gateways", "32")
    assert "1 worker on 1 gateway and 19 on their own" in said


def child(launcher, config):
    """The child that was started with this configuration."""
    with open(f"/proc/{launcher.pid}/task/{launcher.pid}/children") as children:
        for pid in children.read().split():
            with open(f"/proc/{pid}/cmdline") as command:
                if command.read().split("\0")[-2].endswith(f"/{config}"):
                    return int(pid)
    raise AssertionError(f"no child with {config}")


def test_one_that_is_killed_ends_it_all_with_one_line(tmp_path):
    state = tmp_path / "state"
    command = [PROGRAMS["crowdveil"], "up", tie(tmp_path, 50_000_000), "--worker-processes", "2", "--state", state]
    launcher = Daemon("up", command, tmp_path / "up.log")
    try:
        log = state / "worker-50000000.log"
        wait_until(lambda: log.exists() and "connected as worker/50000000\n" in log.read_text(), "it is there")
        since = launcher.mark()
        os.kill(child(launcher, "worker-50000000.yaml"), signal.SIGKILL)
        assert launcher.wait() == 1
    finally:
        launcher.kill()
    said = [line for line in launcher.lines[since:] if "crowdveil up:" in line]
    assert len(said) == 1 and f"worker-50000000 was killed by signal 9; its log {log} says: " in said[0], said
    assert said[0].endswith(log.read_text().splitlines()[-1])
