# SPDX-License-Identifier: Apache-2.0
"""A policy in Python that fails ends its campaign, with a reason that reaches the requester, and nothing else."""
import os
import re

import pytest

from crowdveil import End, Refused, Requester, Spec
from harness.daemon import PYTHON, ROOT
from support.address import ANY_PORT

RANKER = ROOT / "tests/e2e/client/ranker.py"


class Ranker:
    """client/ranker.py as the third-party of a deployment, at one address."""

    def __init__(self, deployment, patience=60):
        self.deployment, self.files, self.patience = deployment, deployment.pki.issue("thirdparty/ranker"), patience
        self.state, self.address = deployment.folder / "ranker", ANY_PORT
        self.start()

    def start(self):
        self.daemon = self.deployment.launch("ranker", [
            PYTHON, RANKER, self.address, self.state, str(self.patience), self.files.ca, self.files.cert,
            self.files.key], env=dict(os.environ, PYTHONPATH=str(ROOT / "python")))
        self.address = self.daemon.address


@pytest.fixture
def stage(deployment, tmp_path, request):
    ranker = Ranker(deployment, getattr(request, "param", 60))
    deployment.start_broker({"thirdparty": ranker.address})
    path = tmp_path / "campaign.yaml"
    path.write_text("campaign: test\nitems: {list: [{name: a, mean: 0.2}, {name: b, mean: 0.8}]}\n"
                    "policy: {name: ppar}\nprivacy: {epsilon: 1}\n")
    deployment.start_worker("gateway/1-100000", path, {"exit_when_done": False})
    with Requester(deployment.broker.address, deployment.pki.issue("requester/alice"), "main", 60) as requester:
        yield ranker, requester


LONG = {"tokens": 100_000_000, "tokens_per_worker": 10_000, "repeat": True}


def ended(requester, policy, **params):
    campaign = requester.submit(Spec("test", 2, policy=(policy, params), **LONG)).campaign
    return requester.wait(campaign).progress


def goes_on(requester, campaign):
    """Another campaign of the same third-party still gets releases."""
    before = None
    for seen in requester.watch(campaign):
        assert not seen.end, seen
        before = seen.releases if before is None else before
        if seen.releases > before:
            return
    raise AssertionError("it has ended")


FAILURES = {
    "raises": r"policy failing has failed in step: KeyError: .*no such arm", "exits": "SystemExit: 3",
    "memory": "MemoryError", "recursion": "RecursionError", "endless": "an arm twice",
    "huge": "a number of 997 bits", "nowhere": "asks for arm 7; expected one below 2", "nothing": "an empty plan",
    "nonsense": "TypeError", "stands": "an impossible standing of arm 0", "saves": "failed in save: TypeError",
}


@pytest.mark.parametrize("stage", [1.5], indirect=True)
def test_a_failing_policy_ends_its_own_campaign_alone_and_the_requester_hears_why(stage):
    ranker, requester = stage
    honest = requester.submit(Spec("test", 2, policy="twice", **LONG)).campaign
    for how, why in {**FAILURES, "loops": "Slow: it has taken more than 1.5 s"}.items():
        progress = ended(requester, "failing", how=how)
        assert progress.end == End.REFUSED, (how, progress)
        assert re.search(why, progress.why) and progress.why.startswith("third-party: policy failing"), progress.why
        assert "\x1b" not in progress.why and "\n" not in progress.why
    goes_on(requester, honest)
    ranker.daemon.kill()  # what has ended stays ended, and the other one continues
    ranker.start()
    goes_on(requester, honest)
    assert [seen.end for seen in requester.status().campaigns].count(End.NONE) == 1
    requester.cancel(honest)
    assert requester.wait(honest).end == End.CANCELLED
    assert ranker.daemon.stop() == 0
    assert "\x1b" not in ranker.daemon.text() and "Traceback" not in ranker.daemon.text()


def test_a_policy_that_cannot_take_its_state_back_ends_its_campaign(stage):
    ranker, requester = stage
    campaigns = [requester.submit(Spec("test", 2, policy=policy, **LONG)).campaign
                 for policy in (("failing", {"how": "unloads"}), "twice")]
    goes_on(requester, campaigns[0])
    ranker.daemon.kill()
    ranker.start()
    result = requester.wait(campaigns[0])
    assert result.end == End.REFUSED
    assert "policy failing has failed in load: OSError: the file of weights is gone" in result.progress.why
    goes_on(requester, campaigns[1])
    ranker.daemon.kill()
    ranker.start()
    goes_on(requester, campaigns[1])
    assert ranker.daemon.stop() == 0


@pytest.mark.parametrize("policy, tokens, why", [
    ("twice", 1e300, "a number of 997 bits tokens of arm 0"), ("twice", -5, "-5 tokens of arm 0"),
    ("twice", 2 ** 32, "4294967296 tokens of arm 0"), ("twice", 0.5, "0 tokens of arm 0"),
    ("twice", "many", "tokens is many; expected a number"),
    ("narrow", 1001, "tokens is 1001.0; expected a number from 1 to 1000"), ("narrow", "x", "tokens is x"),
])
def test_a_parameter_out_of_range_refuses_the_campaign_alone(stage, policy, tokens, why):
    ranker, requester = stage
    progress = ended(requester, policy, tokens=tokens)
    assert progress.end == End.REFUSED and why in progress.why, progress.why
    goes_on(requester, requester.submit(Spec("test", 2, policy="twice", **LONG)).campaign)
    assert ranker.daemon.stop() == 0
