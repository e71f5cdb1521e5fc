# SPDX-License-Identifier: Apache-2.0
"""
Hostile peers, measured: during each attack an honest gateway keeps at least half of its rate, the broker's memory stays
below what docs/operations.md says, and its log stays short. The honest gateway's pace is far below what the machine can
do, so that its share is measured and not the machine; attackers run with the lowest priority, since on one machine
their own CPU use would slow down the others.
"""
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from client.requester import Requester, spec
from client.wire import slow_connection
from client.worker import Session
from crowdveil.wire import context
from harness.admin import metrics
from harness.daemon import wait_until
from harness.deployment import Deployment

pytestmark = pytest.mark.alone
RATE = 800  # tokens a second; this is the gateway's pace
INTERVAL, PATIENCE = 1, 15  # seconds over which a rate is measured: usually, and if a process was stopped
CONNECTIONS, HANDSHAKES = 64, 32
MIB = 1 << 20
CROWD = 6  # certificates of the attackers
ATTACKS = Path(__file__).parent / "client/attacks.py"


def memory_bound(connections, handshakes):
    """docs/operations.md, "Memory"."""
    return 64 * MIB + connections * 6 * MIB + 3 * handshakes * 64 * 1024


def status_bytes(pid, field):
    text = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(rf"^{field}:\s+(\d+) kB", text, re.M).group(1)) * 1024


class Stage:
    def __init__(self, folder, pki, pace=RATE, limits=None, **campaign):
        """`pace`: the honest gateway's; `limits`: further ones of the broker; `campaign`: further fields of the
        spec."""
        self.deployment, self.pki = Deployment(folder, pki), pki
        self.deployment.up(broker={"limits": {"connections": CONNECTIONS, "handshakes": HANDSHAKES,
                                              "release_tokens": 10, **(limits or {})}, "lease": "2s"})
        self.broker = self.deployment.broker
        self.requester = Requester(self.broker.address, pki.issue("requester/alice"), timeout=30)
        # two equal arms: the campaign lasts as long as the tests
        self.campaign = self.requester.submit(spec(2, **{
            "tokens": 100_000_000, "policy_params": {"alpha": 0, "tokens_per_round": 200}, **campaign})).campaign
        (folder / "campaign.yaml").write_text(
            "campaign: test\nitems: {list: [{name: a, mean: 0.5}, {name: b, mean: 0.5}]}\n"
            "policy: {name: ppar, alpha: 0}\nprivacy: {epsilon: 1}\n")
        self.worker = self.deployment.start_worker("gateway/1-5000000", folder / "campaign.yaml",
                                                   {"arrival_rate": pace})
        self.crowd = [pki.issue(f"gateway/{first}-{first + 9999}") for first in
                      range(10_000_001, 10_000_001 + CROWD * 10_000, 10_000)]
        assert self.rate() >= pace / 2, "it does not keep its pace even while it is alone"

    def metrics(self):
        return metrics(self.deployment.folder / "broker.sock")

    def tokens(self):
        return self.metrics()["crowdveil_tokens_total"]

    def refused(self, *reasons):
        counts = self.metrics()
        return sum(counts[f'crowdveil_refused_total{{reason="{reason}"}}'] for reason in reasons)

    def rate(self):
        """Accepted tokens a second, of the daemons' clock, of the honest gateway; no other peer's tokens are accepted.
        Measured from now on until the rate is as required."""
        clock = self.deployment.clock
        before, start = self.tokens(), clock.ms
        while True:
            clock.sleep(INTERVAL / 4)
            took = (clock.ms - start) / 1000
            rate = (self.tokens() - before) / took
            if took > PATIENCE or took > INTERVAL and rate >= RATE / 2:
                return rate

    def attack(self, name, certificates=()):
        pairs = [path for files in certificates for path in (files.cert, files.key)]
        return Attack(name, self.broker.address, self.pki.ca, *pairs)

    def close(self):
        self.requester.close()
        self.deployment.close()


class Attack:
    def __init__(self, *args):
        self.process = subprocess.Popen(["nice", "-n", "19", sys.executable, "-B", str(ATTACKS), *args],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)

    def __enter__(self):
        assert self.process.stdout.readline() == b"on\n"
        time.sleep(.5)
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait(20)
        self.process.stdout.close()


@pytest.fixture(scope="module")
def stage(tmp_path_factory, pki):
    made = Stage(tmp_path_factory.mktemp("hostile"), pki)
    yield made
    made.close()


