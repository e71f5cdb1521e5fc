# SPDX-License-Identifier: Apache-2.0
"""Ended campaigns: their cost in memory, at a start and on disk, and how their requester deletes them."""
import contextlib
import csv
import io
import re
import sqlite3
from pathlib import Path

import pytest

from client.requester import end_name, spec
from crowdveil import Refused
from harness.commands import as_requester, crowdveil

MIB, ARMS, CAMPAIGNS = 1 << 20, 4096, 40


def resident(daemon):
    text = Path(f"/proc/{daemon.pid}/status").read_text()
    return int(re.search(r"^VmRSS:\s+(\d+) kB", text, re.M).group(1)) * 1024


def rows(deployment, sql):
    with contextlib.closing(sqlite3.connect(deployment.folder / "broker-state/broker.db")) as db:
        return db.execute(sql).fetchone()[0]


def submit_and_cancel(deployment, requester, large):
    campaign = requester.submit(large).campaign
    requester.cancel(campaign)
    deployment.thirdparty.wait_for(rf"campaign {campaign} is closed")


def test_submits_and_cancels_without_end_leave_nothing_in_memory(deployment):
    """Each campaign is of the largest size, half a MiB of memory while it runs."""
    deployment.up(broker={"limits": {"submits": 1000, "campaigns": 100}})
    large = spec(ARMS, names=[f"{i:026d}" for i in range(ARMS)], policy_params={"alpha": 0})
    with deployment.requester() as requester:
        for _ in range(5):  # what is allocated once and kept
            submit_and_cancel(deployment, requester, large)
        before = resident(deployment.broker)
        for _ in range(CAMPAIGNS):
            submit_and_cancel(deployment, requester, large)
        assert requester.watch(5 + CAMPAIGNS).progress.arms == ARMS
        assert resident(deployment.broker) - before < CAMPAIGNS * MIB / 4
        assert requester.submit(spec(2, policy_params={"alpha": 0})).campaign == 6 + CAMPAIGNS
    assert deployment.broker.stop() == 0
    deployment.start_broker()
    assert resident(deployment.broker) < before + CAMPAIGNS * MIB / 4
    with deployment.requester() as requester:
        assert len(requester.status().campaigns) == 6 + CAMPAIGNS
        assert requester.export(1)[-1].last


@pytest.mark.usefixtures("worker_program")
def test_an_ended_campaign_can_be_queried_until_it_is_purged(deployment, tmp_path):
    """Export, watch and ledger of before and after a restart agree; after a purge only the charge remains."""
    file = tmp_path / "campaign.yaml"
    file.write_text("campaign: test\nitems: {list: [{name: a, mean: 0.9}, {name: b, mean: 0.2}]}\n"
                    "policy: {name: ppar, alpha: 0.2}\nprivacy: {epsilon: 1}\n")
    deployment.up()
    with deployment.requester() as requester:
        campaign = requester.submit(spec(2, policy_params={"alpha": .2, "tokens_per_round": 100})).campaign
        deployment.start_worker("gateway/1-100000", file)
        finished = requester.watch(campaign)
        assert end_name(finished.progress.end) == "complete"
        told = [requester.export(campaign), requester.ledger(campaign)]
    assert sum(len(part.releases) for part in told[0]) == finished.progress.releases > 0
    assert deployment.broker.stop() == 0
    deployment.start_broker()
    with deployment.requester() as requester:
        again = [requester.export(campaign), requester.ledger(campaign)]
        assert [part.releases[:] for part in again[0]] == [part.releases[:] for part in told[0]]
        assert again[1].accounts == told[1].accounts
        assert requester.watch(campaign).standings == finished.standings
    export = crowdveil("export", campaign, "--format", "csv", *as_requester(deployment))
    assert len(list(csv.reader(io.StringIO(export.stdout)))) > 1, export.stderr

    asked = as_requester(deployment)
    for words, status, text in [((campaign, "--ended"), 2, "expected either CAMPAIGN or --ended"),
                                ((), 2, "expected either CAMPAIGN or --ended"),
                                (("9",), 1, "no campaign 9 of alice")]:
        done = crowdveil("purge", *words, *asked)
        assert (done.returncode, done.stderr.count("\n")) == (status, 1) and text in done.stderr, done
    assert crowdveil("purge", campaign, *asked).stdout == "1 campaigns purged\n"
    assert crowdveil("purge", "--ended", *asked).stdout == "0 campaigns purged\n"
    done = crowdveil("export", campaign, *asked)
    assert done.returncode == 1 and f"campaign {campaign} of alice was purged" in done.stderr
    assert crowdveil("status", *asked).stdout.endswith("no campaigns of yours\n")
    assert deployment.broker.stop() == 0 and deployment.thirdparty.stop() == 0
    done = crowdveil("doctor", deployment.folder / "broker.yaml", deployment.folder / "thirdparty.yaml")
    assert "the broker does not" not in done.stdout, done.stdout  # a purge is not taken for a rolled-back broker
    assert rows(deployment, "SELECT (SELECT count(*) FROM release) + (SELECT count(*) FROM campaign)") == 0
    assert rows(deployment, "SELECT count(*) FROM chunk WHERE campaign = 0") > 0
    deployment.start_broker()
    with deployment.requester() as requester:
        assert requester.submit(spec(2, policy_params={"alpha": 0})).campaign == campaign + 1
