# SPDX-License-Identifier: Apache-2.0
"""
A third-party's campaign against a model of the broker: whatever is cut, killed or lost in between, the broker never has
a reason to freeze the campaign, and the decisions are those of an undisturbed run.
"""
import sqlite3
from types import SimpleNamespace

import pytest
from crowdveil import End, Error, Plan, Policy, ProtocolError, Spec, Standing, Want
from crowdveil.book import Book
from crowdveil.chain import NONE, chain_plan, chain_release
from crowdveil.schema import schema
from crowdveil.store import Store, open_database
from crowdveil.wire import GRID
from hypothesis import given, settings
from hypothesis import strategies as st

SPEC = Spec("test", 3, "halves", epsilon=2.0)
SEED = bytes(range(8))


class Halves(Policy):
    """Five rounds for two arms each, drawn with the seed; state of its own that `save` must keep."""
    name = "halves"
    rounds = 0

    def step(self, plan):
        if plan > 5:
            return None
        self.rounds += 1
        return [(arm, 10 * self.rounds) for arm in sorted(self.random(plan).sample(range(3), 2))]

    def standings(self):
        return [Standing(arm, int(self.arms[arm].tokens > 50), self.arms[arm].tokens, self.arms[arm].total)
                for arm in range(3)]

    def save(self):
        return self.rounds

    def load(self, state):
        self.rounds = state


class Broker:
    """What a broker has on record, and its side of docs/protocol.md."""

    def __init__(self):
        self.releases, self.plans, self.tokens = [], [], [0] * SPEC.arms
        self.asked, self.result, self.unaccepted = [], None, None
        self.seed = b""

    def position(self):
        releases = plans = NONE
        for release in self.releases:
            releases = chain_release(releases, release)
        for plan in self.plans:
            plans = chain_plan(plans, plan.number, [(want.arm, want.tokens) for want in plan.wants])
        return schema("rank").Position(campaign=1, releases=len(self.releases), releases_hash=releases,
                                       plans=len(self.plans), plans_hash=plans)

    def missing(self, at):
        """The records that this third-party lacks; ValueError where a broker would freeze the campaign."""
        mine = Broker()
        mine.releases, mine.plans = self.releases[:at.releases], self.plans[:at.plans]
        same = mine.position()
        if (at.releases, at.plans, at.releases_hash, at.plans_hash) != (same.releases, same.plans, same.releases_hash,
                                                                        same.plans_hash):
            raise ValueError("the third-party has other records")
        records = [(("record", plan), (plan.number, 0)) for plan in self.plans[at.plans:]]
        records += [(("release", release), (release.plan, 1, release.number))
                    for release in self.releases[at.releases:]]
        return [record for record, _ in sorted(records, key=lambda each: each[1])]

    def take(self, plan):
        wants = tuple(Want(want.arm, want.tokens) for want in plan.wants)
        if plan.number == len(self.plans) and self.plans[-1].wants == wants:
            return
        assert plan.number == len(self.plans) + 1 and not self.asked, "a plan that would freeze the campaign"
        self.plans.append(Plan(plan.number, wants))
        self.asked = list(wants)

    def count(self):
        """The next release of the accepted plan; None if nothing is open."""
        if not self.asked:
            return None
        want = self.asked.pop(0)
        self.tokens[want.arm] += want.tokens
        release = schema("base").Release(campaign=1, number=len(self.releases) + 1, plan=len(self.plans), arm=want.arm,
                                         tokens=self.tokens[want.arm], noisy_sum=want.arm * self.tokens[want.arm] * 999)
        release.noise.add(scale=2, count=1)
        self.releases.append(release)
        return release


