# SPDX-License-Identifier: Apache-2.0
"""
What the parties tell each other, as dataclasses. Names are those of the .proto files where the units are the same.
Arms count from 0; scores lie between 0 and 1; 2^20 grid units are a score of 1. A field that the other side's version
does not have yet keeps its default.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import IntEnum
from typing import Any, Optional, TypeVar, Union

from .errors import Error
from .names import normal
from .schema import schema
from .wire import GRID, MICRO

T = TypeVar("T")


class End(IntEnum):
    """Why a campaign ended."""
    NONE = 0
    COMPLETE = 1
    TOKENS = 2
    DEADLINE = 3
    IDLE = 4
    CANCELLED = 5
    LEDGER = 6
    FROZEN = 7
    REFUSED = 8
    BUDGET = 9
    RECOVERED = 10
    USED_UP = 11

    @classmethod
    def _missing_(cls, value: object) -> End:
        """A reason of a later version."""
        made: Any = int.__new__(cls, value)  # type: ignore[call-overload]
        made._name_, made._value_ = f"REASON_{value}", value
        later: End = made
        return later

    def __str__(self) -> str:
        return self.name.lower().replace("_", " ")


def taken(cls: type[T], message: Any, **more: Any) -> T:
    """A dataclass from the message's fields of the same names."""
    values = {each.name: getattr(message, each.name) for each in fields(cls)
              if each.name not in more and hasattr(message, each.name)}
    return cls(**values, **more)


@dataclass(frozen=True)
class Choice:
    """An algorithm by name, with its parameters."""
    name: str
    params: Mapping[str, Union[float, str]] = field(default_factory=dict)

    @classmethod
    def of(cls, message: Any) -> Choice:
        return cls(message.name, {param.key: param.text if param.WhichOneof("value") == "text" else param.number
                                  for param in message.params})

    def into(self, message: Any) -> None:
        message.name = self.name
        for key, value in self.params.items():
            param = message.params.add(key=key)
            if isinstance(value, str):
                param.text = value
            else:
                param.number = value


def _choice(given: Union[Choice, str, tuple[str, Mapping[str, Union[float, str]]]]) -> Choice:
    if isinstance(given, tuple) and len(given) == 2:
        return Choice(*given)
    if isinstance(given, (str, Choice)):
        return Choice(given) if isinstance(given, str) else given
    raise Error(f"{given!r} is no algorithm; expected a name, or (name, {{parameter: value}})")


@dataclass(frozen=True)
class Spec:
    """
    What a campaign asks for. Policy, mechanism and privatizer: a `Choice`, a name, or (name, {parameter: value}).
    `epsilon` is the limit of each arm, `tokens` the limit of the campaign; `deadline_ms` and `idle_ms` 0: the broker's.
    With `names` the third-party learns the items' names. Recruitment: `costs_micro`, `workers`, `budget_micro`. With
    `brokers` 2 each score goes to two brokers in two shares, of `score_bits` 1 (scores are 0 or 1) or 15.
    With `repeat` a worker may be asked the same item, or pair of items, again.
    `scale`: the answers that the scores 0 and 1 stand for, for gateways with data files.
    """
    name: str
    arms: int
    policy: Choice = Choice("ppar")
    mechanism: Choice = Choice("hybrid")
    privatizer: Choice = Choice("none")
    epsilon: float = 1.0
    tokens: int = 50_000_000
    tokens_per_worker: int = 1
    thirdparty_trusted: bool = False
    deadline_ms: int = 0
    idle_ms: int = 0
    names: Sequence[str] = ()
    edges: Sequence[tuple[int, int]] = ()
    costs_micro: Sequence[int] = ()
    workers: Sequence[int] = ()
    budget_micro: int = 0
    pairs: bool = False
    brokers: int = 0
    score_bits: int = 0
    scale: Optional[tuple[float, float]] = None
    repeat: bool = False

    def __post_init__(self) -> None:
        for name in ("policy", "mechanism", "privatizer"):
            object.__setattr__(self, name, _choice(getattr(self, name)))
        if self.brokers and not self.score_bits:
            bits = self.pairs or self.privatizer.name == "randomized-response"
            object.__setattr__(self, "score_bits", 1 if bits else 15)

    @classmethod
    def of(cls, message: Any) -> Spec:
        choices = {name: Choice.of(getattr(message, name)) for name in ("policy", "mechanism", "privatizer")}
        plain = {name: tuple(getattr(message, name)) for name in ("names", "costs_micro", "workers")}
        scale = (message.scale.low, message.scale.high) if message.HasField("scale") else None
        return taken(cls, message, **choices, **plain, scale=scale, epsilon=message.epsilon_micro / MICRO,
                     edges=tuple(zip(message.edges[::2], message.edges[1::2])))

    def message(self) -> Any:
        same = ("arms", "tokens", "tokens_per_worker", "thirdparty_trusted", "deadline_ms", "idle_ms",
                "costs_micro", "workers", "budget_micro")
        try:
            message = schema("base").Spec(**{name: getattr(self, name) for name in same},
                                          name=normal(self.name, 63), names=[normal(name) for name in self.names],
                                          epsilon_micro=round(self.epsilon * MICRO))
            message.edges.extend(arm for edge in self.edges for arm in edge)
            for name in ("policy", "mechanism", "privatizer"):
                getattr(self, name).into(getattr(message, name))
            for name in ("pairs", "brokers", "score_bits", "repeat"):
                if getattr(self, name):
                    setattr(message, name, getattr(self, name))
            if self.scale is not None:
                message.scale.low, message.scale.high = self.scale
        except (TypeError, ValueError, OverflowError, AttributeError) as error:
            raise Error(f"the campaign cannot be sent: {error}") from None
        return message


