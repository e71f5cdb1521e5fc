# SPDX-License-Identifier: Apache-2.0
"""
An opinion is randomized once, and a row leaves once. Against a broker that lies: it repeats, renumbers, renames,
forgets, and calls tokens expired. Over two gateways of one file, restarts, kills and copied state folders.
"""
import asyncio
import json
import re
import shutil
import types
from collections import Counter

import pytest

from client.broker import FakeBroker
from client.requester import spec
from client.worker import Session, work
from crowdveil import Accept, Gateway, Refused
from crowdveil.wire import GRID
from harness.commands import as_requester, crowdveil
from harness.daemon import wait_until
from harness.people import Person, item

FILMS, RATINGS = ["Alien", "Brazil"], 90  # of each film
LOCAL = "privacy: {mechanism: none, privatizer: {name: randomized-response, epsilon: 1}}"
PLACES = 25
RANGE = "gateway/1-4000"


def rating(film, number):
    """From 1 to 5, each row another one, so that a score says which row it is."""
    return 1 + 4 * (film + len(FILMS) * number) / (len(FILMS) * RATINGS)


def write_campaign(folder, name="films", privacy=LOCAL, more="", limits="", item="film"):
    rows = [f"{film},{rating(at, i):.6f},person {i}\n" for i in range(RATINGS) for at, film in enumerate(FILMS)]
    (folder / "films.csv").write_text("film,stars,who\n" + "".join(rows))
    file = folder / f"{name}.yaml"
    file.write_text(f"campaign: {name}\nitems: {{source: csv, path: films.csv, item: film, score: stars, "
                    f"scale: [1, 5]{more}}}\npolicy: {{name: ppar, alpha: 0.2, tokens_per_round: 30}}\n{privacy}\n"
                    f"limits: {{tokens: 1000, idle: 2s{limits}}}\n")
    return file


class Interrogation:
    """A broker that asks for places of one film, and what the gateway gave for each."""

    def __init__(self, *rounds, places=PLACES, epsilon=1.0, tokens=1000, privatizer="randomized-response", arm=0):
        """`rounds`: campaign, name and verdict of each round of questions about all places."""
        self.rounds, self.places, self.epsilon, self.tokens = rounds, places, epsilon, tokens
        self.privatizer, self.arm = privatizer, arm
        self.values = {place: [] for place in range(places)}
        self.asked, self.is_over = 0, False

    def __call__(self, broker, arrived):
        for campaign, name, verdict in self.rounds:
            envelope = broker.pb.Envelope()
            terms = envelope.campaigns.add(id=campaign, name=name, requester="alice", tokens_per_worker=self.tokens,
                                           arms=len(FILMS), lease_ms=5000)
            terms.privatizer.name, terms.mechanism.name = self.privatizer, "none"
            if self.privatizer != "none":
                terms.privatizer.params.add(key="epsilon", number=self.epsilon)
            terms.scale.low, terms.scale.high = 1, 5
            broker.tell(envelope)
            for place in range(self.places):
                if not self.ask(broker, arrived, campaign, place, verdict):
                    break
        self.is_over = True

    def ask(self, broker, arrived, campaign, place, verdict):
        """False: the gateway declines the campaign, or has no row."""
        while not arrived:
            broker.hear()
        self.asked += 1
        ticket, tokens, declines = self.asked.to_bytes(48, "big"), len(broker.tokens), len(broker.declines)
        envelope = broker.pb.Envelope()
        envelope.assigns.add(campaign=campaign, worker=arrived.pop(0), arms=[self.arm], place=place,
                             ticket=ticket)
        broker.tell(envelope)
        while len(broker.tokens) == tokens and len(broker.declines) == declines:
            broker.hear()
        if len(broker.tokens) == tokens:
            return False
        self.values[place].append(broker.tokens[-1].values[0])
        if verdict is not None:
            envelope = broker.pb.Envelope()
            envelope.acks.add(ticket=ticket, verdict=getattr(broker.pb, f"VERDICT_{verdict}"))
            broker.tell(envelope)
        return True


