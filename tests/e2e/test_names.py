# SPDX-License-Identifier: Apache-2.0
"""
A certificate of our CA and of the right role is not enough: parties serve the names that they expect. With real daemons
and a stranger that holds such a certificate, listens at the expected address, or connects first.
"""
import subprocess

import pytest

from client.broker import FakeBroker
from client.requester import Requester, end_name, spec
from crowdveil.schema import schema
from crowdveil.wire import Connection, context
from harness.commands import as_requester, crowdveil
from harness.daemon import PROGRAMS

RULES = {"alpha": .2, "tokens_per_round": 500}


def campaign_file(path, name="fashion", means=(.9, .3)):
    items = ", ".join(f"{{name: i{arm}, mean: {mean}}}" for arm, mean in enumerate(means))
    path.write_text(f"campaign: {name}\nitems: {{list: [{items}]}}\npolicy: {{name: ppar, alpha: 0.2}}\n"
                    "privacy: {epsilon: 1}\n")
    return path


def fashion(name="fashion", tokens=20_000, **more):
    return spec(2, name=name, tokens=tokens, policy_params=RULES, **more)


def test_a_strangers_campaign_of_the_right_name_gets_no_token(deployment, tmp_path):
    path = campaign_file(tmp_path / "campaign.yaml")
    deployment.up()
    with deployment.requester("eve") as eve, deployment.requester() as alice:
        first = eve.submit(fashion()).campaign
        eve.watch(first, until=lambda progress: progress.plans == 1)
        worker = deployment.start_worker("gateway/1-20000", path)
        worker.wait_for('declined campaign "fashion": requester eve is not served here; expected one of alice')
        meant = alice.submit(fashion()).campaign
        finished = alice.watch(meant)
        assert end_name(finished.progress.end) == "complete" and finished.progress.tokens > 0
        assert eve.status().campaigns[0].tokens == 0
    assert worker.wait() == 0


def test_a_gateway_serves_a_folder_of_campaigns(deployment, tmp_path):
    folder = tmp_path / "campaigns"
    folder.mkdir()
    campaign_file(folder / "one.yaml")
    campaign_file(folder / "two.yaml", "food", (.2, .8))
    (folder / "notes.txt").write_text("not a campaign")
    deployment.up()
    with deployment.requester() as alice, deployment.requester("bob") as bob:
        campaigns = [(alice, alice.submit(fashion()).campaign), (bob, bob.submit(fashion("food")).campaign)]
        worker = deployment.start_worker("gateway/1-20000", folder, {"requesters": "alice, bob"})
        best = []
        for requester, campaign in campaigns:
            finished = requester.watch(campaign)
            assert end_name(finished.progress.end) == "complete"
            best.append([standing.arm for standing in finished.standings if standing.rank_class == 1])
    assert best == [[0], [1]], "each is answered from its own file"
    assert worker.wait() == 0


def test_a_broker_of_another_name_gets_no_token(deployment, tmp_path):
    path = campaign_file(tmp_path / "campaign.yaml")
    deployment.start_thirdparty({"brokers": "main, evil"})
    deployment.start_broker({"tls": deployment.pki.issue("broker/evil").config()})
    with deployment.requester() as alice:
        alice.submit(fashion())
        worker = deployment.start_worker("gateway/1-20000", path)
        worker.wait_for("certificate is of broker/evil, expected the name main")
        deployment.broker.wait_for("it expects a party with another name or key, broker/evil")
        assert alice.status().campaigns[0].tokens == 0
    done = crowdveil("status", *as_requester(deployment))
    assert done.returncode == 1 and "certificate is of broker/evil, expected the name main" in done.stderr
    assert worker.stop() == 0


def test_a_broker_that_is_not_served_gets_no_ranking(deployment):
    deployment.start_thirdparty({"brokers": "main"})
    deployment.start_broker({"tls": deployment.pki.issue("broker/evil").config()})
    deployment.thirdparty.wait_for("certificate is of broker/evil, expected the name main")
    deployment.broker.wait_for("it expects a party with another name or key, broker/evil")


def evil(deployment):
    return {"tls": deployment.pki.issue("thirdparty/evil").config(), "state": deployment.state("evil-state")}