# attack: (certificates, reasons that the metrics count it under)
PLANS = {
    "silent": (0, ("crowded",)),
    "loris": (0, ("crowded",)),
    "plain_text": (0, ("handshake", "crowded")),
    "idle": (CROWD, ()),
    "reconnect": (1, ()),
    "forged_tokens": (CROWD, ("ticket",)),
    "garbage": (CROWD, ("message",)),
    "arrivals": (CROWD, ()),
    "deaf": (CROWD, ("deaf", "ticket")),
    "hellos": (0, ("crowded",)),
    "wide": (1, ()),
    "worn_out": (1, ()),
    "slow_frames": (CROWD, ()),
    "tiny_records": (1, ()),
}


@pytest.mark.parametrize("name", PLANS)
def test_an_honest_gateway_keeps_half_of_its_rate(stage, name):
    certificates, reasons = PLANS[name]
    before_refused, since = stage.refused(*reasons), stage.broker.mark()
    with stage.attack(name, stage.crowd[:certificates]):
        if reasons:
            wait_until(lambda: stage.refused(*reasons) > before_refused, "a refusal is counted", 20)
        rate = stage.rate()
        # a new peer is served during the attack, too
        with come_in(stage) as session:
            session.until("hello")
    print(f"{name}: {rate:.0f} of {RATE} tokens/s under attack; "
          f"peak memory {status_bytes(stage.broker.pid, 'VmHWM') / MIB:.0f} MiB")
    assert rate >= RATE / 2
    assert status_bytes(stage.broker.pid, "VmHWM") <= memory_bound(CONNECTIONS, HANDSHAKES)
    assert stage.broker.mark() - since <= 16 * (certificates + 1), "\n".join(stage.broker.lines[since:])


def come_in(stage, patience=20):
    credentials = newcomer(stage)
    return dial(lambda: Session(stage.broker.address, *credentials, timeout=patience), patience)


def dial(connect, patience=20):
    """Dials again, as our own workers do, if a flood of handshakes replaced its own or used up its address's rate."""
    end = time.monotonic() + patience
    while True:
        try:
            return connect()
        except OSError:  # of TLS as well
            if time.monotonic() > end:
                raise


def newcomer(stage):
    files = stage.pki.issue("gateway/20000001-20000009")
    return files.ca, files.cert, files.key


def test_a_flood_of_hellos_keeps_no_other_peer_out(stage):
    """At 100 ms from the broker a newcomer with another address is connected at its first try, despite the flood."""
    files = newcomer(stage)
    before = stage.refused("crowded")
    with stage.attack("hellos"), ThreadPoolExecutor(10) as pool:
        wait_until(lambda: stage.refused("crowded") > before + 1000, "the flood is on", 20)
        tls = context(*files)
        calls = [pool.submit(slow_connection, stage.broker.address, tls, .1, "127.0.0.2") for _ in range(10)]
        for call in calls:
            call.result()[0].close()


def test_places_for_connections_are_for_many(stage):
    """One requester cannot fill the listener or another's share; above its limit it receives the reason, and is
    counted. Its address has not recovered yet from the flood before."""
    before = stage.refused("limit", "connection")
    mallory = stage.pki.issue("requester/mallory")
    held = []
    for _ in range(20):
        requester = dial(lambda: Requester(stage.broker.address, mallory, timeout=10))
        try:
            requester.status()
            held.append(requester)
        except OSError:
            requester.close()
    assert len(held) == 16
    bob = stage.pki.issue("requester/bob")
    with dial(lambda: Requester(stage.broker.address, bob, timeout=10)) as requester:
        assert len(requester.status().campaigns) == 0
    for one in held:
        one.close()
    assert stage.refused("limit", "connection") == before + 4


def test_ten_thousand_refusals_are_one_line(stage):
    since, before = stage.broker.mark(), stage.refused("ticket")
    with Session(stage.broker.address, *newcomer(stage), timeout=20) as session:
        for _ in range(20):
            envelope = session.pb.Envelope()
            for n in range(500):
                envelope.tokens.add(ticket=bytes([n % 256]) * 48, values=[1])
            session.send(envelope)
            for _ in range(500):
                assert session.verdict(session.until("ack")) == "refused"
    assert stage.refused("ticket") == before + 10_000
    lines = [line for line in stage.broker.lines[since:] if "20000001" in line and "token refused" in line]
    assert len(lines) == 1, lines


def test_the_broker_counts_the_lines_it_suppressed(stage):
    """Runs last: at its end the broker prints its summary without waiting for the minute."""
    wait_until(lambda: stage.tokens() > 0, "it still runs")
    stage.deployment.count_refused()
    assert stage.broker.stop() == 0
    assert re.search(r"gateway/20000001-20000009: token refused: .* \(9999 more in \d+ s\)",
                     stage.broker.text())
