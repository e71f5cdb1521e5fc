# SPDX-License-Identifier: Apache-2.0
"""What a policy says, checked: its plans and standings are sent and stored, so what does not fit is its failure."""
from __future__ import annotations

import json
import math
import operator
import traceback
from itertools import islice
from os.path import basename
from typing import Any, Optional

from .errors import Error, clean
from .model import Spec, Standing, Want
from .policy import Policy

HELD_COUNT = 4
U32, U64 = 1 << 32, 1 << 64
REASON_CHARS = 160


class Slow(BaseException):
    """A policy that has control for too long; not an Exception, so that its own `except` does not catch it."""


FAILURES = (Exception, SystemExit, Slow)


class Broken(Policy):
    """Stands for a policy that has failed: it is not called any more."""
    name = "broken"
    KEY = "failed"

    def __init__(self, spec: Spec) -> None:  # without the superclass: nothing of it is used
        self.spec, self.arms, self.used_up = spec, [], set()

    def step(self, plan: int) -> None:
        return None

    def standings(self) -> list[Standing]:
        return []

    @classmethod
    def state(cls, why: str) -> str:
        """What is stored in place of the policy's state."""
        return json.dumps({cls.KEY: why})


def reason_of(policy: str, what: str, error: BaseException) -> tuple[str, str]:
    """One line for the requester, and one for the operator, with the place in the policy's source."""
    said = clean(error)[:REASON_CHARS] if str(error) else ""
    told = said if isinstance(error, ValueError) and said else f"{type(error).__name__}{': ' if said else ''}{said}"
    frames = traceback.extract_tb(error.__traceback__)
    place = f"{basename(frames[-1].filename)}:{frames[-1].lineno}" if frames else "?"
    why = clean(f"policy {policy} has failed in {what}: {told}")
    return why, clean(f"{why} ({place})")


def refusal_of(policy: str, error: BaseException) -> str:
    """Why a campaign cannot begin."""
    is_said = isinstance(error, (ValueError, Error)) and str(error)
    return clean(error) if is_said else reason_of(policy, "its start", error)[0]


def _number(value: int) -> str:
    return str(value) if abs(value) < U64 else f"a number of {value.bit_length()} bits"


def _want(each: Any, spec: Spec) -> Want:
    want = Want(*map(operator.index, each)) if isinstance(each, tuple) else Want(
        *map(operator.index, (each.arm, each.tokens, each.opponent)))
    if not 0 <= want.arm < spec.arms:
        raise ValueError(f"a plan asks for arm {_number(want.arm)}; expected one below {spec.arms}")
    if not (0 if spec.edges else 1) <= want.tokens < U32:
        raise ValueError(f"a plan asks for {_number(want.tokens)} tokens of arm {want.arm}; expected 1 to {U32 - 1}")
    if not 0 <= want.opponent <= (spec.arms if spec.pairs else 0) or want.opponent == want.arm + 1:
        raise ValueError(f"a plan compares arm {want.arm} with {_number(want.opponent)}; expected 1 + another arm, or "
                         "0")
    return want


def plan_of(policy: Policy, number: int) -> Optional[tuple[Want, ...]]:
    """The wants of the policy's next plan without arms whose data are used up; None at the end."""
    given = policy.step(number)
    if given is None:
        return None
    wants = tuple(_want(each, policy.spec) for each in islice(given, policy.spec.arms + 1))
    if len({want.arm for want in wants}) < len(wants):
        raise ValueError("a plan asks for an arm twice; expected each once")
    left = tuple(want for want in wants if want.arm not in policy.used_up)
    if not left and not policy.used_up:
        raise ValueError("an empty plan; expected wants, or None at the end")
    return left


def _standing(given: Any, arms: int) -> Standing:
    arm, level, last, held, tokens = map(operator.index, (given.arm, given.rank_class, given.rank_last, given.held,
                                                          given.tokens))
    fits = 1 <= level <= last if held else last == 0
    if not (0 <= held < HELD_COUNT and fits and 0 <= level <= arms and last <= arms and 0 <= tokens < U64):
        raise ValueError(f"an impossible standing of arm {_number(arm)}: class {_number(level)} to {_number(last)}, "
                         f"held {_number(held)}, {_number(tokens)} tokens")
    mean, radius = float(given.mean), float(given.radius)
    return Standing(arm, level, tokens, mean if math.isfinite(mean) else 0.0,
                    radius if math.isfinite(radius) and radius >= 0 else 1.0, last, held, bool(given.contradicts))


def standings_of(policy: Policy) -> list[Standing]:
    """One of each arm."""
    arms = policy.spec.arms
    rows = [_standing(each, arms) for each in islice(policy.standings(), arms + 1)]
    if len(rows) != arms or {row.arm for row in rows} != set(range(arms)):
        raise ValueError(f"standings of {len(rows)} arms; expected one of each of the {arms}")
    return rows


def state_of(policy: Policy) -> str:
    return json.dumps(policy.dump())
