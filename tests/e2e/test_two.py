# SPDX-License-Identifier: Apache-2.0
"""Campaigns with two brokers: all five parties as programs, from the ranking to what each does if another is away."""
import json
import os
import random
import re
import shutil
import subprocess

import pytest

from client.requester import end_name, spec
from harness import crashes
from harness.admin import ask, metrics
from harness.campaign import CLASSES, GATEWAYS, Run, outcome
from harness.commands import as_requester, crowdveil
from harness.daemon import PROGRAMS, ROOT, wait_until, write_config
from harness.deployment import Deployment, merged, missing_programs
from harness.proxy import Relay

TWO = """campaign: two
items: {list: [{name: a, mean: 0.9}, {name: b, mean: 0.2}]}
policy: {name: ppar, alpha: 0.2, tokens_per_round: 500}
privacy: {epsilon: 1, brokers: 2, tokens_per_worker: 1}
limits: {tokens: 40000, idle: 30s}
"""


@pytest.fixture(autouse=True)
def programs():
    absent = missing_programs("broker", "cobroker", "thirdparty", "worker")
    if absent:
        pytest.fail(f"not built: {', '.join(absent)}")


@pytest.fixture(scope="module")
def undisturbed_two(tmp_path_factory, pki):
    """The outcome with two brokers, without any fault."""
    deployment = Deployment(tmp_path_factory.mktemp("undisturbed-two"), pki)
    try:
        run = Run(deployment, cobroker={})
        run.start_workers(arrival_rate=0)
        result = outcome(*run.finish())
        run.check(result)
    finally:
        deployment.close()
    assert max(plan for plan, *_ in result[1]) > 1, "one round only"
    return result


# ---- the way it should be

@pytest.mark.quick
def test_the_ranking_is_right_and_each_release_has_both_noises(undisturbed_two):
    """Run.check() has audited both databases: each release, its noise, the ledger, the chains; and replayed it."""
    assert [row[1] for row in undisturbed_two[0]] == CLASSES


def test_the_two_draw_other_noise(undisturbed_two, undisturbed):
    """With one seed at both, the noise of the two must not be the same, nor cancel, nor be that of one broker."""
    one = {(plan, arm): noisy for plan, arm, _, noisy in undisturbed[1] if plan == 1}
    two = {(plan, arm): noisy for plan, arm, _, noisy in undisturbed_two[1] if plan == 1}
    assert one.keys() == two.keys() and all(one[place] != two[place] for place in one)


def test_up_runs_five_parties(tmp_path):
    (tmp_path / "two.yaml").write_text(TWO)
    done = crowdveil("up", tmp_path / "two.yaml", "--json", "--seed", 3, "--state", tmp_path / "state")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert [set(group) for group in result["classes"]] == [set(group) for group in result["truth"]]
    assert ", two brokers" in done.stderr
    state = tmp_path / "state"
    assert (state / "cobroker/cobroker.db").stat().st_size > 0 and (state / "cobroker-anchor/cobroker").exists()
    assert not list((state / "broker").glob("cobroker*")), "each has a folder of its own"
    doctor = crowdveil("doctor", state)
    assert doctor.returncode == 0, doctor.stdout + doctor.stderr
    assert "broker and co-broker\n  ok       know each other by their keys\n" in doctor.stdout, doctor.stdout


def test_an_export_is_verified_and_replayed(deployment, tmp_path):
    (tmp_path / "two.yaml").write_text(TWO)
    deployment.up(cobroker={})
    with deployment.requester() as requester:
        number = requester.submit(spec(2, name="two", two=True, epsilon=1, tokens=40_000, policy_params={
            "alpha": .2, "tokens_per_round": 500})).campaign
        deployment.start_worker("gateway/1-40000", tmp_path / "two.yaml")
        finished = requester.watch(number)
        assert end_name(finished.progress.end) == "complete"
    done = crowdveil("export", number, *as_requester(deployment))
    assert done.returncode == 0, done.stderr
    (tmp_path / "export.json").write_text(done.stdout)
    assert crowdveil("verify", tmp_path / "export.json").returncode == 0
    for party in ("broker", "cobroker", "thirdparty"):
        backup = crowdveil("backup", deployment.folder / f"{party}.yaml", "--to", tmp_path / f"{party}-copy.db")
        assert backup.returncode == 0, backup.stderr
    deployment.stop()
    assert crowdveil("replay", deployment.folder / "thirdparty-state/thirdparty.db").returncode == 0


