# SPDX-License-Identifier: Apache-2.0
"""A broker at one of several addresses: the others refuse connections or answer nothing, and it moves between them."""
import asyncio
import logging
import re
import socket
import subprocess
from contextlib import ExitStack

import pytest

import crowdveil
from client.broker import LeavingBroker
from crowdveil.schema import schema
from harness.campaign import MEANS, Run
from harness.commands import as_requester, crowdveil as command
from harness.daemon import PROGRAMS, write_config
from support.address import ANY_PORT

pytestmark = pytest.mark.usefixtures("worker_program")
SPEC = crowdveil.Spec("test", 2, ("ppar", {"alpha": .2, "tokens_per_round": 300}))


def standby(address=ANY_PORT):
    """A port that is bound and not listened at, as a standby's is: it refuses connections, and nobody else gets it."""
    host, port = address.rsplit(":", 1)
    bound = socket.socket()
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    bound.bind((host, int(port)))
    return bound


def address_of(bound):
    return "{}:{}".format(*bound.getsockname())


@pytest.fixture
def refusing():
    with standby() as bound:
        yield address_of(bound)


@pytest.fixture
def silent():
    """Nothing is answered there, as by a machine that is off: the queue of connections is full."""
    with ExitStack() as stack:
        full = stack.enter_context(standby())
        full.listen(0)
        for _ in range(2):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(full.getsockname())
        yield address_of(full)


class Pair:
    """The broker of a Run at one of two addresses; at the other one nobody listens."""

    def __init__(self, run):
        self.run, self.other = run, standby()
        self.addresses = [address_of(self.other), run.settings["broker"]["listen"]]

    def move(self):
        """The broker is killed, and starts again with the same state at the other address."""
        settings = self.run.settings["broker"]
        self.run.kill("broker")
        before, settings["listen"] = settings["listen"], address_of(self.other)
        self.other.close()
        self.run.start("broker").address
        self.other = standby(before)


def assert_calm(log):
    """Nothing alarming, but for the test's clock."""
    assert not [line for line in log.split("\n") if re.search(r" (error|warning): (?!UNSAFE: the time is)", line)], log


def test_a_broker_that_moves_in_mid_campaign_loses_nothing(deployment, undisturbed):
    """Gateways, `watch` and a requester in Python go on at the other address; the result is the same, bit by bit."""
    run = Run(deployment)
    pair = Pair(run)
    workers = run.start_workers(broker=pair.addresses)
    files = deployment.pki.issue("requester/alice")
    watching = deployment.watch(files, str(run.campaign), ",".join(pair.addresses))
    moved = 0
    with crowdveil.Requester(pair.addresses, files, "main", timeout=60) as requester:
        for seen in requester.watch(run.campaign):
            if moved < 3 and isinstance(seen, crowdveil.Progress) and seen.tokens >= 3000 * (moved + 1):
                pair.move()
                moved += 1
            if moved == 3:
                run.hurry()
    assert moved == 3 and watching.wait() == 0
    assert watching.text().count("connected to the broker again") == 3
    for worker in workers:
        assert_calm(worker.text())
    pair.other.close()
    run.check(undisturbed)


def test_a_gateway_in_python_goes_on_where_the_broker_is(deployment, tmp_path, caplog):
    run = Run(deployment)
    pair = Pair(run)
    accept = crowdveil.Accept(["alice"], epsilon=5, tokens=0)
    gateway = crowdveil.Gateway(",".join(pair.addresses), deployment.pki.issue("gateway/1-400000"), range(1, 400_001),
                                lambda worker, arm: MEANS[arm], "test", accept, broker_name="main")

    async def work():
        working = asyncio.ensure_future(gateway.serve())
        for tokens in (2000, 6000):
            await asyncio.to_thread(run.when, tokens)
            await asyncio.to_thread(pair.move)
        return await working
    counts = asyncio.run(asyncio.wait_for(work(), 240))
    with crowdveil.Requester(pair.addresses, deployment.pki.issue("requester/alice"), "main") as requester:
        result = requester.wait(run.campaign)
    assert result.end == crowdveil.End.COMPLETE and result.classes == {1: [2, 4], 2: [1, 3], 3: [0]}
    assert counts.accepted + counts.duplicates >= result.progress.tokens and not counts.refused
    pair.other.close()