class Patient(Interrogation):
    """Ends when no worker has come for two seconds, or the campaign is declined: then workers come for news only."""

    def ask(self, broker, arrived, campaign, *rest):
        broker.sock.settimeout(2)
        try:
            while not arrived:
                broker.hear()
            is_declined = any(decline.campaign == campaign for decline in broker.declines)
            return not is_declined and super().ask(broker, arrived, campaign, *rest)
        except TimeoutError:
            self.is_over = True
            raise


@pytest.fixture
def interrogate(deployment, worker_program):
    """`start(interrogation, campaign file, settings, folder of the state, identity)`: a gateway and that broker, until
    all is asked. Returns the broker and the daemon."""
    made = []

    def start(questions, file, settings=None, state="state", identity=RANGE):
        broker = FakeBroker(deployment.pki.issue("broker/main"), questions)
        made.append(broker)
        deployment.broker = types.SimpleNamespace(address=broker.address, name="fake",
                                                  process=types.SimpleNamespace(poll=lambda: 0))
        daemon = deployment.start_worker(identity, file, {
            "exit_when_done": False, "seed": None, "state": deployment.state(state),
            "accept": {"privatizers": "randomized-response", "mechanisms": "none", "epsilon": 1}, **(settings or {})})
        wait_until(lambda: questions.is_over or broker.failures, "the broker has asked all")
        return broker, daemon
    yield start
    for broker in made:
        assert not broker.failures, broker.failures
        broker.close()


def is_one_token_each(values):
    """Of each place, however often it was asked for; and the places do not all have the same one."""
    assert all(len(set(given)) == 1 for given in values.values()), values
    assert len({given[0] for given in values.values()}) > 1
    return True


ACCEPT_ALL = {"accept": {"privatizers": "randomized-response", "mechanisms": "none", "epsilon": 1, "tokens": 9}}


def test_a_row_has_one_token_whatever_the_broker_says(interrogate, tmp_path):
    """It repeats under other tickets and workers, calls tokens expired or refused, counts campaigns anew, restarts."""
    file = write_campaign(tmp_path)
    first = Interrogation((1, "films", "EXPIRED"), (1, "films", "REFUSED"), (1, "films", "ACCEPTED"),
                          (7, "films", "EXPIRED"))
    _, daemon = interrogate(first, file, ACCEPT_ALL)
    assert daemon.stop() == 0
    shutil.copytree(tmp_path / "state", tmp_path / "copy")
    again = Interrogation((1, "films", "EXPIRED"), (8, "films", "ACCEPTED"))
    _, daemon = interrogate(again, file, ACCEPT_ALL)
    daemon.process.kill()
    daemon.process.wait()
    copied = Interrogation((1, "films", "EXPIRED"))
    interrogate(copied, file, ACCEPT_ALL, state="copy")
    values = {place: first.values[place] + again.values[place] + copied.values[place] for place in range(PLACES)}
    assert all(len(given) == 4 + 2 + 1 for given in values.values()), values
    assert is_one_token_each(values)


def test_another_name_over_the_same_rows_has_the_same_tokens(interrogate, tmp_path):
    """Another campaign file of the owner's, with another name: also not another draw."""
    values = {place: [] for place in range(PLACES)}
    for name in ("films", "movies"):
        asked = Interrogation((1, name, "ACCEPTED"))
        _, daemon = interrogate(asked, write_campaign(tmp_path, name), ACCEPT_ALL)
        assert daemon.stop() == 0
        for place, given in asked.values.items():
            values[place] += given
    assert all(len(given) == 2 for given in values.values()) and is_one_token_each(values)


