# SPDX-License-Identifier: Apache-2.0
"""The form of a gateway in a real browser, with real parties: people fill it in until a campaign completes."""
import json
import re
import sys
from pathlib import Path

import pytest
from browser import Browser
from selenium.webdriver.common.keys import Keys

sys.path.append(str(Path(__file__).resolve().parents[1] / "e2e"))

from client.requester import end_name  # noqa: E402
from harness.deployment import Deployment, missing_programs  # noqa: E402
from harness.people import LAPLACE, NAMES, SCORES, World, given_means  # noqa: E402
from harness.pki import Pki  # noqa: E402
from harness.secrets import memory_of  # noqa: E402

RESPONSE = {"privatizers": "randomized-response", "epsilon": 10, "tokens": 100}
QUESTION = "document.querySelector('label[for=score] strong')?.textContent"
ASKED = f"return {QUESTION}"
TITLE = "return document.querySelector('h1')?.textContent"
TAKEN = "return document.answered ? null : document.querySelector('[role=status]')?.textContent"


@pytest.fixture
def world(tmp_path):
    absent = missing_programs("broker", "thirdparty", "worker")
    if absent:
        pytest.fail(f"not built: {', '.join(absent)}")
    deployment = Deployment(tmp_path, Pki(tmp_path / "ca"))
    yield lambda **changes: World(deployment, **changes)
    deployment.close()


def link(world, number=1):
    return f"http://{world.address}/?{world.links[str(number)].split('?')[1]}"


# The question that has the focus, and its field; null in a document that has been answered, which stays until the next
# one is there, maybe with the same question.
OPEN = f"""if (document.answered || document.activeElement?.id !== "score") return null;
document.answered = true;
return [{QUESTION}, document.activeElement]"""


def answer(browser, score):
    """With the keyboard alone: the field has the focus."""
    asked, field = browser.until(OPEN)
    field.send_keys(str(score(asked)), Keys.ENTER)
    return asked


def fill_in(browser, score, is_over, most=80):
    """Answers until the campaign is over or nothing more is asked; returns the number of answers."""
    for n in range(most):
        browser.wait(lambda: is_over() or browser.run(ASKED) or browser.run(TITLE) == "Thank you")
        if is_over() or browser.run(ASKED) is None:
            return n
        asked = answer(browser, score)
        browser.wait(lambda: is_over() or asked in (browser.run(TAKEN) or ""))
    return most


def test_people_complete_a_campaign(world, browser):
    """Two people in turn in one browser; the page shows what became of each score. A question that a person leaves open
    goes to the other one after an eighth of the lease."""
    made = world(broker={"lease": "16s"}, policy="best-arm", policy_params={"delta": .5})
    turn = 0
    while not made.is_over():
        browser.driver.delete_all_cookies()
        browser.driver.get(link(made, 1 + turn % 2))
        fill_in(browser, lambda name: SCORES[NAMES.index(name)], made.is_over, most=10)
        turn += 1
    assert turn > 2
    finished = made.finished()
    assert end_name(finished.progress.end) == "complete"
    assert given_means(made.deployment, 3) == [1, .5, 0]


def test_without_javascript(world):
    made, plain = world(), Browser(script=False)
    try:
        plain.driver.get(link(made))
        field = plain.find("#score")
        field.send_keys("7")
        plain.find("form button").click()
        # by the document's text: an element of the page before may be gone when it is read
        plain.wait(lambda: re.search(r'role="?status"?[^>]*>[^<]*(<bdi>[^<]*</bdi>)?[^<]*was counted',
                                     plain.driver.page_source))
    finally:
        plain.close()


def test_a_privatizer_without_javascript_sends_nothing(world):
    made, plain = world(accept=LAPLACE, privatizer=("laplace", {"epsilon": 1})), Browser(script=False)
    try:
        plain.driver.get(link(made))
        assert not plain.find("#send").is_enabled()
        assert "no score can be sent" in plain.find("noscript").text
        plain.find("#score").send_keys("7", Keys.ENTER)
        assert plain.driver.current_url.endswith("/"), "nothing was sent"
    finally:
        plain.close()


