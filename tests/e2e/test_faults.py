# SPDX-License-Identifier: Apache-2.0
"""Crashes, restarts and rollbacks of real processes: the result is that of the run without them."""
import random
import shutil
import sqlite3

import pytest

from client.requester import end_name, spec
from harness.deployment import Deployment

MEANS = [.90, .84, .775, .72, .50, .445, .37, .10]
CAMPAIGN = """campaign: test
items: {rewards: bernoulli, list: [%s]}
policy: {name: ppar, alpha: 0.1, tokens_per_round: 2000}
privacy: {epsilon: 0.5}
limits: {tokens: 3000000}
""" % ", ".join(f"{{name: item-{i}, mean: {mean}}}" for i, mean in enumerate(MEANS))
# Makes noise a function of (seed, arm, release), and workers are seeded: two runs can be compared.
SEEDED = {"unsafe_noise_seeded": True, "unsafe_noise_seed": 7}
SPEC = dict(arms=len(MEANS), epsilon=.5, tokens=3_000_000,
            policy_params={"alpha": .1, "delta": .1, "tokens_per_round": 2000})


def outcome(finished):
    """All that a campaign ends with."""
    return (end_name(finished.progress.end), finished.progress.tokens, finished.progress.releases,
            [(s.arm, s.rank_class, s.tokens, s.mean, s.radius) for s in finished.standings])


def start_crowd(deployment, folder):
    path = folder / "campaign.yaml"
    path.write_text(CAMPAIGN)
    settings = {"exit_when_done": False, "seed": 3, "arrival_rate": 60000}
    return [deployment.start_worker(f"gateway/{first}-{first + 1_999_999}", path, settings)
            for first in (1, 2_000_001)]


def restart(deployment, name, signal_number=None):
    """The same program on the same port over the same state; killed outright unless a signal is given."""
    old = getattr(deployment, name)
    address = old.address
    if signal_number is None:
        old.kill()
    else:
        old.signal(signal_number)
        assert old.wait() == 0
    start = deployment.start_broker if name == "broker" else deployment.start_thirdparty
    start({"listen": address, **(SEEDED if name == "broker" else {})})


def progress_past(deployment, campaign, tokens):
    """Waits until so many tokens are accepted; True if the campaign still runs."""
    with deployment.requester() as requester:
        seen = requester.watch(campaign, until=lambda progress: progress.tokens >= tokens)
    return not hasattr(seen, "standings")


def run(deployment, folder, disturb=None):
    """One campaign; `disturb(deployment, campaign)` happens while it runs."""
    deployment.up(broker=SEEDED)
    with deployment.requester() as requester:
        campaign = requester.submit(spec(**SPEC)).campaign
    crowd = start_crowd(deployment, folder)
    if disturb is not None:
        disturb(deployment, campaign)
    with deployment.requester() as requester:
        result = outcome(requester.watch(campaign))
    counted = 0
    for gateway in crowd:
        assert gateway.stop() == 0
        match = gateway.wait_for(r"(\d+) tokens accepted, (\d+) sent again")
        counted += int(match.group(1)) + int(match.group(2))
    return result, counted


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory, pki):
    folder = tmp_path_factory.mktemp("undisturbed")
    deployment = Deployment(folder, pki)
    try:
        result, counted = run(deployment, folder)
    finally:
        deployment.close()
    assert result[0] == "complete" and counted == result[1]
    return result


def test_kill_9_of_broker_and_thirdparty_changes_nothing(deployment, tmp_path, undisturbed, worker_program):
    """Every acknowledged token counts once, no noise is drawn twice: else sums, and so means, would differ."""
    chance = random.Random(5)

    def disturb(deployment, campaign):
        for share in sorted(chance.random() for _ in range(10)):
            if not progress_past(deployment, campaign, share * undisturbed[1]):
                return
            restart(deployment, chance.choice(["broker", "broker", "thirdparty"]))

    result, counted = run(deployment, tmp_path, disturb)
    assert result == undisturbed
    assert counted == result[1]


def test_a_lost_thirdparty_database_is_rebuilt(deployment, tmp_path, undisturbed, worker_program):
    def disturb(deployment, campaign):
        assert progress_past(deployment, campaign, undisturbed[1] * .5)
        address = deployment.thirdparty.address
        deployment.thirdparty.kill()
        shutil.rmtree(deployment.state("thirdparty-state"))
        deployment.start_thirdparty({"listen": address})

    result, _ = run(deployment, tmp_path, disturb)
    assert result == undisturbed
    deployment.thirdparty.stop()
    with sqlite3.connect(f"{deployment.state('thirdparty-state')}/thirdparty.db") as db:
        assert db.execute("SELECT count(*) FROM release").fetchone() == (undisturbed[2],)


def test_an_older_copy_of_the_brokers_database_is_refused(deployment, tmp_path, worker_program):
    deployment.up(broker=SEEDED)
    with deployment.requester() as requester:
        requester.submit(spec(**SPEC))
    assert deployment.broker.stop() == 0
    state = tmp_path / "broker-state"
    shutil.copytree(state, tmp_path / "older")
    deployment.start_broker(SEEDED)
    with deployment.requester() as requester:
        requester.submit(spec(**SPEC))
    assert deployment.broker.stop() == 0
    shutil.rmtree(state)
    shutil.copytree(tmp_path / "older", state)
    refused = deployment.start("broker", deployment.broker_settings(), name="rolled-back")
    assert refused.wait() == 1
    assert refused.wait_for(r"broker\.db is at commit \d+, its anchor .* at \d+; expected")


def test_any_start_order(deployment, tmp_path, undisturbed, worker_program):
    """Workers first, then the broker, the third-party last: each dials until the other is there."""
    deployment.up(broker=SEEDED)
    broker, thirdparty = deployment.broker.address, deployment.thirdparty.address
    assert deployment.broker.stop() == 0 and deployment.thirdparty.stop() == 0
    crowd = start_crowd(deployment, tmp_path)
    crowd[0].wait_for("refused|cannot")
    deployment.start_broker({"listen": broker, "thirdparty": thirdparty, **SEEDED})
    with deployment.requester() as requester:
        campaign = requester.submit(spec(**SPEC)).campaign
        deployment.start_thirdparty({"listen": thirdparty})
        assert outcome(requester.watch(campaign)) == undisturbed