def test_gateways_with_one_key_give_the_same_token_of_a_row(deployment, interrogate, tmp_path):
    file, values = write_campaign(tmp_path), {place: [] for place in range(PLACES)}
    for state, identity in (("one", "gateway/1-2000"), ("two", "gateway/2001-4000")):
        asked = Interrogation((1, "films", "EXPIRED"))
        _, daemon = interrogate(asked, file, {"row_key": str(tmp_path / "row.key")}, state, identity)
        assert ("was not there and is made: any other worker" in daemon.text()) == (state == "one")
        assert daemon.stop() == 0
        for place, given in asked.values.items():
            values[place] += given
    assert all(len(given) == 2 for given in values.values()) and is_one_token_each(values)
    # Under another key each row would be randomized anew.
    key = tmp_path / "row.key"
    key.rename(tmp_path / "old.key")
    daemon = deployment.start_worker(identity, file, {
        "seed": None, "state": deployment.state("two"), "row_key": str(key), **ACCEPT_ALL})
    assert daemon.process.wait(60) == 2
    daemon.wait_for("state: its rows have left under another key than that of row_key; expected that key, or none")


def test_another_epsilon_is_another_disclosure_and_the_owner_limits_them(interrogate, tmp_path):
    file = write_campaign(tmp_path)
    asked = Interrogation((1, "films", "ACCEPTED"), (2, "films", "ACCEPTED"))
    broker, daemon = interrogate(asked, file)
    why = "have been disclosed 1 time, to another campaign or with another privatizer"
    assert [why in decline.why for decline in broker.declines] == [True], broker.declines
    assert {len(given) for given in asked.values.values()} == {1}
    assert daemon.stop() == 0
    # The record outlives a restart: the campaign that was served is served on, a renamed or renumbered one is not.
    for campaign, epsilon, tokens in ((3, 1, 0), (1, .9, 0), (1, 1, 1)):
        asked = Interrogation((campaign, "films", "ACCEPTED"), epsilon=epsilon)
        broker, daemon = interrogate(asked, file)
        assert {len(given) for given in asked.values.values()} == {tokens}, (campaign, epsilon)
        assert daemon.stop() == 0


def test_a_part_of_a_file_gives_each_row_once_whatever_it_is_asked(interrogate, tmp_path):
    """The same place again and again, across a kill before any acknowledgement: each time the next row."""
    file, seen = write_campaign(tmp_path), []
    for verdict, half in (("EXPIRED", PLACES), (None, 9), ("EXPIRED", RATINGS)):
        asked = Interrogation(*[(1, "films", verdict)] * half, places=1)
        _, daemon = interrogate(asked, file, {"part": "2 of 2", "unsafe_show": True})
        seen += re.findall(r"UNSAFE shown: .* score (\S+)", daemon.text())
        daemon.process.kill()
        daemon.process.wait()
    assert len(seen) == len(set(seen)) == RATINGS // 2
    assert {round(float(score) * RATINGS) for score in seen} == set(range(1, RATINGS, 2))
    assert "the data of this arm are used up" in daemon.text() or asked.asked > len(seen)


def test_a_person_gives_no_second_token_for_one_that_expired(interrogate, tmp_path):
    file = write_campaign(tmp_path, more=", worker: who")
    asked = Patient(*[(1, "films", "EXPIRED")] * (2 * RATINGS), places=1, tokens=1)
    _, daemon = interrogate(asked, file)
    assert len(asked.values[0]) == RATINGS, "one of each person"
    assert daemon.stop() == 0


@pytest.mark.parametrize("change", ["a row more", "another scale", "another choice of items"])
def test_a_changed_file_is_refused_by_whatever_path_it_is_reached(interrogate, deployment, tmp_path, change):
    """Its rows would be other opinions, and be randomized anew."""
    file = write_campaign(tmp_path)
    _, daemon = interrogate(Interrogation((1, "films", "ACCEPTED")), file)
    assert daemon.stop() == 0
    (tmp_path / "link.csv").symlink_to("films.csv")
    rows, linked = (tmp_path / "films.csv").read_text(), file.read_text().replace("path: films.csv", "path: link.csv")
    text = linked
    if change == "a row more":
        with open(tmp_path / "films.csv", "a") as data:
            data.write("Alien,3,one more\n")
    elif change == "another scale":
        text = text.replace("[1, 5]", "[1, 6]")
    else:
        text = text.replace("item: film", "item: film, top: 1")
    file.write_text(text)
    daemon = deployment.start_worker(RANGE, file, {"seed": None, "state": deployment.state("state"), **ACCEPT_ALL})
    assert daemon.process.wait(60) == 2
    daemon.wait_for("films.csv belong to another data set; expected the unchanged data file")
    (tmp_path / "films.csv").write_text(rows)
    file.write_text(linked)
    asked = Interrogation((1, "films", "ACCEPTED"))
    interrogate(asked, file)
    assert is_one_token_each(asked.values), "the unchanged one is served on"


