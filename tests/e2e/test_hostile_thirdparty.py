# SPDX-License-Identifier: Apache-2.0
"""
What a hostile broker, and who has no certificate, can do to a third-party: the same suite for the program in C and for
one in Python. Each message is refused with a reason, the program goes on for an honest broker, and what an attack uses
is bounded.
"""
import math
import os
import re
import struct
import time
from pathlib import Path

import pytest

from client.broker import Dialer
from client.wire import slow_connection
from crowdveil.model import Spec
from crowdveil.schema import schema
from crowdveil.wire import LARGE_FRAME_LIMIT, context
from harness.daemon import PYTHON, ROOT
from test_hostile import MIB, Attack, dial, status_bytes
from support.address import ANY_PORT

ZEROS = bytes(32)
U64 = 2 ** 64 - 1
RANKER = ROOT / "tests/e2e/client/ranker.py"


class Stage:
    """A third-party that serves two brokers: main, which is honest, and mallory."""

    def __init__(self, deployment, kind):
        self.pki, self.kind, self.number = deployment.pki, kind, 0
        if kind == "c":
            deployment.use_system_clock()
            self.daemon = deployment.start_thirdparty({"brokers": "main, mallory"})
        else:
            files = deployment.pki.issue("thirdparty/ranker")
            self.daemon = deployment.launch("ranker", [
                PYTHON, RANKER, ANY_PORT, deployment.folder / "ranker", "60", files.ca, files.cert, files.key],
                env=dict(os.environ, PYTHONPATH=str(ROOT / "python")))
        self.address = self.daemon.address
        self.honest = self.dial("main")

    def dial(self, name):
        return Dialer(self.address, self.pki.issue(f"broker/{name}"), timeout=30)

    def check(self):
        """The honest broker's campaigns go on."""
        self.number += 1
        self.honest.tell(opening(self.number))
        assert not self.honest.until("opened").refused
        assert self.honest.until("plans").campaign == self.number
        self.honest.say("closed", campaign=self.number)

    def close(self):
        self.honest.connection.close()


@pytest.fixture(params=["c", "python"])
def stage(deployment, request):
    made = Stage(deployment, request.param)
    yield made
    made.close()
    assert made.daemon.process.poll() is None, made.daemon.text()


def opening(campaign=1, **changes):
    """An envelope that opens a campaign of two arms."""
    envelope = schema("rank").Envelope()
    message = envelope.opens.add(position={"campaign": campaign, "releases_hash": ZEROS, "plans_hash": ZEROS})
    message.spec.CopyFrom(Spec("test", 2, ("ppar", {"alpha": .1, "tokens_per_round": 50}), tokens=10_000).message())
    for name, value in changes.items():
        if isinstance(value, list):
            getattr(message.spec, name).extend(value)
        elif isinstance(value, dict):
            getattr(message.spec, name).SetInParent()
            for key, inner in value.items():
                setattr(getattr(message.spec, name), key, inner)
        else:
            setattr(message.spec, name, value)
    return envelope


def params(*given):
    envelope = opening()
    del envelope.opens[0].spec.policy.params[:]
    for key, value in given:
        param = envelope.opens[0].spec.policy.params.add(key=key)
        if value is not None:
            setattr(param, "text" if isinstance(value, str) else "number", value)
    return envelope


def edited(edit, envelope=None):
    envelope = envelope or opening()
    edit(envelope.opens[0])
    return envelope


def chosen(what, name):
    return edited(lambda message: setattr(getattr(message.spec, what), "name", name))


def many_openings(n):
    envelope = schema("rank").Envelope()
    for number in range(n):
        envelope.opens.add().CopyFrom(opening(number + 1, tokens=0).opens[0])
    return envelope


