# SPDX-License-Identifier: Apache-2.0
"""No token and no exact sum is found anywhere but in the broker's memory; and the search finds what is there."""
import os
import random
import struct

import pytest

from client.requester import spec
from client.worker import GRID, Session, work
from client.wire import frame
from client.schema import schema
from harness.admin import get
from harness.proxy import Relay
from harness.secrets import ENCODINGS, WIDE, Secrets, memory_of

TAU = 3000  # sums of about 31 bits
ARMS = 3
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="reading another program's memory needs root")


def test_a_planted_secret_is_found_in_every_encoding():
    rng = random.Random(5)
    run = [rng.randrange(1 << 17, GRID) for _ in range(9)]
    secrets = Secrets(runs=[run], sums=[3_141_592_653], blobs=[bytes(range(48))])
    noise = rng.randbytes(100_000)
    assert not secrets.find(noise)
    for name, encode in ENCODINGS.items():
        planted = noise + b"".join(map(encode, run[2:6])) + noise
        assert any(name in what for what in secrets.find(planted)), f"tokens as {name} are not found"
        if name in WIDE:
            assert secrets.find(noise + encode(3_141_592_653) + noise), f"a sum as {name} is not found"
    for text in (b"3141592653", b"%x" % 3_141_592_653, bytes(range(48)).hex().encode()):
        assert secrets.find(noise + text + noise)
    assert secrets.find(noise + bytes(range(48)))


def test_a_plain_frame_of_ours_would_be_found():
    """Were a connection not encrypted, the capture below would show tickets."""
    envelope = schema("crowd").Envelope()
    envelope.tokens.add(ticket=bytes(range(48)), values=[5])
    assert Secrets(blobs=[bytes(range(48))]).find(frame(envelope.SerializeToString()))


class Spied:
    """A campaign of which all tokens are known, with both links tapped."""

    def __init__(self, deployment):
        self.deployment = deployment
        deployment.start_thirdparty()
        self.upstream = Relay(deployment.thirdparty.address)
        deployment.start_broker({"thirdparty": self.upstream.address})
        self.crowd = Relay(deployment.broker.address)
        self.tickets, self.values = [], {}
        self.requester = deployment.requester()

    def value(self, worker, arm, place):
        value = random.Random(f"canary/{arm}/{place}").randrange(1 << 17, GRID)
        self.values[arm, place] = value
        return value

    def run(self, tokens):
        """A campaign until its token limit."""
        self.campaign = self.requester.submit(
            spec(ARMS, epsilon=1, tokens=tokens, tokens_per_worker=10,
                 policy_params={"alpha": .001, "tokens_per_round": TAU})).campaign
        files = self.deployment.pki.issue("gateway/1-2000")
        with Session(self.crowd.address, files.ca, files.cert, files.key) as session:
            token = session.token

            def remember(ticket, values):
                self.tickets.append(ticket)
                token(ticket, values)
            session.token = remember
            self.verdicts, self.accepted = work(session, range(1, 2001), self.value, credit=128, tokens_per_worker=10)

    def secrets(self):
        by_place = [[self.values[arm, place] for place in range(TAU) if (arm, place) in self.values]
                    for arm in range(ARMS)]
        in_order = [value for _, _, value in self.accepted]
        per_arm = [[value for _, a, value in self.accepted if a == arm] for arm in range(ARMS)]
        sums = [total for values in by_place for total in (sum(values[:TAU]),) if len(values) >= TAU]
        later = [[self.values.get((arm, place)) for place in range(TAU, 2 * TAU)] for arm in range(ARMS)]
        for first, second in zip(by_place, later):
            if None not in second and len(first) >= TAU:
                sums += [sum(second), sum(first) + sum(second)]
        rows = [run for run in by_place + per_arm + [in_order] if len(run) >= 4]
        return Secrets(rows, [total for total in sums if total >= 1 << 30], self.tickets[::50])

    def close(self):
        self.upstream.close()
        self.crowd.close()
        self.requester.close()


@pytest.fixture
def spied(deployment):
    made = Spied(deployment)
    yield made
    made.close()


def files_of(folder):
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.suffix not in (".pem", ".csr"):
            yield path


def test_nothing_secret_is_in_files_logs_admin_answers_or_traffic(spied, tmp_path):
    spied.run(tokens=2 * TAU * ARMS)
    secrets = spied.secrets()
    assert len(secrets.sums) > 3 * 10, "too few known sums for a test"
    assert spied.verdicts["accepted"] == 2 * TAU * ARMS
    admin = [get(tmp_path / f"{name}.sock", url)[1]
             for name in ("broker", "thirdparty") for url in ("/metrics", "/health")]
    places = {f"admin answer {number}": text.encode() for number, text in enumerate(admin)}
    places["traffic of workers"] = spied.crowd.bytes()
    places["traffic between broker and third-party"] = spied.upstream.bytes()
    # while the daemons run, so that the write-ahead logs are there; and again after they stopped
    for path in files_of(tmp_path):
        places[f"{path.name} while running"] = path.read_bytes()
    spied.deployment.stop()
    for path in files_of(tmp_path):
        places[path.name] = path.read_bytes()
    assert {"broker.db", "thirdparty.db", "broker.db-wal while running"} <= set(places), sorted(places)
    assert len(places["traffic of workers"]) > 48 * spied.verdicts["accepted"]
    found = {name: hits for name, data in places.items() if (hits := secrets.find(data))}
    for name, data in sorted(places.items()):
        print(f"  {name}: {len(data)} bytes, {'FOUND ' + str(found[name]) if name in found else 'nothing found'}")
    assert not found