@dataclass(frozen=True)
class Gold:
    """
    Items with a known score, asked among the others: `answers` is {number among all items: score}. A score farther
    than `tolerance` from the known one is wrong; an honest worker is wrong with probability `error` at most, and is
    found with probability `level` at most; `share` of a worker's assignments ask a gold item.
    The noisy numbers of tokens that found workers gave cost each token `epsilon` more.
    """
    answers: Mapping[int, float]
    tolerance: float = .3
    error: float = .05
    level: float = .001
    share: float = .3
    epsilon: float = .1

    def message(self) -> Any:
        message = schema("order").Gold(tolerance=round(self.tolerance * GRID), error_micro=round(self.error * MICRO),
                                       level_micro=round(self.level * MICRO), share_micro=round(self.share * MICRO),
                                       epsilon_micro=round(self.epsilon * MICRO))
        for item, answer in sorted(self.answers.items()):
            message.items.append(item)
            message.answers.append(round(answer * GRID))
        return message


@dataclass(frozen=True)
class NoiseGroup:
    """`count` independent Laplace noises of scale `scale`/epsilon, in scores."""
    scale: float
    count: int


@dataclass(frozen=True)
class Release:
    """A noisy sum of an arm's tokens. `last`: the arm's data are used up, no further release of it will come."""
    number: int
    plan: int
    arm: int
    tokens: int
    noisy_sum: int
    noise: tuple[NoiseGroup, ...] = ()
    last: bool = False

    @classmethod
    def of(cls, message: Any) -> Release:
        return taken(cls, message, noise=tuple(NoiseGroup(group.scale, group.count) for group in message.noise))

    def variance(self, epsilon: float) -> float:
        """The variance of the noise in the sum, in scores."""
        return sum(2 * group.count * (group.scale / epsilon) ** 2 for group in self.noise)


@dataclass(frozen=True)
class Want:
    """What a plan asks for: so many tokens of an arm; in comparisons with `opponent`, which is 1 + an arm (0: any)."""
    arm: int
    tokens: int
    opponent: int = 0


@dataclass(frozen=True)
class Standing:
    """
    What is decided of an arm. `rank_class` counts from 1, the best; 0: undecided. An arm without a class because it
    lies on a boundary (`held` 1), its data are used up (2) or the campaign has ended (3) is in class `rank_class` up to
    `rank_last`. `contradicts`: the limits of its mean contradict each other.
    """
    arm: int
    rank_class: int = 0
    tokens: int = 0
    mean: float = 0.0
    radius: float = 0.0
    rank_last: int = 0
    held: int = 0
    contradicts: bool = False

    @classmethod
    def of(cls, message: Any) -> Standing:
        return taken(cls, message)