# --- who takes a list


def test_lists_of_addresses_are_taken_from_files_options_and_profiles(deployment, tmp_path, refusing):
    deployment.up()
    several = [refusing, deployment.broker.address]
    tls = deployment.pki.issue("requester/alice").config()
    options = as_requester(deployment)[2:]
    assert command("status", "--broker", ", ".join(several), *options).returncode == 0
    path = write_config(tmp_path / "alice.yaml", {"broker": several, "broker_name": "main", "tls": tls})
    assert command("status", "--config", path).returncode == 0
    (tmp_path / "crowdveil").mkdir()
    profiles = {"city": {"broker": several, "broker_name": "main", "tls": tls}}
    write_config(tmp_path / "crowdveil/profiles.yaml", {"default": "city", "profiles": profiles})
    env = {"XDG_CONFIG_HOME": str(tmp_path)}
    assert command("status", env=env).returncode == 0
    assert f"{','.join(several)}, broker main" in command("profiles", env=env).stdout


def test_a_bad_address_of_a_list_is_one_line_with_its_place(tmp_path):
    bad = tmp_path / "worker.yaml"
    bad.write_text("broker: [a.example:7401, b.example]\n")
    for program, words in (("worker", []), ("crowdveil", ["status"])):
        done = subprocess.run([PROGRAMS[program], *words, "--config", bad], capture_output=True, text=True)
        assert done.returncode == 2 and done.stderr.endswith(
            f'{bad}:1:26: broker has "b.example"; expected HOST:PORT or [IPV6]:PORT\n'), done.stderr


@pytest.mark.parametrize("party", ["thirdparty", "cobroker"])
def test_parties_of_which_there_is_one_process_have_one_address(deployment, party):
    broker = deployment.launch_broker({party: "127.0.0.1:1,127.0.0.1:2", "cobroker_key": "00" * 32}
                                      if party == "cobroker" else {party: "127.0.0.1:1,127.0.0.1:2"})
    assert broker.wait() == 2
    assert "'127.0.0.1:1,127.0.0.1:2' is not an address; expected HOST:PORT or [IPV6]:PORT" in broker.text()


def test_a_machine_that_is_off_keeps_nobody_for_long(deployment, campaign, silent):
    deployment.up()
    several = [silent, deployment.broker.address]
    worker = deployment.start_worker("gateway/1-100", campaign, {"broker": several})
    worker.wait_for("crowdveil-worker connected as gateway/1-100", timeout=10)
    assert command("status", "--broker", ",".join(several), *as_requester(deployment)[2:]).returncode == 0
    with crowdveil.Requester(several, deployment.pki.issue("requester/alice"), "main") as requester:
        assert not requester.status().campaigns


def test_all_addresses_that_fail_are_told_in_one_line(deployment, refusing):
    deployment.up()
    options = as_requester(deployment)[2:]
    both = [refusing, deployment.broker.address]
    done = command("status", "--broker", ",".join(both), "--broker-name", "other", "--patience", "500ms", *options[2:])
    assert done.returncode == 1 and done.stderr.count("\n") == 1
    assert all(address in done.stderr for address in both) and "connection refused" in done.stderr, done.stderr
    with pytest.raises(crowdveil.Lost, match=f"{refusing}: Connection refused; {both[1]}: .*expected other"):
        crowdveil.Requester(both, deployment.pki.issue("requester/alice"), "other")


# --- "moved"