@needs_root
def test_nothing_secret_is_in_the_third_partys_memory(spied):
    spied.run(tokens=2 * TAU * ARMS)
    secrets = spied.secrets()
    memory = memory_of(spied.deployment.thirdparty.pid)
    assert len(memory) > 1 << 20 and b"ppar" in memory
    print(f"  memory of the third-party: {len(memory)} bytes, {secrets.find(memory) or 'nothing found'}")
    assert not secrets.find(memory)


@needs_root
def test_the_search_finds_an_open_sum_in_the_brokers_memory(spied):
    """A control on the real thing: there, and only there, the exact sum of an open epoch has to be."""
    spied.requester.submit(spec(1, epsilon=1, tokens=10 * TAU, tokens_per_worker=10,
                                policy_params={"alpha": .1, "tokens_per_round": TAU}))
    files = spied.deployment.pki.issue("gateway/1-2000")
    with Session(spied.crowd.address, files.ca, files.cert, files.key) as session:
        given = 0
        total = 0
        session.arrive(list(range(1, 2001)), credit=64)
        while given < 2000:
            kind, message = session.next()
            if kind == "assign":
                value = spied.value(message.worker, message.arms[0], message.place)
                session.token(message.ticket, [value])
                total += value
            given += kind == "ack"
        assert total >= 1 << 30
        broker = memory_of(spied.deployment.broker.pid)
        thirdparty = memory_of(spied.deployment.thirdparty.pid)
    assert struct.pack("<q", total) in broker
    secrets = Secrets(sums=[total])
    assert secrets.find(broker)
    assert not secrets.find(thirdparty)
    for path in files_of(spied.deployment.folder):
        assert not secrets.find(path.read_bytes()), path.name


SCORES = (700_001, 699_111, 698_333)  # of every row of an item; too close to be told apart in two rounds


@needs_root
@pytest.mark.parametrize("privatizer", ["randomized-response", "laplace"])
def test_behind_a_privatizer_no_score_reaches_the_broker(deployment, tmp_path, privatizer):
    """Worker daemons with a data file in which all scores are known: what is searched for cannot be missed."""
    rows = [f"{arm},{score / GRID!r}" for arm, score in enumerate(SCORES) for _ in range(8)]
    (tmp_path / "scores.csv").write_text("\n".join(["item,score", *rows]) + "\n")
    (tmp_path / "campaign.yaml").write_text(
        "campaign: canary\n"
        "items: {source: csv, path: scores.csv, item: item, score: score, scale: [0, 1], replacement: true}\n"
        f"policy: {{name: ppar, alpha: 0.001, tokens_per_round: {TAU}}}\n"
        f"privacy: {{mechanism: none, privatizer: {{name: {privatizer}, epsilon: 1}}}}\n")
    deployment.start_thirdparty()
    upstream = Relay(deployment.thirdparty.address)
    deployment.start_broker({"thirdparty": upstream.address})
    crowd = Relay(deployment.broker.address)
    tokens = 2 * TAU * ARMS
    with deployment.requester() as requester:
        campaign = requester.submit(spec(ARMS, name="canary", mechanism="none", epsilon=0, tokens=tokens,
                                         privatizer=(privatizer, {"epsilon": 1}),
                                         policy_params={"alpha": .001, "tokens_per_round": TAU})).campaign
        deployment.start_worker(f"gateway/1-{2 * tokens}", tmp_path / "campaign.yaml",
                                {"broker": crowd.address, "accept": {"privatizers": privatizer, "mechanisms": "none"}})
        finished = requester.watch(campaign)
        places = {"memory of the broker": memory_of(deployment.broker.pid),
                  "memory of the third-party": memory_of(deployment.thirdparty.pid)}
        releases = [release for part in requester.export(campaign) for release in part.releases]
    deployment.stop()
    assert finished.progress.tokens == tokens and finished.progress.epsilon_spent_micro == 1_000_000
    assert len(releases) == 2 * ARMS and all(not release.noise for release in releases)
    secrets = Secrets([[score] * 8 for score in SCORES],
                      [rounds * TAU * score for score in SCORES for rounds in (1, 2)])
    assert not {release.noisy_sum for release in releases} & {rounds * TAU * s for s in SCORES for rounds in (1, 2)}
    if privatizer == "randomized-response":
        assert all(release.noisy_sum % GRID == 0 for release in releases), "a token that is no bit was counted"
    places.update({"traffic of workers": crowd.bytes(), "traffic between broker and third-party": upstream.bytes()})
    places.update({path.name: path.read_bytes() for path in files_of(tmp_path) if path.name != "scores.csv"})
    assert len(places["memory of the broker"]) > 1 << 20 and {"broker.db", "thirdparty.db"} <= set(places)
    for name, data in sorted(places.items()):
        print(f"  {privatizer}, {name}: {len(data)} bytes, {secrets.find(data) or 'nothing found'}")
    assert not {name: hits for name, data in places.items() if (hits := secrets.find(data))}
    upstream.close()
    crowd.close()
