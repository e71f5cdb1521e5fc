# SPDX-License-Identifier: Apache-2.0
"""The Python package behind, before and beside the real programs."""
import os
import sqlite3

import pytest

from crowdveil import End, Requester, Spec
from harness.campaign import NOISE
from harness.daemon import ROOT

PYTHON = "/usr/bin/python3"
MEANS = [.2, .8, .5, .81, .35]


@pytest.fixture
def campaign_file(tmp_path):
    items = ", ".join(f"{{name: i{arm}, mean: {mean}}}" for arm, mean in enumerate(MEANS))
    path = tmp_path / "campaign.yaml"
    path.write_text(f"campaign: test\nitems: {{list: [{items}]}}\npolicy: {{name: ppar}}\nprivacy: {{epsilon: 1}}\n")
    return path


class Bayes:
    """python/examples/bayes.py as the third-party of a deployment, at one address."""

    def __init__(self, deployment):
        self.deployment, self.files = deployment, deployment.pki.issue("thirdparty/ranker")
        self.state, self.address = deployment.folder / "bayes", "127.0.0.1:0"
        self.start()

    def start(self):
        self.daemon = self.deployment.launch("bayes", [
            PYTHON, ROOT / "python/examples/bayes.py", "--listen", self.address, "--state", self.state, "--tls",
            self.files.ca, self.files.cert, self.files.key], env=dict(os.environ, PYTHONPATH=str(ROOT / "python")))
        self.address = self.daemon.address

    def rows(self, query):
        with sqlite3.connect(self.state / "thirdparty.db") as db:
            return db.execute(query).fetchall()


@pytest.mark.quick
def test_a_policy_in_python_ranks_behind_the_real_broker_although_it_is_killed(deployment, campaign_file):
    bayes = Bayes(deployment)
    deployment.start_broker({"thirdparty": bayes.address, **NOISE})
    with Requester(deployment.broker.address, deployment.pki.issue("requester/alice"), "main", timeout=60) as requester:
        campaign = requester.submit(Spec("test", len(MEANS), policy=("bayes", {"alpha": .06, "tokens": 100}))).campaign
        deployment.start_worker("gateway/1-200000", campaign_file, {"arrival_rate": 2000})
        killed = 0
        for seen in requester.watch(campaign):
            if not seen_end(seen) and seen.releases >= 5 * (killed + 1) and killed < 3:
                bayes.daemon.kill()
                killed += 1
                bayes.start()
        export = requester.export(campaign)
    assert killed == 3 and seen.end == End.COMPLETE
    assert [standing.rank_class for standing in seen.standings] == [4, 1, 2, 1, 3]
    assert bayes.daemon.stop() == 0
    assert bayes.rows("SELECT number, arm, tokens, noisy_sum FROM release ORDER BY number") == [
        (release.number, release.arm, release.tokens, release.noisy_sum) for release in export.releases]
    assert bayes.rows("SELECT max(number) FROM plan") == [(len(export.plans),)]
    assert {(arm, level) for arm, level in bayes.rows("SELECT arm, rank_class FROM decision")} >= {(0, 4), (1, 1)}
    assert bayes.rows("SELECT closed, ended FROM campaign") == [(1, End.COMPLETE)]


def seen_end(seen):
    return hasattr(seen, "standings")
