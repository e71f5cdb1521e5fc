# SPDX-License-Identifier: Apache-2.0
"""The blocks of R in docs/r.md, run in order as a reader would, on results of these programs."""
import csv
import io
import re
import shutil
import subprocess

import pytest

from client.requester import end_name, spec
from client.worker import Session, work
from crowdveil.wire import GRID
from harness.commands import as_requester, crowdveil
from harness.daemon import ROOT
from harness.lab import lab

RSCRIPT = shutil.which("Rscript")
pytestmark = pytest.mark.skipif(RSCRIPT is None, reason="Rscript is not installed: the code in docs/r.md is not run")


def run(code, cwd):
    (cwd / "page.R").write_text("options(warn = 2)\n" + code)  # a warning is an error
    return subprocess.run([RSCRIPT, "--vanilla", "page.R"], cwd=cwd, capture_output=True, text=True, timeout=120,
                          stdin=subprocess.DEVNULL)


@pytest.fixture(scope="module")
def numbers(tmp_path_factory):
    """A folder with the files of the page's first section."""
    folder = tmp_path_factory.mktemp("r")
    assert lab("run", "corrupt-fig1a", "--replicates", 5, "--out", "fig1a", cwd=folder).returncode == 0
    for name, words in (("summary", ()), ("trials", ("--trials",))):
        done = lab("export", "fig1a/corrupt-fig1a.db", *words, cwd=folder)
        assert done.returncode == 0
        (folder / f"{name}.csv").write_text(done.stdout)
    return folder


def section(title):
    """The blocks of one section of the page as one program."""
    text = (ROOT / "docs/r.md").read_text()
    return "\n".join(re.findall(r"^```r\n(.*?)^```$", text.split(f"\n## {title}\n")[1].split("\n## ")[0], re.M | re.S))


def test_an_experiment(numbers):
    done = run(section("An experiment of the laboratory"), numbers)
    assert done.returncode == 0, done.stderr
    assert (numbers / "regret.png").read_bytes().startswith(b"\x89PNG")
    # R finds the same paired difference as the trials have
    values = {(row["series"], row["replicate"]): float(row["value"])
              for row in csv.DictReader(io.StringIO((numbers / "trials.csv").read_text())) if row["x"] == "10000"}
    pairs = [values["ucb-cf", str(i)] - values["klucb-cf", str(i)] for i in range(1, 6)]
    found = float(re.search(r"mean difference *\n\s*(\S+)", done.stdout)[1])
    assert abs(found - sum(pairs) / 5) < 1e-3
    assert re.search(r"klucb-cf +[\d.]+ +[\d.]+ +5", done.stdout)
    assert re.search(r"lower bound +[\d.]+ +NA +0", done.stdout)


def test_a_campaign(deployment, tmp_path):
    deployment.up()
    means = [.9, .2]
    with deployment.requester() as requester:
        campaign = requester.submit(spec(2, mechanism="segments", epsilon=4, tokens=20_000, policy_params={
            "alpha": .3, "delta": .01, "tokens_per_round": 100, "radius": "sound"})).campaign
        files = deployment.pki.issue("gateway/1-20000")
        with Session(deployment.broker.address, files.ca, files.cert, files.key) as session:
            work(session, range(1, 20_001), lambda worker, arm, place: GRID if worker % 10 < 10 * means[arm] else 0,
                 credit=256)
        assert end_name(requester.watch(campaign).progress.end) == "complete"
    for what in ("result", "releases"):
        done = crowdveil("export", campaign, "--format", "csv", "--what", what, *as_requester(deployment))
        assert done.returncode == 0, done.stderr
        (tmp_path / f"{what}.csv").write_text(done.stdout)
    done = run(section("A campaign"), tmp_path)
    assert done.returncode == 0, done.stderr
    assert "2 of 2 items are decided" in done.stdout
    assert (tmp_path / "releases.png").read_bytes().startswith(b"\x89PNG")
    found = re.findall(r"^ +(\d) +(\d+) +([\d.]+) +([\d.e-]+)$", done.stdout, re.M)
    result = list(csv.DictReader(io.StringIO((tmp_path / "result.csv").read_text())))
    # the last release of an arm has all its tokens and is the mean of the result
    assert [(int(arm), int(tokens)) for arm, tokens, *_ in found] == [(i, int(row["tokens"]))
                                                                      for i, row in enumerate(result)]
    assert all(abs(float(mean) - float(row["mean"])) < 1e-3 and 0 < float(noise) < .1
               for (_, _, mean, noise), row in zip(found, result))


def test_json(numbers):
    if run("library(jsonlite)", numbers).returncode != 0:
        pytest.skip("R package jsonlite is not installed: the last block of docs/r.md is not run")
    (numbers / "mine.yaml").write_text("campaign: mine\nitems: {list: [{name: a, mean: 0.9}, {name: b, mean: 0.2}]}\n"
                                       "policy: {name: ppar, alpha: 0.3, tokens_per_round: 500}\n"
                                       "privacy: {mechanism: segments, epsilon: 4}\nlimits: {tokens: 100000}\n")
    done = crowdveil("up", "mine.yaml", "--json", cwd=numbers)
    assert done.returncode == 0, done.stderr
    (numbers / "result.json").write_text(done.stdout)
    (numbers / "rows.jsonl").write_text(lab("run", "corrupt-fig1a", "--replicates", 2, "--json", cwd=numbers).stdout)
    done = run(section("JSON"), numbers)
    assert done.returncode == 0, done.stderr
    assert re.search(r"^ +1 +a +\d+$", done.stdout, re.M) and re.search(r"^ +2 +b +\d+$", done.stdout, re.M)
    assert "klucb-cf" in done.stdout
