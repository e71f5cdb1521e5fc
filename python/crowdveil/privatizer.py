# SPDX-License-Identifier: Apache-2.0
"""
Privatizers turn a score into a token before it leaves its owner: `none`, `randomized-response` and `laplace`, by the
laws of common/base/local.h. All draws are exact: integers from the `secrets` module, no probability is rounded.
"""
from __future__ import annotations

import math
import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Optional, Union

from .errors import Error
from .model import Choice
from .wire import GRID, MICRO

PICO = 10 ** 12
MATRICES_MAX = 15
Below = Callable[[int], int]  # uniform in [0, bound), exactly; tests pass a seeded one


# --- exact draws


def happens(num: int, den: int, below: Below) -> bool:
    """True with probability num/den."""
    return below(den) < num


def exp_minus(num: int, den: int, below: Below) -> bool:
    """True with probability exp(-num/den). For num <= den the first k at which a draw of probability num/(den k) fails
    is odd with this probability; the whole part is that many draws of exp(-1)."""
    while num > den:
        if not exp_minus(1, 1, below):
            return False
        num -= den
    k = 1
    while happens(num, den * k, below):
        k += 1
    return k % 2 == 1


def discrete_laplace(p: int, q: int, below: Below) -> int:
    """x with probability proportional to exp(-|x| q/p)."""
    divisor = math.gcd(p, q)
    p, q = p // divisor, q // divisor
    while True:
        u = below(p)
        if not exp_minus(u, p, below):
            continue
        v = 0
        while v < 1023 and exp_minus(1, 1, below):
            v += 1
        size = (u + p * v) // q
        if below(2) == 0:
            return size
        if size > 0:  # otherwise zero would be drawn twice as often
            return -size


# --- parameters


def _number(params: Mapping[str, Union[float, str]], key: str, low: float, high: float, unit: int,
            default: Optional[float] = None, is_open: bool = False) -> int:
    """A parameter as an integer in 1/unit; out of [low, high), or with more decimals, it is an error."""
    value = params.get(key, default)
    if value is None or isinstance(value, str) or not (low < value < high if is_open else low <= value <= high):
        raise Error(f"{key} is {'missing' if value is None else value}; expected a number from {low:g} to {high:g}")
    scaled = value * unit
    if abs(scaled - round(scaled)) > 1e-6 + 1e-15 * round(scaled):
        raise Error(f"{key} is {value:.15g}; expected at most {len(str(unit)) - 1} decimals")
    return round(scaled)


def _known(params: Mapping[str, object], *keys: str) -> None:
    for key in params:
        if key not in keys:
            raise Error(f"unknown parameter {key}; expected {' or '.join(keys) or 'none'}")


def _probability(params: Mapping[str, Union[float, str]], key: str) -> int:
    micro = _number(params, key, 0, 1, MICRO, is_open=True)
    if not 0 < micro < MICRO:
        raise Error(f"{key} is not a probability strictly between 0 and 1 with at most 6 decimals")
    return micro


ENTRY = re.compile(r"p(?:00|11)\.([1-9]\d*)")


def _matrices(params: Mapping[str, Union[float, str]], arms: int) -> list[tuple[int, int]]:
    """(p00, p11) in millionths: one for each arm, one for all, or none at all."""
    if not any(ENTRY.fullmatch(key) for key in params):
        given = "p00" in params or "p11" in params
        return [(_probability(params, "p00"), _probability(params, "p11"))] if given else []
    if arms > MATRICES_MAX:
        raise Error(f"p00 and p11 of single arms; expected them with at most {MATRICES_MAX} arms")
    for key in params:
        match = ENTRY.fullmatch(key)
        if match and int(match[1]) > arms:
            raise Error(f"{key}: expected an arm from 1 to {arms}")
    return [(_probability(params, f"p00.{arm + 1}"), _probability(params, f"p11.{arm + 1}")) for arm in range(arms)]


def _log_ratio(p: int, q: int, delta: float) -> float:
    """The smallest epsilon with p <= e^epsilon q + delta."""
    left = p / MICRO - delta
    return math.log(left * MICRO / q) if left > 0 else 0.0


def _worst(matrices: list[tuple[int, int]], delta: float) -> int:
    """The epsilon of the worst matrix in millionths, rounded up."""
    pairs = [pair for p00, p11 in matrices
             for pair in ((p00, MICRO - p11), (MICRO - p11, p00), (p11, MICRO - p00), (MICRO - p00, p11))]
    return math.ceil(max([0.0, *(_log_ratio(p, q, delta) for p, q in pairs)]) * MICRO + 1e-6)


# --- laws