REFUSED = {  # campaigns that end, with the reason, and nothing else
    **{f"tokens_per_round {value}": params(("alpha", .1), ("tokens_per_round", value))
       for value in (1e300, -5.0, 2.0 ** 32, 0.0, -1e300, 5e-324, "many")},
    "unknown parameter": params(("alpha", .1), ("nonsense", 1.0)),
    "epsilon 0": opening(epsilon_micro=0), "tokens 0": opening(tokens=0),
    "tokens_per_worker 0": opening(tokens_per_worker=0), "arms 0": opening(arms=0),
    "no name": opening(name=""), "an arm without a name": opening(names=["", "b"]),
    "edges in disorder": opening(edges=[1, 0]), "an edge out of range": opening(edges=[0, 2]),
    "an edge twice": opening(edges=[0, 1, 0, 1]), "a budget alone": opening(budget_micro=1),
    "costs of 0": opening(costs_micro=[0, 1], budget_micro=5), "costs without end": opening(costs_micro=[U64, 1],
                                                                                           budget_micro=5),
    "workers twice": opening(costs_micro=[1, 1], workers=[5, 5], budget_micro=5),
    "pairs with costs": opening(pairs=True, costs_micro=[1, 1], budget_micro=5),
    "three brokers": opening(brokers=3), "bits without brokers": opening(score_bits=1),
    "seven bits": opening(brokers=2, score_bits=7), "laplace in shares": edited(
        lambda message: message.spec.privatizer.params.add(key="epsilon", number=1),
        edited(lambda message: setattr(message.spec.privatizer, "name", "laplace"),
               opening(brokers=2, score_bits=15))),
    "unknown policy": chosen("policy", "../../etc/passwd"), "unknown privatizer": chosen("privatizer", "none'; --"),
    "no policy": edited(lambda message: message.spec.ClearField("policy")),
}

CLOSED = {  # messages of no form, which end the connection
    "a parameter of nan": params(("alpha", math.nan)), "an infinite parameter": params(("alpha", math.inf)),
    "33 parameters": params(*((f"p{n}", 1.0) for n in range(33))), "a parameter twice": params(("a", 1.0), ("a", 2.0)),
    "a parameter without a value": params(("alpha", None)), "a parameter without a name": params(("", 1.0)),
    "a long parameter": params(("alpha", "x" * 32)), "a parameter with ESC": params(("\x1b[31m", 1.0)),
    "a long policy": chosen("policy", "x" * 32), "a name with ESC": opening(name="\x1b]0;pwned\x07"),
    "a name of two lines": opening(name="a\nb"), "a long name": opening(name="x" * 64),
    "a name in C1": opening(names=["a\x9b", "b"]), "a long arm": opening(names=["x" * 256, "b"]),
    "too many arms": opening(arms=2 ** 32 - 1), "131,073 arms": opening(arms=131_073),
    "one name": opening(names=["a"]), "three costs": opening(costs_micro=[1, 2, 3], budget_micro=9),
    "half an edge": opening(edges=[0, 1, 0]), "a scale upside down": opening(scale={"low": 5, "high": 1}),
    "an infinite scale": opening(scale={"low": -math.inf, "high": 1}),
    "a short seed": edited(lambda message: setattr(message, "seed", b"abc")),
    "a short hash": edited(lambda message: setattr(message.position, "plans_hash", b"abc")),
    "no spec": edited(lambda message: message.ClearField("spec")),
    "no position": edited(lambda message: message.ClearField("position")),
    "stop 99": edited(lambda message: setattr(message, "stop", 99)),
    "stop -1": edited(lambda message: setattr(message, "stop", -1)),
    "stop complete": edited(lambda message: setattr(message, "stop", 1)),
    "300 invalid campaigns": many_openings(300),
}


@pytest.mark.quick
def test_a_campaign_that_cannot_be_is_refused_alone(stage):
    with stage.dial("mallory") as mallory:
        for name, envelope in REFUSED.items():
            mallory.tell(envelope)
            assert mallory.until("opened").refused, name
        mallory.tell(opening(77))
        assert not mallory.until("opened").refused
        for number in (2 ** 63, U64):
            mallory.tell(opening(number))
            opened = mallory.until("opened")
            assert not opened.refused and opened.position.campaign == number
    stage.check()


def closed_with(peer):
    with pytest.raises((ConnectionError, OSError)) as caught:
        while True:
            peer.until("nothing")
    return str(caught.value)


@pytest.mark.quick
@pytest.mark.parametrize("identity, changes", [
    ("broker/other", {}), ("worker/5", {}), ("requester/main", {}), ("broker/main", {"days": -1}),
    ("broker/main", {"extra": ",URI:crowdveil:broker/mallory"}), ("broker/main", {"extra": ",URI:crowdveil:worker/5"})],
    ids=["another name", "a worker", "a requester", "expired", "two names", "two roles"])