class Campaign:
    """The two sides, and the moments at which a message or a process can be lost."""

    def __init__(self, folder):
        self.folder, self.broker, self.store, self.book = folder, Broker(), None, None
        self.restart()

    def restart(self, lost=False):
        """Kills the third-party; what it had not committed is gone, or with `lost` its whole database."""
        if self.store is not None:
            self.store.close()
        if lost:
            for path in self.folder.iterdir():
                path.unlink()
        self.store = Store(self.folder)
        self.book = next((book for _, book in self.store.load(Halves)), None)
        self.connect()

    def connect(self):
        self.is_level = False
        if self.book is None:
            seed = self.broker.seed or SEED
            self.book = Book(1, Halves(SPEC, int.from_bytes(seed, "little")), seed)
            self.book.begin()
        self.book.open(self.broker.position(), End.NONE)

    def turn(self, arrives=True):
        """Commits, then sends what is due; whether the broker gets it."""
        envelope = schema("rank").Envelope()
        self.store.commit([("main", self.book)])
        self.book.say(envelope)
        if not arrives:
            return
        self.is_level = True
        for opened in envelope.opened:
            self.broker.seed = opened.seed
            for kind, record in self.broker.missing(opened.position):
                getattr(self.book, kind)(record)
        for plan in envelope.plans:
            self.broker.take(plan)
            self.book.accept(plan.number)
        for result in envelope.results:
            self.broker.result = result

    def deliver(self):
        if not self.is_level:  # the broker waits for Opened
            self.turn()
        release = self.broker.count()
        if release is not None:
            self.book.release(release)

    def finish(self):
        for _ in range(60):
            if self.broker.result is not None:
                return self
            self.turn()
            self.deliver()
        raise AssertionError("the campaign does not end")


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    return Campaign(tmp_path_factory.mktemp("undisturbed")).finish()


EVENTS = st.sampled_from(["turn", "turn", "deliver", "deliver", "lost turn", "lost release", "cut", "kill", "lose all",
                          "again"])


def act(campaign, event):
    if event == "turn":
        campaign.turn()
    elif event == "deliver":
        campaign.deliver()
    elif event == "lost turn":  # stored, but the frame does not arrive
        campaign.turn(arrives=False)
        campaign.connect()
    elif event == "lost release":  # the broker has it on record, and the connection breaks
        campaign.broker.count()
        campaign.connect()
    elif event == "cut":
        campaign.connect()
    elif event == "again" and campaign.broker.releases and campaign.book.releases == len(campaign.broker.releases):
        campaign.book.release(campaign.broker.releases[-1])
    elif event in ("kill", "lose all"):
        campaign.restart(lost=event == "lose all")


@settings(max_examples=60)
@given(st.lists(EVENTS, max_size=40))
def test_whatever_is_cut_or_killed_the_outcome_is_that_of_an_undisturbed_run(tmp_path_factory, undisturbed, events):
    campaign = Campaign(tmp_path_factory.mktemp("book"))
    for event in events:
        act(campaign, event)
    campaign.connect()
    campaign.finish()
    assert campaign.broker.result == undisturbed.broker.result and campaign.broker.result.reason == End.COMPLETE
    assert campaign.broker.plans == undisturbed.broker.plans
    campaign.store.close()
    with sqlite3.connect(campaign.store.path) as db:
        assert db.execute("SELECT count(*) FROM release").fetchone() == (10,)
        assert db.execute("SELECT count(*) FROM plan").fetchone() == (5,)


def a_book():
    book = Book(1, Halves(SPEC, 1), SEED)
    book.begin()
    return book


def a_release(book, **changes):
    fields = {"campaign": 1, "number": 1, "plan": 1, "arm": min(book.left), "tokens": 10, "noisy_sum": GRID, **changes}
    noise = fields.pop("noise", [(2, 1)])
    message = schema("base").Release(**fields)
    for scale, count in noise:
        message.noise.add(scale=scale, count=count)
    return message


@pytest.mark.parametrize("changes, why", [
    ({"number": 2}, "follows release 0"), ({"plan": 2}, "is for plan 2"), ({"arm": 7}, "is for arm 7"),
    ({"tokens": 0}, "sums 0 tokens; expected 10 or 10"), ({"tokens": 11}, "sums 11 tokens"),
    ({"tokens": 1 << 63}, "sums 9223372036854775808 tokens"), ({"noise": []}, "noise that mechanism hybrid"),
    *(({"noise": noise}, "noise that mechanism hybrid") for noise in (
        [(0, 1)], [(float("nan"), 1)], [(1e300, 1)], [(1e-300, 1)], [(2, 0)], [(float("inf"), 1)])),
    ({"tokens": 0, "last": True, "noise": [], "noisy_sum": 1}, "noise that")])