# --- a program, a person, a worker in Python: each answer is randomized anew

PLACED = {"privatizers": "none, laplace", "mechanisms": "none", "epsilon": 1, "tokens": 9}


def write_items(folder, *names, campaign="films"):
    file = folder / f"{campaign}.yaml"
    file.write_text(f"campaign: {campaign}\nitems: {{list: [{', '.join(f'{{name: {name}}}' for name in names)}]}}\n"
                    f"policy: {{name: ppar, alpha: 0.2}}\n{LOCAL}\n")
    return file


def ask_one(*numbers, name="films", **changes):
    """About one item in campaigns of these numbers."""
    return Patient(*[(number, name, "ACCEPTED") for number in numbers], places=1,
                   **{"privatizer": "laplace", **changes})


@pytest.fixture
def program(interrogate, tmp_path):
    """`program(questions, campaign file)`: a gateway whose only worker is a program. A process of its own each time;
    all have one state folder. Returns what the broker was told."""
    (tmp_path / "score").write_text("#!/bin/sh\nwhile read -r line; do echo 1; done\n")
    (tmp_path / "score").chmod(0o755)

    def start(questions, file, accept=PLACED):
        broker, daemon = interrogate(questions, file, {"exec": str(tmp_path / "score"), "accept": accept},
                                     identity="gateway/1-1")
        assert daemon.stop() == 0
        return broker
    return start


@pytest.fixture
def person(deployment, tmp_path, worker_program):
    """Likewise, a person at a form, whose browser draws the token."""
    (tmp_path / "people").write_text(f"1 {5 * '0123ab'}01\n")
    (tmp_path / "people").chmod(0o600)

    def start(questions, file):
        broker = FakeBroker(deployment.pki.issue("broker/main"), questions)
        deployment.broker = types.SimpleNamespace(address=broker.address, name="fake",
                                                  process=types.SimpleNamespace(poll=lambda: 0))
        daemon = deployment.start_worker("gateway/1-1", file, {
            "form": "127.0.0.1:0", "form_people": str(tmp_path / "people"), "accept": PLACED,
            "state": deployment.state("state"), "exit_when_done": False})
        address = daemon.wait_for(r"form for \d+ \S+ on https?://([^/]+)/").group(1)
        browser = Person(f"/?token={5 * '0123ab'}01", address)
        browser.enter()
        while not questions.is_over and not broker.failures:
            page = browser.look()
            if item(page) is not None:
                local = "stays in this browser" in page
                assert browser.send(page, **({"token": questions.asked} if local else {"score": 3}))[0] == 200
        assert daemon.stop() == 0 and not broker.failures
        broker.close()
        return broker
    return start


@pytest.fixture
def in_python(deployment, tmp_path):
    """Likewise, a gateway in Python."""
    def start(questions, _):
        broker = FakeBroker(deployment.pki.issue("broker/main"), questions)
        gateway = Gateway(broker.address, deployment.pki.issue("gateway/1-1"), range(1, 2), lambda *_: 1.0, "films",
                          Accept(["alice"], ["none", "laplace"], ["none"], epsilon=1, tokens=9), tmp_path / "given.db")

        async def work():
            serving = asyncio.ensure_future(gateway.serve(until_done=False))
            while not questions.is_over and not broker.failures:
                await asyncio.sleep(.01)
            gateway.stop()
            await serving
        asyncio.run(work())
        assert not broker.failures
        broker.close()
        return broker
    return start


@pytest.fixture(params=["program", "person", "in_python"])
def source(request):
    return request.getfixturevalue(request.param)


