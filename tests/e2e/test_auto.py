# SPDX-License-Identifier: Apache-2.0
"""`policy: auto` and `mechanism: auto`: chosen before a campaign is submitted, said in one line; no party sees them."""
import json
import re

import pytest

from client.requester import end_name, spec
from crowdveil import Refused
from harness.commands import as_requester, crowdveil
from harness.daemon import ROOT
from harness.lab import lab

EXAMPLE = ROOT / "deploy/campaigns/auto.yaml"
CHOSEN = re.compile(r"crowdveil [a-z]+: policy ([a-z0-9-]+), mechanism ([a-z0-9-]+): [\d]+ tokens; next ([a-z0-9-]+), "
                    r"([a-z0-9-]+): [\d]+ tokens \(\d+ simulations of 5 items with guessed scores\)")


def test_the_example_runs_with_what_was_chosen_and_says_why(tmp_path):
    # with the file's seed of the scores the result is always the same
    done = crowdveil("up", EXAMPLE, "--json", "--unsafe-noise-seed", "1", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    line, = [line for line in done.stderr.splitlines() if "simulations of" in line]
    policy, mechanism, *_ = CHOSEN.fullmatch(line).groups()
    result = json.loads(done.stdout)
    assert result["policy"] == policy and f"policy {policy}, mechanism {mechanism} with epsilon" in done.stderr
    assert result["classes"] == [["Roma", "Golden Wok"], ["Corner Grill", "Blue Fish"], ["Station Buffet"]]
    assert crowdveil("up", EXAMPLE, "--json", "--seed", "5", cwd=tmp_path).stderr.splitlines()[0] == line


def test_every_command_that_reads_the_file_chooses_alike(deployment):
    deployment.up()
    submitted = crowdveil("submit", EXAMPLE, *as_requester(deployment))
    assert submitted.returncode == 0, submitted.stderr
    chosen = CHOSEN.fullmatch(submitted.stderr.strip()).groups()
    with deployment.requester() as requester:
        described, _ = requester.describe(1)
        assert (described.policy.name, described.mechanism.name) == chosen[:2]
        requester.cancel(1)
        requester.watch(1)
    watched = crowdveil("watch", 1, "--file", EXAMPLE, *as_requester(deployment))
    assert CHOSEN.fullmatch(watched.stderr.strip().splitlines()[0]).groups() == chosen
    assert "Golden Wok" in watched.stdout, "the file is the campaign's"
    planned = crowdveil("ledger", "--plan", EXAMPLE, *as_requester(deployment))
    assert planned.returncode == 0 and chosen[1] in planned.stdout, planned.stderr


def test_what_was_chosen_is_not_worse_than_the_next_in_the_laboratory(tmp_path):
    """On instances of its own: means like those that the choice guesses."""
    nowhere = ["--broker", "127.0.0.1:1", "--broker-name", "main", "--tls-ca", "x", "--tls-cert", "x", "--tls-key", "x"]
    said = crowdveil("submit", EXAMPLE, *nowhere, cwd=tmp_path).stderr.splitlines()[0]
    chosen = CHOSEN.fullmatch(said).groups()
    (tmp_path / "compare.yaml").write_text(f"""
campaign: compare
items: {{synthetic: {{count: 5, variance: 0.09}}}}
policy: {{name: ppar-kl, alpha: 0.1, delta: 0.1}}
privacy: {{mechanism: segments, epsilon: 0.5}}
limits: {{tokens: 1000000}}
experiment:
  about: the choice
  replicates: 60
  series:
    - {{name: chosen, policy.name: {chosen[0]}, privacy.mechanism: {chosen[1]}}}
    - {{name: next, policy.name: {chosen[2]}, privacy.mechanism: {chosen[3]}}}
    - {{name: first, policy.name: ppar, privacy.mechanism: hybrid}}
  metrics: [decided-after]
  figure: {{y: tokens}}
""")
    done = lab("run", "compare.yaml", "--json", "--seed", "4", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    means = {row["series"]: row["mean"] for row in map(json.loads, done.stdout.splitlines()) if "series" in row}
    assert means["chosen"] <= 1.05 * means["next"] and means["chosen"] < .8 * means["first"]


@pytest.mark.parametrize("changes, message", [({"mechanism": "auto"}, "unknown mechanism"),
                                              ({"policy": "auto", "policy_params": {}}, None)])
def test_no_party_knows_the_word(deployment, changes, message):
    deployment.up()
    with deployment.requester() as requester:
        if message:
            with pytest.raises(Refused, match=message):
                requester.submit(spec(3, **changes))
        else:
            finished = requester.watch(requester.submit(spec(3, **changes)).campaign)
            assert end_name(finished.progress.end) == "refused"


def test_the_laboratory_asks_for_names(tmp_path):
    (tmp_path / "auto.yaml").write_text(
        EXAMPLE.read_text() + "experiment: {about: x, series: [{name: a}], metrics: [rounds], figure: {y: rounds}}\n")
    done = lab("run", "auto.yaml", cwd=tmp_path)
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and '"auto"' in done.stderr, done.stderr
