# SPDX-License-Identifier: Apache-2.0
"""The form of a gateway, without a browser: what it shows, what it takes, what it refuses."""
import html
import re

import pytest

from client.requester import end_name, spec
from harness.commands import as_requester, crowdveil
from harness.daemon import wait_until
from harness.people import LAPLACE, LIMITS, NAMES, SCORES, Person, World, given_means, item, notice

pytestmark = pytest.mark.usefixtures("worker_program")

def test_two_people_complete_a_campaign(deployment):
    world = World(deployment, broker={"lease": "16s"}, policy="best-arm", policy_params={"delta": .5})
    people = [world.person(1), world.person(2)]
    pages, said = [person.look() for person in people], set()
    while not world.is_over():
        for i, person in enumerate(people):
            asked = item(pages[i])
            if asked is None:
                pages[i] = person.look()
                continue
            status, pages[i] = person.send(pages[i], score=SCORES[NAMES.index(asked)])
            assert status == 200
            said.add(notice(pages[i]).replace(asked, "ITEM"))
    finished = world.finished()
    assert end_name(finished.progress.end) == "complete"
    assert given_means(deployment, 3) == [1, .5, 0], "the scores are what the people gave"
    assert "Thank you. Your score for ITEM was counted." in said


def test_what_happens_to_the_score_is_said(deployment):
    world = World(deployment)
    page = world.person().look()
    assert ("Your score goes to this site and to the broker, which can both read it; the broker adds it to the scores "
            "of others, and only sums leave the broker.") in page
    assert "After 5 minutes another person is asked for this item." in page
    assert "<script" not in page, "no script is needed"


TWO = {"cobroker": {"limits": {"release_tokens": 1}}, "two": True, "trusted": False, "mechanism": "hybrid",
       "epsilon": 1}


def test_with_two_brokers_neither_reads_the_score(deployment):
    world = World(deployment, **TWO, accept={"mechanisms": "hybrid"})
    person = world.person()
    page = person.look()
    assert ("Your score goes to this site, which can read it, and in two parts to two brokers, of which neither can "
            "read it; they add it to the scores of others, and only sums with noise (hybrid, epsilon 1) leave the "
            "brokers.") in page
    status, after = person.send(page, score=7)
    assert status == 200 and notice(after) == f"Thank you. Your score for {item(page)} was counted.", after


def test_scores_of_one_bit_are_asked_for_as_bits(deployment):
    world = World(deployment, **{**TWO, "score_bits": 1}, accept={"mechanisms": "hybrid"})
    person = world.person()
    page = person.look()
    assert "a whole number from 0 (worst) to 1 (best)" in page
    status, said = person.send(page, score=2)
    assert status == 400 and "expected a whole number from 0 to 1 as score" in said
    status, after = person.send(page, score=1)
    assert status == 200 and "was counted" in notice(after)


def test_names_of_items_are_text(deployment):
    world = World(deployment, people=3)
    seen = set()
    for number in (1, 2, 3):
        page = world.person(number).look()
        seen.add(item(page))
        assert "<b>" not in page
    assert seen == set(NAMES)


def test_a_person_is_one_worker(deployment):
    """Two browsers with the same link share its question and its limit."""
    world = World(deployment, tokens_per_worker=1)
    first, second = world.person(1), world.person(1)
    page, same = first.look(), second.look()
    assert item(page) == item(same)
    status, after = first.send(page, score=3)
    assert status == 200 and item(after) is None
    status, late = second.send(same, score=4)
    assert status == 409 and "no longer open" in late
    assert "Nothing more is asked of you now" in second.look()
    assert item(world.person(2).look()) is not None


def test_the_limit_survives_a_restart(deployment):
    world = World(deployment, accept={"tokens": 1})
    person = world.person()
    page = person.look()
    status, after = person.send(page, score=3)
    assert status == 200 and notice(after) == f"Thank you. Your score for {item(page)} was counted.", after
    assert world.gateway.stop() == 0
    world.start()
    assert "Nothing more is asked of you now" in world.person().look()


def test_only_people_who_are_there_arrive(deployment):
    world = World(deployment, people=5)
    with deployment.requester() as requester:
        def waiting():
            return requester.describe(world.campaign)[1].progress
        person = world.person()
        assert item(person.look())
    log = deployment.broker.text()
    assert "assignment declined" not in log


def test_after_the_lease_another_person_is_asked(deployment):
    world = World(deployment, broker={"lease": "1s", "limits": LIMITS})
    first, second = world.person(1), world.person(2)
    page = first.look()
    deployment.broker.wait_for("assignment declined: no answer within the lease")
    asked = {item(second.look())}
    status, late = first.send(page, score=3)
    assert status == 200
    said = f"For {item(page)} the time is over, and another person is asked; no score of yours was used."
    assert notice(late) == said
    assert asked


def test_an_item_may_be_skipped(deployment):
    world = World(deployment)
    person = world.person()
    page = person.look()
    status, after = person.send(page, score="", skip=1)
    assert status == 200 and notice(after) == f"You skipped {item(page)}; no score was sent."
    deployment.broker.wait_for("assignment declined: the person skipped the item")


