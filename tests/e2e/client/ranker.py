# SPDX-License-Identifier: Apache-2.0
"""A third-party in Python whose policies fail in every way: `ranker.py LISTEN STATE PATIENCE CA CERT KEY`."""
import logging
import sys
import time

from crowdveil import Error, Policy, Standing, ThirdParty, Tls


class Twice(Policy):
    """Asks for `tokens` of each item, plan after plan."""
    name = "twice"

    def step(self, plan):
        return [(arm, int(self.param("tokens", 20))) for arm in range(self.spec.arms)]

    def standings(self):
        return [Standing(arm, 0, self.arms[arm].tokens, self.mean(arm), 2 * self.sd(arm))
                for arm in range(self.spec.arms)]


class Narrow(Twice):
    name, params = "narrow", {"tokens": (1, 1000)}


class Ppar(Twice):
    """Is called like a policy of the C third-party, for peers that speak to both."""
    name, params = "ppar", {"alpha": (0, 1), "tokens_per_round": (1, 1 << 24)}

    def step(self, plan):
        return [(arm, int(self.param("tokens_per_round", 6000))) for arm in range(self.spec.arms)]


class Failing(Twice):
    """Does the first plan, then what `how` says."""
    name = "failing"

    def step(self, plan):
        return getattr(self, self.spec.policy.params["how"])(plan) if plan > 1 else super().step(plan)

    def raises(self, plan):
        raise KeyError("\x1b[31m no such arm\nnext line")

    def exits(self, plan):
        sys.exit(3)

    def memory(self, plan):
        return [bytearray(1 << 60)]

    def recursion(self, plan):
        return self.recursion(plan)

    def loops(self, plan):
        while True:
            try:
                time.sleep(.01)
            except Exception:
                pass

    def endless(self, plan):
        while True:
            yield 0, 1

    def huge(self, plan):
        return [(0, 10 ** 300)]

    def nowhere(self, plan):
        return [(7, 1)]

    def nothing(self, plan):
        return []

    def nonsense(self, plan):
        return 7

    def save(self):
        return {"arms": {1, 2}} if self.spec.policy.params["how"] == "saves" else None

    def load(self, state):
        if self.spec.policy.params["how"] == "unloads":
            raise OSError("the file of weights is gone")

    def standings(self):
        if self.spec.policy.params["how"] == "stands" and self.arms[0].tokens:
            return [Standing(0, 9, -1)]
        return super().standings()

    saves = unloads = stands = Twice.step


def main(listen, state, patience, *files):
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    try:
        ThirdParty([Twice, Narrow, Ppar, Failing], listen, Tls(*files), state, ["main", "mallory"],
                   patience=float(patience)).run()
    except Error as error:
        sys.exit(f"ranker: {error}")


if __name__ == "__main__":
    main(*sys.argv[1:])
