# SPDX-License-Identifier: Apache-2.0
"""A campaign of exact sums with a crowd of the test's own: the sums must equal what was acknowledged, token by
token."""
import random
import sqlite3

from client.crowd import Crowd
from client.requester import end_name
from crowdveil.wire import GRID
from harness import crashes
from harness.audit import audit
from harness.campaign import GATEWAYS, Run


AHEAD = 500


def value(worker, arm):
    return random.Random(f"{worker}/{arm}").randrange(GRID)


class ExactRun(Run):
    def __init__(self, deployment, **broker):
        trusting = {"limits": {"trusted_thirdparty": True}}
        super().__init__(deployment, broker={**trusting, **broker}, mechanism="none", trusted=True, epsilon=1,
                         tokens=15_000, policy_params={"alpha": .0001, "delta": .1, "tokens_per_round": 1000})
        self.crowd = Crowd(deployment.broker.address, deployment.pki.issue(GATEWAYS[0]), range(1, 30_001), value)
        self.crowd.start()

    def when(self, tokens):
        """Returns as soon as this many are acknowledged, at full speed; then the crowd slows down."""
        self.crowd.go_on_to(tokens + AHEAD)
        self.crowd.wait_for(tokens)

    def hurry(self):
        self.crowd.go_on_to(None)

    def check(self):
        finished, export = self.finish()
        assert end_name(finished.progress.end) == "tokens"
        self.crowd.wait()
        assert self.deployment.broker.stop() == 0 and self.deployment.thirdparty.stop() == 0
        audit(self.deployment, self.campaign, export, finished)
        with sqlite3.connect(f"{self.deployment.state('thirdparty-state')}/thirdparty.db") as db:
            released = {arm: (tokens, total) for arm, tokens, total in
                        db.execute("SELECT arm, max(tokens), noisy_sum FROM release GROUP BY arm")}
        given = {arm: [value for (_, at), value in self.crowd.acknowledged.items() if at == arm] for arm in released}
        acknowledged = {arm: (len(values), sum(values)) for arm, values in given.items()}
        crashes.compare_sums(acknowledged, released)
        assert acknowledged == released
