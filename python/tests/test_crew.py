# SPDX-License-Identifier: Apache-2.0
"""The workers behind a gateway, against a broker that may lose connections and ask for more than it should."""
import pytest
from crowdveil import Accept, Choice, Error, ProtocolError
from crowdveil.crew import Crew
from crowdveil.schema import schema
from crowdveil.store import open_database
from crowdveil.wire import GRID, MICRO
from crowdveil.worker import GIVEN, Gateway
from hypothesis import given
from hypothesis import strategies as st

ANY = Accept(["alice"], ["none", "laplace"], ["hybrid"], 5, tokens=0)


def terms(campaign=1, tokens=1, privatizer=Choice("none"), **changes):
    message = schema("base").Terms(**{"id": campaign, "name": "test", "epsilon_micro": MICRO,
                                          "tokens_per_worker": tokens, "arms": 2, "requester": "alice", **changes})
    message.mechanism.name = "hybrid"
    privatizer.into(message.privatizer)
    return message


def tell(**messages):
    envelope = schema("crowd").Envelope()
    for kind, values in messages.items():
        getattr(envelope, kind).extend(values)
    return envelope


def assign(worker, ticket, campaign=1, arms=(0,), opponent=0):
    return schema("crowd").Assign(campaign=campaign, worker=worker, ticket=ticket, arms=arms, opponent=opponent)


def said(crew, now=0.0):
    envelope = schema("crowd").Envelope()
    crew.say(envelope, now)
    return envelope


def arrived(**changes):
    crew = Crew(range(1, 6), **{"accept": ANY, "campaign": "test", **changes})
    crew.join()
    assert list(said(crew).arrives[0].workers) == [1, 2, 3, 4, 5]
    crew.hear(tell(campaigns=[terms(tokens=3)]), 0)
    return crew


def test_who_backs_off_again_and_again_leaves_room_for_others():
    """A broker that has nothing for the first ones now may have something for the others."""
    crew = Crew(range(1, 41), ANY, "test", 2)
    crew.join()
    line = list(said(crew).arrives[0].workers)
    crew.hear(tell(campaigns=[terms()]), 0)
    seen = set()
    for turn in range(200):
        seen.add(line[turn])
        crew.hear(tell(backoffs=[schema("crowd").Backoff(campaign=1, workers=[line[turn]], delay_ms=1)]), turn)
        line += [worker for arrive in said(crew, turn + .5).arrives for worker in arrive.workers]
    assert seen == set(range(1, 41))


