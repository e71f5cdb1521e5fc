# SPDX-License-Identifier: Apache-2.0
"""
A bandit campaign as logged feedback, in the shape of the Open Bandit Pipeline's `bandit_feedback` dictionary.

Nobody but the worker ever sees a single score, so there is no log of single rewards. What can be given is one row for
each arm of each plan: the average of the tokens that this plan added, with the noise that its release has. Estimators
that average rewards with weights stay unbiased if they weight the rows by `n_tokens`; their variances, and everything
that needs the distribution of single rewards, cannot be computed from this.
"""
from __future__ import annotations

from pathlib import Path
from typing import Any, Union

from .errors import Error
from .model import Export, Release
from .policy import ONE_PLAN_SUMS
from .privatizer import law_of
from .results import _numpy
from .wire import GRID

REPEATS = ("doubling",)  # releases between powers of two repeat the one before


def bandit_feedback(export: Export) -> dict[str, Any]:
    """
    A row for each arm that a plan asked for, in the order of the releases:

    n_rounds, n_actions   numbers of rows and of arms
    action                the arm
    reward                average score of the tokens that the plan added to the arm: noisy, so it may lie outside
                          0 .. 1; behind a privatizer corrected to the scale of scores
    pscore                the plan's tokens for this arm over all its tokens: the probability that a worker who answered
                          this plan was given this arm. A plan with one arm has 1, and then no other arm has support
    position              None: one item is shown at a time
    context               a column of ones: a worker's features are unknown to everybody
    action_context        one row of the identity matrix for each arm
    n_tokens, reward_sd   beyond the pipeline's keys: tokens in the row; standard deviation of the mechanism's noise in
                          `reward`, an upper bound where a row is the difference of two releases, which share noise
    plan                  beyond the pipeline's keys: number of the plan
    """
    np = _numpy()
    spec = export.spec
    if spec.mechanism.name in REPEATS:
        raise Error(f"mechanism {spec.mechanism.name} repeats releases, so a plan has no average of its own; expected "
                    "another mechanism")
    if spec.edges:
        raise Error("a campaign with a feedback graph shows several arms at a time; expected one without")
    asked = {plan.number: sum(want.tokens for want in plan.wants) for plan in export.plans}
    law, last, rows = law_of(spec.privatizer, spec.arms), dict[int, Release](), list[tuple[Any, ...]]()
    for release in export.releases:
        before = None if spec.mechanism.name in ONE_PLAN_SUMS else last.get(release.arm)
        tokens = release.tokens - (before.tokens if before else 0)
        total = release.noisy_sum - (before.noisy_sum if before else 0)
        sd = release.variance(spec.epsilon) ** .5 + (before.variance(spec.epsilon) ** .5 if before else 0)
        if tokens <= 0:  # the arm's data were used up
            continue
        last[release.arm] = release
        offset, slope = law.feedback(release.arm)
        rows.append((release.arm, (total / GRID / tokens - offset) / slope, tokens / asked[release.plan], tokens,
                     sd / tokens / abs(slope), release.plan))
    table = np.array(rows, dtype=float).reshape(len(rows), 6).T
    whole = {name: table[at].astype(np.int64) for name, at in (("action", 0), ("n_tokens", 3), ("plan", 5))}
    return {"n_rounds": len(rows), "n_actions": spec.arms, "reward": table[1], "pscore": table[2], "position": None,
            "context": np.ones((len(rows), 1)), "action_context": np.eye(spec.arms), "reward_sd": table[4], **whole}


def save_bandit_feedback(export: Export, path: Union[str, Path]) -> None:
    """The dictionary as a file for numpy.load (.npz), which has no None: without `position`."""
    feedback = bandit_feedback(export)
    _numpy().savez(path, **{name: value for name, value in feedback.items() if value is not None})