def test_a_certificate_that_does_not_fit_opens_nothing(stage, identity, changes):
    files = stage.pki.issue(identity, name=f"bad-{abs(hash((identity, str(changes))))}", **changes)
    with pytest.raises(OSError):
        with Dialer(stage.address, files, timeout=20) as peer:
            peer.tell(opening())
            peer.until("opened")
    stage.check()


@pytest.mark.quick
def test_a_message_of_no_form_ends_its_connection_alone(stage):
    for name, envelope in CLOSED.items():
        with stage.dial("mallory") as mallory:
            mallory.tell(envelope)
            why = closed_with(mallory)
            assert re.search("not a valid message|stopped|invalid campaigns", why), (name, why)
    stage.check()


def a_release(**changes):
    fields = {"campaign": 1, "number": 1, "plan": 1, "arm": 0, "tokens": 50, "noisy_sum": 7, **changes}
    noise = fields.pop("noise", [(2.0, 1)])
    return {"releases": {**fields, "noise": [{"scale": scale, "count": count} for scale, count in noise]}}


def a_plan(number, *wants, **more):
    return {"recorded": {"plan": {"campaign": 1, "number": number, "wants": [
        {"arm": arm, "tokens": tokens, **more} for arm, tokens in wants]}}}


AFTER = {  # messages about a campaign whose first plan was accepted
    **{f"noise of scale {scale}": a_release(noise=[(scale, 1)])
       for scale in (1e300, 1e-300, 5e-324, 0.0, -1.0, math.nan, math.inf)},
    "noise of count 0": a_release(noise=[(2.0, 0)]), "no noise": a_release(noise=[]),
    "25 groups of noise": a_release(noise=[(2.0, 1)] * 25), "no tokens": a_release(tokens=0),
    "a token more": a_release(tokens=51), "2^63 tokens": a_release(tokens=2 ** 63), "all tokens": a_release(tokens=U64),
    "a last one of too many": a_release(tokens=51, last=True),
    "a last one of a sum alone": a_release(tokens=0, last=True, noise=[]),
    "arm 7": a_release(arm=7), "the last arm": a_release(arm=2 ** 32 - 1), "number 0": a_release(number=0),
    "a gap": a_release(number=3), "the last number": a_release(number=U64), "plan 2": a_release(plan=2),
    "another campaign": a_release(campaign=U64), "plan 2 accepted": {"accepted": {"campaign": 1, "plan": 2}},
    "plan 1 refused late": {"refused": {"campaign": 1, "plan": 1, "reason": 2}},
    "refused for no reason": {"refused": {"campaign": 1, "plan": 2, "reason": 0}},
    "refused as complete": {"refused": {"campaign": 1, "plan": 1, "reason": 1}},
    "refused with ESC": {"refused": {"campaign": 1, "plan": 1, "reason": 2, "why": "\x1b[2J"}},
    "stopped for no reason": {"stops": {"campaign": 1, "reason": 0}},
    "stopped as complete": {"stops": {"campaign": 1, "reason": 1}},
    "reason 77": {"stops": {"campaign": 1, "reason": 77}},
    "plan 3 recorded": a_plan(3, (0, 5)), "an empty plan": a_plan(2), "plan 0 recorded": a_plan(0, (0, 5)),
    "an arm twice": a_plan(2, (0, 5), (0, 5)), "a want of arm 9": a_plan(2, (9, 5)),
    "a want of no tokens": a_plan(2, (0, 0)), "an opponent": a_plan(2, (0, 5), opponent=2),
    "no plan": {"recorded": {}}, "an ack": {"acks": {"campaign": 1, "release": 1}},
    "an opened": {"opened": {"position": {"campaign": 1, "releases_hash": ZEROS, "plans_hash": ZEROS}}},
    "a result": {"results": {"campaign": 1, "reason": 1}}, "a plan": {"plans": {"campaign": 1, "number": 2}},
}


def test_a_message_that_does_not_fit_the_campaign_ends_its_connection_alone(stage):
    for name, fields in AFTER.items():
        with stage.dial("mallory") as mallory:
            mallory.tell(opening())
            assert not mallory.until("opened").refused
            mallory.say("accepted", campaign=1, plan=1)
            (kind, message), = fields.items()
            mallory.say(kind, **message)
            assert closed_with(mallory), name
    with stage.dial("mallory") as mallory:  # what does not contradict is taken: the campaign is as before all of it
        mallory.tell(opening())
        mallory.say("accepted", campaign=1, plan=1)
        for number, noisy in ((1, -2 ** 63), (2, 2 ** 63 - 1)):
            mallory.say("releases", **a_release(number=number, arm=number - 1, noisy_sum=noisy)["releases"])
        while mallory.until("acks").release < 2:
            pass
    stage.check()


