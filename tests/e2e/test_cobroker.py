# SPDX-License-Identifier: Apache-2.0
"""The co-broker by itself, against a broker and a worker in Python: who may speak to it, and what it keeps."""
import hashlib
import shutil
import subprocess

import pytest

from client.requester import spec
from client.two import LEAST, Peer
from crowdveil.schema import schema
from harness.admin import get, metrics
from harness.commands import crowdveil
from harness.daemon import PROGRAMS, write_config
from harness.deployment import merged

TAU = 10  # tokens of a plan, and the smallest release of the setting


@pytest.fixture
def alone(deployment):
    deployment.start_cobroker()
    return deployment


def peer(deployment, identity, name=None):
    return Peer(deployment.cobroker_address, deployment.pki.issue(identity, name=name))


def connected(deployment):
    return peer(deployment, "broker/main")


def test_a_campaign_is_opened_once_with_one_key(alone):
    broker = connected(alone)
    first = broker.open()
    assert not first.refused and len(first.key) == 32
    assert broker.open().key == first.key
    alone.cobroker.kill()
    alone.start_cobroker()
    again = connected(alone).open()
    assert again.key == first.key, "another key for the same tokens would give their scores away"


def test_another_spec_under_the_number_freezes_for_ever(alone):
    broker = connected(alone)
    broker.open()
    other = spec(2, two=True, epsilon=1, tokens=1001, policy_params=LEAST)
    other.mechanism.name = "hybrid"
    broker.say(opens=[{"spec": other, "database": bytes(range(16)), "requester": "alice", "position": {
        "campaign": 1, "plans_hash": bytes(32), "batches_hash": bytes(32), "closings_hash": bytes(32)}}])
    ended = broker.hear("ended")[0]
    assert schema("base").End.Name(ended.reason) == "END_FROZEN" and "another campaign" in ended.why
    alone.cobroker.wait_for("another campaign under the same number")
    alone.cobroker.kill()
    alone.start_cobroker()
    broker = connected(alone)
    broker.say(opens=[{"spec": other, "database": bytes(range(16)), "requester": "alice", "position": {
        "campaign": 1, "plans_hash": bytes(32), "batches_hash": bytes(32), "closings_hash": bytes(32)}}])
    assert broker.hear("opened")[0].refused.count("\n") == 0


@pytest.mark.parametrize("change, says", [
    (lambda s: setattr(s, "epsilon_micro", 20_000_000),
     "epsilon 20.000000 is over the co-broker's limit of 10.000000 (limits.epsilon)"),
    (lambda s: setattr(s.mechanism, "name", "none"), "mechanism"),
    (lambda s: setattr(s, "brokers", 0), "brokers"),
], ids=["epsilon", "no noise", "one broker"])
def test_what_its_own_limits_refuse(alone, change, says):
    wrong = spec(2, two=True, epsilon=1, tokens=1000, policy_params=LEAST)
    wrong.mechanism.name = "hybrid"
    change(wrong)
    broker = connected(alone)
    try:
        why = broker.open(spec=wrong).refused
    except AssertionError as goodbye:  # what no codec takes for a campaign with two brokers
        why = str(goodbye)
    assert says in why and "\n" not in why.strip(), why


def test_plans_and_closings(alone):
    broker, base = connected(alone), schema("base")
    broker.open()
    wants = [{"arm": arm, "tokens": TAU} for arm in range(2)]
    for _ in range(2):  # the same again is answered alike
        broker.say(plans=[{"plan": {"campaign": 1, "number": 1, "wants": wants}}])
        assert broker.hear("plans_opened")[0].plan == 1
    broker.say(plans=[{"plan": {"campaign": 1, "number": 2, "wants": wants}}])
    refused = broker.hear("plans_refused")[0]
    assert base.End.Name(refused.reason) == "END_REFUSED" and "before plan 1 is closed" in refused.why
    # A closing of an epoch without its tokens: no half leaves, and the log says who asked for it.
    broker.say(closes=[{"campaign": 1, "number": 1, "plan": 1, "plan_hash": bytes(32), "arm": 0, "count": TAU,
                        "chain": bytes(32)}])
    ended = broker.hear("ended")[0]
    assert base.End.Name(ended.reason) == "END_FROZEN"
    now = metrics(alone.folder / "cobroker.sock")
    assert now["crowdveil_cobroker_closings_total"] == 0 and now["crowdveil_cobroker_campaigns_open"] == 0


