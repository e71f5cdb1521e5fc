# SPDX-License-Identifier: Apache-2.0
"""A crew between two brokers: which it accepts, what waits for a session, which slots count, what is sent again."""
import pytest
from crowdveil import Accept, Choice, Error, ProtocolError
from crowdveil.crew import Crew
from crowdveil.schema import schema
from crowdveil.split import Place, seal
from crowdveil.wire import GRID
from test_crew import said, tell, terms

pytest.importorskip("cryptography")
BROKER, COBROKER, OTHER = "ab" * 32, "cd" * 32, "ef" * 32
KEY, ID = bytes(range(32)), bytes(range(16))
PAIR = Accept(["alice"], ["none", "laplace"], ["hybrid"], 5, tokens=0, pairs=[(BROKER, COBROKER)])


def split_terms(bits=15, lease_ms=4000, key=b"k" * 32, **changes):
    message = terms(lease_ms=lease_ms, **changes)
    message.split.MergeFrom(schema("base").Split(score_bits=bits, database=b"d" * 16, spec=b"s" * 32, key=key))
    return message


def asks(crew, now=0.0):
    envelope = schema("share").Envelope()
    crew.say_cobroker(envelope, now)
    return [enter.campaign for enter in envelope.enters]


def hear(crew, now=0.0, **messages):
    envelope = schema("share").Envelope()
    for kind, values in messages.items():
        getattr(envelope, kind).extend(values)
    return crew.hear_cobroker(envelope, now)


def session(**changes):
    return schema("share").Session(terms=split_terms(lease_ms=0, **changes), id=ID)


def assign(worker, ticket, slot=0, place=0):
    return schema("crowd").Assign(campaign=1, worker=worker, ticket=ticket, arms=[0], plan=1, place=place, slot=slot)


def crew_of(accept=PAIR, broker=BROKER, cobroker=COBROKER, told=None):
    crew = Crew(range(1, 6), accept, "test")
    crew.sessions.broker = broker
    crew.join()
    said(crew)
    if cobroker:
        crew.join_cobroker(cobroker, lambda context: KEY)
    crew.hear(tell(campaigns=[told or split_terms(tokens=2)]), 0)
    return crew


def standing(**changes):
    crew = crew_of(**changes)
    assert asks(crew) == [1] and asks(crew) == []
    assert hear(crew, sessions=[session(tokens=2)]) == []
    return crew


@pytest.mark.parametrize("changes, why", [
    ({"accept": Accept(["alice"])}, "the campaign has two brokers; expected one"),
    ({"told": terms()}, "the campaign has one broker; expected two"),
    ({"broker": OTHER}, f"the broker's key is {OTHER}; expected that of a pair"),
    ({"cobroker": OTHER}, f"the co-broker's key is {OTHER}; expected the one"),
    ({"told": split_terms(bits=7)}, "shares of 7 bits; expected 1 or 15"),
    ({"told": split_terms(privatizer=Choice("laplace", {"epsilon": 1}))}, "values outside 0 to 1")])
def test_brokers_that_the_owner_does_not_list_are_declined(changes, why):
    crew = crew_of(**changes)
    decline, = said(crew).declines
    assert decline.campaign == 1 and why in decline.why and asks(crew) == []


@pytest.mark.parametrize("changes, what", [
    ({"key": b"x" * 32}, "verify key"), ({"epsilon_micro": 7}, "epsilon"), ({"arms": 3}, "number of arms"),
    ({"bits": 1}, "kind of score"), ({"requester": "bob"}, "requester"), ({"tokens": 3}, "number of tokens")])
def test_two_brokers_that_disagree_get_nothing(changes, what):
    crew = crew_of()
    assert asks(crew) == [1]
    crew.hear(tell(assigns=[assign(1, b"x" * 48)]), 0)
    assert hear(crew, sessions=[session(**{"tokens": 2, **changes})]) == []
    envelope = said(crew)
    assert envelope.declines[0].why.startswith(f"broker and co-broker tell another {what}") and not envelope.tokens


