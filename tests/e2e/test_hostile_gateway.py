# SPDX-License-Identifier: Apache-2.0
"""What a hostile broker of a valid certificate can do to a gateway, of the program in C and of one in Python alike: its
connection ends with a line, no score leaves, and the gateway goes on with the next connection."""
import math
import os
import threading
import time

import pytest

from client.broker import FakeBroker
from crowdveil.schema import schema
from crowdveil.wire import MICRO
from harness.daemon import PYTHON, ROOT, wait_until

GATEWAY = """
import logging, sys
from crowdveil import Accept, Gateway, Tls
logging.basicConfig(level=logging.INFO, format="%(message)s")
Gateway(sys.argv[1], Tls(*sys.argv[2:5]), range(1, 1001), lambda worker, arm: .5, "test",
        Accept(["alice"], ["none", "randomized-response"], tokens=5), state=sys.argv[5]).run(until_done=False)
"""


def terms(**changes):
    message = schema("base").Terms(**{"id": 1, "name": "test", "epsilon_micro": MICRO, "tokens_per_worker": 2,
                                      "arms": 2, "requester": "alice", "lease_ms": 5000, **changes})
    message.mechanism.name, message.privatizer.name = "hybrid", "none"
    return message


def private(*params):
    message = terms()
    message.privatizer.name = "randomized-response"
    for key, value in params:
        message.privatizer.params.add(key=key, number=value)
    return message


def envelope(*campaigns, **messages):
    made = schema("crowd").Envelope()
    made.campaigns.extend(campaigns)
    for kind, values in messages.items():
        for value in values:
            getattr(made, kind).add(**value)
    return made


def assign(worker, **changes):
    return {"campaign": 1, "worker": worker, "ticket": b"x" * 48, "arms": [0], "place": 1, **changes}


CASES = {
    "campaign 0": lambda worker: envelope(terms(id=0)),
    "too many arms": lambda worker: envelope(terms(arms=2 ** 32 - 1)),
    "a name with ESC": lambda worker: envelope(terms(name="\x1b[2Jtest")),
    "a requester of two lines": lambda worker: envelope(terms(requester="alice\nroot: all is well")),
    "a parameter of nan": lambda worker: envelope(private(("epsilon", math.nan))),
    "a parameter of 5,000 digits": lambda worker: envelope(private(("p00." + "9" * 5000, .5))),
    "a parameter twice": lambda worker: envelope(private(("epsilon", 1), ("epsilon", 2))),
    "an arm twice": lambda worker: envelope(terms(), assigns=[assign(worker, arms=[0, 0])]),
    "arm 2": lambda worker: envelope(terms(), assigns=[assign(worker, arms=[2])]),
    "no arm": lambda worker: envelope(terms(), assigns=[assign(worker, arms=[])]),
    "65 arms": lambda worker: envelope(terms(arms=99), assigns=[assign(worker, arms=range(65))]),
    "an opponent": lambda worker: envelope(terms(), assigns=[assign(worker, opponent=2)]),
    "a short ticket": lambda worker: envelope(terms(), assigns=[assign(worker, ticket=b"x")]),
    "another worker": lambda worker: envelope(terms(), assigns=[assign(999_999)]),
    "another campaign": lambda worker: envelope(terms(), assigns=[assign(worker, campaign=2)]),
    "verdict 99": lambda worker: envelope(acks=[{"ticket": b"x" * 48, "verdict": 99}]),
    "a reason with ESC": lambda worker: envelope(backoffs=[{"workers": [worker], "why": "\x1b]0;x\x07"}]),
    "a worker's message": lambda worker: envelope(arrives=[{"workers": [worker]}]),
}


class Gateways:
    def __init__(self, deployment, kind, address):
        files = deployment.pki.issue("gateway/1-1000")
        if kind == "c":
            path = deployment.folder / "campaign.yaml"
            path.write_text("campaign: test\nitems: {list: [{name: a, mean: 0.2}, {name: b, mean: 0.8}]}\n"
                            "policy: {name: ppar}\nprivacy: {epsilon: 1}\n")
            self.daemon = deployment.start("worker", {
                "broker": address, "broker_name": "main", "campaign": str(path), "requesters": "alice",
                "tls": files.config(), "seed": 1, "state": deployment.state("worker-state"), "accept": {"tokens": 5}})
        else:
            script = deployment.folder / "gateway.py"
            script.write_text(GATEWAY)
            self.daemon = deployment.launch("gateway", [
                PYTHON, script, address, files.ca, files.cert, files.key, deployment.folder / "given.db"],
                env=dict(os.environ, PYTHONPATH=str(ROOT / "python")))


@pytest.mark.parametrize("kind", ["c", "python"])
def test_a_broker_that_breaks_the_rules_gets_no_score_and_ends_no_gateway(deployment, kind):
    # the program in C pauses for seconds between connections
    cases, met, ready = list(CASES.items())[::4 if kind == "c" else 1], [], threading.Event()

    def script(broker, arrived):
        if len(met) < len(cases):
            met.append(cases[len(met)][0])
            broker.tell(cases[len(met) - 1][1](arrived[0]))
            while True:
                broker.hear()  # until the gateway ends the connection
        ready.set()  # then an honest one, under the largest number of a campaign
        honest = terms(id=2 ** 64 - 1)
        broker.tell(envelope(honest, assigns=[assign(arrived[0], campaign=2 ** 64 - 1)]))
        while not broker.tokens:
            broker.hear()
    deployment.use_system_clock()
    broker = FakeBroker(deployment.pki.issue("broker/main"), script)
    gateway = Gateways(deployment, kind, broker.address)
    try:
        wait_until(lambda: broker.tokens, "the honest connection gets its token", 120)
        assert [name for name, _ in cases] == met and ready.is_set() and len(broker.tokens) == 1
        assert gateway.daemon.process.poll() is None and not broker.failures
    finally:
        broker.close()
    text = gateway.daemon.text()
    assert not set(text) & set("\x1b\x07") and "root: all is well" not in text.splitlines()
    assert len(gateway.daemon.lines) < 4 * len(cases)


def test_many_declined_campaigns_are_few_lines_of_a_gateway_in_python(deployment):
    sent = threading.Event()

    def script(broker, arrived):
        for number in range(1, 2001):
            broker.tell(envelope(terms(id=number, requester=f"mallory{number}")))
        sent.set()
        while True:
            broker.hear()
    broker = FakeBroker(deployment.pki.issue("broker/main"), script)
    gateway = Gateways(deployment, "python", broker.address)
    try:
        assert sent.wait(60)
        wait_until(lambda: len(broker.declines) >= 2000, "all are declined", 60)
        time.sleep(.2)
        assert 1 <= len(gateway.daemon.lines) < 10
    finally:
        broker.close()
