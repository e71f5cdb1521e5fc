# SPDX-License-Identifier: Apache-2.0
"""The workers behind a gateway, against a broker that may lose connections and ask for more than it should."""
import pytest
from crowdveil import Accept, Choice, Error, ProtocolError
from crowdveil.crew import Crew
from crowdveil.schema import schema
from crowdveil.wire import GRID, MICRO
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


def assign(worker, ticket, campaign=1, arms=(0,)):
    return schema("crowd").Assign(campaign=campaign, worker=worker, ticket=ticket, arms=arms)


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
