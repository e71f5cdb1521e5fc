# SPDX-License-Identifier: Apache-2.0
"""The page of `crowdveil up --page`, which joins all parties of its campaign."""
import json
import re
import subprocess
import urllib.request

import pytest
from conftest import BUILD, ROOT

LINK = re.compile(r"page on (http://\S+/)\?token=(\S+)")


class Up:
    def __init__(self, campaign, *options):
        self.process = subprocess.Popen([str(BUILD / "deploy/launcher/crowdveil"), "up",
                                         str(ROOT / "deploy/campaigns" / campaign), "--page", *options], text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.lines = []
        for line in self.process.stdout:
            self.lines.append(line)
            if found := LINK.search(line):
                break
        else:
            pytest.fail("no link: " + "".join(self.lines))
        self.address, token = found.groups()
        self.link = found.group(0).removeprefix("page on ")
        port = self.address.rstrip("/").rsplit(":", 1)[1]
        self.cookie = f"crowdveil-{port}={token}"

    def json(self, path):
        asked = urllib.request.Request(self.address + path, headers={"Cookie": self.cookie})
        with urllib.request.urlopen(asked, timeout=20) as answer:
            return json.load(answer)

    def stop(self):
        self.process.terminate()
        self.process.communicate(timeout=30)


@pytest.fixture
def up(browser):
    started = []

    def start(*args):
        started.append(Up(*args))
        return started[-1]
    yield start
    browser.driver.get("about:blank")  # else the browser reports the connections that end
    for one in started:
        one.stop()


def finished(browser, one):
    browser.open(one.link)
    browser.until("return document.querySelector('.state').textContent === 'complete'")
    browser.frame()
    return one.json("api/campaign?id=1")


def test_a_ranking_with_its_truth(browser, up):
    campaign = finished(browser, up("first.yaml", "--seed", "1"))
    assert {row["name"] for row in browser.rows()} == set(campaign["names"])
    assert browser.run("return document.querySelector('.key.truth') !== null")
    at = browser.run("""
        const track = document.querySelector('tr[data-arm="0"] .interval').getBoundingClientRect();
        const mark = document.querySelector('tr[data-arm="0"] .truth path').getBoundingClientRect();
        return ((mark.left + mark.right) / 2 - track.left) / track.width * 1.12 - 0.06""")
    assert at == pytest.approx(campaign["truth"]["means"][0], abs=0.01)
    assert browser.tiles()["Tokens"][0] == f"{campaign['steps'][-1]['tokens']:,}"
    browser.run("document.getElementById('boundary').scrollIntoView()")
    browser.until("return document.getElementById('party-broker').textContent.includes('The campaign has ended')")
    noisy = third_party(browser)
    told = browser.driver.execute_async_script(
        "fetch('api/boundary?id=1&arm=0').then((answer) => answer.json()).then(arguments[0])")
    number, _, tokens, mean = told["thirdparty"]["release"]
    assert noisy["noisy mean"] == f"{mean:.3f}" and noisy["noisy sum number"] == str(number)
    assert noisy["of so many tokens"] == f"{tokens:,}"


def third_party(browser):
    return dict(browser.run("return [...document.querySelectorAll('#party-third dl div')].map((entry) =>"
                            "[entry.querySelector('dt').textContent, entry.querySelector('dd').textContent])"))


# The first round takes all of 1,000 workers, and is enough: later ones are needed with a probability below 1e-20.
SHOWN = """campaign: shown
items: {list: [{name: Roma, mean: 0.9}, {name: Old Mill, mean: 0.2}]}
policy: {name: ppar, alpha: 0.2, tokens_per_round: 500}
privacy: {epsilon: 1, tokens_per_worker: 1, share_names: true}
limits: {tokens: 2000, idle: 60s}
"""


def test_one_simulated_worker_shows_its_score(browser, up, tmp_path):
    """What it was asked about need not be the item that the reader chose."""
    (tmp_path / "shown.yaml").write_text(SHOWN)
    one = up(tmp_path / "shown.yaml", "--workers", "999", "--unsafe-show-worker")
    campaign = finished(browser, one)
    worker = one.json("api/boundary?id=1&arm=0")["worker"]
    browser.run("document.getElementById('boundary').scrollIntoView()")
    browser.until("return document.querySelector('#party-worker dl') !== null")
    held = browser.text("#party-worker .holds")
    assert f"the item it was asked about{campaign['names'][worker['arm']]}" in held
    assert f"its score{worker['score']:.3f}" in held and f"what it sends{worker['token']:.3f}" in held


TWO = """campaign: two
items: {list: [{name: Roma, mean: 0.53}, {name: Old Mill, mean: 0.47}]}
policy: {name: ppar, alpha: 0.02, tokens_per_round: 400}
privacy: {epsilon: 1, brokers: 2, tokens_per_worker: 1}
limits: {tokens: 400000, idle: 30s}
"""


def test_two_brokers(browser, up, tmp_path):
    """Many short rounds, so that the one worker is asked, too."""
    (tmp_path / "two.yaml").write_text(TWO)
    one = up(tmp_path / "two.yaml", "--seed", "1", "--unsafe-show-worker")
    campaign = finished(browser, one)
    assert campaign["brokers"] == 2
    browser.run("document.getElementById('boundary').scrollIntoView()")
    browser.until("return document.getElementById('party-co')?.textContent.includes('The campaign has ended')")
    assert "healthok" in browser.text("#party-co dl")
    worker = one.json("api/boundary?id=1&arm=0")["worker"]
    for share in worker["shares"]:
        assert re.fullmatch("[0-9a-f]{16}", share)
        assert " ".join(re.findall("....", share)) in browser.text("#party-worker")
    assert f"its score{worker['score']:.3f}" in browser.text("#party-worker .holds")
    noises = int(third_party(browser)["noise in it"].split(" × Laplace")[0])
    assert noises > 0 and noises % 2 == 0, "each broker adds its own"


def test_a_recruitment_with_its_reward(browser, up):
    campaign = finished(browser, up("dpu.yaml", "--seed", "1"))
    standings = {row[0]: row for step in campaign["steps"] for row in step["s"]}
    paid = sum(row[2] * campaign["costs"][arm] for arm, row in standings.items())
    tiles = browser.tiles()
    assert float(tiles["Money paid"][0]) == pytest.approx(paid, abs=0.006)
    assert tiles["Hires"][0] == str(sum(row[2] for row in standings.values()))
    assert tiles["Reward"][1] == "by the true qualities"


def test_a_bandit_with_its_regret(browser, up):
    campaign = finished(browser, up("klucb-cf.yaml"))
    standings = {row[0]: row for step in campaign["steps"] for row in step["s"]}
    means = campaign["truth"]["means"]
    regret = sum(row[2] * (max(means) - means[arm]) for arm, row in standings.items())
    assert float(browser.tiles()["Regret"][0]) == pytest.approx(regret, abs=0.006)
