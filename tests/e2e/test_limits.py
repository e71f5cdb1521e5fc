# SPDX-License-Identifier: Apache-2.0
"""The operators' limits: which campaigns they allow is known before a campaign starts, and what ends one is told."""
import contextlib
import json
import sqlite3

import pytest
import yaml

from client.requester import end_name, spec
from harness.commands import as_requester, crowdveil
from harness.daemon import ROOT

CONFIG = ROOT / "deploy/config"
FIRST = ROOT / "deploy/campaigns/first.yaml"
# What a sample says of its host and of the parties' names, which every deployment replaces.
PLACES = {"listen", "thirdparty", "thirdparty_name", "brokers", "state", "anchor", "admin", "seal_key", "tls", "broker",
          "broker_name", "broker_key", "campaign", "requesters", "database", "database_password"}

RANKING = """campaign: test
items: {rewards: bernoulli, list: [{name: a, mean: 0.9}, {name: b, mean: 0.3}]}
policy: POLICY
privacy: PRIVACY
limits: {tokens: TOKENS, idle: 30s}
"""


def sample(name):
    return {key: value for key, value in yaml.safe_load((CONFIG / f"{name}.yaml").read_text()).items()
            if key not in PLACES}


def written(folder, policy="{name: ppar-kl, alpha: 0.1}", privacy="{mechanism: segments, epsilon: 0.5}",
            tokens=1000000):
    path = folder / "campaign.yaml"
    path.write_text(RANKING.replace("POLICY", policy).replace("PRIVACY", privacy).replace("TOKENS", str(tokens)))
    return path


def least_tokens(folder):
    """The smallest release that the third-party has got."""
    with contextlib.closing(sqlite3.connect(next(folder.rglob("thirdparty.db")))) as db:
        return min(row[0] for row in db.execute("SELECT tokens FROM release"))


# ---- the samples

@pytest.mark.parametrize("brokers", [1, 2])
def test_the_samples_run_the_first_campaign(deployment, tmp_path, brokers):
    folder = tmp_path / "campaigns"
    folder.mkdir()
    text = FIRST.read_text()
    path = folder / "first.yaml"
    path.write_text(text if brokers == 1 else text.replace("epsilon: 0.5,", "epsilon: 0.5, brokers: 2,"))
    deployment.up(sample("thirdparty"), sample("broker"), sample("cobroker") if brokers == 2 else None)
    link = as_requester(deployment)
    checked = crowdveil("check", path, *link)
    assert checked.returncode == 0 and "broker main accepts it; a release has 100 tokens at least" in checked.stdout
    accept = sample("worker")["accept"]
    if brokers == 2:
        accept = {**accept, "pairs": deployment.pair()}
    deployment.start_worker("gateway/1-500000", folder,
                            {"accept": accept, "state": deployment.state("gateway-state")})
    done = crowdveil("submit", path, "--watch", *link)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ended       complete" in done.stdout and "why:" not in done.stdout
    deployment.thirdparty.stop()
    assert least_tokens(tmp_path) >= 100


def test_both_backends_have_the_same_limits_in_their_samples():
    assert sample("broker")["limits"] == sample("broker-postgresql")["limits"]


# ---- what a broker says before

EXP3 = ("{name: exp3}", "{mechanism: none, third_party: trusted}")
BEYOND = {
    "epsilon": ({"limits": {"epsilon": .25}}, {},
                "epsilon 0.500000 is over the broker's limit of 0.250000 (limits.epsilon)"),
    "worker_epsilon": ({"limits": {"worker_epsilon": .1}}, {},
                       "one token costs its worker epsilon 0.500000, over the broker's limit of 0.100000 for all "
                       "campaigns of a worker (limits.worker_epsilon)"),
    "tokens": ({"limits": {"tokens": 1000}}, {},
               "a limit of 1000000 tokens is over the broker's limit of 1000 (limits.tokens)"),
    "arms": ({"limits": {"arms": 1}}, {}, "2 arms are over the broker's limit of 1 (limits.arms)"),
    "release_tokens": ({"limits": {"release_tokens": 5000}}, {"tokens": 4000},
                       "a limit of 4000 tokens is below the broker's smallest release of 5000 tokens "
                       "(limits.release_tokens)"),
    "release_tokens of all items": (
        {"limits": {"release_tokens": 3000}}, {"tokens": 4000},
        "the first plan asks for 6000 tokens, since a release has 3000 at least (limits.release_tokens of the broker); "
        "the campaign's limit is 4000; expected as many"),
    "single tokens": ({"limits": {"trusted_thirdparty": True}}, {"policy": EXP3[0], "privacy": EXP3[1]},
                      "policy exp3 asks for single tokens, and the smallest release has 100 (limits.release_tokens of "
                      "the broker); expected 1, a privatizer that protects each token, or another policy"),
    "trust": ({}, {"policy": "{name: exp3-tau}", "privacy": EXP3[1]},
              "privatizer none with mechanism none sends exact sums to the third-party; expected another pair, or a "
              "broker with limits.trusted_thirdparty"),
    "no co-broker": ({}, {"privacy": "{mechanism: segments, epsilon: 0.5, brokers: 2}"},
                     "the campaign has two brokers, and this one has no co-broker; expected one broker, or a broker "
                     "with the setting cobroker"),
}


