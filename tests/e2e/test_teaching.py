# SPDX-License-Identifier: Apache-2.0
"""The commands of docs/teaching.md, each run as it stands there, and what the exercises say of them."""
import re
import shlex
import signal
import subprocess

import pytest

from harness.commands import crowdveil
from harness.daemon import PROGRAMS, ROOT, Daemon, wait_until
from harness.page import Page

TEXT = (ROOT / "docs/teaching.md").read_text()
LINES = re.findall(r"^\$ (.*)\n((?:[^$`].*\n)*)", "".join(re.findall(r"```console\n(.*?)```", TEXT, re.S)), re.M)
PROGRAM = {"build/deploy/launcher/crowdveil": "crowdveil", "build/lab/crowdveil-lab": "lab"}


def words_of(line, tmp_path):
    words = shlex.split(line.replace("/tmp/", f"{tmp_path}/"))
    return [str(PROGRAMS[PROGRAM[words[0]]]) if words[0] in PROGRAM else words[0], *words[1:]]


@pytest.fixture
def page(tmp_path):
    """Runs the command of the exercise that has these words, after the `sed` before it; its page at the end."""
    started = []

    def run(*parts):
        at = next(i for i, (line, _) in enumerate(LINES)
                  if "crowdveil up " in line and all(part in line for part in parts))
        if LINES[at - 1][0].startswith("sed "):
            done = subprocess.run(LINES[at - 1][0].replace("/tmp/", f"{tmp_path}/"), shell=True, cwd=ROOT, check=False)
            assert done.returncode == 0
        started.append(Daemon("up", words_of(LINES[at][0], tmp_path), tmp_path / f"up-{len(started)}.log", cwd=ROOT))
        seen = Page(started[-1])
        started[-1].wait_for("Still running until Ctrl-C", timeout=180)
        return seen
    yield run
    for daemon in started:
        daemon.signal(signal.SIGINT)
        assert daemon.wait() == 0


def roma(seen):
    return seen.json("/api/boundary?id=1&arm=0")["thirdparty"]


def is_on_a_boundary(row):
    return "boundary" in row[6:]


def test_a_smaller_epsilon_costs_more_than_the_page_estimates_for_the_median_item(page):
    seen = [page(name).campaign() for name in ("campaigns/demo.yaml --page", "demo-005.yaml")]
    tokens = [each["live"]["tokens"] for each in seen]
    # one run in 500 leaves the item that is hardest to rank on a boundary, for half of the tokens
    is_left = any(is_on_a_boundary(row) for step in seen[1]["steps"] for row in step["s"])
    # what the page says, and more than five standard deviations of 30,000 and 170,000 to both sides
    assert 400_000 < tokens[0] < 900_000 and (700_000 if is_left else 1_100_000) < tokens[1] < 3_300_000
    assert all(f"{said:,}" in TEXT for said in (570_000, 2_000_000))


def test_the_printed_mechanism_is_charged_more_than_it_states_and_its_noise_does_not_grow(page):
    printed, sound = page("hybrid-printed.yaml --page"), page("/hybrid.yaml")
    assert printed.campaign()["epsilon"] == .5 and printed.campaign()["live"]["spent"] == 2
    assert roma(printed)["release"][0] > 16 and roma(printed)["noise"] == [[2, 1]]
    assert sound.campaign()["live"]["spent"] == .5 and sum(count for _, count in roma(sound)["noise"]) > 1


@pytest.mark.parametrize("line, expected", [(line, said) for line, said in LINES if "crowdveil-lab audit" in line])
def test_the_audit_finds_the_leak_where_there_is_one(tmp_path, line, expected):
    done = subprocess.run(words_of(line, tmp_path), capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0 and expected.strip() and expected.strip() in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("campaign, may_differ", [("demo.yaml", False), ("randomized-response.yaml", True)])
def test_the_shown_worker_sends_its_score_unless_a_privatizer_changes_it(page, campaign, may_differ):
    seen = page(f"{campaign} --page --unsafe-show-worker")
    wait_until(lambda: seen.json("/api/boundary?id=1&arm=0")["worker"], "the shown worker")
    column = seen.json("/api/boundary?id=1&arm=0")["worker"]
    assert may_differ or column["score"] == column["token"]
    assert (column["privatizer"] != "none") == may_differ


def test_each_exercise_has_a_command_and_its_other_commands_exist():
    assert len(re.findall(r"^## \d\. ", TEXT, re.M)) == 3
    assert all(line.split()[0] in (*PROGRAM, "sed") for line, _ in LINES) and len(LINES) == 10
    assert crowdveil("up", "--help").stdout.count("--page") >= 2
