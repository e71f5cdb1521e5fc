# SPDX-License-Identifier: Apache-2.0
"""Workers that lie: a ranking that is told how many to bear, and what is said of them."""
import csv
import io
import json
import random
import re

import pytest

from client.requester import classes, end_name, spec
from client.worker import Session, work
from crowdveil.wire import GRID
from harness.commands import as_requester, crowdveil
from harness.daemon import ROOT

MEANS, LIARS = [.9, .6, .2], 80


def rank(deployment, liars, bears):
    """Ranks with workers of whom the first `liars` say that item 1 is perfect and that the others are worthless."""
    def score(worker, arm, place):
        if worker <= liars:
            return GRID if arm == 1 else 0
        return GRID if random.Random(f"{arm}/{place}").random() < MEANS[arm] else 0

    with deployment.requester() as requester:
        campaign = requester.submit(spec(3, mechanism="segments", epsilon=4, tokens=60_000, policy_params={
            "alpha": .1, "delta": .01, "tokens_per_round": 100, "radius": "sound", "lies": bears})).campaign
        files = deployment.pki.issue("gateway/1-60000")
        with Session(deployment.broker.address, files.ca, files.cert, files.key) as session:
            work(session, range(1, 60_001), score, credit=256)
        finished = requester.watch(campaign)
    assert end_name(finished.progress.end) == "complete"
    return campaign, classes(finished)


def said(deployment, campaign):
    """The rows of the result by item, and the two numbers of the summary."""
    done = crowdveil("export", campaign, "--format", "csv", *as_requester(deployment))
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    watched = crowdveil("watch", campaign, *as_requester(deployment))
    assert watched.returncode == 0, watched.stderr
    return rows, [int(number.replace(",", ""))
                  for number in re.findall(r"at least ([\d,]+) \(workers: \1\)", watched.stdout)]


def test_liars_within_the_allowance_turn_no_class_and_clearly_more_do(deployment):
    deployment.up()
    campaign, found = rank(deployment, LIARS, LIARS)
    assert found == ({1: [0], 2: [1], 3: [2]}, [])
    rows, (safe, turn) = said(deployment, campaign)
    assert LIARS < safe <= turn
    assert safe == min(int(row["lies_safe"]) for row in rows) and turn == min(int(row["lies_turn"]) for row in rows)
    export = crowdveil("export", campaign, *as_requester(deployment)).stdout
    (deployment.folder / "export.json").write_text(export)
    assert crowdveil("verify", deployment.folder / "export.json").returncode == 0
    campaign, found = rank(deployment, 20 * LIARS, LIARS)
    assert found[0] != {1: [0], 2: [1], 3: [2]}


def test_what_a_trusted_thirdparty_saw_is_not_known_to_the_requester(deployment):
    deployment.up(broker={"limits": {"trusted_thirdparty": True}})
    with deployment.requester() as requester:
        campaign = requester.submit(spec(2, mechanism="none", trusted=True, tokens=10_000, policy_params={
            "alpha": .2, "delta": .1, "tokens_per_round": 200})).campaign
        files = deployment.pki.issue("gateway/1-10000")
        with Session(deployment.broker.address, files.ca, files.cert, files.key) as session:
            work(session, range(1, 10_001), lambda worker, arm, place: (1 - arm) << 20, credit=256)
        requester.watch(campaign)
    watched = crowdveil("watch", campaign, *as_requester(deployment))
    assert watched.returncode == 0 and "lies        not known: a broker does not export exact sums\n" in watched.stdout


@pytest.mark.parametrize("policy", ["ppar", "ppar-kl"])
def test_a_result_says_how_many_lies_it_bears(tmp_path, policy):
    text = (ROOT / "deploy/campaigns/lies.yaml").read_text()
    assert "name: ppar-kl" in text and "lies: 50" in text
    (tmp_path / "campaign.yaml").write_text(text.replace("name: ppar-kl", f"name: {policy}"))
    # with the file's seed of the scores the result is always the same
    done = crowdveil("up", tmp_path / "campaign.yaml", "--json", "--unsafe-noise-seed", "1", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    lies = result["lies"]
    assert 50 < lies["safe"] <= lies["turn"] and lies["tokens_per_worker"] == 1
    assert lies["safe"] == min(item["safe"] for item in lies["items"].values())
    assert set(lies["items"]) == set(result["item_tokens"])
    assert result["classes"] == result["truth"]