def assert_told(path, link, reason):
    """Every command that knows the broker says so before anything starts."""
    for command in (("check", path), ("plan", path, "--seconds", 1), ("ledger", "--plan", path), ("submit", path),
                    ("submit", path, "--watch")):
        done = crowdveil(*command, *link)
        assert (done.returncode, done.stdout) == (1, ""), f"{command}: {done.stdout}{done.stderr}"
        assert done.stderr.count("\n") == 1 and done.stderr.endswith(f"{reason}\n"), f"{command}: {done.stderr}"
    assert json.loads(crowdveil("status", "--json", *link).stdout)["campaigns"] == []


@pytest.mark.parametrize("limit", BEYOND)
def test_a_campaign_beyond_a_limit_does_not_start(deployment, tmp_path, limit):
    limits, campaign, reason = BEYOND[limit]
    base = {"limits": {"release_tokens": 100}}
    deployment.start_thirdparty()
    deployment.start_broker({"limits": {**base["limits"], **limits.get("limits", {})}})
    assert_told(written(tmp_path, **campaign), as_requester(deployment), reason)


@pytest.mark.parametrize(("limits", "reason"), [
    ({"epsilon": .25}, "epsilon 0.500000 is over the co-broker's limit of 0.250000 (limits.epsilon)"),
    ({"worker_epsilon": .1}, "one token costs its worker epsilon 0.500000, over the co-broker's limit of 0.100000 for "
                             "all campaigns of a worker (limits.worker_epsilon)"),
    ({"tokens": 1000}, "a limit of 1000000 tokens is over the co-broker's limit of 1000 (limits.tokens)"),
    ({"arms": 1}, "2 arms are over the co-broker's limit of 1 (limits.arms)"),
    ({"release_tokens": 1000000}, "the first plan asks for 2000000 tokens, since a release has 1000000 at least "
                                  "(limits.release_tokens of the broker); the campaign's limit is 1000000; expected as "
                                  "many"),
], ids=["epsilon", "worker_epsilon", "tokens", "arms", "release_tokens"])
def test_the_limits_of_a_co_broker_count_likewise(deployment, tmp_path, limits, reason):
    deployment.up(cobroker={"limits": limits})
    deployment.broker.wait_for("limits of the co-broker")
    assert_told(written(tmp_path, privacy="{mechanism: segments, epsilon: 0.5, brokers: 2}"),
                as_requester(deployment), reason)


@pytest.mark.parametrize(("of_broker", "of_cobroker"), [(50, 150), (150, 50)])
def test_the_larger_of_two_smallest_releases_counts(deployment, tmp_path, of_broker, of_cobroker):
    path = written(tmp_path, privacy="{mechanism: segments, epsilon: 1, brokers: 2}")
    deployment.up(broker={"limits": {"release_tokens": of_broker}},
                  cobroker={"limits": {"release_tokens": of_cobroker}})
    deployment.broker.wait_for("limits of the co-broker")
    deployment.start_worker("gateway/1-500000", path,
                            {"accept": {"pairs": deployment.pair(), "mechanisms": "segments", "epsilon": 1}})
    done = crowdveil("submit", path, "--watch", *as_requester(deployment))
    assert done.returncode == 0 and "ended       complete" in done.stdout, done.stdout + done.stderr
    deployment.thirdparty.stop()
    assert least_tokens(tmp_path) == 150


def test_a_command_without_all_options_of_a_broker_says_which_one_is_missing(tmp_path):
    path = written(tmp_path)
    for command in ("check", "plan"):
        done = crowdveil(command, path, "--broker-name", "main", "--tls-ca", path, "--tls-cert", path)
        assert done.returncode == 2 and "--tls-key is missing" in done.stderr, done.stderr
        done = crowdveil(command, path, "--broker", "127.0.0.1:1")
        assert done.returncode == 2 and " is missing; expected it with the other options" in done.stderr, done.stderr


# ---- what ended a campaign

def await_end(deployment, campaign):
    with deployment.requester() as requester:
        return requester.watch(campaign).progress


def expire(deployment, campaign):
    with deployment.requester() as requester:
        requester.watch(campaign, until=lambda progress: progress.plans > 0)
    deployment.clock.advance(3_700_000)


def cancel(deployment, campaign):
    assert crowdveil("cancel", campaign, *as_requester(deployment)).returncode == 0


def ask_for_more(deployment, campaign):
    """The first plan asks for more than the campaign has."""


def leave_alone(deployment, campaign):
    expire(deployment, campaign)


