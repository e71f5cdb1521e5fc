# SPDX-License-Identifier: Apache-2.0
"""Campaigns as the page's server tells them, from a small seeded simulation: a test can expect its numbers."""
import math
import random

RESTAURANTS = ["Roma", "Golden Wok", "Corner Grill", "Blue Fish", "Station Buffet", "Harbour View", "Old Mill",
               "Green Garden", "The Anchor", "Little Lisbon", "Sakura", "Bella Napoli", "Farmhouse", "Night Kitchen",
               "Spice Route", "Café Central", "Smokehouse", "The Orchard", "Noodle Bar", "Taverna Nika"]
# Five classes at alpha = 0.1, with some distance between them: every item settles within some tens of rounds.
MEANS = [0.93, 0.92, 0.60, 0.57, 0.20, 0.90, 0.77, 0.88, 0.755, 0.79, 0.95, 0.89, 0.62, 0.42, 0.78, 0.40, 0.61, 0.23,
         0.74, 0.45]
ROUNDS_MAX = 80


def half_widths(tokens, releases, epsilon, arms):
    """Sampling and noise part of an interval's half, of the usual shapes."""
    sampling = math.sqrt(math.log(40 * arms * (1 + releases)) / (2 * tokens))
    noise = 3 * math.log2(1 + releases) / (epsilon * tokens) if epsilon else 0
    return sampling, noise


class Ranking:
    """The interval rule of a ranking: an item is settled, or moved below the present class."""

    def __init__(self, arms, seed, epsilon=0.25, alpha=0.1, tokens_per_round=250, names=None, means=None):
        self.draw, self.epsilon, self.alpha = random.Random(seed), epsilon, alpha
        self.arms, self.tokens_per_round, self.names = arms, tokens_per_round, names
        self.means = means or [round(self.draw.uniform(0.03, 0.97), 3) for _ in range(arms)]
        self.tokens, self.sums, self.releases = [0] * arms, [0.0] * arms, [0] * arms
        self.rank_class, self.below = [0] * arms, [1] * arms
        self.decisions, self.steps, self.time, self.all_releases = 0, [], 0, 0
        self.rows = {}

    def standing(self, arm):
        mean = self.sums[arm] / self.tokens[arm]
        sampling, noise = half_widths(self.tokens[arm], self.releases[arm], self.epsilon, self.arms)
        return mean, sampling, noise

    def pull(self, arm, tokens):
        noise = self.draw.expovariate(self.epsilon) - self.draw.expovariate(self.epsilon) if self.epsilon else 0
        spread = math.sqrt(self.means[arm] * (1 - self.means[arm]) * tokens)
        self.sums[arm] += self.means[arm] * tokens + self.draw.gauss(0, spread) + noise
        self.tokens[arm] += tokens
        self.releases[arm] += 1
        self.all_releases += 1

    def decide(self):
        found = []
        while True:
            level = min((self.below[arm] for arm in range(self.arms) if not self.rank_class[arm]), default=None)
            if level is None:
                return found
            here = [arm for arm in range(self.arms)
                    if (self.rank_class[arm] or self.below[arm]) == level]
            known = {arm: self.standing(arm) for arm in here}
            # the two highest are enough: the bound of the others of any arm is one of them
            highs = sorted(((sum(known[arm]), arm) for arm in here), reverse=True)[:2]
            lows = sorted(((known[arm][0] - sum(known[arm][1:]), arm) for arm in here), reverse=True)[:2]
            before = len(found)
            for arm in [arm for arm in here if not self.rank_class[arm]]:
                mean, sampling, noise = known[arm]
                radius = sampling + noise
                upper, lower = (next((bound for bound, other in ends if other != arm), None) for ends in (highs, lows))
                if upper is None or mean - radius >= upper - self.alpha:
                    bar = None if upper is None else upper - self.alpha
                    found.append(self.decision("settle", arm, level, mean, radius, bar))
                    self.rank_class[arm] = level
                elif mean + radius < lower - self.alpha:
                    found.append(self.decision("remove", arm, level, mean, radius, lower - self.alpha))
                    self.below[arm] = level + 1
            if any(not self.rank_class[arm] and self.below[arm] == level for arm in here) or len(found) == before:
                return found

    def decision(self, kind, arm, level, mean, radius, reference):
        self.decisions += 1
        return [self.decisions, kind, arm, level, self.tokens[arm], mean, radius, reference]

    def step(self):
        """The next step; None once everything is settled."""
        if all(self.rank_class):
            return None
        level = min(self.below[arm] for arm in range(self.arms) if not self.rank_class[arm])
        # settled items are asked on until their class is full
        open_arms = [arm for arm in range(self.arms) if self.rank_class[arm] in (0, level)]
        for arm in open_arms:
            self.pull(arm, self.tokens_per_round)
        decisions = self.decide()
        self.time += 55 + 4 * len(open_arms) + self.draw.randrange(30)
        changed = []
        for arm in range(self.arms):
            mean, sampling, noise = self.standing(arm)
            row = [arm, self.rank_class[arm], self.tokens[arm], mean, sampling + noise, noise]
            if self.rows.get(arm) != row:
                self.rows[arm] = row
                changed.append(row)
        spent = sum(self.tokens)
        left = sum(1 for arm in open_arms if not self.rank_class[arm])
        step = {"n": len(self.steps) + 1, "t": self.time, "tokens": spent,
                "asked": spent + left * self.tokens_per_round, "releases": self.all_releases,
                "s": changed, "d": decisions}
        self.steps.append(step)
        return step

    def live(self):
        step = self.steps[-1]
        return {"t": step["t"], "tokens": step["tokens"], "limit": 5000000, "rate": 128400.0, "spent": self.epsilon,
                "left": 0, "workers": 5000000, "paid": 0, "budget": 0, "regret": None, "reward": None}

    def truth(self):
        return {"means": self.means, "classes": None, "best": None}

    def tell(self, number=1, name="restaurants", state="running", alone=False, limit=1000000):
        return {"id": number, "number": number, "broker": "main", "name": name, "kind": "ranking", "state": state,
                "note": "", "arms": self.arms, "names": self.names, "policy": "ppar",
                "parameters": {"alpha": self.alpha, "delta": 0.1, "tokens_per_round": self.tokens_per_round},
                "mechanism": "hybrid", "privatizer": "none", "epsilon": self.epsilon, "token_limit": limit,
                "costs": None, "budget": 0, "edges": None, "steps": list(self.steps),
                "truth": None if alone else self.truth(), "live": None if alone or not self.steps else self.live()}


