#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A Bayesian ranker: a third-party that orders items by the posterior of their mean score."""
import argparse
import logging
from statistics import NormalDist

from crowdveil import Error, Policy, Standing, ThirdParty, Tls

PRIOR = NormalDist(.5, .3)


class Bayes(Policy):
    """Two neighbours in the order are told apart, or tied within `alpha`, once the posterior says so with probability
    1 - `delta`. The next plan asks for `tokens` more of each item that is not settled with both its neighbours."""
    name = "bayes"

    def posterior(self, arm):
        if not self.arms[arm].tokens:
            return PRIOR
        weight = 1 / self.sd(arm) ** 2, 1 / PRIOR.variance
        return NormalDist((self.mean(arm) * weight[0] + PRIOR.mean * weight[1]) / sum(weight), sum(weight) ** -.5)

    def order(self):
        """The arms from the best, and for each but the last its relation to the next: "better", "tied" or None."""
        believed = [self.posterior(arm) for arm in range(self.spec.arms)]
        arms = sorted(range(self.spec.arms), key=lambda arm: -believed[arm].mean)
        alpha, sure = self.param("alpha", .05), 1 - self.param("delta", .05)
        gaps = [believed[a] - believed[b] for a, b in zip(arms, arms[1:])]
        return arms, ["better" if 1 - gap.cdf(0) >= sure else
                      "tied" if gap.cdf(alpha) - gap.cdf(-alpha) >= sure else None for gap in gaps]

    def step(self, plan):
        arms, relations = self.order()
        open_ = {arm for pair, relation in zip(zip(arms, arms[1:]), relations) if relation is None for arm in pair}
        return [(arm, int(self.param("tokens", 500))) for arm in sorted(open_)] or None

    def standings(self):
        arms, relations = self.order()
        classes = [1 + relations[:at].count("better") for at in range(len(arms))]
        settled = [None not in relations[max(at - 1, 0):at + 1] for at in range(len(arms))]
        return [Standing(arm, level if sure else 0, self.arms[arm].tokens, self.posterior(arm).mean,
                         2 * self.posterior(arm).stdev) for arm, level, sure in sorted(zip(arms, classes, settled))]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--listen", default="127.0.0.1:7402", help="HOST:PORT for the broker (%(default)s)")
    parser.add_argument("--state", required=True, help="folder of its database")
    parser.add_argument("--broker", default="main", help="the name in the broker's certificate (%(default)s)")
    parser.add_argument("--tls", nargs=3, metavar=("CA", "CERT", "KEY"), required=True, help="PEM files")
    args = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    try:
        ThirdParty([Bayes], args.listen, Tls(*args.tls), args.state, [args.broker]).run()
    except Error as error:
        parser.exit(2, f"bayes: {error}\n")


if __name__ == "__main__":
    main()
