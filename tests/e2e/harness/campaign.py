# SPDX-License-Identifier: Apache-2.0
"""
A campaign with seeded scores and seeded noise, which tests disturb; undisturbed, it always ends the same. While it is
disturbed its crowd works at a limited pace, so that it lasts for a quarter of a minute on any machine. To finish it, a
crowd without that limit comes.
"""
from client.requester import end_name, spec
from harness import crashes
from harness.audit import audit

MEANS = [.1, .6, .95, .72, .9]  # .72 is close to a boundary: 32 plans, 134,000 tokens
CLASSES = [3, 2, 1, 2, 1]
TAU, TOKENS = 2000, 200_000
GATEWAYS = ("gateway/1-100000", "gateway/100001-200000")
FINISHER = "gateway/200001-400000"
NOISE = {"unsafe_noise_seeded": True, "unsafe_noise_seed": 7}


class Run:
    """`thirdparty`, `broker` and `cobroker`: settings that differ from the defaults, at each start. Without `cobroker`
    there is one broker."""

    def __init__(self, deployment, thirdparty=None, broker=None, cobroker=None, **spec_changes):
        self.deployment, self.finisher = deployment, None
        self.settings = {"thirdparty": dict(thirdparty or {}), "broker": {**NOISE, **(broker or {})}}
        if cobroker is not None:
            self.settings["cobroker"] = {**NOISE, **cobroker}
            spec_changes = {"two": True, **spec_changes}
        items = ", ".join(f"{{name: i{arm}, mean: {mean}}}" for arm, mean in enumerate(MEANS))
        self.campaign_file = deployment.folder / "campaign.yaml"
        self.campaign_file.write_text(f"campaign: test\nitems: {{list: [{items}]}}\n"
                                      f"policy: {{name: ppar, alpha: 0.2}}\nprivacy: {{epsilon: 0.5}}\n")
        deployment.start_thirdparty(self.settings["thirdparty"])
        self.settings["thirdparty"]["listen"] = deployment.thirdparty.address
        self.settings["broker"].setdefault("thirdparty", deployment.thirdparty.address)
        if cobroker is not None:
            deployment.start_cobroker(self.settings["cobroker"])
            self.settings["cobroker"]["listen"] = deployment.cobroker.address
        deployment.start_broker(self.settings["broker"])
        self.settings["broker"]["listen"] = deployment.broker.address
        with deployment.requester() as requester:
            self.campaign = requester.submit(spec(len(MEANS), **{
                "epsilon": .5, "tokens": TOKENS,
                "policy_params": {"alpha": .2, "delta": .1, "tokens_per_round": TAU, "tails": "chernoff"},
                **spec_changes})).campaign

    def start_worker(self, identity, **settings):
        return self.deployment.start_worker(identity, self.campaign_file,
                                            {"arrival_rate": 4000, "seed": 11, **settings})

    def start_workers(self, **settings):
        return [self.start_worker(identity, **settings) for identity in GATEWAYS]

    def start(self, program):
        """Starts a daemon again at its address; it need not be ready yet."""
        settings = self.settings[program]
        return getattr(self.deployment, f"launch_{program}")(settings)

    def kill(self, program):
        getattr(self.deployment, program).kill()
        crashes.killed(program)

    def kill_and_restart(self, program):
        self.kill(program)
        self.start(program).address

    def when(self, tokens):
        """Waits until this many tokens are counted; the campaign must still be running then."""
        with self.deployment.requester() as requester:
            seen = requester.watch(self.campaign, until=lambda progress: progress.tokens >= tokens)
            assert seen.DESCRIPTOR.name == "Progress", "the campaign was over before it could be disturbed"
            return seen

    def hurry(self):
        """Lets the campaign run to its end at full speed."""
        if self.finisher is None:
            self.finisher = self.start_worker(FINISHER, arrival_rate=0)

    def finish(self):
        """(Finished, parts of the export), once it has ended."""
        self.hurry()
        with self.deployment.requester() as requester:
            return requester.watch(self.campaign), requester.export(self.campaign)

    def check(self, undisturbed):
        """Checks the end: the same result as in the undisturbed run, and an independent audit of both databases."""
        finished, export = self.finish()
        result = outcome(finished, export)
        crashes.compare_releases(by_place(undisturbed), by_place(result))
        assert result == undisturbed
        assert self.deployment.broker.stop() == 0 and self.deployment.thirdparty.stop() == 0
        assert self.deployment.cobroker is None or self.deployment.cobroker.stop() == 0
        audit(self.deployment, self.campaign, export, finished)


def outcome(finished, export):
    """The parts that two runs must agree on: the standings, and each release, except for the order in which arms
    were filled."""
    assert end_name(finished.progress.end) == "complete", end_name(finished.progress.end)
    standings = sorted((s.arm, s.rank_class, s.tokens, s.mean, s.radius) for s in finished.standings)
    return standings, sorted((r.plan, r.arm, r.tokens, r.noisy_sum) for part in export for r in part.releases)


def by_place(result):
    return {(plan, arm): (tokens, noisy_sum) for plan, arm, tokens, noisy_sum in result[1]}
