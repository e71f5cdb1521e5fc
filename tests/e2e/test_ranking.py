# SPDX-License-Identifier: Apache-2.0
"""Whole campaigns: tokens in, a ranking out, compared with a truth that is computed here."""
import random

import pytest

from client.requester import classes, end_name, spec
from client.worker import Session, work
from crowdveil.wire import GRID

pytestmark = pytest.mark.quick


def bernoulli(means, seed):
    """Scores as a pure function of (seed, arm, place)."""
    def score(worker, arm, place):
        return GRID if random.Random(f"{seed}/{arm}/{place}").random() < means[arm] else 0
    return score


def test_a_worker_of_another_make_is_ranked_right(deployment):
    """The broker against the text of the protocol: every worker here is the Python client."""
    means = [.05, .5, .95, .52, .93]
    deployment.up()
    with deployment.requester() as requester:
        campaign = requester.submit(spec(
            len(means), epsilon=2, tokens=60_000,
            policy_params={"alpha": .2, "delta": .1, "tokens_per_round": 200, "radius": "sound"})).campaign
        files = deployment.pki.issue("gateway/1-60000")
        with Session(deployment.broker.address, files.ca, files.cert, files.key) as session:
            verdicts, accepted = work(session, range(1, 60_001), bernoulli(means, 3), credit=256)
        finished = requester.watch(campaign)
    assert end_name(finished.progress.end) == "complete"
    assert classes(finished) == ({1: [2, 4], 2: [1, 3], 3: [0]}, [])
    assert set(verdicts) <= {"accepted", "expired"}
    assert finished.progress.tokens == verdicts["accepted"] == len(accepted)


def test_an_export_of_exact_sums_holds_none(deployment, tmp_path):
    """With mechanism none the third-party is trusted with exact sums; the requester is not."""
    deployment.up(broker={"limits": {"trusted_thirdparty": True}})
    with deployment.requester() as requester:
        campaign = requester.submit(spec(2, mechanism="none", trusted=True, tokens=10_000, policy_params={
            "alpha": .2, "delta": .1, "tokens_per_round": 200})).campaign
        files = deployment.pki.issue("gateway/1-10000")
        with Session(deployment.broker.address, files.ca, files.cert, files.key) as session:
            work(session, range(1, 10_001), lambda worker, arm, place: (1 - arm) << 20, credit=256)
        finished = requester.watch(campaign)
        parts = requester.export(campaign)
    assert finished.progress.releases > 0
    assert sum(len(part.plans) for part in parts) > 0 and sum(len(part.standings) for part in parts) == 2
    assert sum(len(part.releases) for part in parts) == 0