@pytest.fixture
def campaign(tmp_path):
    path = tmp_path / "campaign.yaml"
    path.write_text("campaign: test\nitems: {list: [{name: a, mean: 0.9}, {name: b, mean: 0.2}]}\n"
                    "policy: {name: ppar, alpha: 0.2, tokens_per_round: 300}\nprivacy: {epsilon: 1}\n")
    return path


@pytest.fixture
def leaving(deployment):
    """The addresses of a broker that leaves, and of one that takes over from it."""
    def make(*told, **more):
        gone = LeavingBroker(deployment.pki.issue("broker/main"), *told, **more)
        return gone, [gone.address, deployment.broker.address]
    return make


def test_requests_are_repeated_when_a_broker_moves(deployment, tmp_path, campaign, leaving):
    deployment.up()
    options = as_requester(deployment)[2:]

    def through(command_, *words, told=()):
        gone, several = leaving(*told)
        done = command(command_, *words, "--broker", ",".join(several), *options)
        gone.thread.join(20)
        assert done.returncode == 0, done.stderr
        return done
    key = "0123456789abcdef" * 2
    assert through("submit", campaign, "--client-key", key).stdout == "campaign 1\n"
    assert through("submit", campaign, "--client-key", key).stdout == "campaign 1 (submitted before)\n"
    assert through("status").stdout.startswith("broker main")
    watching = deployment.launch("watch", [PROGRAMS["crowdveil"], "watch", "1", "--broker", ",".join(leaving()[1]),
                                           *options])
    watching.wait_for("connection to the broker lost .the broker moves to another address.; trying again")
    watching.wait_for("connected to the broker again")
    worker = deployment.start_worker("gateway/1-5000", campaign, {"broker": leaving()[1]})
    worker.wait_for("the broker closes the connection: moved")
    assert watching.wait() == 0 and worker.wait() == 0
    assert_calm(worker.text())
    through("ledger", "1")
    with deployment.requester() as requester:
        parts = requester.export(1)
    unfinished = [schema("order").Envelope(part=part) for part in parts]
    unfinished[-1].part.last = False
    through("export", "1", "--output", tmp_path / "moved.json", told=unfinished)
    assert command("export", "1", "--output", tmp_path / "plain.json", *as_requester(deployment)).returncode == 0
    assert (tmp_path / "moved.json").read_bytes() == (tmp_path / "plain.json").read_bytes()
    with crowdveil.Requester(leaving(*unfinished)[1], deployment.pki.issue("requester/alice"), "main") as requester:
        assert requester.export(1) == crowdveil.Export.of(parts)
    through("cancel", "1")
    through("purge", "1")


def test_a_gateway_in_python_takes_a_move_for_what_it_is(deployment, leaving, caplog):
    caplog.set_level(logging.INFO, "crowdveil")
    deployment.up()
    with deployment.requester_in_python() as requester:
        requester.submit(SPEC)
        gone, several = leaving()
        gateway = crowdveil.Gateway(several, deployment.pki.issue("gateway/1-5000"), range(1, 5001),
                                    lambda worker, arm: [.9, .2][arm], "test", crowdveil.Accept(["alice"], tokens=0))
        counts = gateway.run()
        result = requester.wait()
    assert result.end == crowdveil.End.COMPLETE and counts.accepted == result.progress.tokens
    assert f"{gone.address}: the broker moves to another address" in caplog.messages
    assert not [record for record in caplog.records if record.levelno > logging.INFO]


def test_any_other_goodbye_still_ends_a_command(deployment, leaving):
    deployment.up()
    _, several = leaving(why="moved away")
    done = command("status", "--broker", ",".join(several), *as_requester(deployment)[2:])
    assert done.returncode == 1
    assert done.stderr == "crowdveil status: the broker ended the connection: moved away\n"
    with pytest.raises(crowdveil.Lost, match="the broker says goodbye: moved away"):
        crowdveil.Requester(leaving(why="moved away")[1], deployment.pki.issue("requester/alice")).status()
