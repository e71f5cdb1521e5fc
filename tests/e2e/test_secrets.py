# SPDX-License-Identifier: Apache-2.0
"""
No token and no exact sum is found outside the broker's memory; and the search finds what is there. The one exception is
`crowdveil up --page --unsafe-show-worker`, which shows one simulated worker's score and token (test_page_up.py).
"""
import inspect
import json
import random
import struct
from contextlib import closing
from io import StringIO

import pytest

from client.requester import end_name, gold, spec
from client.worker import Session, work
from crowdveil.schema import schema
from crowdveil.wire import GRID, frame
from harness import machine
from harness.admin import get
from harness.commands import as_requester, crowdveil
from harness.machine import needs
from harness.page import Page
from harness.proxy import Relay
from harness.secrets import ENCODINGS, WIDE, Secrets, memory_of

TAU = 3000  # sums of about 31 bits
ARMS = 3
needs_others = needs(machine.others)


class Found(AssertionError):
    """Something that must not be there was found."""


def confirmed(made_of):
    """
    Some tens of megabytes of memory and ciphertext contain a given sum of 14 to 40 bits by chance, once in some
    thousand runs. So a find is confirmed by a second run, with other scores, in a deployment of its own: the test fails
    if something is found again. The test's first argument is made of a deployment and closed after its run.
    """
    def decorated(test):
        def twice(deployments, **parameters):
            with closing(made_of(next(deployments))) as first:
                try:
                    return test(first, **parameters)
                except Found as found:
                    print(f"  not confirmed yet: {found}")
            with closing(made_of(next(deployments))) as second:
                test(second, **parameters)

        _, *others = inspect.signature(test).parameters.values()
        first = inspect.Parameter("deployments", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        twice.__signature__ = inspect.Signature([first, *others])
        twice.__name__, twice.__doc__ = test.__name__, test.__doc__
        return twice
    return decorated


def test_what_is_found_twice_is_no_chance():
    def sought(times):
        left = iter([True] * times + [False] * 2)

        @confirmed(lambda folder: StringIO(folder))
        def test(folder):
            tried.append(folder.getvalue())
            if next(left):
                raise Found("a sum")
        return test

    tried = []
    sought(0)(iter("ab"))
    sought(1)(iter("cd"))
    with pytest.raises(Found):
        sought(2)(iter("ef"))
    assert tried == list("acdef")


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
    """Without encryption the capture below would show tickets."""
    envelope = schema("crowd").Envelope()
    envelope.tokens.add(ticket=bytes(range(48)), values=[5])
    assert Secrets(blobs=[bytes(range(48))]).find(frame(envelope.SerializeToString()))


TALKATIVE = {"log": "json", "log_level": "debug"}  # every line that a daemon has


class Spied:
    """A campaign whose tokens are all known, with both connections tapped."""

    def __init__(self, deployment):
        self.deployment, self.canary = deployment, f"canary/{deployment.folder.name}"
        deployment.start_thirdparty({**TALKATIVE, "page": "127.0.0.1:0"})
        self.upstream = Relay(deployment.thirdparty.address)
        # a recruitment: releases of one token, and workers that are hired again and again; no worker is asked in place
        # of another
        (deployment.folder / "audit").mkdir()
        deployment.start_broker({**TALKATIVE, "thirdparty": self.upstream.address, "lease": "60s",
                                 "audit": str(deployment.folder / "audit/log"),
                                 "limits": {"release_tokens": 1, "worker_epsilon": 4000}})
        self.crowd = Relay(deployment.broker.address)
        self.tickets, self.values, self.shown, self.memory, self.columns = [], {}, {}, {}, {}
        self.requester = deployment.requester()

    def value(self, worker, arm, place):
        value = random.Random(f"{self.canary}/{arm}/{place}").randrange(1 << 17, GRID)
        self.values[arm, place] = value
        return value

    def value_hired(self, worker, arm, place):
        """Large scores: a hired worker answers one by one, which takes time, and few answers must give a long sum."""
        value = random.Random(f"{self.canary}/{arm}/{place}").randrange(GRID * 7 // 8, GRID)
        self.values[arm, place] = value
        return value

    def value_shown(self, worker, arm, _):
        """On a graph: the scores of a worker, who gives one token, for each arm that it is shown."""
        value = random.Random(f"{self.canary}/{worker}/{arm}").randrange(1 << 17, GRID)
        self.shown.setdefault(worker, {})[arm] = value
        return value

    def run(self, tokens):
        """Runs a campaign until its token limit."""
        self.serve(spec(ARMS, epsilon=1, tokens=tokens, tokens_per_worker=10,
                        policy_params={"alpha": .001, "tokens_per_round": TAU}), "gateway/1-2000", range(1, 2001))

    def serve(self, message, gateway, workers, value=None, look_at=None, known=None):
        """Runs a campaign until its end; at the token of number `look_at` both memories are read."""
        self.campaign = self.requester.submit(message, gold=known).campaign
        files = self.deployment.pki.issue(gateway)
        with Session(self.crowd.address, files.ca, files.cert, files.key) as session:
            token = session.token

            def remember(ticket, values):
                self.tickets.append(ticket)
                token(ticket, values)
                if len(self.tickets) == look_at:
                    self.look()
            session.token = remember
            self.verdicts, self.accepted = work(session, workers, value or self.value, credit=128,
                                                tokens_per_worker=message.tokens_per_worker)

    def look(self):
        for daemon in (self.deployment.broker, self.deployment.thirdparty):
            self.memory[daemon.name] = memory_of(daemon.pid)
        self.columns = {f"column of the broker, arm {arm}, while running": get(
            self.deployment.folder / "broker.sock", f"/api/boundary?id={self.campaign}&arm={arm}")[1].encode()
            for arm in range(ARMS)}
        assert all(b'["tokens summed",' in column for column in self.columns.values())

    def places(self):
        """{what: bytes}, everything that is written or sent. Stops the daemons."""
        folder = self.deployment.folder
        places = {f"admin answer {url} of the {name}": get(folder / f"{name}.sock", url)[1].encode()
                  for name in ("broker", "thirdparty") for url in ("/metrics", "/health", "/readyz", "/log-level")}
        places["admin answer /seal of the broker"] = get(folder / "broker.sock", "/seal")[1].encode()
        for action in ("rotate", "status"):
            done = crowdveil("seal", action, folder / "broker.yaml")
            assert done.returncode == 0, done.stderr
            places[f"seal {action}"] = (done.stdout + done.stderr).encode()
        places |= {**self.page_answers(), **self.columns}
        for form in ("table", "json", "csv"):
            done = crowdveil("ledger", self.campaign, "--format", form, *as_requester(self.deployment))
            assert done.returncode == 0, done.stderr
            places[f"ledger as {form}"] = (done.stdout + done.stderr).encode()
        done = crowdveil("watch", self.campaign, *as_requester(self.deployment))
        assert done.returncode == 0, done.stderr
        places["watch"] = (done.stdout + done.stderr).encode()
        places["doctor, live"] = self.doctor()
        for name in ("broker", "thirdparty"):
            done = crowdveil("backup", folder / f"{name}.yaml", "--to", folder / f"{name}-copy.db")
            assert done.returncode == 0, done.stderr
            places[f"backup of the {name}"] = (done.stdout + done.stderr).encode()
        places["traffic of workers"] = self.crowd.bytes()
        places["traffic between broker and third-party"] = self.upstream.bytes()
        # while the daemons run, so that the write-ahead logs are there; and again after they stopped
        for path in files_of(folder):
            places[f"{path.name} while running"] = path.read_bytes()
        self.deployment.stop()
        places["doctor, stopped"] = self.doctor()
        for path in files_of(folder):
            places[path.name] = path.read_bytes()
        names = {"broker.db", "thirdparty.db", "broker.db-wal while running", "broker-copy.db", "thirdparty-copy.db"}
        assert names <= set(places), sorted(places)
        logs = [data for name, data in places.items() if name.endswith(("-broker.log", "-thirdparty.log"))]
        assert len(logs) >= 2 and all(b'"level":"debug"' in data for data in logs), "not all that can be logged"
        assert b'"event":"submit"' in places["log"] and b'"event":"end"' in places["log"]  # the audit log
        assert len(places["traffic of workers"]) > 48 * self.verdicts["accepted"]
        return places

    def page_answers(self):
        """Everything that the page's paths answer, on the admin sockets and on the third-party's own port."""
        page, folder = Page(self.deployment.thirdparty), self.deployment.folder
        paths = ["/", "/api/campaigns", "/api/campaign?id=1", "/table?id=1"]
        paths += [f"/api/boundary?id=1&arm={arm}" for arm in range(ARMS)]
        places = {f"page {path}": page.ask(path)[2] for path in paths}
        for name in ("broker", "thirdparty"):
            places |= {f"admin answer {path} of the {name}": get(folder / f"{name}.sock", path)[1].encode()
                       for path in paths}
        events = page.events()
        places["page /api/events"] = json.dumps(events.wait_for(
            lambda seen: {"state", "link"} <= {event["event"] for event in seen}, "the state and the link")).encode()
        events.close()
        # Otherwise there would be nothing to search.
        assert b'"steps":[{' in places["page /api/campaign?id=1"] and b"<tbody>" in places["page /table?id=1"]
        assert b'"standing":[' in places["admin answer /api/boundary?id=1&arm=0 of the thirdparty"]
        return places

    def doctor(self):
        done = crowdveil("doctor", *(self.deployment.folder / f"{name}.yaml" for name in ("broker", "thirdparty")),
                         "--json")
        assert "broker" in done.stdout and "thirdparty" in done.stdout, done.stdout + done.stderr
        return (done.stdout + done.stderr).encode()

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
    with closing(Spied(deployment)) as made:
        yield made


def files_of(folder):
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.suffix not in (".pem", ".csr"):
            yield path


def assert_nowhere(secrets, places):
    found = {name: hits for name, data in places.items() if (hits := secrets.find(data))}
    for name, data in sorted(places.items()):
        print(f"  {name}: {len(data)} bytes, {'FOUND ' + str(found[name]) if name in found else 'nothing found'}")
    if found:
        raise Found(found)


@confirmed(Spied)
def test_nothing_secret_is_in_files_logs_admin_answers_or_traffic(spied):
    spied.run(tokens=2 * TAU * ARMS)
    secrets = spied.secrets()
    assert len(secrets.sums) > 3, "too few known sums for a test"
    assert spied.verdicts["accepted"] == 2 * TAU * ARMS
    assert_nowhere(secrets, spied.places())


def released(spied, ends):
    """The releases and plans of a campaign that has ended as it should."""
    finished = spied.requester.watch(spied.campaign)
    assert end_name(finished.progress.end) == ends
    parts = spied.requester.export(spied.campaign)
    return [release for part in parts for release in part.releases], [plan for part in parts for plan in part.plans]


PULLS, MORE = 600, 400  # of each of four workers to learn their quality, and then of one of them


@needs_others
@confirmed(Spied)
def test_of_a_recruitment_no_score_leaves_the_broker_and_no_worker_is_known_to_the_third_party(spied):
    rng = random.Random(spied.canary)
    crew = [rng.randrange(1 << 39, 1 << 40) for _ in range(4)]  # by arm; long enough not to occur by chance
    budget = 4 * PULLS + MORE
    message = spec(4, policy="dpf", policy_params={"epsilon": (4 * PULLS + .5) / budget}, tokens_per_worker=budget)
    message.costs_micro.extend([1_000_000] * 4)
    message.workers.extend(crew)
    message.budget_micro = budget * 1_000_000
    spied.serve(message, f"gateway/{1 << 39}-{(1 << 40) - 1}", crew, spied.value_hired, budget - MORE // 2)
    releases, _ = released(spied, "complete")
    assert sorted(release.tokens for release in releases) == [PULLS] * 4 + [PULLS + MORE]
    assert spied.verdicts["accepted"] == budget == len(spied.values)
    # hybrid: a release has all tokens of its arm so far, each place once
    rows = {release.arm: [spied.values[release.arm, place] for place in range(release.tokens)] for release in releases}
    sums = {release.number: sum(rows[release.arm][:release.tokens]) for release in releases}
    assert len(sums) == 5 and min(sums.values()) >= 1 << 29
    for release in releases:
        deviation = GRID * sum(2 * group.scale ** 2 * group.count for group in release.noise) ** .5
        assert 0 < abs(release.noisy_sum - sums[release.number]) < 10 * deviation, "not the sums looked for"
    secrets = Secrets([*rows.values(), [value for _, _, value in spied.accepted]], sums.values(), spied.tickets[::200])
    spied.memory["thirdparty, after the end"] = memory_of(spied.deployment.thirdparty.pid)
    memory = {f"memory of the {name}": data for name, data in spied.memory.items() if name != "broker"}
    assert len(memory) == 2 and all(len(data) > 1 << 20 and b"dpf" in data for data in memory.values())
    places = {**spied.places(), **memory}
    assert_nowhere(secrets, places)
    known = Secrets(sums=crew)
    assert known.find(spied.memory["broker"]), "the hired workers' ids are there, and are found"
    theirs = {name: data for name, data in places.items() if "thirdparty" in name or "third-party" in name}
    assert {"thirdparty.db", "thirdparty.db-wal while running", "01-thirdparty.log"} <= set(theirs), sorted(theirs)
    assert_nowhere(known, theirs)


@needs_others
@confirmed(Spied)
def test_no_answer_to_a_gold_item_leaves_the_broker(spied):
    golds = {number: .25 if number % 4 == 1 else .75 for number in range(1, 17, 2)}
    message = spec(30, epsilon=1, tokens=1500, tokens_per_worker=38, repeat=False,
                   policy_params={"alpha": .001, "tokens_per_round": 10})
    spied.serve(message, "gateway/1-100", range(1, 101), look_at=1500, known=gold(golds, .5, .4, .01, .5))
    assert end_name(spied.requester.watch(spied.campaign).progress.end) == "tokens"
    rows = [[value for _, item, value in spied.accepted if item == each] for each in range(38)]
    answers = [rows[each] for each in golds]
    assert all(len(row) > 20 for row in rows) and 1500 == sum(map(len, rows)) - sum(map(len, answers))
    secrets = Secrets([*rows, [value for _, _, value in spied.accepted]], [sum(row) for row in answers],
                      spied.tickets[::100])
    spied.memory["thirdparty, after the end"] = memory_of(spied.deployment.thirdparty.pid)
    memory = {f"memory of the {name}": data for name, data in spied.memory.items() if name != "broker"}
    assert len(memory) == 2 and all(len(data) > 1 << 20 for data in memory.values())
    assert_nowhere(secrets, {**spied.places(), **memory})


PHASES = 2  # of a graph of four arms in a row: about 700 and 3,700 tokens of each that is played


@needs_others
@confirmed(Spied)
def test_on_a_graph_nothing_that_was_shown_leaves_the_broker(spied):
    message = spec(4, policy="gap", policy_params={"delta": .1}, mechanism="batch", epsilon=1, tokens=9000,
                   edges=[(0, 1), (1, 2), (2, 3)])
    spied.serve(message, "gateway/1-10000", range(1, 10_001), spied.value_shown, look_at=6000)
    releases, plans = released(spied, "tokens")
    assert len(releases) == 4 * PHASES, "all scores have one mean: no arm is dropped"
    counts = [sum(want.tokens for want in plan.wants) for plan in plans[:PHASES]]
    assert spied.verdicts["accepted"] == len(spied.accepted) == sum(counts)
    order = [spied.shown[worker] for worker, _, _ in spied.accepted]
    phases = [order[:counts[0]], order[counts[0]:]]
    rows = {(plan + 1, arm): [shown[arm] for shown in phases[plan] if arm in shown]
            for plan in range(PHASES) for arm in range(4)}
    for release in releases:
        row = rows[release.plan, release.arm]
        assert release.tokens == len(row), "not the scores looked for"
        assert 0 < abs(release.noisy_sum - sum(row)) < 50 * GRID, "not the sums looked for"
    of_arms = [rows[1, arm] + rows[2, arm] for arm in range(4)]
    sums = [total for total in map(sum, [*rows.values(), *of_arms]) if total >= 1 << 30]
    assert len(sums) >= 2 * 4, "too few known sums for a test"
    # in the order of assignment: one answer after another
    answers = [value for shown in order for value in shown.values()]
    secrets = Secrets([*rows.values(), answers], sums, spied.tickets[::200])
    spied.memory["thirdparty, after the end"] = memory_of(spied.deployment.thirdparty.pid)
    memory = {f"memory of the {name}": data for name, data in spied.memory.items() if name != "broker"}
    assert len(memory) == 2 and all(len(data) > 1 << 20 and b"gap" in data for data in memory.values())
    assert_nowhere(secrets, {**spied.places(), **memory})


@needs_others
@confirmed(Spied)
def test_nothing_secret_is_in_the_third_partys_memory(spied):
    spied.run(tokens=2 * TAU * ARMS)
    secrets = spied.secrets()
    memory = memory_of(spied.deployment.thirdparty.pid)
    assert len(memory) > 1 << 20 and b"ppar" in memory
    assert_nowhere(secrets, {"memory of the third-party": memory})


@needs_others
@confirmed(Spied)
def test_the_search_finds_an_open_sum_in_the_brokers_memory(spied):
    """A control with the real programs: the exact sum of an open epoch must be in the broker's memory, and only
    there."""
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
    assert_nowhere(secrets, {"memory of the third-party": thirdparty,
                             **{path.name: path.read_bytes() for path in files_of(spied.deployment.folder)}})


@needs_others
@pytest.mark.parametrize("privatizer", ["randomized-response", "laplace"])
@confirmed(lambda deployment: deployment)
def test_behind_a_privatizer_no_score_reaches_the_broker(deployment, privatizer):
    """Worker daemons with a data file in which all scores are known, so that the search cannot miss them."""
    rng, folder = random.Random(deployment.folder.name), deployment.folder
    # of every row of an item; too close to be separated in two rounds
    scores = [rng.randrange(698_000, 702_000) for _ in range(ARMS)]
    rows = [f"{arm},{score / GRID!r}" for arm, score in enumerate(scores) for _ in range(2 * TAU)]
    (folder / "scores.csv").write_text("\n".join(["item,score", *rows]) + "\n")
    (folder / "campaign.yaml").write_text(
        "campaign: canary\n"
        "items: {source: csv, path: scores.csv, item: item, score: score, scale: [0, 1]}\n"
        f"policy: {{name: ppar, alpha: 0.001, tokens_per_round: {TAU}}}\n"
        f"privacy: {{mechanism: none, privatizer: {{name: {privatizer}, epsilon: 1}}}}\n")
    deployment.start_thirdparty(TALKATIVE)
    upstream = Relay(deployment.thirdparty.address)
    deployment.start_broker({**TALKATIVE, "thirdparty": upstream.address})
    crowd = Relay(deployment.broker.address)
    tokens = 2 * TAU * ARMS
    with deployment.requester() as requester:
        campaign = requester.submit(spec(ARMS, name="canary", mechanism="none", epsilon=0, tokens=tokens,
                                         privatizer=(privatizer, {"epsilon": 1}),
                                         policy_params={"alpha": .001, "tokens_per_round": TAU})).campaign
        deployment.start_worker(f"gateway/1-{2 * tokens}", folder / "campaign.yaml",
                                {**TALKATIVE, "broker": crowd.address,
                                 "accept": {"privatizers": privatizer, "mechanisms": "none", "tokens": 0},
                                 "state": deployment.state("rows"), "admin": str(deployment.folder / "gateway.sock"),
                                 "exit_when_done": False})
        finished = requester.watch(campaign)
        places = {f"admin answer {url} of the gateway": get(deployment.folder / "gateway.sock", url)[1].encode()
                  for url in ("/metrics", "/health", "/readyz")}
        assert b"crowdveil_worker_tokens_accepted_total" in places["admin answer /metrics of the gateway"]
        places |= {"memory of the broker": memory_of(deployment.broker.pid),
                  "memory of the third-party": memory_of(deployment.thirdparty.pid)}
        releases = [release for part in requester.export(campaign) for release in part.releases]
    deployment.stop()
    assert finished.progress.tokens == tokens and finished.progress.epsilon_spent_micro == 1_000_000
    assert len(releases) == 2 * ARMS and all(not release.noise for release in releases)
    sums = [rounds * TAU * score for score in scores for rounds in (1, 2)]
    secrets = Secrets([[score] * 8 for score in scores], sums)
    assert not {release.noisy_sum for release in releases} & set(sums)
    if privatizer == "randomized-response":
        assert all(release.noisy_sum % GRID == 0 for release in releases), "a token that is no bit was counted"
    places.update({"traffic of workers": crowd.bytes(), "traffic between broker and third-party": upstream.bytes()})
    places.update({path.name: path.read_bytes() for path in files_of(folder) if path.name != "scores.csv"})
    upstream.close()
    crowd.close()
    assert len(places["memory of the broker"]) > 1 << 20 and {"broker.db", "thirdparty.db"} <= set(places)
    assert_nowhere(secrets, places)


# ---- two brokers: neither has a score, nor a sum of scores

# Bits that a score of the one item, as it is shared (of 2^14, or a bit), is short of the 20 of the usual grid.
SHORT = {15: 6, 1: 20}
# Tokens when memories are read, and of an epoch: so many that a count of ones in 20 bits is not the size of a free
# block, which is 16 times as many bytes.
OPEN, PHASE = 12_000, 16_000


class Duo:
    """A campaign of one item whose scores are all known, with `brokers` brokers and every connection tapped. It stands
    still in the middle of an epoch, with OPEN tokens, until `go_on`."""

    def __init__(self, deployment, bits, brokers):
        self.deployment, self.bits, self.brokers, folder = deployment, bits, brokers, deployment.folder
        rng = random.Random(folder.name)
        self.score = 1 if bits == 1 else rng.randrange(9_000, 12_000)
        self.given = rng.randrange(9_000, 10_000)  # of the open tokens, those with that score; the others are 0
        for name, value in (("scores", (self.score << SHORT[bits]) / GRID), ("zeros", 0)):
            (folder / f"{name}.csv").write_text("\n".join(["item,score", *[f"a,{value!r}"] * 8]) + "\n")
            (folder / f"{name}.yaml").write_text(
                f"campaign: canary\nitems: {{source: csv, path: {name}.csv, item: item, score: score, scale: [0, 1],"
                " replacement: true}\n"
                f"policy: {{name: ppar, alpha: 0.001, tokens_per_round: {PHASE}}}\nprivacy: {{epsilon: 1}}\n")
        deployment.start_thirdparty(TALKATIVE)
        self.relays = {"third-party": Relay(deployment.thirdparty.address)}
        more = {}
        if brokers == 2:
            deployment.start_cobroker({**TALKATIVE, **self.audited("cobroker"), "limits": {"release_tokens": 1}})
            self.relays |= {"co-broker and broker": Relay(deployment.cobroker.address),
                            "co-broker and workers": Relay(deployment.cobroker.address)}
            more = {"cobroker": self.relays["co-broker and broker"].address}
        deployment.start_broker({**TALKATIVE, "thirdparty": self.relays["third-party"].address, **more,
                                 **self.audited("broker"), "limits": {"release_tokens": 1}})
        self.relays["broker and workers"] = Relay(deployment.broker.address)
        self.requester = deployment.requester()
        message = spec(1, name="canary", two=brokers == 2, epsilon=1, tokens=2 * PHASE,
                       policy_params={"alpha": .001, "tokens_per_round": PHASE})
        message.score_bits = bits if brokers == 2 else 0
        self.campaign = self.requester.submit(message).campaign

    def audited(self, name):
        folder = self.deployment.folder / f"{name}-audit"
        folder.mkdir()
        return {"audit": str(folder / f"{name}-audit.log")}

    def crowd(self, first, last, scores="scores"):
        cobroker = {"cobroker": self.relays["co-broker and workers"].address} if self.brokers == 2 else {}
        return self.deployment.start_worker(
            f"gateway/{first}-{last}", self.deployment.folder / f"{scores}.yaml",
            {**TALKATIVE, "broker": self.relays["broker and workers"].address, **cobroker, "exit_when_done": False,
             "arrival_rate": 0})

    def daemons(self):
        return [self.deployment.broker] + [self.deployment.cobroker] * (self.brokers == 2)

    def stand(self):
        """Columns and memories; and a copy of each database, which `places` finds as a file."""
        self.crowd(1, self.given)
        self.crowd(self.given + 1, OPEN, "zeros")
        self.requester.watch(self.campaign, until=lambda progress: progress.tokens >= OPEN)
        folder, found = self.deployment.folder, {}
        for daemon in self.daemons():
            name = daemon.name
            found[f"column of the {name}"] = get(folder / f"{name}.sock",
                                                 f"/api/boundary?id={self.campaign}&arm=0")[1].encode()
            found[f"memory of the {name}, standing"] = memory_of(daemon.pid)
            done = crowdveil("backup", folder / f"{name}.yaml", "--to", folder / f"{name}-copy.db")
            assert done.returncode == 0, done.stderr
        return found

    def go_on(self):
        self.crowd(OPEN + 1, 2 * PHASE)
        finished = self.requester.watch(self.campaign)
        assert finished.progress.tokens == PHASE, "one item is ranked after one epoch"
        return {f"memory of the {daemon.name}, at the end": memory_of(daemon.pid) for daemon in self.daemons()}

    def places(self):
        """Everything that is written or sent, but by the workers themselves. Stops the daemons."""
        folder, places = self.deployment.folder, {}
        for daemon in self.daemons():
            for url in ("/metrics", "/health", "/readyz", "/log-level", "/seal"):
                answer = get(folder / f"{daemon.name}.sock", url)[1]
                places[f"admin answer {url} of the {daemon.name}"] = answer.encode()
        doctor = crowdveil("doctor", *(folder / f"{daemon.name}.yaml" for daemon in self.daemons()), "--json")
        places["doctor"] = (doctor.stdout + doctor.stderr).encode()
        ours = lambda path: path.name != "scores.csv" and "gateway" not in str(path)  # noqa: E731
        places |= {f"{path.name} while running": path.read_bytes() for path in files_of(folder) if ours(path)}
        self.deployment.stop()
        places |= {path.name: path.read_bytes() for path in files_of(folder) if ours(path)}
        return places | {f"traffic of {name}": relay.bytes() for name, relay in self.relays.items()}

    def secrets(self):
        """What must not be anywhere: runs of scores and exact sums, of the open epoch and of the whole one, in 20 bits
        and in 14. A bit is searched for in 20 alone: ones, and counts of them, are everywhere."""
        counts, scaled = (self.given, self.given + PHASE - OPEN), self.score << SHORT[self.bits]
        grid = Secrets([[scaled] * 8], [count * scaled for count in counts])
        if self.bits == 1:
            return [grid]
        return [grid, Secrets([[self.score] * 8], [count * self.score for count in counts], length=6)]

    def close(self):
        for relay in self.relays.values():
            relay.close()
        self.requester.close()


@needs_others
@pytest.mark.parametrize("bits", SHORT)
@confirmed(lambda deployment: deployment)
def test_neither_of_two_brokers_has_a_score_or_a_sum(deployment, bits):
    duo = Duo(deployment, bits, brokers=2)
    places = {**duo.stand(), **duo.go_on(), **duo.places()}
    duo.close()
    names = {"traffic of co-broker and broker", "traffic of co-broker and workers"}
    for party in ("broker", "cobroker"):
        names |= {f"{party}.db", f"{party}.db-wal while running", f"{party}-copy.db", f"{party}-audit.log",
                  f"memory of the {party}, standing", f"memory of the {party}, at the end"}
        assert f'["shares summed",{OPEN}]'.encode() in places[f"column of the {party}"]
    assert names <= set(places), sorted(names - set(places))
    assert all(len(data) > 1 << 20 for name, data in places.items() if name.startswith("memory"))
    assert len(places["traffic of co-broker and broker"]) > PHASE * 48, "the shares did not pass there"
    logs = [data for name, data in places.items() if name.endswith(("-broker.log", "-cobroker.log"))]
    assert len(logs) >= 2 and all(b'"level":"debug"' in data for data in logs), "not all that can be logged"
    for secrets in duo.secrets():
        assert_nowhere(secrets, places)


@needs_others
@pytest.mark.parametrize("bits", SHORT)
def test_with_one_broker_the_same_search_finds_the_sum(deployment, bits):
    """The control: the same scores in a campaign without a second broker, that is, with tokens that are not shares."""
    duo = Duo(deployment, bits, brokers=1)
    memory = duo.stand()["memory of the broker, standing"]
    duo.close()
    grid, *_ = duo.secrets()
    assert grid.find(memory), "the open sum is not found"
