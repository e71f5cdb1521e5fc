# SPDX-License-Identifier: Apache-2.0
"""
What a broker sends is checked by the rules of the C programs before a policy or an answer function sees it: the form
of messages as in proto/codec (ProtocolError, which ends the connection), the meaning of a campaign as in
common/base/spec.c (Unfit, which refuses the campaign).
"""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .errors import Error, ProtocolError
from .model import End

ARMS_MAX, EDGES_MAX, PARAMS_MAX, GROUPS_MAX = 131_072, 65_536, 32, 24
NAME_BYTES, ITEM_BYTES, WORD_BYTES, WHY_BYTES = 63, 255, 31, 255
TICKET_BYTES, SESSION_BYTES, VALUES_MAX = 48, 16, 64
COST_MAX = 10 ** 12
BUDGET_MAX = COST_MAX * 10 ** 6
ENDS = 1 + max(End)
BIT, SCORE = 1, 15
COVERING = ("hybrid", "binary", "binary-honaker", "kary", "segments", "doubling", "batch", "per-item", "kary-blocks")
REPEATING = ("doubling",)
MECHANISMS = (*COVERING, "none", "hybrid-printed")


class Unfit(Error):
    """A campaign that this third-party does not run."""


def _bad(what: str) -> ProtocolError:
    return ProtocolError(f"not a valid message: {what}")


def is_clean(text: str, most: int) -> bool:
    """At most so many bytes of UTF-8 without control characters."""
    return len(text) <= most and len(text.encode()) <= most and not any(
        char < " " or "\x7f" <= char <= "\x9f" for char in text)


def _text(text: str, most: int, what: str) -> None:
    if not is_clean(text, most):
        raise _bad(f"{what} is not printable text of at most {most} bytes")


# --- the form of messages


def _choice(choice: Any) -> None:
    _text(choice.name, WORD_BYTES, "the name of an algorithm")
    keys = [param.key for param in choice.params]
    if len(keys) > PARAMS_MAX or len(set(keys)) < len(keys) or "" in keys:
        raise _bad(f"{choice.name} has more than {PARAMS_MAX} parameters, or one twice or without a name")
    for param in choice.params:
        _text(param.key, WORD_BYTES, "the name of a parameter")
        _text(param.text, WORD_BYTES, "a parameter")
        if param.WhichOneof("value") is None or not math.isfinite(param.number):
            raise _bad(f"parameter {param.key} has no value, or none that is finite")


def _scale(scale: Any) -> None:
    if not (math.isfinite(scale.low) and math.isfinite(scale.high) and scale.low < scale.high):
        raise _bad("a scale that is not two finite numbers, the lower one first")


def _spec(spec: Any) -> None:
    _text(spec.name, NAME_BYTES, "the campaign's name")
    lists = (spec.names, spec.costs_micro, spec.workers)
    if spec.arms > ARMS_MAX or any(len(each) not in (0, spec.arms) for each in lists):
        raise _bad(f"{spec.arms} arms, or a list of another length; expected at most {ARMS_MAX}")
    if len(spec.edges) % 2 or len(spec.edges) > 2 * EDGES_MAX:
        raise _bad(f"the edges are not pairs, or more than {EDGES_MAX}")
    for name in spec.names:
        _text(name, ITEM_BYTES, "the name of an arm")
    for choice in (spec.policy, spec.mechanism, spec.privatizer):
        _choice(choice)
    if spec.HasField("scale"):
        _scale(spec.scale)


def _open(message: Any) -> None:
    position = message.position
    if not message.HasField("spec") or not message.HasField("position"):
        raise _bad("a campaign without spec or position")
    if len(position.releases_hash) != 32 or len(position.plans_hash) != 32 or len(message.seed) not in (0, 8):
        raise _bad("a hash that has not 32 bytes, or a seed that has not 8")
    if not 0 <= message.stop < ENDS:
        raise _bad(f"reason {message.stop}")
    _spec(message.spec)


def _recorded(message: Any) -> None:
    arms = [want.arm for want in message.plan.wants]
    if not message.HasField("plan") or not message.plan.number or len(arms) > ARMS_MAX:
        raise _bad("a recorded plan without a number, or with too many arms")
    if len(set(arms)) < len(arms) or max(arms, default=0) >= ARMS_MAX:
        raise _bad("a recorded plan with an arm twice or out of range")