# Of six tokens two are equal with a probability of 15 epsilon / 2^22; of four bits two are flipped with 6 * 1e-8.
@pytest.mark.parametrize("accept, privatizer", [
    (LAPLACE, ("laplace", {"epsilon": .1})), (RESPONSE, ("randomized-response", {"epsilon": 9.5})),
    (RESPONSE, ("randomized-response", {"p00": .99, "p11": .9999})),
])
def test_with_a_privatizer_no_score_leaves_the_browser(world, browser, accept, privatizer):
    made = world(accept=accept, privatizer=privatizer, tokens_per_worker=12, tokens=36)
    browser.driver.execute_cdp_cmd("Network.enable", {})
    given = 0
    for number in (1, 2):
        browser.driver.delete_all_cookies()
        browser.driver.get(link(made, number))
        given += fill_in(browser, lambda name: 10, made.is_over, most=3)
    assert given == 6, "answers were counted"
    # Each has been asked about each of three items once. Whoever has answered all is thanked, and waits for another
    # campaign once the gateway has declined this one.
    browser.wait(lambda: browser.run(TITLE) in ("Thank you", "One moment"))
    assert browser.run(ASKED) is None
    posts = bodies(browser)
    assert len(posts) == given
    for body in posts:
        names = {part.split("=")[0] for part in body.split("&")}
        assert names == {"secret", "question", "token"}, body
    tokens = [int(body.split("token=")[1].split("&")[0]) for body in posts]
    if privatizer[0] == "laplace":
        assert len(set(tokens)) == len(tokens), "each has noise of its own"
        assert all(abs(token - (1 << 20)) < 40 * (1 << 20) / .1 for token in tokens)
    else:
        assert set(tokens) <= {0, 1 << 20} and tokens.count(1 << 20) > len(tokens) / 2
    assert browser.run("return document.getElementById('score')?.value ?? ''") == ""


def bodies(browser):
    """What was posted."""
    found = []
    for entry in browser.driver.get_log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent" and message["params"]["request"]["method"] == "POST":
            found.append(message["params"]["request"].get("postData", ""))
    return found


def test_a_token_is_drawn_once(world, browser):
    """Whoever goes back and sends again, or is asked for the item again, sends the same token, whatever the score is
    then: else a question that comes again after each lease would tell more each time."""
    made = world(accept=LAPLACE, privatizer=("laplace", {"epsilon": 1}))
    browser.driver.get(link(made))
    browser.until("return document.getElementById('send')?.disabled === false")
    drawn = browser.run("""
        const form = document.getElementById("local"), tokens = [];
        form.addEventListener("submit", (event) => {
          event.preventDefault();
          tokens.push(form.elements.token.value);
        });
        for (const [score, question, item] of [[10, 1, "a"], [0, 1, "a"], [10, 1, "b"], [10, 2, "a"]]) {
          document.getElementById("score").value = score;
          form.elements.question.value = question;
          form.dataset.item = item;
          document.getElementById("send").disabled = false;
          form.requestSubmit(document.getElementById("send"));
        }
        return tokens;""")
    assert len(drawn) == 4 and drawn[0] == drawn[1] == drawn[3] != drawn[2]


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("local", [False, True])
def test_axe_finds_nothing(world, browser, axe, dark, local):
    changes = {"accept": LAPLACE, "privatizer": ("laplace", {"epsilon": 1})} if local else {}
    made = world(**changes)
    browser.look(width=360, dark=dark)
    browser.driver.get(link(made))
    browser.until(ASKED)
    assert browser.run("return document.documentElement.scrollWidth <= 360")
    # axe comes from the test, past the page's own policy
    browser.driver.execute_cdp_cmd("Page.setBypassCSP", {"enabled": True})
    assert axe(browser) == []
    browser.driver.get(f"http://{made.address}/?token=wrong")
    assert browser.text("[role=alert]") == "no access; expected the link that you were given"
    assert axe(browser) == []
    browser.said()  # the refusal's status 403


def whole(number):
    """A pattern of the number in digits, which are no part of a longer number, nor of a hexadecimal one."""
    return rb"(?<![0-9A-Fa-f])%d(?![0-9A-Fa-f])" % number


def grids(score, steps):
    """Patterns of a score as it would stand in memory or in a log."""
    grid = (2 * score * (1 << 20) + steps) // (2 * steps)
    return [b"score=%d" % score, b"=%d&" % score, re.escape(grid.to_bytes(8, "little")), whole(grid)]


def test_no_score_is_in_the_gateways_memory_log_or_files(world, browser):
    """With a privatizer; the secret of the person's forms is found, so the search works. Tokens have nine digits or
    more, and one of five or fewer, as other numbers have, with a probability of 1e-4."""
    made = world(accept=LAPLACE, privatizer=("laplace", {"epsilon": .001}), form={"form_steps": 1000},
                 tokens_per_worker=4)
    browser.driver.execute_cdp_cmd("Network.enable", {})
    browser.driver.get(link(made))
    scores = iter((613, 587))
    given = fill_in(browser, lambda name: next(scores), made.is_over, most=2)
    assert given == 2
    browser.wait(lambda: browser.run(ASKED))
    memory = memory_of(made.gateway.pid)
    tokens = [int(body.split("token=")[1].split("&")[0]) for body in bodies(browser)]
    secret = browser.run("return document.querySelector('input[name=secret]').value").encode()
    assert len(tokens) == 2 and secret in memory and b"Golden Wok" in memory
    written = made.gateway.text().encode() + b"".join(
        path.read_bytes() for path in made.folder.rglob("*") if path.is_file())
    for score in (613, 587):
        for form in grids(score, 1000):
            assert not re.search(form, memory) and not re.search(form, written), (score, form)
    for token in tokens:
        assert not re.search(whole(token), written), "no token is in a log or in the clear in a file"