ENDS = {
    "deadline": (expire, {"deadline_ms": 3_600_000}, "deadline", "the deadline (limits.deadline) has passed"),
    "idle": (leave_alone, {"idle_ms": 3_600_000}, "idle", "no token was accepted within limits.idle"),
    "cancelled": (cancel, {}, "cancelled", "the requester cancelled it"),
    "tokens": (ask_for_more, {"tokens": 150}, "tokens",
               "plan 1: the plan asks for 200 tokens; expected at most 150, which are left of 150"),
    "a policy of single tokens": (ask_for_more, {"policy": "exp3", "policy_params": {}, "trusted": True,
                                                 "mechanism": "none", "epsilon": 0}, "refused",
                                  "third-party: policy exp3 asks for single tokens, and the smallest release has 100 "
                                  "(limits.release_tokens of the broker); expected 1, a privatizer that protects each "
                                  "token, or another policy"),
    "an unknown policy": (ask_for_more, {"policy": "nobody", "policy_params": {}}, "refused",
                          'third-party: unknown policy "nobody"'),
}


@pytest.mark.parametrize("end", ENDS)
def test_what_ended_a_campaign_is_told_before_and_after_a_restart(deployment, end):
    """To every command, whichever client has submitted it."""
    act, campaign, name, why = ENDS[end]
    changes = {"limits": {"release_tokens": 100, "trusted_thirdparty": True}}
    deployment.up(broker=changes)
    with deployment.requester() as requester:
        params = {"alpha": .1, "tokens_per_round": 100}
        number = requester.submit(spec(2, **{"policy_params": params, **campaign})).campaign
    act(deployment, number)
    assert end_name(await_end(deployment, number).end) == name
    address = deployment.broker.address
    for _ in range(2):
        link = as_requester(deployment)
        watched = crowdveil("watch", number, *link)
        told, = [line for line in watched.stdout.splitlines() if line.startswith("why: ")]
        assert told.startswith(f"why: {why}"), watched.stdout
        assert told in crowdveil("ledger", number, *link).stdout.splitlines()
        assert told in crowdveil("status", *link).stdout.replace(" " * 10, "").splitlines()
        for command in (("watch", "--json", number), ("ledger", "--json", number)):
            assert "why: " + json.loads(crowdveil(*command, *link).stdout)["why"] == told
        entry, = json.loads(crowdveil("status", "--json", *link).stdout)["campaigns"]
        export = json.loads(crowdveil("export", number, *link).stdout)
        assert "why: " + entry["why"] == told == "why: " + export["progress"]["why"]
        assert deployment.broker.stop() == 0
        deployment.start_broker({**changes, "listen": address})


# ---- the containers

COMPOSE = ROOT / "deploy/compose"


def of_service(file, service):
    """What a compose file adds to the configuration of the service's image: options, as keys of a configuration."""
    told = yaml.safe_load((COMPOSE / f"{file}.yaml").read_text())["services"][service].get("command", [])
    keys = dict(word[2:].split("=", 1) for word in told)
    parts = [(key.split("-", 1) if key.startswith(("accept-", "limits-")) else ["", key], value)
             for key, value in keys.items()]
    settings = {}
    for (section, key), value in parts:
        key, value = key.replace("-", "_"), yaml.safe_load(value) if "$" not in value else value
        (settings.setdefault(section, {}) if section else settings)[key] = value
    return settings


@pytest.mark.parametrize(("file", "campaign"), [
    ("rank", "demo"), ("recruit", "dpf"), ("local-privacy", "randomized-response"), ("two-brokers", "two-brokers"),
    ("ha", "demo")])
def test_the_containers_permit_what_their_campaign_asks_for(deployment, file, campaign):
    """With the programs of this machine in their place: what is not said is the program's default."""
    path, broker = ROOT / f"deploy/campaigns/{campaign}.yaml", "broker-1" if file == "ha" else "broker"
    limits = of_service(file, broker).get("limits")
    two = file == "two-brokers"
    deployment.up(broker={"limits": limits}, cobroker={"limits": None} if two else None)
    if two:
        deployment.broker.wait_for("limits of the co-broker")
    checked = crowdveil("check", path, *as_requester(deployment))
    assert checked.returncode == 0 and "broker main accepts it" in checked.stdout, checked.stderr
    told = of_service(file, "worker-1")
    accept = {"epsilon": None, "tokens": None, **told["accept"], **({"pairs": deployment.pair()} if two else {})}
    worker = deployment.start_worker("gateway/1-1700000", path, {
        "accept": accept, "seed": None, "exit_when_done": False,
        "state": deployment.state("worker") if "state" in told else None})
    with deployment.requester() as requester:
        assert crowdveil("submit", path, *as_requester(deployment)).returncode == 0
        seen = requester.watch(1, until=lambda progress: progress.releases > 0 or progress.declined)
    assert not seen.declined and seen.releases > 0, seen
    assert worker.process.poll() is None
