# SPDX-License-Identifier: Apache-2.0
"""What a researcher writes: a policy takes noisy releases and returns plans and standings."""
from __future__ import annotations

import abc
import math
import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Optional, Union

from .model import Choice, Release, Spec, Standing, Want
from .privatizer import law_of
from .wire import GRID

# Mechanisms whose releases sum one plan's tokens; those of all others sum an arm's tokens so far.
ONE_PLAN_SUMS = ("batch",)
RELEASE_TOKENS = "release_tokens"


class Estimate:
    """What the releases so far tell of one arm: `tokens`, their noisy `total` and the `variance` of its noise, in
    scores."""

    def __init__(self, tokens: int = 0, total: float = 0.0, variance: float = 0.0) -> None:
        self.tokens, self.total, self.variance = tokens, total, variance

    def take(self, release: Release, epsilon: float, adds: bool) -> None:
        if release.tokens == 0:  # the arm's data are used up, and the last plan brought nothing
            return
        tokens, total, variance = release.tokens, release.noisy_sum / GRID, release.variance(epsilon)
        if adds:
            tokens, total, variance = self.tokens + tokens, self.total + total, self.variance + variance
        self.tokens, self.total, self.variance = tokens, total, variance


class Policy(abc.ABC):
    """
    One campaign. A subclass has the `name` that campaigns call it by, `step` and `standings`. The same releases must
    give the same plans: take randomness from `random(plan)`, and keep state only in `save`. An exception ends the
    campaign, and its text reaches the requester.

    With `params`, {parameter: (least, largest)}, a campaign with another parameter, or one out of its range, is refused
    before the policy is made.
    """
    name: ClassVar[str]
    params: ClassVar[Optional[Mapping[str, tuple[float, float]]]] = None

    def __init__(self, spec: Spec, seed: int) -> None:
        self.spec, self.seed = spec, seed
        self.law = law_of(spec.privatizer, spec.arms)
        self.arms = [Estimate() for _ in range(spec.arms)]
        self.used_up: set[int] = set()
        self._taken: Optional[Release] = None

    @classmethod
    def check(cls, choice: Choice) -> None:
        """ValueError for parameters that `params` does not permit; `release_tokens` is the broker's own."""
        if cls.params is None:
            return
        for key, value in choice.params.items():
            if key == RELEASE_TOKENS:
                continue
            if key not in cls.params:
                raise ValueError(f"policy {cls.name}: unknown parameter {key}; expected "
                                 f"{' or '.join(sorted(cls.params)) or 'none'}")
            low, high = cls.params[key]
            if isinstance(value, str) or not low <= value <= high:
                raise ValueError(f"policy {cls.name}: {key} is {value}; expected a number from {low:g} to {high:g}")

    def param(self, key: str, default: float) -> float:
        """A parameter of the campaign's policy; ValueError if it is no number."""
        value = self.spec.policy.params.get(key, default)
        if isinstance(value, str):
            raise ValueError(f"policy {self.name}: {key} is {value}; expected a number")
        return value

    def random(self, plan: int) -> random.Random:
        """Randomness for the step that makes this plan: the same each time."""
        return random.Random(f"{self.seed} {plan}")

    def apply(self, release: Release) -> None:
        """Takes in one release; a subclass that overrides it calls this one first."""
        if release is self._taken:
            return
        self._taken = release
        self.arms[release.arm].take(release, self.spec.epsilon, self.spec.mechanism.name in ONE_PLAN_SUMS)

    def exhaust(self, arm: int) -> bool:
        """From now on no token of this arm can be had; False if the policy cannot go on without it."""
        self.used_up.add(arm)
        return len(self.used_up) < self.spec.arms

    def mean(self, arm: int) -> float:
        """The estimated mean score of an arm, corrected for the privatizer; nan before its first release."""
        estimate, (offset, slope) = self.arms[arm], self.law.feedback(arm)
        return (estimate.total / estimate.tokens - offset) / slope if estimate.tokens else math.nan

    def sd(self, arm: int) -> float:
        """The standard deviation of `mean`: the mechanism's noise, and at most 1/4 of variance for each token besides
        the privatizer's; infinite before the first release."""
        estimate, (_, slope) = self.arms[arm], self.law.feedback(arm)
        if not estimate.tokens:
            return math.inf
        token = .25 + 2 * self.law.scale ** 2
        return math.sqrt(estimate.variance / estimate.tokens ** 2 + token / estimate.tokens) / abs(slope)

    @abc.abstractmethod
    def step(self, plan: int) -> Optional[Iterable[Union[Want, tuple[int, int]]]]:
        """
        Called before the first plan and whenever all releases of a plan have been applied. Returns what plan number
        `plan` (from 1) asks for, as (arm, tokens); None: the policy is done, and its standings are final. ValueError
        before the first plan refuses the campaign.
        """

    @abc.abstractmethod
    def standings(self) -> Sequence[Standing]:
        """The standing of every arm, at any time."""

    def save(self) -> Any:
        """State of the subclass beyond the estimates, as JSON knows it; stored with every release."""
        return None

    def load(self, state: Any) -> None:
        """Takes back what `save` returned."""

    # --- what is stored

    def dump(self) -> Any:
        return {"arms": [[arm.tokens, arm.total, arm.variance] for arm in self.arms],
                "used_up": sorted(self.used_up), "own": self.save()}

    def restore(self, state: Any) -> None:
        self.arms = [Estimate(*arm) for arm in state["arms"]]
        self.used_up = set(state["used_up"])
        self.load(state["own"])