@dataclass(frozen=True)
class Law:
    """
    A privatizer with its parameters. `epsilon_micro` of one token is None with `none`; tokens lie between `low` and
    `high`, in grid units. The mean token of an arm with mean score x is offset + slope x; `scale` is that of the
    Laplace noise in one token.
    """
    name: str
    epsilon_micro: Optional[int] = None
    delta_pico: int = 0
    low: int = 0
    high: int = GRID
    printed: bool = False
    matrices: tuple[tuple[int, int], ...] = ()

    @property
    def scale(self) -> float:
        return MICRO / self.epsilon_micro if self.name == "laplace" and self.epsilon_micro else 0.0

    def matrix(self, arm: int) -> tuple[int, int]:
        return self.matrices[arm if len(self.matrices) > 1 else 0]

    def _kept(self) -> float:
        assert self.epsilon_micro is not None
        e, delta = math.exp(-self.epsilon_micro / MICRO), self.delta_pico / PICO
        return (1 + delta * e) / (1 + delta * e + e) if self.printed else (1 + delta * e) / (1 + e)

    def feedback(self, arm: int) -> tuple[float, float]:
        """(offset, slope)."""
        if self.name != "randomized-response":
            return 0.0, 1.0
        p00, p11 = (each / MICRO for each in self.matrix(arm)) if self.matrices else (self._kept(),) * 2
        return 1 - p00, p00 + p11 - 1

    def sends(self, value: int) -> bool:
        """Whether a token can have this value."""
        return value in (0, GRID) if self.name == "randomized-response" else self.low <= value <= self.high

    def apply(self, arm: int, score: int, below: Below = secrets.randbelow) -> int:
        """A token of a score in grid units."""
        if self.name == "none":
            return score
        if self.name == "laplace":
            assert self.epsilon_micro is not None
            value = score + discrete_laplace(GRID * MICRO, self.epsilon_micro, below)
            return min(max(value, self.low), self.high)
        bit = happens(score, GRID, below)
        return GRID if bit == self._keeps(arm, bit, below) else 0

    def _keeps(self, arm: int, bit: bool, below: Below) -> bool:
        if self.matrices:
            return happens(self.matrix(arm)[bit], MICRO, below)
        return self._keeps_as_printed(below) if self.printed else self._keeps_best(below)

    def _keeps_best(self, below: Below) -> bool:
        """True with probability (e^epsilon + delta)/(1 + e^epsilon): a fair coin proposes to keep, which is accepted,
        or to flip, which is accepted with probability e^-epsilon; with probability delta the bit is kept outright."""
        assert self.epsilon_micro is not None
        if self.delta_pico and happens(self.delta_pico, PICO, below):
            return True
        while True:
            if below(2) == 0:
                return True
            if exp_minus(self.epsilon_micro, MICRO, below):
                return False

    def _keeps_as_printed(self, below: Below) -> bool:
        """True with probability (e^epsilon + delta)/(1 + e^epsilon + delta): three proposals, of weight 1,
        delta e^-epsilon and e^-epsilon."""
        assert self.epsilon_micro is not None
        while True:
            proposal = below(3)
            if proposal == 0:
                return True
            granted = exp_minus(self.epsilon_micro, MICRO, below)
            if proposal == 1 and granted and happens(self.delta_pico, PICO, below):
                return True
            if proposal == 2 and granted:
                return False


def _response(params: Mapping[str, Union[float, str]], arms: int) -> Law:
    plain = {key: value for key, value in params.items() if not ENTRY.fullmatch(key)}
    _known(plain, "epsilon", "delta", "rule", "p00", "p11")
    matrices, delta = _matrices(params, arms), _number(params, "delta", 0, 1, PICO, 0)
    rule = params.get("rule", "optimal")
    if delta >= PICO or rule not in ("optimal", "printed"):
        raise Error(f"delta {delta / PICO:g}, rule {rule}; expected a delta below 1, and the rule optimal or printed")
    if bool(matrices) == ("epsilon" in params):
        raise Error("expected either epsilon, or p00 and p11, or p00 and p11 for each arm")
    if not matrices:
        epsilon = _number(params, "epsilon", 1e-6, 4000, MICRO)
        return Law("randomized-response", epsilon, delta, printed=rule == "printed")
    if rule == "printed":
        raise Error('rule is "printed"; expected it with epsilon only')
    if any(p00 + p11 == MICRO for p00, p11 in matrices):
        raise Error("p00 + p11 is 1; expected another sum, because tokens would not depend on scores")
    return Law("randomized-response", _worst(matrices, delta / PICO), delta, matrices=tuple(matrices))


def law_of(choice: Choice, arms: int) -> Law:
    """The law of a campaign's privatizer; Error if there is none of this name, or with wrong parameters."""
    try:
        if choice.name == "none":
            _known(choice.params)
            return Law("none")
        if choice.name == "randomized-response":
            return _response(choice.params, arms)
        if choice.name == "laplace":
            _known(choice.params, "epsilon")
            epsilon = _number(choice.params, "epsilon", 1e-6, 4000, MICRO)
            bound = -(-40 * GRID * MICRO // epsilon)
            return Law("laplace", epsilon, low=-bound, high=GRID + bound)
    except Error as error:
        raise Error(f"privatizer {choice.name}: {error}") from None
    raise Error(f"unknown privatizer {choice.name}; expected none, randomized-response or laplace")