def submessages(number, count, inner=b""):
    return (bytes([number << 3 | 2, len(inner)]) + inner) * count


def long_field(number, content):
    length, digits = len(content), b""
    while length >= 128:
        digits, length = digits + bytes([length & 127 | 128]), length >> 7
    return bytes([number << 3 | 2]) + digits + bytes([length]) + content


FULL = LARGE_FRAME_LIMIT - 64
FRAMES = {
    "openings": submessages(3, FULL // 2), "recorded plans": submessages(4, FULL // 2),
    "releases": submessages(5, FULL // 2), "wants": long_field(4, long_field(1, submessages(3, FULL // 2 - 8))),
    "names": long_field(3, long_field(1, submessages(3, FULL // 2 - 8))),
    "noise": long_field(5, submessages(7, FULL // 2)),
    "unknown numbers": b"\x78\x01" * (FULL // 2), "unknown texts": submessages(15, FULL // 2),
    "unknown fields of a hello": long_field(1, b"\x78\x01" * (FULL // 2)),
    "groups": b"\x7b\x7c" * (FULL // 2), "one long text": long_field(2, long_field(1, b"x" * FULL)),
}


@pytest.mark.parametrize("stage", ["c", "python"], indirect=True)
def test_a_large_frame_of_small_messages_costs_little(stage):
    """38 MiB each, the largest that a broker may send."""
    stage.check()
    for name, payload in FRAMES.items():
        with stage.dial("mallory") as mallory:
            mallory.tell(opening())
            mallory.until("opened")
            began = time.monotonic()
            mallory.connection.send(payload)
            closed_with(mallory)
            took = time.monotonic() - began
            print(f"{name}: {took:.1f} s, peak memory {status_bytes(stage.daemon.pid, 'VmHWM') / MIB:.0f} MiB")
            assert took < 5, name
        stage.check()
    assert status_bytes(stage.daemon.pid, "VmHWM") < 16 * LARGE_FRAME_LIMIT


@pytest.mark.parametrize("length", [0, LARGE_FRAME_LIMIT + 1, 2 ** 32 - 1])
def test_a_frame_out_of_bounds_ends_its_connection(stage, length):
    with stage.dial("mallory") as mallory:
        mallory.connection.send_raw(struct.pack(">I", length) + b"x" * 1000)
        closed_with(mallory)
    stage.check()


# attack: (certificates, lines that each certificate and all others together may cause)
ATTACKS = ("silent", "loris", "plain_text", "hellos", "idle", "reconnect", "garbage", "slow_frames", "tiny_records")


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_keeps_no_broker_out(stage, name):
    certificates = 0 if name in ATTACKS[:4] else 1
    stage.check()
    since = stage.daemon.mark()
    before = status_bytes(stage.daemon.pid, "VmHWM")
    files = [stage.pki.issue("broker/mallory")] * certificates
    pairs = [path for each in files for path in (each.cert, each.key)]
    with Attack(name, stage.address, stage.pki.ca, *pairs):
        time.sleep(3)
        for _ in range(3):
            stage.check()  # who is connected stays so
            if name == "hellos":  # whole hellos share the budget of their address; another one is not concerned
                files = stage.pki.issue("broker/main")
                slow_connection(stage.address, context(files.ca, files.cert, files.key), .1, "127.0.0.2")[0].close()
                continue
            stage.honest.connection.close()
            stage.honest = dial(lambda: stage.dial("main"))  # who comes gets in
            stage.check()
    grown = (status_bytes(stage.daemon.pid, "VmHWM") - before) / MIB
    files_open = len(list(Path(f"/proc/{stage.daemon.pid}/fd").iterdir()))
    lines = stage.daemon.mark() - since
    print(f"{name}: {grown:.0f} MiB more, {files_open} files, {lines} lines")
    assert grown < 128 and lines < 80 and files_open < 1024 + 3 * 128 + 64