def _release(message: Any) -> None:
    if not message.number or message.arm >= ARMS_MAX or len(message.noise) > GROUPS_MAX:
        raise _bad("a release without a number, of an arm out of range, or with too much noise")
    if not all(math.isfinite(group.scale) and group.scale >= 0 for group in message.noise):
        raise _bad("a release with noise of no scale")


def _reason(message: Any) -> None:
    if not 0 < message.reason < ENDS:
        raise _bad(f"reason {message.reason}")


def _greetings(envelope: Any) -> None:
    if envelope.HasField("hello"):
        _text(envelope.hello.program, NAME_BYTES, "the name of a program")
    if envelope.HasField("goodbye"):
        _text(envelope.goodbye.why, WHY_BYTES, "a goodbye")


def check_form(envelope: Any) -> None:
    """Of a rank.Envelope that a broker may send."""
    _greetings(envelope)
    for kind, check in (("opens", _open), ("recorded", _recorded), ("releases", _release), ("refused", _reason),
                        ("stops", _reason)):
        for message in getattr(envelope, kind):
            check(message)
    for message in envelope.refused:
        _text(message.why, WHY_BYTES, "the reason of a refusal")


# --- the form of messages to workers


def _terms(terms: Any) -> None:
    if not terms.id or terms.arms > ARMS_MAX:
        raise _bad(f"campaign {terms.id} of {terms.arms} arms; expected a number from 1 on, and at most {ARMS_MAX}")
    _text(terms.name, NAME_BYTES, "the campaign's name")
    _text(terms.requester, NAME_BYTES, "the requester's name")
    _choice(terms.privatizer)
    _choice(terms.mechanism)
    if terms.HasField("scale"):
        _scale(terms.scale)
    split = terms.split
    if terms.HasField("split") and (split.score_bits not in (BIT, SCORE) or [
            len(each) for each in (split.database, split.spec, split.key)] != [16, 32, 32]):
        raise _bad("shares of other bits, or a key of another length")


def _assign(message: Any) -> None:
    played, shown = message.arms[:1], list(message.arms[1:])
    if len(message.ticket) != TICKET_BYTES or not 1 <= len(message.arms) <= VALUES_MAX:
        raise _bad("an assignment with another ticket, or of no or too many arms")
    if max(message.arms) >= ARMS_MAX or message.opponent > ARMS_MAX or message.opponent and shown:
        raise _bad("an assignment of arms out of range, or of several with an opponent")
    if any(a >= b for a, b in zip(shown, shown[1:])) or played[0] in shown:
        raise _bad(f"an assignment of arms {list(message.arms)}; expected each once, from the second on ascending")


def _ack(message: Any) -> None:
    if len(message.ticket) != TICKET_BYTES or not 1 <= message.verdict <= 4:
        raise _bad("an acknowledgement of another ticket or verdict")
    _text(message.why, WHY_BYTES, "a reason")


def check_crowd(envelope: Any) -> None:
    """Of a crowd.Envelope or a share.Envelope that a broker or co-broker may send to a worker."""
    _greetings(envelope)
    if hasattr(envelope, "assigns"):
        for kind, check in (("campaigns", _terms), ("assigns", _assign), ("acks", _ack)):
            for message in getattr(envelope, kind):
                check(message)
        told = envelope.backoffs
    else:
        for session in envelope.sessions:
            _terms(session.terms)
            if len(session.id) != SESSION_BYTES:
                raise _bad(f"a session's id of {len(session.id)} bytes; expected {SESSION_BYTES}")
        told = envelope.turned
    for message in told:
        _text(message.why, WHY_BYTES, "a reason")


# --- the form of answers to requesters


def _progress(progress: Any) -> None:
    _text(progress.name, NAME_BYTES, "a campaign's name")
    _text(progress.waits_for, NAME_BYTES, "the name of a third-party")
    for why in (progress.why, *(each.why for each in progress.declined)):
        _text(why, WHY_BYTES, "a reason")


def _statement(statement: Any) -> None:
    for name in (statement.name, statement.mechanism, statement.privatizer):
        _text(name, NAME_BYTES, "a name")
    for line in (statement.guarantee, statement.why):
        _text(line, WHY_BYTES, "a line of a statement")