def test_a_campaign_stays_with_the_third_party_that_opened_it(deployment, tmp_path):
    path = campaign_file(tmp_path / "campaign.yaml")
    deployment.up()
    address, broker = deployment.thirdparty.address, {"listen": deployment.broker.address}
    with deployment.requester() as alice:
        campaign = alice.submit(fashion(tokens=200_000)).campaign
        worker = deployment.start_worker("gateway/1-200000", path, {"arrival_rate": 40, "exit_when_done": False})
        alice.watch(campaign, until=lambda progress: progress.tokens > 0)
    # another one at its address: the broker refuses it
    assert deployment.thirdparty.stop() == 0
    deployment.start_thirdparty({"listen": address, **evil(deployment)})
    deployment.broker.wait_for("certificate is of thirdparty/evil, expected the name ranker")
    deployment.thirdparty.wait_for("it expects a party with another name or key, thirdparty/evil")
    # another one that the configuration names, too: a running campaign does not use it
    assert deployment.broker.stop() == 0
    deployment.start_broker({**broker, "thirdparty_name": "evil"})
    deployment.broker.wait_for('thirdparty/evil: campaign 1 "fashion" waits for thirdparty/ranker, which opened it')
    with deployment.requester() as alice:
        assert alice.status().campaigns[0].waits_for == "ranker"
    assert "waits for thirdparty/ranker" in crowdveil("status", *as_requester(deployment)).stdout
    assert deployment.thirdparty.stop() == 0 and deployment.broker.stop() == 0
    examined = subprocess.run([PROGRAMS["broker"], "--config", deployment.folder / "broker.yaml", "--examine"],
                              capture_output=True, text=True, timeout=60)
    assert 'campaign 1 "fashion": waits for thirdparty/ranker' in examined.stdout
    # the right one again: it goes on
    deployment.start_thirdparty({"listen": address})
    deployment.start_broker(broker)
    deployment.start_worker("gateway/200001-300000", path)
    with deployment.requester() as alice:
        finished = alice.watch(campaign)
    assert end_name(finished.progress.end) == "complete"
    assert worker.stop() == 0


def goodbye(address, files, kind, role="broker"):
    """The answer to a hello of version 1."""
    pb = schema(kind)
    with Connection(address, context(files.ca, files.cert, files.key), role=role) as connection:
        envelope = pb.Envelope()
        envelope.hello.version, envelope.hello.program = 1, "crowdveil 0.1.0"
        connection.send(envelope.SerializeToString())
        while payload := connection.receive():
            envelope = pb.Envelope.FromString(payload)
            if envelope.HasField("goodbye"):
                return envelope.goodbye.why
    return None


@pytest.mark.parametrize("identity, kind, what", [
    ("gateway/1-9", "crowd", "gateway"), ("requester/alice", "order", "requester"), ("broker/old", "rank", "broker")])
def test_a_peer_of_the_old_wire_version_learns_what_to_upgrade(deployment, identity, kind, what):
    if kind == "rank":
        server = deployment.start_thirdparty({"brokers": "main, old"})
    else:
        server = deployment.start_broker()
    line = f"a hello of wire version 1 from the {what}; expected version 3: upgrade the {what}"
    role = "thirdparty" if kind == "rank" else "broker"
    assert goodbye(server.address, deployment.pki.issue(identity), kind, role) == line
    server.wait_for(f"{identity}: {line}")


def test_old_servers_are_reported_by_the_peers_that_dial_them(deployment, tmp_path):
    """A party that would misunderstand the other does not take part: a worker and a requester's command, with an old
    broker."""
    fake = FakeBroker(deployment.pki.issue("broker/main"), lambda broker, arrived: None, version=1)
    try:
        worker = deployment.start_worker("worker/5", campaign_file(tmp_path / "campaign.yaml"),
                                         {"broker": fake.address})
        worker.wait_for("a hello of wire version 1 from the broker; expected version 3: upgrade the broker")
        assert worker.stop() == 0
    finally:
        fake.close()


def test_a_requester_called_any_is_refused(deployment, tmp_path):
    """`requesters: any` is a word of the configuration, so no certificate may have that name."""
    deployment.start_broker()
    with pytest.raises((OSError, ConnectionError)):
        with Requester(deployment.broker.address, deployment.pki.issue("requester/any"), timeout=20) as anybody:
            anybody.status()
    deployment.broker.wait_for("requester/any.*and not any")


def test_a_name_with_a_zero_byte_or_too_long_is_refused(deployment):
    deployment.start_broker()
    since = deployment.broker.mark()
    for name in ("a" * 64, "alice%00eve", "alice\u200b"):
        with pytest.raises((OSError, ConnectionError, subprocess.CalledProcessError)):
            files = deployment.pki.issue(f"requester/{name}", name=f"odd-{len(name)}")
            with Requester(deployment.broker.address, files, timeout=20) as odd:
                odd.status()
    assert "requester/" not in "\n".join(line for line in deployment.broker.lines[since:] if "connected" in line)