@pytest.mark.parametrize("fields", [
    {"score": 11}, {"score": -1}, {"score": "1.5"}, {"score": ""}, {"score": "5", "token": "0"}, {"token": "0"},
    {"score": 5, "more": 1}, {}, {"score": "5" * 600}, {"score": 5, "secret": "x" * 32}, {"score": 5, "question": "x"},
    {"score": "%35"},
])
def test_a_post_that_is_none_changes_nothing(deployment, fields):
    world = World(deployment)
    person = world.person()
    page = person.look()
    status, text = person.send(page, **fields)
    assert status in (400, 403, 413) and 'role="alert"' in text
    assert item(person.look()) == item(page), "the question is still open"


def test_who_may_come_in(deployment):
    world = World(deployment)
    person = world.person()
    page = person.look()
    cookie = person.enter()
    assert "HttpOnly; SameSite=Lax; Path=/" in cookie and "Secure" not in cookie
    stranger = Person("http://x/?token=" + "0" * 32, world.address)
    assert stranger.ask("GET", f"/?{stranger.query}")[0] == 403
    assert stranger.ask("GET", "/")[0] == 403
    assert stranger.ask("POST", "/answer", "x=1")[0] == 403
    assert person.ask("GET", "/", headers={"Host": "evil.example"})[0] == 403
    assert person.ask("POST", "/answer", "x=1", {"Origin": "http://evil.example"})[0] == 403
    assert person.ask("POST", "/answer", "x=1", {"Origin": "null"})[0] == 403
    assert person.ask("POST", "/else", "x=1")[0] == 403
    assert person.ask("PUT", "/", "x=1")[0] == 405
    # a form that was made for another person
    other = world.person(2)
    secret = re.search(r'name="secret" value="(\w+)"', other.look()).group(1)
    assert person.send(page, score=1, secret=secret)[0] == 403
    assert item(person.look()) == item(page)


def test_headers(deployment):
    world = World(deployment)
    _, headers, _ = world.person().ask("GET", "/")
    refused = world.person().ask("GET", "/", cookie=False)[1]
    assert "form-action 'self'; frame-ancestors 'none'" in headers["Content-Security-Policy"]
    assert "connect-src 'none'" in headers["Content-Security-Policy"] and headers["Referrer-Policy"] == "same-origin"
    for found in (headers, refused):
        assert found["Cache-Control"] == "no-store" and found["X-Content-Type-Options"] == "nosniff"
        assert "script-src 'self'" in found["Content-Security-Policy"]
        assert "default-src 'none'" in found["Content-Security-Policy"]


def test_a_gateway_with_a_privatizer_takes_no_score(deployment):
    world = World(deployment, accept=LAPLACE, mechanism="none", trusted=True,
                  privatizer=("laplace", {"epsilon": 1}))
    person = world.person()
    page = person.look()
    assert re.search(r'<input id="score" type="number"', page), "a browser without JavaScript sends no score"
    assert "Your score stays in this browser, which sends a random answer in its place (laplace, epsilon 1)" in page
    status, text = person.send(page, score=5)
    assert status == 400 and "this campaign takes no score but a random answer in its place" in text
    assert person.send(page, token=10 ** 15)[0] == 400
    status, after = person.send(page, token=-12345)
    assert status == 200 and notice(after) == f"Thank you. Your score for {item(page)} was counted."


def test_behind_a_proxy_with_tls(deployment):
    world = World(deployment, form={"form_hosts": "form.example", "form_tls": True}, start=False)
    assert all(link.startswith("https://form.example/?token=") for link in world.links.values())
    world.start()
    listening = world.gateway
    assert listening.wait_for(r"form for 2 people on https://form.example/")


@pytest.mark.parametrize("changes, said", [
    ({"form_people": "no-such-file"}, "form_people: .*no-such-file: No such file or directory"),
    ({"form": "0.0.0.0:0"}, "form: 0.0.0.0:0 is not an address of this machine alone; expected 127.0.0.1:PORT, or "
                            "form_hosts with the names"),
    ({"exec": "/bin/cat"}, "form and exec; expected one of them, as each gives the scores"),
    ({"form": "nonsense"}, "form: "),
])
def test_a_wrong_setting_is_told_at_the_start(deployment, changes, said):
    world = World(deployment, start=False)
    gateway = world.deployment.start_worker("gateway/101-120", world.file, {**world.settings, **changes})
    assert gateway.wait() in (1, 2)
    assert len(gateway.lines) == 1 and re.search(said, gateway.lines[0]), gateway.lines