@dataclass(frozen=True)
class Plan:
    """A plan as the broker accepted it."""
    number: int
    wants: tuple[Want, ...]

    @classmethod
    def of(cls, message: Any) -> Plan:
        return cls(message.number, tuple(taken(Want, want) for want in message.wants))


@dataclass(frozen=True)
class Progress:
    """How far a campaign is."""
    campaign: int
    name: str
    tokens: int
    tokens_limit: int
    releases: int
    plans: int
    elapsed_ms: int
    arms: int
    decided: int
    classes: int
    epsilon_spent_micro: int
    workers: int
    end: End
    thirdparty_connected: bool
    paid_micro: int = 0
    budget_micro: int = 0
    waits_for: str = ""
    waits_for_cobroker: bool = False
    cobroker_connected: bool = False
    why: str = ""  # it ended; empty while it runs, and of a complete one

    @classmethod
    def of(cls, message: Any) -> Progress:
        return taken(cls, message, end=End(message.end))


def _standings(messages: Any) -> tuple[Standing, ...]:
    return tuple(map(Standing.of, messages))


@dataclass(frozen=True)
class Result:
    """The end of a campaign."""
    progress: Progress
    standings: tuple[Standing, ...]

    @classmethod
    def of(cls, message: Any) -> Result:
        return cls(Progress.of(message.progress), _standings(message.standings))

    @property
    def end(self) -> End:
        return self.progress.end

    @property
    def classes(self) -> dict[int, list[int]]:
        """The arms of each class; class 0 has the undecided ones."""
        ranked: dict[int, list[int]] = {}
        for standing in self.standings:
            ranked.setdefault(standing.rank_class, []).append(standing.arm)
        return dict(sorted(ranked.items()))


@dataclass(frozen=True)
class Accepted:
    """The number of a submitted campaign, and whether the same key had submitted it before."""
    campaign: int
    existed: bool = False


@dataclass(frozen=True)
class Export:
    """All that a requester may know of a campaign."""
    campaign: int
    spec: Spec
    seed: bytes
    progress: Progress
    plans: tuple[Plan, ...]
    releases: tuple[Release, ...]
    standings: tuple[Standing, ...]

    @classmethod
    def of(cls, parts: Sequence[Any]) -> Export:
        """From the parts of the answer, in order."""
        first = parts[0]
        return cls(first.campaign, Spec.of(first.spec), bytes(first.seed), Progress.of(first.progress),
                   tuple(Plan.of(plan) for part in parts for plan in part.plans),
                   tuple(Release.of(release) for part in parts for release in part.releases),
                   tuple(Standing.of(standing) for part in parts for standing in part.standings))


@dataclass(frozen=True)
class Account:
    """What an arm has spent, in micro-epsilon, and in a recruitment what its worker was paid, in millionths."""
    spent: int
    lost: int
    releases: int
    tokens: int
    worker: int = 0
    hires: int = 0
    paid: int = 0


@dataclass(frozen=True)
class Statement:
    """The privacy account of a campaign, or the largest one of a plan (campaign 0)."""
    campaign: int
    name: str
    mechanism: str
    privatizer: str
    guarantee: str
    exact: bool
    epsilon_micro: int
    tokens_per_worker: int
    worker_epsilon_micro: int
    lifetime_epsilon_micro: int
    floor_micro: int
    end: End
    accounts: tuple[Account, ...]
    budget_micro: int = 0
    delta_pico: int = 0
    release_tokens: int = 0  # the smallest number in a release
    why: str = ""

    @classmethod
    def of(cls, message: Any) -> Statement:
        return taken(cls, message, end=End(message.end),
                     accounts=tuple(taken(Account, account) for account in message.accounts))


@dataclass(frozen=True)
class Status:
    """The requester's campaigns at a broker."""
    campaigns: tuple[Progress, ...]
    broker: str
    uptime_ms: int  # since this process has been active
    term: int = 0   # of the active process, if several share a database

    @classmethod
    def of(cls, message: Any) -> Status:
        return taken(cls, message, campaigns=tuple(map(Progress.of, message.campaigns)))