@given(st.lists(st.tuples(st.integers(0, 5), st.sampled_from([1, 2, 3, 4])), max_size=40), st.integers(0, 3))
def test_a_worker_never_gives_more_than_terms_and_owner_permit(events, limit):
    crew = Crew(range(1, 4), Accept(["alice"], ["laplace"], tokens=limit), "test")
    crew.join()
    sent, given, counted, number = {}, {}, {}, 0
    told = False
    for step, (worker, verdict) in enumerate(events):
        envelope = said(crew, step)
        for token in envelope.tokens:  # sent again with its first value: drawn again, it would tell more
            assert sent.setdefault(token.ticket, list(token.values)) == list(token.values)
        if not told:
            crew.hear(tell(campaigns=[terms(tokens=2, privatizer=Choice("laplace", {"epsilon": 1}))]), step)
            told = True
        if worker == 0:
            crew.leave()
            crew.join()
            told = False
        elif worker in crew.waiting:
            number += 1
            for question in crew.hear(tell(assigns=[assign(worker, b"%48d" % number)]), step):
                crew.answer(question, [GRID // 2])
                given[worker] = given.get(worker, 0) + 1
        elif crew.pending:
            ticket = sorted(crew.pending)[0]
            if ticket in sent:
                counted[ticket] = crew.pending[ticket].worker, verdict
                crew.hear(tell(acks=[schema("crowd").Ack(ticket=ticket, verdict=verdict, why="no")]), step)
        assert all(count <= (limit or 10 ** 9) for count in given.values())
        for each in range(1, 4):
            full = [worker for worker, verdict in counted.values() if worker == each and verdict in (1, 2)]
            assert len(full) <= 2


def test_by_default_an_owner_permits_one_token_of_epsilon_1():
    crew = Crew([1], Accept(["alice"]), "test")
    crew.join()
    said(crew)
    crew.hear(tell(campaigns=[terms(epsilon_micro=MICRO + 1)]), 0)
    decline, = said(crew).declines
    assert decline.why == "epsilon 1.000001 is not accepted here; expected at most 1.000000, which is accept.epsilon"
    assert Accept(["alice"]).tokens == 1


@pytest.mark.parametrize("change, why", [
    ({"requester": "mallory"}, "requester mallory is not accepted"), ({"epsilon_micro": 6 * MICRO}, "epsilon 6"),
    ({"privatizer": Choice("randomized-response", {"epsilon": 1})}, "privatizer randomized-response is not accepted"),
    ({"privatizer": Choice("laplace", {"epsilon": 7})}, "the privatizer's epsilon 7"), ({"name": "other"}, "no scores"),
    ({"privatizer": Choice("laplace")}, "epsilon is missing"), ({"tokens": 0}, "0 tokens per worker")])
def test_terms_that_the_owner_does_not_accept_are_declined(change, why):
    crew = Crew(range(1, 6), ANY, "test")
    crew.join()
    said(crew)
    crew.hear(tell(campaigns=[terms(**change)]), 0)
    assert crew.hear(tell(assigns=[assign(1, b"x" * 48)]), 0) == []
    decline, = said(crew).declines
    assert decline.campaign == 1 and why in decline.why and "\n" not in decline.why


@pytest.mark.parametrize("messages, why", [
    ({"assigns": [assign(9, b"x")]}, "not waiting"), ({"assigns": [assign(1, b"x", campaign=2)]}, "without terms"),
    ({"assigns": [assign(1, b"x", arms=(2,))]}, "arms below 2"),
    ({"assigns": [assign(1, b"x"), assign(1, b"y")]}, "not waiting"),
    ({"assigns": [assign(1, b"x"), assign(2, b"x")]}, "ticket again"),
    ({"arrives": [schema("crowd").Arrive(workers=[1])]}, "only a worker may send")])
def test_a_broker_that_asks_for_what_it_may_not_loses_the_connection(messages, why):
    with pytest.raises(ProtocolError, match=why):
        arrived().hear(tell(**messages), 0)


def test_answers_to_a_connection_that_has_ended_are_not_sent():
    crew = arrived()
    question, = crew.hear(tell(assigns=[assign(2, b"x" * 48)]), 0)
    crew.leave()
    crew.answer(question, [GRID])
    crew.join()
    envelope = said(crew)
    assert not envelope.tokens and set(envelope.arrives[0].workers) == {1, 2, 3, 4, 5} and not crew.given[2]


@pytest.mark.parametrize("privatizer, comes_back", [
    (Choice("none"), True), (Choice("laplace", {"epsilon": 1}), False)])
def test_a_privatized_answer_that_expired_is_not_asked_for_again(privatizer, comes_back):
    crew = Crew(range(2, 3), ANY, "test")
    crew.join()
    said(crew)
    crew.hear(tell(campaigns=[terms(privatizer=privatizer)]), 0)
    question, = crew.hear(tell(assigns=[assign(2, b"x" * 48)]), 0)
    crew.answer(question, [GRID])
    assert len(said(crew).tokens) == 1
    crew.hear(tell(acks=[schema("crowd").Ack(ticket=b"x" * 48, verdict=3)]), 0)
    assert [list(arrive.workers) for arrive in said(crew, .1).arrives] == [[2]] * comes_back


def test_a_crowd_whose_own_limit_is_used_up_says_so_once():
    """Nobody would come, so one comes for the news; what the campaign itself takes of a worker is no reason."""
    why = "accept.tokens: 2 are given by 3 of 3 workers; expected more of them, or other workers"
    crew = Crew(range(1, 4), Accept(["alice"], tokens=2), "test", given={1: 2, 2: 1, 3: 2})
    crew.join()
    assert list(said(crew).arrives[0].workers) == [2]
    asked = crew.hear(tell(campaigns=[terms(tokens=3)], assigns=[assign(2, b"t")]), 0)
    assert not said(crew).declines
    crew.answer(asked[0], [0])
    assert not said(crew).declines, "not while the token is on its way"
    crew.hear(tell(acks=[schema("crowd").Ack(ticket=b"t", verdict=1)]), 1)
    declined = said(crew, 1).declines
    assert [(decline.campaign, decline.why) for decline in declined] == [(1, why)]
    assert crew.notes == [f'declined campaign "test": {why}']
    assert not said(crew, 9).declines
    again = Crew(range(1, 4), Accept(["alice"], tokens=2), "test", given={1: 2, 2: 2, 3: 2})
    again.join()
    assert len(said(again, 5).arrives[0].workers) == 1
    assert not again.hear(tell(campaigns=[terms(tokens=3)]), 5)
    assert [decline.why for decline in said(again, 6).declines] == [why]
    enough = Crew([1], Accept(["alice"], tokens=1), "test")
    enough.join()
    said(enough)
    question, = enough.hear(tell(campaigns=[terms(tokens=1)], assigns=[assign(1, b"t")]), 0)
    enough.answer(question, [0])
    said(enough)
    enough.hear(tell(acks=[schema("crowd").Ack(ticket=b"t", verdict=1)]), 1)
    assert not said(enough, 2).declines


def test_a_declined_assignment_is_returned_and_its_worker_rests():
    crew = arrived()
    question, = crew.hear(tell(assigns=[assign(2, b"x" * 48)]), 0)
    crew.decline(question, "ill", True, 0)
    envelope = said(crew, .5)
    assert envelope.declines[0].ticket == b"x" * 48 and envelope.declines[0].why == "ill" and not envelope.arrives
    assert list(said(crew, 2).arrives[0].workers) == [2]


def test_an_arm_is_compared_only_by_a_function_that_can():
    message = terms()
    if "pairs" not in message.DESCRIPTOR.fields_by_name:
        pytest.skip("this version of the wire has no comparisons")
    message.pairs = True
    for able in (False, True):
        crew = Crew(range(1, 3), ANY, "test", answers_pairs=able)
        crew.hear(tell(campaigns=[message]), 0)
        assert (crew.campaigns[1].law is not None) == able


def test_a_list_given_as_text_and_no_workers_are_refused():
    with pytest.raises(Error, match="privatizers is a text"):
        Accept(["alice"], "none")
    for tokens in (None, -1):
        with pytest.raises(Error, match="tokens is .*; expected a whole number, 0 for no limit"):
            Accept(["alice"], tokens=tokens)
    with pytest.raises(Error, match="0 workers"):
        Crew([], ANY, "test")


def test_a_token_without_acknowledgement_is_sent_again_as_it_was():
    crew = arrived(accept=Accept(["alice"], ["none", "laplace"], tokens=5))
    crew.hear(tell(campaigns=[terms(privatizer=Choice("laplace", {"epsilon": 1}))]), 0)
    question, = crew.hear(tell(assigns=[assign(2, b"x" * 48)]), 0)
    crew.answer(question, [GRID // 3])
    first, = said(crew).tokens
    for _ in range(2):
        crew.leave()
        crew.join()
        again, = said(crew).tokens
        assert again == first and crew.given[2] == 1
    crew.hear(tell(campaigns=[terms()], acks=[schema("crowd").Ack(ticket=b"x" * 48, verdict=2)]), 0)
    crew.leave()
    crew.join()
    assert not said(crew).tokens and crew.counts.duplicates == 1


class Broker:
    """One worker, and a broker that asks it what it likes."""

    def __init__(self, privatizer=Choice("none"), tokens=4, arms=4, answered=(), hires=False, **changes):
        self.crew = Crew(range(2, 3), ANY, "test", answers_pairs=True, answered=answered, hires=hires)
        self.now, self.tickets, self.stored = 0.0, 0, set(answered)
        self.crew.join()
        self.say()
        self.tell(privatizer=privatizer, tokens=tokens, arms=arms, **changes)

    def tell(self, **changes):
        self.crew.hear(tell(campaigns=[terms(**changes)]), self.now)
        return [decline.why for decline in self.say().declines]

    def say(self):
        envelope = said(self.crew, self.now)
        for is_given, answer in self.crew.answers:
            (self.stored.add if is_given else self.stored.discard)(answer)
        self.crew.answers.clear()
        return envelope

    def ask(self, *arms, opponent=0, verdict=1):
        """Whether the worker answers; else why not, and it rests."""
        self.tickets += 1
        ticket = b"%48d" % self.tickets
        for question in self.crew.hear(tell(assigns=[assign(2, ticket, arms=arms, opponent=opponent)]), self.now):
            self.crew.answer(question, [GRID] * len(arms))
        envelope = self.say()
        if envelope.tokens:
            self.crew.hear(tell(acks=[schema("crowd").Ack(ticket=ticket, verdict=verdict, why="no")]), self.now)
            self.say()
            return True
        assert [decline.ticket for decline in envelope.declines] == [ticket] and not envelope.arrives
        self.now += 2
        self.say()
        return envelope.declines[0].why


LOCAL = Choice("laplace", {"epsilon": 1})
ITEM = "this worker has been asked about this item already"


def test_each_item_is_asked_of_a_worker_once():
    broker = Broker()
    assert broker.ask(0) is True and broker.ask(0) == ITEM and broker.ask(1, verdict=2) is True
    assert broker.ask(1) == ITEM and broker.ask(2, verdict=3) is True and broker.ask(2) is True
    assert broker.ask(2) == ITEM and broker.ask(3) is True and not broker.crew.here


def test_each_pair_is_asked_of_a_worker_once():
    broker = Broker(pairs=True)
    assert broker.ask(0, opponent=3) is True
    for arm, opponent in (0, 3), (2, 1):
        assert broker.ask(arm, opponent=opponent) == "this worker has been asked about this pair already"
    assert broker.ask(0, opponent=2) is True and broker.stored == {(1, "test", 2, (0, 2)), (1, "test", 2, (0, 1))}


def test_each_of_several_items_is_new():
    broker = Broker()
    assert broker.ask(0, 1) is True and broker.ask(2, 1) == ITEM
    assert broker.ask(3, 2) is True
    assert not broker.crew.here  # nothing is left to ask


@pytest.mark.parametrize("pairs, arms, opponent", [
    (False, (2, 2), 0), (False, (4,), 0), (False, (), 0), (False, (1,), 1), (True, (1,), 0), (True, (1,), 2),
    (True, (1,), 5)])
def test_an_assignment_names_other_arms_each_once(pairs, arms, opponent):
    broker = Broker(pairs=pairs)
    with pytest.raises(ProtocolError, match="each once|another arm in a campaign of pairs"):
        broker.ask(*arms, opponent=opponent)
    assert not broker.crew.given[2]


def test_a_broker_opens_a_bounded_number_of_campaigns():
    broker = Broker()
    for number in range(2, 65):
        broker.tell(id=number, tokens=4, arms=4)
    with pytest.raises(ProtocolError, match="more than 64 campaigns"):
        broker.tell(id=65, tokens=4, arms=4)
    broker.crew.hear(tell(dones=[schema("crowd").Done(campaign=7)]), 0)
    broker.tell(id=65, tokens=4, arms=4)
    broker.crew.hear(tell(dones=[schema("crowd").Done(campaign=8)]), 0)
    for number in range(100, 1000):  # declined ones take no room
        broker.tell(id=number, requester="mallory")
    assert len(broker.crew.campaigns) <= 65


@pytest.mark.parametrize("hires, privatizer", [(False, Choice("none")), (True, LOCAL)])
def test_what_may_be_repeated(hires, privatizer):
    broker = Broker(repeat=not hires, hires=hires, privatizer=privatizer)
    assert [broker.ask(0) for _ in range(4)] == [True] * 4 and not broker.stored


@pytest.mark.parametrize("repeat", [False, True])
@pytest.mark.parametrize("verdict", [1, 3])
def test_behind_a_privatizer_it_counts_whatever_the_broker_says(repeat, verdict):
    broker = Broker(LOCAL, repeat=repeat)
    assert broker.ask(0, verdict=verdict) is True and broker.ask(0) == ITEM
    again = Broker(LOCAL, repeat=not repeat, answered=broker.stored)  # another process
    assert again.ask(0) == ITEM and again.ask(1) is True


def test_an_answer_that_counted_for_nothing_is_not_stored():
    broker = Broker()
    assert broker.ask(0, verdict=3) is True and not broker.stored
    assert broker.ask(0) is True and broker.stored == {(1, "test", 2, (0,))}


@pytest.mark.parametrize("change", [{"tokens": 3}, {"arms": 5}, {"repeat": True}])
def test_terms_do_not_change_once_a_worker_has_answered(change):
    broker = Broker(tokens=2)
    assert broker.tell(tokens=4, arms=4) == [] and broker.ask(0) is True
    why, = broker.tell(**{"tokens": 4, "arms": 4, **change})
    assert "than before; expected terms that do not change once a worker has answered" in why
    assert broker.tell(tokens=4, arms=4) == [] and broker.ask(0) == ITEM and broker.ask(1) is True


def test_terms_in_between_undo_nothing():
    broker = Broker(LOCAL, tokens=2)
    question, = broker.crew.hear(tell(assigns=[assign(2, b"x" * 48)]), 0)
    broker.crew.answer(question, [GRID])
    assert broker.say().tokens and broker.tell(epsilon_micro=9 * MICRO)
    broker.crew.hear(tell(acks=[schema("crowd").Ack(ticket=b"x" * 48, verdict=3)]), 0)
    assert broker.tell(privatizer=LOCAL, tokens=2, arms=4) == []
    assert broker.ask(0) == ITEM and broker.crew.campaigns[1].given[2] == 1


def test_the_file_has_what_was_answered(tmp_path):
    gateway = Gateway.__new__(Gateway)  # its database, and no connection
    for pairs in False, True:
        gateway.db = open_database(tmp_path / f"{pairs}.db", GIVEN, 1)
        gateway.crew = crew = Broker(pairs=pairs).crew
        for arm, verdict in (3, 1), (1, 3):
            ticket, opponent = b"%48d" % arm, pairs and 3
            question, = crew.hear(tell(assigns=[assign(2, ticket, arms=(arm,), opponent=opponent)]), 0)
            crew.answer(question, [GRID])
            gateway._say(schema("crowd").Envelope())
            assert question.arms == (arm,) and (1, "test", 2, (2, 3) if pairs and arm == 3 else (1, 2) if pairs
                                                else (arm,)) in gateway._answered()
            crew.hear(tell(acks=[schema("crowd").Ack(ticket=ticket, verdict=verdict)]), 0)
            gateway._say(schema("crowd").Envelope())
        gateway.db.close()
        gateway.db = open_database(tmp_path / f"{pairs}.db", GIVEN, 1)
        assert gateway._answered() == [(1, "test", 2, (2, 3) if pairs else (3,))]
        gateway.db.close()