@pytest.mark.parametrize("text, said", [
    ("1 short\n", ":1: expected a person's number from 1, a blank, and a token of 32 to 128"),
    ("0 " + "a" * 32 + "\n", ":1: expected a person's number"),
    ("2 " + "a" * 32 + "\n1 " + "b" * 32 + "\n", ":2: person 1 after person 2; expected ascending numbers"),
    ("1 " + "a" * 32 + "\n2 " + "a" * 32 + "\n", ":2: the token of person 1 again; expected another one for each"),
    ("21 " + "a" * 32 + "\n", "person 21; expected 1 to 20, as the certificate has as many workers"),
    ("# nobody\n", "has nobody; expected people, as --form-invite adds them"),
])
def test_a_wrong_file_of_people_is_told_at_the_start(deployment, text, said):
    world = World(deployment, start=False)
    (world.folder / "people").write_text(text)
    gateway = world.deployment.start_worker("gateway/101-120", world.file, world.settings)
    assert gateway.wait() == 2
    assert len(gateway.lines) == 1 and said in gateway.lines[0], gateway.lines


def test_the_file_of_people_is_closed_to_others(deployment):
    world = World(deployment)
    file = world.folder / "people"
    assert file.stat().st_mode & 0o777 == 0o600
    assert list(world.invite(1)) == ["1", "2", "3"], "numbers go on, and all links are printed"
    file.chmod(0o640)
    gateway = world.deployment.start_worker("gateway/101-120", world.file, world.settings)
    assert gateway.wait() != 0 and "is open to others than its owner; expected mode 0600" in gateway.text()


def test_people_compare_two_items(deployment):
    """Pairs: a choice of two, whose answer is a bit; a score between is not taken."""
    world = World(deployment, start=False, pairs=True, tokens_per_worker=5000, policy="ppar-kl",
                  policy_params={"alpha": .9, "delta": .5})
    world.file.write_text(world.file.read_text().replace("items: {", "items: {rewards: pairs, "))
    world.start()
    person, seen = world.person(), 0
    page = person.look()
    assert "Which is better?" in page and item(page) is None
    between = person.send(page, score=5)[1]
    assert "was counted" not in between
    while not world.is_over():
        page = person.look()
        choices = re.findall(r'type="radio" name="score" value="(\d+)" required> <strong><bdi>(.*?)</bdi>', page)
        shown = [(int(value), html.unescape(name)) for value, name in choices]
        assert shown or "There is no item for you now" in page or world.is_over(), page
        if not shown:
            continue
        assert len({name for _, name in shown}) == 2 and sorted(value for value, _ in shown)[0] == 0
        best = max(shown, key=lambda one: SCORES[NAMES.index(one[1])])
        assert person.send(page, score=best[0])[0] == 200
        seen += 1
    assert end_name(world.finished().progress.end) == "complete" and seen > 0
    assert given_means(deployment, 3)[::2] == [1, 0]


def test_a_crowd_whose_own_limit_is_used_up_says_so_everywhere(deployment):
    """A second campaign: nobody may answer, and requester, operator and person learn why and what helps."""
    asks = {"mechanism": "hybrid", "trusted": False, "epsilon": .1, "tokens_per_worker": 2}
    world = World(deployment, people=2, accept={"tokens": 1, "mechanisms": "hybrid"}, **asks)
    for number in (1, 2):
        person = world.person(number)
        status, after = person.send(person.look(), score=3)
        assert status == 200 and "You have given the 1 answer that this form permits you in all" in after
        assert "?" not in re.sub(r"<[^>]*>", "", after), "no stray marks"
    why = "accept.tokens: 1 are given by 2 of 2 workers; expected more of them, or other workers"
    world.gateway.wait_for(f'declined campaign "dinner": {re.escape(why)}')
    link = as_requester(deployment)
    says = f"declined by 1 connection: {why}"
    wait_until(lambda: says in crowdveil("status", *link).stdout, "the first one's reason")
    assert crowdveil("cancel", str(world.campaign), *link).returncode == 0
    with deployment.requester() as requester:
        second = requester.submit(spec(len(NAMES), name="dinner", tokens=10_000, idle_ms=8000, policy_params={
            "alpha": .3, "delta": .1, "tokens_per_round": 1}, **asks)).campaign
    def told():
        said = crowdveil("status", *link).stdout
        return says in said[said.index(f"\n       {second}  dinner"):]
    wait_until(told, "the second one's reason")
    assert "You have given the 1 answer" in world.person(1).look()
    assert world.gateway.text().count(why) <= 2, "once a campaign"
    done = crowdveil("watch", str(second), *link)
    assert says in done.stdout, done.stdout
    assert why in crowdveil("status", *link).stdout.split("\n")[-2], "after the end, too"
    config = deployment.folder / "gateway-101-120.yaml"
    found = crowdveil("doctor", config)
    assert found.returncode == 1, found.stdout
    assert f'it gives no more scores to campaign "dinner": {why}' in found.stdout, found.stdout
    assert "raise accept.tokens in the configuration" in found.stdout
    assert world.gateway.stop() == 0
    world.start(accept={"tokens": 3, "mechanisms": "hybrid"})
    assert item(world.person(2).look()) is None, "no campaign"
    assert "it gives no more" not in crowdveil("doctor", config).stdout