def test_who_is_asked_under_another_number_has_answered(source, tmp_path):
    """Nor after a restart. About another item it has not, whatever the number."""
    file = write_items(tmp_path, *FILMS)
    first, again, other = ask_one(1, 2, 3), ask_one(4, 1, 5), ask_one(6, 7, 1, arm=1)
    for questions, tokens in ((first, 1), (again, 0), (other, 1)):
        broker = source(questions, file)
        assert len(questions.values[0]) == tokens, questions.values
        assert questions is other or broker.declines
        assert {decline.why for decline in broker.declines} <= {
            "this worker has been asked about this item already",
            "1 of 1 workers have answered all that this name asks, each once; expected others"}


def test_without_a_privatizer_another_number_is_another_campaign(source, tmp_path):
    """Nothing is hidden that a second answer would tell."""
    questions = ask_one(1, 2, 3, privatizer="none")
    source(questions, write_items(tmp_path, *FILMS))
    assert len(questions.values[0]) == 3


def test_another_name_is_another_question_and_the_owner_limits_them(program, tmp_path):
    folder, names = tmp_path / "campaigns", ("films", "movies", "plays")
    folder.mkdir()
    for name in names:
        write_items(folder, *FILMS, campaign=name)
    questions = Patient(*[(number, name, "ACCEPTED") for number, name in enumerate(names, 1)], places=1,
                        privatizer="laplace")
    program(questions, folder, {**PLACED, "tokens": 2})
    assert len(questions.values[0]) == 2, "the third is one too many"


@pytest.mark.parametrize("items", [FILMS[::-1], ["Alien", "Brasil"]], ids=["in another order", "renamed"])
def test_a_name_stands_for_its_items(program, tmp_path, items):
    """Else a file that numbers them anew would have each asked again."""
    program(ask_one(1), write_items(tmp_path, *FILMS))
    broker = program(ask_one(2), write_items(tmp_path, *items))
    assert not broker.tokens
    assert {decline.why for decline in broker.declines} == {
        'state: people or programs have answered about other items under the name "films"; expected the same names in '
        "the same order, or another name for the campaign"}
    questions = ask_one(3)
    program(questions, write_items(tmp_path, *items, campaign="more"))
    assert not questions.values[0], "the broker tells the old name, of which the worker has no file"
    questions = ask_one(3, name="more")
    program(questions, tmp_path / "more.yaml")
    assert len(questions.values[0]) == 1


# --- a broker that keeps to the rules


def test_a_worker_is_asked_about_each_item_once_and_in_an_order_of_its_own(deployment):
    """60 people, 20 items, 20 questions each; a restart of the broker in between."""
    people, items = range(1, 61), 20
    deployment.up()
    with deployment.requester() as requester:
        campaign = requester.submit(spec(items, tokens=people.stop * items, tokens_per_worker=items, policy_params={
            "alpha": 0.01, "tokens_per_round": len(people)})).campaign
    asked, files = {worker: [] for worker in people}, deployment.pki.issue("gateway/1-60")

    def score(worker, arm, place):
        asked[worker].append(arm)
        return GRID // 2

    def give(tokens):
        with Session(deployment.broker.address, files.ca, files.cert, files.key, timeout=20) as session:
            _, accepted = work(session, people, score, tokens_per_worker=tokens)
        assert len(accepted) == tokens * len(people)
    give(7)
    assert deployment.broker.stop() == 0
    deployment.start_broker()
    give(items - 7)
    assert all(sorted(arms) == list(range(items)) for arms in asked.values()), asked
    assert len({tuple(arms) for arms in asked.values()}) == len(people)
    firsts = Counter(arms[0] for arms in asked.values())
    assert len(firsts) > items // 3, "the first question is a matter of chance"
    with deployment.requester() as requester:
        requester.cancel(campaign)