# ---- who declines and who refuses

def test_submit_tells_why_the_co_broker_refuses(deployment, tmp_path):
    (tmp_path / "two.yaml").write_text(TWO)
    deployment.up(cobroker={"limits": {"epsilon": .5}})
    deployment.broker.wait_for("limits of the co-broker: epsilon 0.5")
    done = crowdveil("submit", tmp_path / "two.yaml", *as_requester(deployment))
    assert (done.returncode, done.stdout) == (1, ""), "before it starts, as the broker knows the limits"
    assert done.stderr == ("crowdveil submit: the broker refuses: epsilon 1.000000 is over the co-broker's limit of "
                           "0.500000 (limits.epsilon)\n")


def test_a_co_broker_that_comes_later_refuses_with_its_reason(deployment, tmp_path):
    (tmp_path / "two.yaml").write_text(TWO)
    deployment.start_thirdparty()
    deployment.start_cobroker()
    address = deployment.cobroker.address
    deployment.cobroker.kill()
    deployment.start_broker()
    running = [deployment.launch("submit", [PROGRAMS["crowdveil"], "submit", tmp_path / "two.yaml",
                                            *as_requester(deployment), *more]) for more in ([], ["--watch"])]
    running[1].wait_for("^campaign . waits for the co-broker")
    assert running[0].wait() == 0
    deployment.start_cobroker({"listen": address, "limits": {"epsilon": .5}})
    why = "co-broker: epsilon 1.000000 is over the co-broker's limit of 0.500000 (limits.epsilon)"
    assert running[1].wait() == 1
    assert f"why: {why}" in running[1].text().splitlines(), running[1].text()
    said = f"why: {why}"
    assert deployment.broker.stop() == 0
    deployment.start_broker()
    for campaign in 1, 2:
        again = crowdveil("watch", campaign, *as_requester(deployment))
        assert again.returncode == 1 and said in again.stdout.splitlines(), again.stdout + again.stderr


@pytest.mark.parametrize("changes", [
    {"privatizer": ("laplace", {"epsilon": 1})}, {"mechanism": "none", "epsilon": 0, "trusted": True},
    {"edges": [(0, 1)]},
], ids=["laplace", "no mechanism", "graph"])
def test_what_two_brokers_do_not_take(deployment, changes):
    deployment.up(broker={"limits": {"trusted_thirdparty": True}}, cobroker={})
    with deployment.requester() as requester, pytest.raises(Exception, match="two brokers"):
        requester.submit(spec(2, two=True, **{"epsilon": 1, "tokens": 4000, "policy_params": {"alpha": .2}, **changes}))


KEY = "ab" * 32
BAD = {
    "broker": [
        ({"cobroker": "127.0.0.1:1"}, "cobroker_key"),
        ({"cobroker": "127.0.0.1:1", "cobroker_key": "12"}, "cobroker_key.*64"),
        ({"cobroker": "127.0.0.1:1", "cobroker_key": "0" * 64}, "cobroker_key"),
        ({"cobroker_key": KEY}, "cobroker"),
    ],
    "cobroker": [
        ({"broker_key": None}, "broker_key"),
        ({"broker_key": "xyz"}, "broker_key.*64"),
        ({"broker_key": KEY + "0"}, "broker_key.*64"),
        ({"broker_name": None}, "broker_name"),
        ({"limits": {"epsilon": -1}}, "epsilon"),
        ({"thirdparty": "127.0.0.1:1"}, "thirdparty"),
        ({"anchor": None}, "anchor"),
    ],
    "worker": [
        ({"accept": {"pairs": KEY}}, "pairs"),
        ({"accept": {"pairs": f"{KEY}+12"}}, "pairs"),
        ({"accept": {"pairs": f"{KEY}+{KEY}"}}, "pairs"),
        ({"accept": {"pairs": f"{KEY}+{'cd' * 32}"}, "cobroker": None}, "cobroker"),
    ],
}


