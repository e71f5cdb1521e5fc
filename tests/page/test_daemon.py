# SPDX-License-Identifier: Apache-2.0
"""The page of a real third-party, with broker and workers: what a reader sees is what the database holds."""
import sqlite3
import sys
import urllib.request
from pathlib import Path

import pytest
from browser import Browser

sys.path.append(str(Path(__file__).resolve().parents[1] / "e2e"))

from harness.campaign import Run  # noqa: E402
from harness.deployment import Deployment, missing_programs  # noqa: E402
from harness.page import Page  # noqa: E402
from harness.pki import Pki  # noqa: E402

TOKEN = "0123456789-abcdefghij-ABCDEFGHIJ"
SIGNS = {"settle": ("−", "≥"), "remove": ("+", "<")}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    absent = missing_programs("broker", "thirdparty", "worker")
    if absent:
        pytest.fail(f"not built: {', '.join(absent)}")
    folder = tmp_path_factory.mktemp("parties")
    (folder / "token").write_text(TOKEN + "\n")
    (folder / "token").chmod(0o600)
    deployment = Deployment(folder, Pki(tmp_path_factory.mktemp("pki") / "ca"))
    made = Run(deployment, thirdparty={"page": "127.0.0.1:0", "page_token": str(folder / "token")})
    made.page = Page(deployment.thirdparty)
    made.settings["thirdparty"]["page"] = f"127.0.0.1:{made.page.port}"
    yield made
    deployment.close()


def rows(run, sql):
    database = sqlite3.connect(f"file:{run.deployment.folder}/thirdparty-state/thirdparty.db?mode=ro", uri=True)
    try:
        return database.execute(sql).fetchall()
    finally:
        database.close()


def decimal(number, digits=3):
    return f"{number:.{digits}f}".replace("-", "−")


def check(browser, run):
    """The stopped third-party's database has what the page shows."""
    shown = {row["arm"]: (row["group"], row["score"], row["tokens"]) for row in browser.rows()}
    assert shown == {arm: (f"Class {level}", f"{decimal(mean)} ± {decimal(radius)}", f"{tokens:,}")
                     for arm, level, tokens, mean, radius in
                     rows(run, "SELECT arm, class, tokens, mean, radius FROM standing")}
    fell = rows(run, "SELECT kind, arm, class, mean, radius FROM decision ORDER BY number DESC")
    lines = browser.texts("#feed li")
    assert len(lines) == len(fell) > 0
    for line, (kind, arm, level, mean, radius) in zip(lines, fell):
        assert line.startswith(f"item {arm + 1} {'locks into' if kind == 'settle' else 'is below'} class {level}")
        assert f"{decimal(mean)} {SIGNS[kind][0]} {decimal(radius)}" in line or f"{decimal(mean, 4)} " in line
    (releases, plans), = rows(run, "SELECT releases, plans_accepted FROM campaign")
    tiles = browser.tiles()
    assert tiles["Rounds"] == (f"{plans:,}", f"{releases:,} noisy sums")
    (tokens,), = rows(run, "SELECT sum(w.tokens) FROM release r JOIN plan_want w ON w.plan = r.plan AND w.arm = r.arm")
    assert tiles["Tokens"][0] == f"{tokens:,}"


def shows_the_brokers_connection(browser, run):
    def until(words):
        browser.until("return document.getElementById('broker').textContent.startsWith(arguments[0])", words)
    until("connected since ")
    run.deployment.broker.kill()
    until("not connected since ")
    run.start("broker")
    until("connected since ")


def test_a_campaign_from_its_first_step_to_a_restart(browser, run):
    browser.open(run.page.link)
    browser.until("return document.getElementById('link').dataset.state === 'live'")
    shows_the_brokers_connection(browser, run)
    assert browser.text("#time-text") == "Round 0" and {row["tokens"] for row in browser.rows()} == {"0"}
    run.start_workers()
    run.hurry()
    browser.until("return document.querySelector('.state').textContent === 'complete'")
    browser.frame()
    assert browser.run("return document.getElementById('broker').closest('div').hidden"), "the campaign has ended"
    assert browser.said() == []
    run.deployment.thirdparty.stop()
    check(browser, run)
    browser.until("return document.getElementById('link').dataset.state === 'lost'")
    browser.silent = False  # the browser reports the lost connection itself
    run.start("thirdparty").address
    browser.until("return document.getElementById('link').dataset.state === 'live'")
    browser.open(run.page.link)
    run.deployment.thirdparty.stop()
    check(browser, run)
    run.start("thirdparty").address


def test_its_history_at_every_step(browser, run):
    run.hurry()
    browser.open(run.page.link)
    campaign = run.page.campaign()
    standings = {}
    for index, step in enumerate(campaign["steps"]):
        standings |= {row[0]: row for row in step["s"]}
        if index % 5 == 0:
            browser.seek(index)
            shown = {row["arm"]: (row["score"], row["tokens"]) for row in browser.rows()}
            assert shown == {arm: (f"{decimal(row[3])} ± {decimal(row[4])}" if row[2] else "–", f"{row[2]:,}")
                             for arm, row in standings.items()}


def test_what_the_others_hold_stays_hidden(browser, run):
    browser.open(run.page.link)
    browser.run("document.getElementById('boundary').scrollIntoView()")
    browser.until("return document.querySelectorAll('.hidden-from-here').length === 2")


def test_without_script(run):
    plain = Browser(script=False)
    try:
        plain.driver.get(run.page.link)
        plain.wait(lambda: "/table" in plain.driver.current_url)
        assert len(plain.driver.find_elements("css selector", "tbody tr, table tr")) > 5
    finally:
        plain.close()


def test_every_file_is_served_with_its_type(run):
    for name, kind in (("page.css", "text/css"), ("main.js", "text/javascript"), ("mark.svg", "image/svg+xml"),
                       ("vendor/uPlot.esm.js", "text/javascript"), ("vendor/uPlot.min.css", "text/css")):
        asked = urllib.request.Request(f"http://127.0.0.1:{run.page.port}/{name}", headers={"Cookie": run.page.cookie})
        with urllib.request.urlopen(asked) as answer:
            assert answer.headers.get_content_type() == kind, name