def restaurants(rounds=None, alone=False, number=1):
    """Twenty restaurants; `rounds`: only the first ones, then it is still running."""
    ranking = Ranking(20, seed=7, names=RESTAURANTS, means=MEANS, tokens_per_round=1500)
    while len(ranking.steps) < (rounds or ROUNDS_MAX) and ranking.step():
        pass
    return ranking, ranking.tell(number, state="running" if rounds else "complete", alone=alone)


def many(arms=300, number=5, rounds=40):
    draw = random.Random(11)
    means = [round(draw.choice(MEANS) + draw.uniform(-0.004, 0.004), 3) for _ in range(arms)]
    ranking = Ranking(arms, seed=11, tokens_per_round=1000, means=means)
    while len(ranking.steps) < rounds and ranking.step():
        pass
    return ranking.tell(number, name="three hundred", alone=True, limit=50000000)


def long_run(steps=2000, number=6):
    """Many small steps: what a time slider has to bear."""
    ranking = Ranking(20, seed=3, tokens_per_round=10, names=RESTAURANTS, means=MEANS)
    while len(ranking.steps) < steps and ranking.step():
        pass
    return ranking.tell(number, name="a long run", alone=False)


def plain(kind, number, name, policy, means, costs=None, budget=0, epsilon=0.5, pulls=400, edges=None, seed=5):
    """A campaign without classes: each step pulls what looks best, with some curiosity."""
    draw, arms = random.Random(seed), len(means)
    tokens, sums, steps, paid, clock = [0] * arms, [0.0] * arms, [], 0, 0
    for pull in range(pulls):
        def index(arm):
            if not tokens[arm]:
                return 1e9 - arm
            bonus = math.sqrt(1.2 * math.log(pull + 2) / tokens[arm])
            return (sums[arm] / tokens[arm] + bonus) / (costs[arm] if costs else 1)
        arm = max(range(arms), key=index)
        if costs and paid + costs[arm] > budget:
            break
        tokens[arm] += 1
        sums[arm] += draw.random() < means[arm]
        paid += costs[arm] if costs else 0
        clock += 2 + draw.randrange(3)
        radius = math.sqrt(math.log(20) / (2 * tokens[arm]))
        noise = radius * 0.4 if epsilon else 0
        rows = [[arm, 0, tokens[arm], sums[arm] / tokens[arm], radius + noise, noise]]
        if pull == 0:
            rows += [[other, 0, 0, None, None, None] for other in range(arms) if other != arm]
        steps.append({"n": pull + 1, "t": clock, "tokens": sum(tokens), "asked": sum(tokens) + 1, "releases": pull + 1,
                      "s": rows, "d": []})
    return {"id": number, "number": number, "broker": "main", "name": name, "kind": kind, "state": "complete",
            "note": "", "arms": arms, "names": RESTAURANTS[:arms] if kind != "recruitment" else None, "policy": policy,
            "parameters": {}, "mechanism": "hybrid" if epsilon else "none",
            "privatizer": "none" if epsilon else "randomized-response",
            "epsilon": epsilon, "token_limit": pulls, "costs": costs, "budget": budget, "edges": edges, "steps": steps,
            "truth": {"means": means, "classes": None, "best": means.index(max(means))}, "live": None}