def check_order(envelope: Any) -> None:
    """Of an order.Envelope that a broker may send: no text of it breaks or turns the line that shows it."""
    _greetings(envelope)
    _text(envelope.error.why, WHY_BYTES, "an error")
    _text(envelope.status_answer.broker, NAME_BYTES, "a broker's name")
    for progress in (envelope.progress, envelope.finished.progress, envelope.part.progress,
                     *envelope.status_answer.campaigns):
        _progress(progress)
    _statement(envelope.statement)
    for holder in (envelope.description, envelope.part):
        if holder.HasField("spec"):
            _spec(holder.spec)


# --- the meaning of a campaign


def _recruitment(spec: Any) -> None:
    if not spec.costs_micro:
        if spec.workers or spec.budget_micro:
            raise Unfit("workers or a budget without costs; expected all three or none")
        return
    if not 0 < spec.budget_micro <= BUDGET_MAX or not all(0 < cost <= COST_MAX for cost in spec.costs_micro):
        raise Unfit(f"a budget or costs out of range; expected more than 0, and at most {BUDGET_MAX} and {COST_MAX} "
                    "millionths")
    workers = list(spec.workers)
    if 0 in workers or len(set(workers)) < len(workers):
        raise Unfit("a worker is listed twice, or has the id 0; expected each worker once")


def _edges(spec: Any) -> None:
    edges = list(zip(spec.edges[::2], spec.edges[1::2]))
    if any(a >= b or b >= spec.arms for a, b in edges) or any(a >= b for a, b in zip(edges, edges[1:])):
        raise Unfit(f"edges; expected pairs of arms below {spec.arms}, the lower one first, each once, in ascending "
                    "order")


def _pairs(spec: Any) -> None:
    if spec.pairs and (spec.arms < 2 or spec.edges or spec.costs_micro):
        raise Unfit("a campaign of pairs with 1 arm, a feedback graph or costs; expected 2 arms or more, and neither")


def _brokers(spec: Any) -> None:
    if spec.brokers == 0 and spec.score_bits == 0:
        return
    if spec.brokers != 2 or spec.score_bits not in (BIT, SCORE) or spec.edges:
        raise Unfit(f"{spec.brokers} brokers, shares of {spec.score_bits} bits; expected 2 and {BIT} or {SCORE} "
                    "without a feedback graph, or 0 and 0")
    if spec.score_bits != BIT and (spec.pairs or spec.privatizer.name == "randomized-response"):
        raise Unfit(f"score_bits is {spec.score_bits}, but each token is one bit; expected {BIT}")
    if spec.privatizer.name == "laplace" or spec.mechanism.name in MECHANISMS and spec.mechanism.name not in COVERING:
        raise Unfit(f"privatizer {spec.privatizer.name} and mechanism {spec.mechanism.name} with two brokers; expected "
                    "tokens from 0 to 1, and noise that protects each of them")


def check_spec(spec: Any, arms_limit: int = ARMS_MAX) -> None:
    """Unfit says what is wrong with a base.Spec."""
    if not spec.name or "" in spec.names:
        raise Unfit("the campaign or an arm has an empty name; expected printable text")
    if not 1 <= spec.arms <= arms_limit:
        raise Unfit(f"{spec.arms} arms; expected 1 to {arms_limit}")
    if not spec.epsilon_micro and spec.mechanism.name != "none":
        raise Unfit(f"epsilon is 0; expected more than 0 with mechanism {spec.mechanism.name}")
    if not spec.tokens_per_worker or not spec.tokens:
        raise Unfit("the limit of tokens or tokens_per_worker is 0; expected at least 1")
    _recruitment(spec)
    _edges(spec)
    _pairs(spec)
    _brokers(spec)


# --- releases, plans


def fits(opponent: int, arm: int, pairs: bool, arms: int) -> bool:
    return opponent == 0 or pairs and opponent <= arms and opponent != arm + 1


def is_noise(noise: Sequence[Any], brokers: int) -> bool:
    """Of groups whose squares neither overflow nor vanish, with the noise of as many brokers."""
    return all(1e-100 <= group.scale <= 1e100 and group.count and not (brokers > 1 and group.count % brokers)
               for group in noise)
