# SPDX-License-Identifier: Apache-2.0
"""
Programs of an earlier version beside those of this one: each party alone is of the other version, in both directions.
`tests/run before` names the folder of the earlier version's build in CROWDVEIL_BEFORE; before there is one, this
version's own.
"""
import contextlib
import json
import os
import shutil
import sqlite3
from pathlib import Path

import pytest

from client.requester import end_name, spec
from harness.commands import as_requester, crowdveil
from harness.daemon import PROGRAMS

pytestmark = [pytest.mark.before, pytest.mark.usefixtures("worker_program")]

PARTIES = ("broker", "thirdparty", "worker", "crowdveil")
NOW = {party: PROGRAMS[party] for party in PARTIES}
LIMITS = {"limits": {"worker_epsilon": 1000, "release_tokens": 1}}
CAMPAIGN = """campaign: test
items: {list: [{name: low, mean: 0.05}, {name: high, mean: 0.95}]}
policy: {name: ppar, alpha: 0.3, tokens_per_round: 300}
privacy: {epsilon: 1}
limits: {tokens: 30000}
"""


@pytest.fixture(scope="session")
def before():
    folder = os.environ.get("CROWDVEIL_BEFORE")
    if folder is None:
        pytest.skip("no CROWDVEIL_BEFORE: tests/run before names the earlier version")
    return {party: Path(folder) / NOW[party].parent.name / NOW[party].name if party != "crowdveil" else
            Path(folder) / "deploy/launcher/crowdveil" for party in PARTIES}


@pytest.fixture
def use(monkeypatch, before):
    """use(names): from now on these parties are of the earlier version, and the others of this one."""
    def choose(earlier):
        for party in PARTIES:
            monkeypatch.setitem(PROGRAMS, party, before[party] if party in earlier else NOW[party])
    return choose


MIXED = [(party,) for party in PARTIES] + [tuple(other for other in PARTIES if other != party) for party in PARTIES]


@pytest.mark.parametrize("earlier", MIXED, ids=lambda parties: "+".join(parties) + " of before")
def test_parties_of_two_versions_rank(deployment, tmp_path, use, earlier):
    use(earlier)
    path = tmp_path / "campaign.yaml"
    path.write_text(CAMPAIGN)
    deployment.up(broker=LIMITS)
    deployment.start_worker("gateway/1-30000", path)
    done = crowdveil("submit", path, "--watch", *as_requester(deployment))
    assert done.returncode == 0 and "complete" in done.stdout, done.stdout + done.stderr
    classes = [line.split()[:2] for line in done.stdout.splitlines() if line.split()[1:2] in (["low"], ["high"])]
    assert classes == [["1", "high"], ["2", "low"]], done.stdout
    done = crowdveil("ledger", 1, "--json", *as_requester(deployment))
    arms = json.loads(done.stdout)["arms"]
    assert len(arms) == 2 and all(0 < arm["spent_micro"] <= 1_000_000 and arm["tokens"] > 0 for arm in arms)
    export = tmp_path / "export.json"
    done = crowdveil("export", 1, "--out", export, *as_requester(deployment))
    assert done.returncode == 0, done.stderr
    for command in (["verify", export], ["status", *as_requester(deployment)], ["purge", 1, *as_requester(deployment)]):
        done = crowdveil(*command)
        assert done.returncode == 0, done.stdout + done.stderr
    assert set(deployment.stop().values()) == {0}


def schema_of(database):
    with contextlib.closing(sqlite3.connect(database)) as db:
        return db.execute("PRAGMA user_version").fetchone()[0]


def test_an_upgrade_one_party_after_the_other_loses_nothing(deployment, tmp_path, use):
    """In the order of docs/upgrading.md, in the middle of a campaign; and the third-party's way back, with the copy
    from before: the broker sends what that lacks. Parties of before refuse new formats, and leave them as they are;
    where a format is the same, they go on. The items are equal: the probability that the campaign ends by itself is
    below delta."""
    use(PARTIES)
    path = tmp_path / "campaign.yaml"
    path.write_text(CAMPAIGN.replace("0.05", "0.5").replace("0.95", "0.5"))
    deployment.up(broker=LIMITS)
    addresses = {"thirdparty": deployment.thirdparty.address, "broker": deployment.broker.address}
    with deployment.requester() as requester:
        number = requester.submit(spec(2, name="test", epsilon=1, tokens=30_000, names=["low", "high"],
                                       policy_params={"alpha": 0, "delta": 1e-9, "tokens_per_round": 300})).campaign

    def work_on(gateway):
        """Another gateway gives tokens until some releases more have left."""
        worker = deployment.start_worker(gateway, path, {"arrival_rate": 3000, "exit_when_done": False})
        with deployment.requester() as requester:
            had = requester.status().campaigns[0].tokens
            seen = requester.watch(number, until=lambda progress: progress.tokens > had + 600)
        assert worker.stop() == 0
        return seen.tokens

    state, copy = deployment.folder / "thirdparty-state", tmp_path / "copy"
    database = {party: deployment.folder / f"{party}-state/{party}.db" for party in ("broker", "thirdparty")}
    schema = {}

    def replace(party):
        assert getattr(deployment, party).stop() == 0
        schema[party] = schema_of(database[party])
        if party == "thirdparty":
            shutil.copytree(state, copy)
        settings = {"listen": addresses[party], **(LIMITS if party == "broker" else {})}
        getattr(deployment, f"start_{party}")(settings)

    given = [work_on("gateway/1-3000")]
    for count, party in enumerate(("thirdparty", "broker", "worker")):
        use(tuple(other for other in PARTIES if other not in ("thirdparty", "broker", "worker")[:count + 1]))
        if party != "worker":
            replace(party)
        given.append(work_on(f"gateway/{3000 * (count + 1) + 1}-{3000 * (count + 2)}"))
    assert given == sorted(set(given))
    for party in ("broker", "thirdparty"):
        settings = {"listen": addresses[party], **(LIMITS if party == "broker" else {})}
        assert getattr(deployment, party).stop() == 0
        now = schema_of(database[party])
        use((party,))
        if now == schema[party]:
            getattr(deployment, f"start_{party}")(settings)
            given.append(work_on({"broker": "gateway/20001-23000", "thirdparty": "gateway/24001-27000"}[party]))
            assert getattr(deployment, party).stop() == 0
        else:
            refused = getattr(deployment, f"launch_{party}")(settings)
            line = f"{party}.db: schema version {now} of a later release; expected at most {schema[party]}"
            assert refused.wait() == 1 and line in refused.text()
        use(("thirdparty",))
        if party == "broker":
            deployment.start_broker(settings)
    shutil.rmtree(state)
    shutil.copytree(copy, state)
    deployment.start_thirdparty({"listen": addresses["thirdparty"]})  # back
    given.append(work_on("gateway/12001-15000"))
    assert given == sorted(set(given))
    with deployment.requester() as requester:
        requester.cancel(number)
        assert end_name(requester.watch(number).progress.end) == "cancelled"
    assert set(deployment.stop().values()) == {0}