def recruitment(number=2):
    draw = random.Random(2)
    means = [round(draw.random(), 3) for _ in range(20)]
    costs = [draw.randrange(1, 11) for _ in range(20)]
    return plain("recruitment", number, "recruit with dpu", "dpu", means, costs, 600)


def bandit(number=3):
    return plain("bandit", number, "which banner", "klucb-cf", [0.9, 0.6, 0.55, 0.3], epsilon=0)


def graph(number=4):
    told = Ranking(5, seed=4, names=RESTAURANTS[:5], means=[0.92, 0.75, 0.6, 0.55, 0.2])
    while len(told.steps) < ROUNDS_MAX and told.step():
        pass
    campaign = told.tell(number, name="neighbours", state="complete")
    for step in campaign["steps"]:  # class 1: in the running, class 2: dropped; the last one is the best
        for row in step["s"]:
            row[1] = 2 if told.rank_class[row[0]] > 1 and row[1] else 1
        step["d"] = [entry for entry in step["d"] if entry[3] == 1 and entry[1] == "remove"]
    return dict(campaign, kind="graph", policy="gap", mechanism="batch", edges=[[0, 1], [1, 2], [2, 3], [3, 4]])


def two_brokers(rounds=None, alone=False, number=7):
    ranking, campaign = restaurants(rounds, alone, number)
    return ranking, {**campaign, "brokers": 2}


def boundary(campaign, arm):
    """What `crowdveil up --page` says of an item."""
    rows = {row[0]: row for step in campaign["steps"] for row in step["s"]}
    row = rows.get(arm)
    tokens = row[2] if row else 0
    decided = [entry for step in campaign["steps"] for entry in step["d"] if entry[2] == arm]
    told = {"arm": arm,
            "worker": {"worker": 5000001, "arm": arm, "score": 0.73, "token": 0.73, "privatizer": "none",
                       "state": "answered"},
            "broker": {"tokens": tokens, "places_open": 12, "epoch_tokens": 250, "sealed": ["partial sum", "noise"],
                       "releases": len(campaign["steps"]), "spent": campaign["epsilon"],
                       "holds": [["tokens summed", tokens], ["partial sum", "sealed"], ["noise", "sealed"]]},
            "thirdparty": {"release": [12, 3, tokens, row[3] if row else 0], "noise": [[2.0, 3]],
                           "standing": row[1:] if row else None, "decision": decided[-1] if decided else None}}
    if campaign.get("brokers") != 2:
        return told
    told["worker"]["shares"] = ["9c41f07be3a2558d", "03d8b6e19f7c4a20"]
    told["broker"] |= {"sealed": ["share of the sum", "noise"],
                       "holds": [["shares summed", tokens], ["share of the sum", "sealed"], ["noise", "sealed"]]}
    cobroker = {**told["broker"], "places_open": 13}
    if campaign.get("cobroker", "ok") == "away":
        cobroker = {"tokens": None, "places_open": 0, "releases": None, "spent": None, "holds": []}
    return {**told, "cobroker_health": campaign.get("cobroker", "ok"), "cobroker": cobroker}