@pytest.mark.parametrize("program, changes, says", [(program, *case) for program, cases in BAD.items()
                                                    for case in cases])
def test_wrong_settings_are_told_in_one_line(deployment, tmp_path, program, changes, says):
    (tmp_path / "two.yaml").write_text(TWO)
    settings = {"broker": deployment.broker_settings, "cobroker": deployment.cobroker_settings,
                "worker": lambda: {"broker": "127.0.0.1:1", "broker_name": "main", "requesters": "alice",
                                   "cobroker": "127.0.0.1:2", "campaign": str(tmp_path / "two.yaml"),
                                   "tls": deployment.pki.issue("worker/1").config()}}[program]()
    settings = {key: value for key, value in merged(settings, changes).items() if value is not None}
    config = write_config(tmp_path / "bad.yaml", settings)
    done = subprocess.run([PROGRAMS[program], "--config", config, "--check-config"], capture_output=True, text=True,
                          timeout=30)
    assert done.returncode == 2 and done.stdout == "", done.stdout + done.stderr
    assert len(done.stderr.strip().splitlines()) == 1 and re.search(says, done.stderr), done.stderr


# ---- who is away, and comes back

def test_the_requester_sees_that_the_co_broker_is_away(deployment, tmp_path):
    (tmp_path / "two.yaml").write_text(TWO)
    deployment.up(cobroker={})
    address, away = deployment.cobroker.address, "waits for the co-broker, which is not connected to the broker"
    command = ["submit", tmp_path / "two.yaml", *as_requester(deployment)]
    done = crowdveil(*command)  # a silent success while it is there
    assert (done.returncode, done.stdout, done.stderr) == (0, "campaign 1\n", ""), done.stderr
    deployment.cobroker.kill()
    wait_until(lambda: ask(deployment.folder / "broker.sock", "GET", "/health")[0] == 503, "the broker misses it")
    done = crowdveil(*command)
    assert (done.returncode, done.stdout) == (0, "campaign 2\n"), done.stderr
    assert done.stderr == f"crowdveil submit: campaign 2 {away}\n"
    watch = deployment.launch("submit", [PROGRAMS["crowdveil"], *command, "--watch"])
    watch.wait_for(f"^campaign 3 {away}$")
    assert re.search("two .*waits for co-broker", crowdveil("status", *as_requester(deployment)).stdout)
    deployment.start_cobroker({"listen": address})
    for campaign in (1, 2):
        assert crowdveil("cancel", campaign, *as_requester(deployment)).returncode == 0
    deployment.start_worker("gateway/1-40000", tmp_path / "two.yaml", {"exit_when_done": False, "arrival_rate": 50})
    watch.wait_for("[1-9][0-9,]* of 40,000 tokens")  # a round, 1,000 of them, takes 20 s
    since = watch.mark()
    deployment.cobroker.kill()  # in the middle it is told as well
    watch.wait_for(f"^campaign 3 {away}$", after=since)
    assert crowdveil("cancel", 3, *as_requester(deployment)).returncode == 0
    assert watch.wait() == 1 and len([line for line in watch.text().splitlines() if away in line]) == 2


def test_the_campaign_waits_for_the_co_broker(deployment, undisturbed_two):
    run = Run(deployment, cobroker={})
    run.start_workers(arrival_rate=2000, exit_when_done=False)
    run.when(3000)
    run.kill("cobroker")
    wait_until(lambda: ask(deployment.folder / "broker.sock", "GET", "/health")[0] == 503, "the broker misses it")
    before = run.when(0).tokens
    assert run.when(0).tokens - before == 0, "tokens were counted without the co-broker"
    run.start("cobroker").address
    run.when(before + 1000)
    run.check(undisturbed_two)