def test_a_question_waits_for_its_session_within_the_lease():
    crew = crew_of()
    assert asks(crew) == [1]
    assert crew.hear(tell(assigns=[assign(1, b"x" * 48), assign(2, b"y" * 48)]), 0) == []
    questions = hear(crew, 1, sessions=[session(tokens=2)])
    assert [question.worker for question in questions] == [1, 2]
    crew.leave_cobroker()
    for question in questions:
        crew.answer(question, [GRID // 3], 2)
    assert not said(crew, 2).tokens
    assert asks(crew, 2) == []  # not connected
    envelope = said(crew, 6)
    assert [decline.why for decline in envelope.declines] == ["no session with the co-broker within the lease"] * 2


def test_a_token_is_sealed_for_its_place_and_sent_again_as_it_is():
    crew = standing()
    question, = crew.hear(tell(assigns=[assign(3, b"x" * 48, slot=1, place=7)]), 0)
    crew.answer(question, [GRID // 3])
    token, = said(crew).tokens
    share = token.share
    assert not token.values and len(share.leader) == 376 and share.session == ID and share.counter == 0
    context = crew.sessions.of[1].sealer.context
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    seed = AESGCM(KEY).decrypt(bytes(12), share.sealed, Place(1, 0, 7, 3, 1).bound(context, share.nonce))
    assert seal(KEY, 0, Place(1, 0, 7, 3, 1).bound(context, share.nonce), seed) == share.sealed
    crew.leave()
    crew.join()
    assert said(crew).tokens[0] == token


def test_a_slot_counts_once_until_it_is_settled():
    """After `expired` the same slot may be asked for again, beyond the owner's limit too; a settled one may not."""
    crew = standing(accept=Accept(["alice"], tokens=1, pairs=[(BROKER, COBROKER)]))
    nonces = set()
    for number, verdict in enumerate((3, 3, 1)):
        question, = crew.hear(tell(assigns=[assign(1, b"%48d" % number)]), number)
        crew.answer(question, [GRID], number)
        token, = said(crew, number).tokens
        nonces.add(token.share.nonce)
        assert crew.given[1] == 1
        crew.hear(tell(acks=[schema("crowd").Ack(ticket=token.ticket, verdict=verdict)]), number)
        said(crew, number)
    assert len(nonces) == 3 and 1 not in crew.waiting
    crew = standing()
    question, = crew.hear(tell(assigns=[assign(1, b"x" * 48)]), 0)
    crew.answer(question, [GRID])
    said(crew)
    crew.hear(tell(acks=[schema("crowd").Ack(ticket=b"x" * 48, verdict=1)]), 0)
    said(crew)
    with pytest.raises(ProtocolError, match="slot 0 of worker 1 again"):
        crew.hear(tell(assigns=[assign(1, b"y" * 48)]), 0)


@pytest.mark.parametrize("again_ms, declines", [(1500, 0), (0, 1)])
def test_a_co_broker_that_gives_no_session_is_asked_again_or_left(again_ms, declines):
    crew = crew_of()
    asks(crew)
    hear(crew, turned=[schema("share").Turned(campaign=1, why="there are too many sessions", again_ms=again_ms)])
    assert len(said(crew).declines) == declines
    assert asks(crew, 1) == [] and asks(crew, 2) == [1] * (1 - declines)


def test_answers_about_campaigns_that_were_not_asked_for_end_the_connection():
    crew = standing()
    with pytest.raises(ProtocolError, match="campaign 1, which was not asked"):
        hear(crew, sessions=[session(tokens=2)])
    with pytest.raises(ProtocolError, match="campaign 2, which was not asked"):
        hear(crew, turned=[schema("share").Turned(campaign=2)])


def test_scores_between_0_and_1_end_a_campaign_of_bits():
    crew = crew_of(told=split_terms(bits=1, tokens=2))
    asks(crew)
    hear(crew, sessions=[session(bits=1, tokens=2)])
    question, = crew.hear(tell(assigns=[assign(1, b"x" * 48)]), 0)
    crew.answer(question, [GRID // 2])
    envelope = said(crew)
    assert not envelope.tokens and envelope.declines[0].why == (
        "the score 0.5; expected 0 or 1, since the campaign splits scores of one bit")


@pytest.mark.parametrize("pairs", [["ab"], [(BROKER, "12")], [(BROKER, BROKER)], [BROKER + "+" + COBROKER]])
def test_pairs_that_are_none_are_one_line(pairs):
    with pytest.raises(Error, match="expected two fingerprints of different keys, of 64 hexadecimal digits each"):
        Accept(["alice"], pairs=pairs)
