# SPDX-License-Identifier: Apache-2.0
"""Checks for every policy in the table: an example runs, and its decisions can be reproduced."""
import re

import pytest

from client.requester import end_name
from harness.commands import crowdveil
from harness.daemon import ROOT
from harness.rows import policies

NOWHERE = {"eps-greedy-true-gap", "opt"}  # they need the true means
# policy: an example campaign, whose name is mostly the policy's
EXAMPLES = {name: name for name in policies() if name not in NOWHERE} | {"ppar": "full-ranking"}


def test_no_policy_is_without_an_example(tmp_path):
    missing = [name for name in EXAMPLES.values() if not (ROOT / f"deploy/campaigns/{name}.yaml").exists()]
    assert missing == [], "expected an example campaign of each policy, deploy/campaigns/<policy>.yaml"
    (tmp_path / "campaign.yaml").write_text("campaign: x\nitems: {list: [{name: a, mean: 0.5}]}\n"
                                            "policy: nonesuch\nprivacy: {epsilon: 1}\n")
    done = crowdveil("up", "campaign.yaml", cwd=tmp_path)
    assert done.returncode == 2
    names = re.search('unknown policy "nonesuch"; expected one of (.*)', done.stderr)[1]
    assert set(re.split(", | or ", names)) == set(EXAMPLES) | NOWHERE


@pytest.mark.parametrize("policy", EXAMPLES)
def test_what_a_policy_decided_is_decided_again_by_verify_and_replay(example, policy):
    result, export, _ = example(EXAMPLES[policy])
    assert result["policy"] == export["spec"]["policy"]["name"] == policy
    assert len(export["plans"]) > 0 and end_name(export["progress"]["end"]) == "complete"