def test_a_worker_enters_and_gets_the_terms(alone):
    worker = peer(alone, "gateway/1-100")
    worker.say(enters=[{"campaign": 1}])
    turned = worker.hear("turned")[0]
    assert turned.again_ms > 0 and turned.why == "the campaign is not open"
    key = connected(alone).open().key
    worker.say(enters=[{"campaign": 1}])
    session = worker.hear("sessions")[0]
    assert len(session.id) == 16 and session.terms.epsilon_micro == 1_000_000
    assert session.terms.split.key == hashlib.sha256(key).digest() and key not in session.SerializeToString()


def test_who_may_speak_to_it(alone):
    assert peer(alone, "broker/other").goodbye() == "broker/other; expected broker/main"
    stranger = peer(alone, "broker/main", name="stranger")  # the right name under another key
    assert stranger.goodbye() == "broker/main has another key than the one that is configured"
    first = peer(alone, "gateway/1-100")
    first.say(enters=[{"campaign": 1}])
    first.hear("turned")
    assert "overlap" in peer(alone, "gateway/50-60").goodbye()
    first.say(dones=[{"campaign": 1, "number": 1}])
    assert first.goodbye() == "unexpected message; a worker does not send it"
    assert metrics(alone.folder / "cobroker.sock")["crowdveil_cobroker_broker_connected"] == 0


def test_an_older_database_does_not_start(alone, tmp_path):
    connected(alone).open()
    alone.cobroker.kill()
    folder = tmp_path / "cobroker-state"
    shutil.copytree(folder, tmp_path / "older")
    alone.start_cobroker()
    connected(alone).open(number=2)
    alone.cobroker.kill()
    shutil.rmtree(folder)
    shutil.copytree(tmp_path / "older", folder)
    config = write_config(tmp_path / "again.yaml", alone.cobroker_settings())
    done = subprocess.run([PROGRAMS["cobroker"], "--config", config], capture_output=True, text=True, timeout=20)
    assert done.returncode == 1 and "expected the database not to be older than its anchor" in done.stderr
    examined = subprocess.run([PROGRAMS["cobroker"], "--config", config, "--examine"], capture_output=True, text=True,
                              timeout=20)
    assert examined.returncode == 1 and "an older copy" in examined.stdout


@pytest.mark.parametrize("changes, says", [
    ({"broker_key": "12"}, "broker_key: not a key; expected 64 hexadecimal digits"),
    ({"anchor": "{state}/anchor"}, "is in the state folder"),
    ({"state": "/nowhere"}, "state: /nowhere is not a folder; expected an existing folder"),
], ids=["key", "anchor", "state"])
def test_wrong_settings(deployment, tmp_path, changes, says):
    settings = merged(deployment.cobroker_settings(), changes)
    settings = {key: value.format(**settings) if key == "anchor" else value for key, value in settings.items()}
    config = write_config(tmp_path / "wrong.yaml", settings)
    done = subprocess.run([PROGRAMS["cobroker"], "--config", config], capture_output=True, text=True, timeout=20)
    assert done.returncode in (1, 2) and says in done.stderr and done.stderr.count("\n") == 1, done.stderr
    assert not (tmp_path / "cobroker-state/cobroker.db").exists()


def test_its_seal_key_is_replaced_while_it_runs(alone, tmp_path):
    first = connected(alone).open()
    for _ in range(2):
        done = crowdveil("seal", "rotate", tmp_path / "cobroker.yaml")
        assert done.returncode == 0 and "now wraps all stored keys" in done.stdout, done.stdout + done.stderr
    alone.cobroker.kill()
    alone.start_cobroker()
    assert connected(alone).open().key == first.key


def test_nothing_secret_is_in_its_files(alone, tmp_path):
    """The verify key, which both brokers know and nobody else may."""
    key = connected(alone).open().key
    socket = tmp_path / "cobroker.sock"
    answers = get(socket, "/health")[1] + get(socket, "/metrics")[1]
    alone.cobroker.stop()
    for path in [*(tmp_path / "cobroker-state").iterdir(), tmp_path / "cobroker-anchor", *tmp_path.glob("*.log")]:
        data = path.read_bytes()
        assert key not in data and key.hex().encode() not in data, path
    assert key.hex() not in answers