def test_a_release_that_cannot_be_is_refused_and_changes_nothing(changes, why):
    book = a_book()
    book.accept(1)
    before = book.policy.dump(), book.releases_hash, set(book.left)
    with pytest.raises(ProtocolError, match=why):
        book.release(a_release(book, **changes))
    assert (book.policy.dump(), book.releases_hash, book.left) == before


def test_a_release_before_its_plan_was_accepted_is_refused():
    book = a_book()
    with pytest.raises(ProtocolError, match="the last accepted is 0"):
        book.release(a_release(book))
    with pytest.raises(ProtocolError, match="plan 2 of campaign 1 was accepted"):
        book.accept(2)


def test_a_refused_plan_and_a_stop_end_the_campaign_once():
    book = a_book()
    book.refuse(1, End.TOKENS)
    book.stop(End.CANCELLED)
    assert book.end == End.TOKENS and "result" in book.due and "plan" not in book.due
    for act_ in (lambda other: other.refuse(1, End.COMPLETE), lambda other: other.stop(End.NONE)):
        with pytest.raises(ProtocolError):
            act_(a_book())


def test_a_stopped_campaign_ends_only_with_all_that_the_broker_has_on_record():
    book = a_book()
    book.open(schema("rank").Position(campaign=1, plans=1, releases=0), End.CANCELLED)
    envelope = schema("rank").Envelope()
    book.say(envelope)
    assert envelope.opened and not envelope.results and not envelope.plans and not book.end
    book.record(book.plan)
    book.say(envelope)
    assert envelope.results[0].reason == End.CANCELLED and book.accepted == 1


def test_a_recorded_plan_goes_before_the_policys_own_also_after_a_kill(tmp_path):
    book, store = a_book(), Store(tmp_path)
    store.commit([("main", book)])
    other = Plan(1, (Want(book.plan.wants[0].arm, 77),))
    book.open(schema("rank").Position(campaign=1, plans=1), End.NONE)
    book.record(other)
    store.commit([("main", book)])
    store.close()
    (broker, again), = Store(tmp_path).load(Halves)
    assert (broker, again.plan, again.accepted) == ("main", other, 1)
    assert again.plans_hash == chain_plan(NONE, 1, [(other.wants[0].arm, 77)]) and again.left == {other.wants[0].arm}


def test_an_arm_without_further_data_is_not_asked_for_again():
    book = a_book()
    book.accept(1)
    first, second = sorted(book.left)
    plain = {"campaign": 1, "plan": 1, "noisy_sum": 0, "noise": [], "last": True}
    book.release(SimpleNamespace(**plain, number=1, arm=first, tokens=0))  # nothing came, nothing is charged
    assert book.policy.arms[first].tokens == 0 and book.policy.used_up == {first}
    book.release(a_release(book, number=2, arm=second))
    while not book.end:
        assert first not in {want.arm for want in book.plan.wants}
        book.accept(book.plan.number)
        for arm in sorted(book.left):
            asked = {want.arm: want.tokens for want in book.plan.wants}[arm]
            book.release(a_release(book, number=book.releases + 1, plan=book.plan.number, arm=arm, tokens=asked))
    assert book.plan.number > 1 and book.end in (End.COMPLETE, End.USED_UP)


@pytest.mark.parametrize("make", [lambda path: Store(path / "file"), lambda path: Store("/proc/none"),
                                  lambda path: open_database(path / "none/given.db", "", 1)])
def test_a_place_that_cannot_be_used_is_said_in_one_line(tmp_path, make):
    (tmp_path / "file").write_text("")
    with pytest.raises(Error, match="; expected a f"):
        make(tmp_path)


def test_a_second_process_cannot_use_the_database(tmp_path):
    store = Store(tmp_path)
    with pytest.raises(Error, match="locked; expected a database that no other process uses"):
        Store(tmp_path)
    store.close()
    (tmp_path / "thirdparty.db").write_bytes(b"x" * 4096)
    for path in tmp_path.glob("*-wal"):
        path.unlink()
    with pytest.raises(Error, match="not a database"):
        Store(tmp_path)