@pytest.mark.parametrize("changes, why", [
    ({"tokens_per_worker": 4}, "each of 3 items is asked of a worker once; expected at most 3, or repeat: true"),
    ({"tokens_per_worker": 4, "pairs": True, "policy": "ppar-kl"}, "each of 3 pairs is asked of a worker once"),
    ({"tokens_per_worker": 2, "edges": [(0, 1)], "policy": "gap"}, "expected 1, or repeat: true")])
def test_more_questions_than_there_are_need_to_be_repeated(deployment, changes, why):
    deployment.up()
    with deployment.requester() as requester:
        with pytest.raises(Refused, match=re.escape(why)):
            requester.submit(spec(3, repeat=False, **{"policy_params": {}, **changes}))
        assert requester.submit(spec(3, tokens_per_worker=4, repeat=True, policy_params={"alpha": .1})).campaign == 1


def test_a_simulated_crowd_is_large_enough_for_its_hardest_item(tmp_path):
    """Two items that are close want all tokens: as many workers as tokens, not a third of them."""
    (tmp_path / "close.yaml").write_text(
        "campaign: close\nitems: {rewards: bernoulli, seed: 3, list: [{name: a, mean: 0.52}, {name: b, mean: 0.5}, "
        "{name: c, mean: 0.1}]}\npolicy: {name: ppar, alpha: 0.01, tokens_per_round: 100, boundary: feed}\n"
        "privacy: {mechanism: segments, epsilon: 1, tokens_per_worker: 3}\nlimits: {tokens: 6000, idle: 3s}\n")
    result = json.loads(crowdveil("up", "close.yaml", "--json", cwd=tmp_path).stdout)
    assert (result["ended"], result["tokens"]) == ("token limit", 6000)
    assert max(result["item_tokens"].values()) > 2000
    planned = crowdveil("plan", "close.yaml", cwd=tmp_path).stdout
    assert "if each gives 3 scores (tokens_per_worker), of each item one" in planned
    people, = re.findall(r"^people +([\d,]+) ", planned, re.M)
    assert 2000 < int(people.replace(",", "")) <= 6000, "not a third of the tokens"


# --- two gateways

NOISY = "privacy: {mechanism: none, third_party: trusted}"
GATEWAYS = ("gateway/1-2000", "gateway/2001-4000")
WAYS = {  # the settings of each gateway, and how often a row may leave
    "row_key": (lambda folder, at: {"row_key": str(folder / "row.key")}, 1),
    "part": (lambda folder, at: {"part": f"{at + 1} of 2"}, 1),
    "seed": (lambda folder, at: {"seed": 5, "state": None}, 1),
    "nothing": (lambda folder, at: {}, 2),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_row_leaves_once_from_two_gateways(deployment, tmp_path, way):
    """`nothing`: each has drawn an order of its own, and says so; the ledger does not claim to know."""
    settings, most = WAYS[way]
    file = write_campaign(tmp_path, privacy=NOISY)
    deployment.up(broker={"limits": {"trusted_thirdparty": True}})
    link = as_requester(deployment)
    workers = [deployment.start_worker(identity, file, {
        "seed": None, "state": deployment.state(f"state{at}"), "unsafe_show": True, "concurrency": 8,
        "accept": {"mechanisms": "none"}, **settings(tmp_path, at)}) for at, identity in enumerate(GATEWAYS)]
    for worker in workers:
        worker.wait_for("connected to")
    assert crowdveil("submit", file, *link).returncode == 0
    assert crowdveil("watch", "1", *link).returncode == 1, "the scores are used up"
    text = [worker.text() for worker in workers]
    given = [re.findall(r"UNSAFE shown: .*( arm \d+ score \S+)", lines) for lines in text]
    assert all(len(each) > 10 for each in given), "both gateways gave tokens"
    counts = Counter(given[0] + given[1])
    assert max(counts.values()) == most, counts.most_common(3)
    ledger = crowdveil("ledger", "--json", "--file", file, *link)
    assert json.loads(ledger.stdout)["data"]["uses_most"] is None
    assert "is not known here" in crowdveil("ledger", "--file", file, *link).stdout
    assert ("leave in an order of this worker's own" in text[0]) == (way == "nothing")