def test_a_cut_between_the_brokers_changes_nothing(deployment, undisturbed_two):
    run = Run(deployment, cobroker={})
    relay = Relay(deployment.cobroker.address)
    run.settings["broker"]["cobroker"] = relay.address
    run.kill_and_restart("broker")
    run.start_workers(arrival_rate=2000, exit_when_done=False)
    for tokens in (1000, 4000, 9000, 15_000, 24_000):
        run.when(tokens)
        relay.reset()
    run.check(undisturbed_two)
    relay.close()


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.long)])
def test_kills_at_random_moments_change_nothing(deployment, undisturbed_two, seed):
    """Of the brokers, the third-party and the gateways, in the order of a seed."""
    chance = random.Random(f"two/{seed}")
    run = Run(deployment, cobroker={}, tokens_per_worker=20)
    gateways = {identity: run.start_worker(identity, arrival_rate=1500, exit_when_done=False)
                for identity in GATEWAYS}
    for tokens in sorted(chance.randrange(200, 20_000) for _ in range(12)):
        run.when(tokens)
        victim = chance.choice(["broker", "broker", "cobroker", "cobroker", "thirdparty", *GATEWAYS])
        if victim in gateways:
            gateways[victim].kill()
            crashes.killed("gateway")
            gateways[victim] = run.start_worker(victim, arrival_rate=1500, exit_when_done=False)
        else:
            run.kill_and_restart(victim)
    run.check(undisturbed_two)


# ---- an operator's commands

def test_doctor_compares_the_fingerprints(deployment, tmp_path):
    deployment.up(cobroker={})
    deployment.stop()
    folder = deployment.folder
    both = (folder / "broker.yaml", folder / "cobroker.yaml")
    done = crowdveil("doctor", *both)
    assert "know each other by their keys" in done.stdout, done.stdout + done.stderr
    other = deployment.key_of("cobroker/other")
    wrong = write_config(folder / "broker-wrong.yaml",
                         {**deployment.broker_settings(), "cobroker_key": other})
    done = crowdveil("doctor", wrong, folder / "cobroker.yaml")
    assert done.returncode == 1
    ours = deployment.key_of("cobroker/second")
    assert f"cobroker_key is {other}, but the key of cobroker.yaml is {ours}" in done.stdout
    assert "crowdveil pki fingerprint" in done.stdout


def test_a_co_broker_behind_its_anchor_does_not_start(deployment, tmp_path):
    run = Run(deployment, cobroker={})
    run.start_workers(arrival_rate=2000, exit_when_done=False)
    run.when(1000)
    assert deployment.cobroker.stop() == 0
    old = shutil.copytree(deployment.folder / "cobroker-state", tmp_path / "old")
    run.start("cobroker").address
    run.when(6000)
    assert deployment.cobroker.stop() == 0
    shutil.rmtree(deployment.folder / "cobroker-state")
    shutil.copytree(old, deployment.folder / "cobroker-state")
    daemon = run.start("cobroker")
    assert daemon.wait() == 1 and re.search("anchor", daemon.text()), daemon.text()
    done = crowdveil("doctor", deployment.folder / "cobroker.yaml")
    assert done.returncode == 1 and "anchor" in done.stdout, done.stdout


def test_the_co_brokers_metrics_and_health(deployment):
    deployment.up(cobroker={})
    wait_until(lambda: ask(deployment.folder / "cobroker.sock", "GET", "/health")[0] == 200, "its broker is connected")
    assert metrics(deployment.folder / "cobroker.sock")["crowdveil_healthy"] == 1
    deployment.broker.stop()
    wait_until(lambda: ask(deployment.folder / "cobroker.sock", "GET", "/health")[0] == 503, "it misses its broker")


def test_the_demo_passes_its_option_on():
    """deploy/demo gives everything that it does not know to `crowdveil up`, which has --brokers."""
    assert "--brokers" in crowdveil("up", "--help").stdout
    assert "--brokers" in subprocess.run([ROOT / "deploy/demo", "--help"], capture_output=True, text=True,
                                         env=dict(os.environ)).stdout
