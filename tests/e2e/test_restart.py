# SPDX-License-Identifier: Apache-2.0
"""Daemons are killed in the middle of a campaign and started again: the end is the same, bit by bit."""
import random
import shutil
import sqlite3

import pytest

from client.requester import end_name, spec

pytestmark = pytest.mark.usefixtures("worker_program")

MEANS = [.1, .6, .95, .67, .9]
TAU, TOKENS = 2000, 200_000


class Run:
    """One campaign with seeded scores and seeded noise, slow enough to be disturbed."""

    def __init__(self, deployment):
        self.deployment, self.noise = deployment, {"unsafe_noise_seeded": True, "unsafe_noise_seed": 7}
        items = ", ".join(f"{{name: i{arm}, mean: {mean}}}" for arm, mean in enumerate(MEANS))
        self.campaign_file = deployment.folder / "campaign.yaml"
        self.campaign_file.write_text(f"campaign: test\nitems: {{list: [{items}]}}\n"
                                      f"policy: {{name: ppar, alpha: 0.2}}\nprivacy: {{epsilon: 0.5}}\n")
        deployment.up(broker=self.noise)
        self.addresses = {"broker": deployment.broker.address, "thirdparty": deployment.thirdparty.address}
        with deployment.requester() as requester:
            self.campaign = requester.submit(spec(len(MEANS), epsilon=.5, tokens=TOKENS, policy_params={
                "alpha": .2, "delta": .1, "tokens_per_round": TAU})).campaign

    def start_workers(self):
        return [self.deployment.start_worker(identity, self.campaign_file, {"arrival_rate": 4000, "seed": 11})
                for identity in ("gateway/1-100000", "gateway/100001-200000")]

    def kill_and_restart(self, program):
        getattr(self.deployment, program).kill()
        changes = {"listen": self.addresses[program]}
        if program == "broker":
            self.deployment.start_broker({**changes, **self.noise, "thirdparty": self.addresses["thirdparty"]})
        else:
            self.deployment.start_thirdparty(changes)

    def when(self, tokens):
        """Waits until so many tokens are counted; the campaign must still go on then."""
        with self.deployment.requester() as requester:
            seen = requester.watch(self.campaign, until=lambda progress: progress.tokens >= tokens)
            assert seen.DESCRIPTOR.name == "Progress", "the campaign was over before it could be disturbed"

    def finish(self):
        with self.deployment.requester() as requester:
            finished = requester.watch(self.campaign)
            export = requester.export(self.campaign)
        releases = [release for part in export for release in part.releases]
        return finished, releases


def outcome(finished, releases):
    """What two runs must agree on: the standings, and each release but for the order in which arms were full."""
    assert end_name(finished.progress.end) == "complete"
    standings = sorted((s.arm, s.rank_class, s.tokens, s.mean, s.radius) for s in finished.standings)
    return standings, sorted((r.plan, r.arm, r.tokens, r.noisy_sum) for r in releases)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory, pki):
    from harness.deployment import Deployment, missing_programs
    if missing_programs("broker", "thirdparty", "worker"):
        pytest.fail("not built")
    deployment = Deployment(tmp_path_factory.mktemp("undisturbed"), pki)
    try:
        run = Run(deployment)
        run.start_workers()
        result = outcome(*run.finish())
    finally:
        deployment.close()
    assert [row[1] for row in result[0]] == [3, 2, 1, 2, 1]
    assert max(plan for plan, *_ in result[1]) > 1, "one round only"
    return result


@pytest.mark.parametrize("program", ["broker", "thirdparty"])
def test_a_kill_in_the_middle_changes_nothing(deployment, undisturbed, program):
    run = Run(deployment)
    run.start_workers()
    for tokens in (1000, 5000, 11_000):
        run.when(tokens)
        run.kill_and_restart(program)
    assert outcome(*run.finish()) == undisturbed


def test_a_gateway_that_is_killed_is_made_up_for(deployment, undisturbed):
    run = Run(deployment)
    workers = run.start_workers()
    run.when(3000)
    workers[0].kill()
    assert outcome(*run.finish()) == undisturbed


def test_any_order_of_starting_will_do(deployment, undisturbed):
    """The broker comes up without a third-party; the third-party follows; workers wait for both."""
    run = Run(deployment)
    deployment.thirdparty.kill()
    deployment.broker.kill()
    run.start_workers()
    deployment.start_broker({"listen": run.addresses["broker"], **run.noise, "thirdparty": run.addresses["thirdparty"]})
    deployment.start_thirdparty({"listen": run.addresses["thirdparty"]})
    assert outcome(*run.finish()) == undisturbed


def test_an_orderly_stop_and_start_goes_on_where_it_was(deployment, undisturbed):
    run = Run(deployment)
    run.start_workers()
    run.when(6000)
    assert deployment.broker.stop() == 0 and deployment.thirdparty.stop() == 0
    deployment.start_thirdparty({"listen": run.addresses["thirdparty"]})
    deployment.start_broker({"listen": run.addresses["broker"], **run.noise, "thirdparty": run.addresses["thirdparty"]})
    assert outcome(*run.finish()) == undisturbed


def test_many_kills_at_random_change_nothing(deployment, undisturbed):
    """Every acknowledged token counts once and no noise is drawn twice: else sums, and so means, would differ."""
    run, chance = Run(deployment), random.Random(5)
    run.start_workers()
    for tokens in sorted(chance.randrange(500, 14_000) for _ in range(12)):
        run.when(tokens)
        run.kill_and_restart(chance.choice(["broker", "thirdparty"]))
    assert outcome(*run.finish()) == undisturbed


def test_a_lost_thirdparty_database_is_rebuilt(deployment, undisturbed):
    run = Run(deployment)
    run.start_workers()
    run.when(9000)
    deployment.thirdparty.kill()
    shutil.rmtree(deployment.state("thirdparty-state"))
    deployment.start_thirdparty({"listen": run.addresses["thirdparty"]})
    assert outcome(*run.finish()) == undisturbed
    assert deployment.thirdparty.stop() == 0
    with sqlite3.connect(f"{deployment.state('thirdparty-state')}/thirdparty.db") as db:
        assert db.execute("SELECT count(*) FROM release").fetchone() == (len(undisturbed[1]),)
