# SPDX-License-Identifier: Apache-2.0
"""Databases of earlier versions, and of this one: every program opens them, gives the same answers, and goes on."""
import contextlib
import json
import re
import shutil
import sqlite3
import subprocess

import pytest

from client.requester import end_name
from client.worker import Session, work
from crowdveil.wire import GRID
from harness.before import content, put, put_all, said
from harness.commands import crowdveil
from harness.daemon import BUILD, PROGRAMS, ROOT, write_config
from harness.lab import lab

VERSIONS = sorted(path.name for path in (ROOT / "tests/data").iterdir() if path.is_dir())
TODAY = "today"  # this version: made in the test, so that the next folder can be made when it is released
WITHOUT_CODES = ("0.1.0",)
LIMITS = {"limits": {"worker_epsilon": 1000, "release_tokens": 1}}
TRANSIENT = ("elapsed_ms", "thirdparty_connected")


@pytest.fixture(scope="session")
def today(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data") / TODAY
    done = subprocess.run([ROOT / "tests/data/make", BUILD, folder], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(params=[*VERSIONS, TODAY])
def before(request):
    return request.getfixturevalue(TODAY) if request.param == TODAY else ROOT / "tests/data" / request.param


def holds(old, new, where):
    """Every earlier answer is still given; there may be more."""
    if isinstance(old, dict):
        for key, value in old.items():
            if key not in TRANSIENT:
                assert key in new, f"{where}.{key} is not said any more"
                holds(value, new[key], f"{where}.{key}")
    elif isinstance(old, list):
        assert len(old) == len(new), where
        for number, pair in enumerate(zip(old, new)):
            holds(*pair, f"{where}[{number}]")
    else:
        assert old == new, where


def ledger(deployment, number):
    """On a connection of its own: one that watches a campaign may get its progress first."""
    with deployment.requester() as requester:
        return requester.ledger(number)


def test_daemons_say_the_same_and_go_on(deployment, before):
    from google.protobuf.json_format import MessageToDict

    def check(old, message, where):
        holds(old, MessageToDict(message, preserving_proto_field_name=True), where)
    put_all(before, deployment)
    deployment.up(broker=LIMITS)
    told = said(before)
    with deployment.requester() as requester:
        for kind, campaign in told["campaigns"].items():
            number = campaign["campaign"]
            spec, then = requester.describe(number)
            check(campaign["spec"], spec, f"{kind}.spec")
            check(campaign["then"], then, f"{kind}.then")
            for old, part in zip(campaign["export"], requester.export(number), strict=True):
                check(old, part, f"{kind}.export")
            check(campaign["ledger"], requester.ledger(number), f"{kind}.ledger")
        running = told["campaigns"]["running"]["campaign"]
        had = int(told["campaigns"]["running"]["then"]["progress"]["releases"])
        files = deployment.pki.issue("gateway/1-2000")
        with Session(deployment.broker.address, files.ca, files.cert, files.key) as session:
            verdicts, _ = work(session, range(201, 261), lambda worker, arm, place: GRID // 2)
        assert verdicts == {"accepted": 60}
        seen = requester.watch(running, until=lambda progress: progress.tokens == 44 + 60)
        assert seen.DESCRIPTOR.name == "Progress" and seen.releases > had
        charged = ledger(deployment, running)
        # what a worker gave then still counts: it has given its one token of this campaign
        with Session(deployment.broker.address, files.ca, files.cert, files.key) as session:
            assert work(session, range(101, 145), lambda *_: GRID // 2)[0] == {}
        with Session(deployment.broker.address, files.ca, files.cert, files.key) as session:
            # equal: with a gap of .25 the noise of one run in 5,000 decides before the limit
            verdicts, _ = work(session, range(301, 1301), lambda *_: GRID // 2)
        finished = requester.watch(running).progress
        assert (end_name(finished.end), finished.tokens) == ("tokens", 990), "as many whole rounds as the limit has"
        assert verdicts["accepted"] == 990 - 44 - 60
        ends = ledger(deployment, running)
        assert len(charged.accounts) == len(ends.accounts), (charged, ends)
        assert all(new.spent >= old.spent > 0 and new.tokens > old.tokens
                   for old, new in zip(charged.accounts, ends.accounts))
    assert set(deployment.stop().values()) == {0}
    for daemon in (deployment.broker, deployment.thirdparty):
        assert daemon.text().count("added codes to") == (before.name in WITHOUT_CODES), daemon.text()
    replay = crowdveil("replay", deployment.folder / "thirdparty-state/thirdparty.db")
    assert replay.returncode == 0, replay.stdout + replay.stderr
    # once; afterwards rows without codes are refused
    deployment.up(broker=LIMITS)
    assert set(deployment.stop().values()) == {0}
    assert "added codes" not in deployment.broker.text() + deployment.thirdparty.text()
    put(before, "broker.db", deployment.folder / "broker-state")
    broker = deployment.launch_broker(LIMITS)
    assert broker.wait() == 1
    done = crowdveil("recover", deployment.folder / "broker.yaml")
    if before.name in WITHOUT_CODES:
        assert "schema version 1; expected 2, the last known version" in broker.text()
        assert done.returncode == 1 and "the last known version" in done.stdout + done.stderr
    else:
        assert "expected the database not to be older than its anchor" in broker.text()
        assert done.returncode == 0, done.stderr


def test_a_wrong_key_changes_nothing(deployment, before):
    """Rows without codes do not get any under a key that opens none of them: the right key fits afterwards."""
    put_all(before, deployment)
    right = (deployment.folder / "seal.key").read_bytes()
    (deployment.folder / "seal.key").write_bytes(bytes(32))
    broker = deployment.launch_broker(LIMITS)
    assert broker.wait() == 1 and "seal_key" in broker.text()
    deployment.daemons.remove(broker)
    (deployment.folder / "seal.key").write_bytes(right)
    deployment.up(broker=LIMITS)
    assert set(deployment.stop().values()) == {0}


def test_a_later_format_is_refused_in_one_line(deployment, before):
    """As after a way back to this version: nothing is changed, and the line says what is too new."""
    put_all(before, deployment)
    state = deployment.folder / deployment.state("worker-state")
    files = {"broker": deployment.folder / "broker-state/broker.db",
             "thirdparty": deployment.folder / "thirdparty-state/thirdparty.db",
             "worker": put(before, "given.db", state)}
    path = deployment.folder / "campaign.yaml"
    path.write_text("campaign: test\nitems: {list: [{name: a, mean: .5}]}\npolicy: {name: ppar, alpha: 0.3}\n"
                    "privacy: {epsilon: 1}\n")
    for database in files.values():
        with contextlib.closing(sqlite3.connect(database)) as db:
            db.execute("PRAGMA user_version = 99")
    bytes_ = {name: database.read_bytes() for name, database in files.items()}
    worker = {"broker": "127.0.0.1:1", "accept": {"tokens": 1}, "state": str(state)}
    started = {"broker": deployment.launch_broker(LIMITS), "thirdparty": deployment.launch_thirdparty(),
               "worker": deployment.start_worker("gateway/1001-2000", path, worker)}
    for name, daemon in started.items():
        assert daemon.wait() == 1, name
        line, = daemon.text().split("\n")
        assert f"{files[name]}: schema version 99 of a later release; expected at most " in line
        assert files[name].read_bytes() == bytes_[name], f"the {name} changed a database that it refused"
    with contextlib.closing(sqlite3.connect(files["broker"])) as db:
        db.execute("PRAGMA user_version = 2")
    anchor = deployment.folder / "anchor"
    anchor.write_text(anchor.read_text().replace("crowdveil-anchor 3 ", "crowdveil-anchor 9 ")
                      .replace("crowdveil-anchor 2 ", "crowdveil-anchor 9 "))
    broker = deployment.launch_broker(LIMITS)
    assert broker.wait() == 1 and broker.text().count("\n") == 0 and str(anchor) in broker.text(), broker.text()


def test_replay_says_the_same(before, tmp_path):
    done = crowdveil("replay", put(before, "thirdparty.db", tmp_path))
    assert done.returncode == 0 and done.stdout.splitlines() == said(before)["replay"]


def test_doctor_finds_nothing_wrong(deployment, before):
    """In databases that no current daemon has opened."""
    put_all(before, deployment)
    configs = [write_config(deployment.folder / f"{name}.yaml", settings) for name, settings in
               (("broker", deployment.broker_settings()), ("thirdparty", deployment.thirdparty_settings()))]
    done = crowdveil("doctor", *configs, "--json")
    assert done.stdout, done.stderr
    assert [line for line in map(json.loads, done.stdout.splitlines()) if line["level"] == "wrong"] == []


def test_what_a_worker_has_given_stays(deployment, before):
    """Each worker has given all that it may: the daemon starts, knows that, and gives no more."""
    told = {int(worker): scores for worker, scores in said(before)["given"].items()}
    state = deployment.folder / deployment.state("worker-state")
    put(before, "given.db", state)
    deployment.up(broker=LIMITS)
    path = deployment.folder / "campaign.yaml"
    path.write_text("campaign: test\nitems: {list: [{name: a, mean: .5}]}\npolicy: {name: ppar, alpha: 0.3}\n"
                    "privacy: {epsilon: 1}\n")
    worker = deployment.start_worker("gateway/1001-2000", path, {"accept": {"tokens": 1}, "state": str(state)})
    assert worker.wait() == 0, worker.text()
    with sqlite3.connect(state / "given.db") as db:
        assert dict(db.execute("SELECT worker, scores FROM given")) == told and min(told.values()) > 0
    db.close()


def test_results_are_read_merged_and_gone_on_with(before, tmp_path):
    results = put(before, "results.db", tmp_path)
    told = said(before)["trials"]

    def trials(path):
        done = lab("export", path, "--trials", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()
    assert trials(results) == told
    done = lab("merge", "merged.db", results, cwd=tmp_path)
    assert done.returncode == 0 and trials("merged.db") == told, done.stderr
    (tmp_path / "out").mkdir()
    shutil.copyfile(results, tmp_path / "out/small.db")
    put(before, "experiment.yaml", tmp_path)
    done = lab("run", "experiment.yaml", "--out", "out", "--resume", "--replicates", "7", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert set(told) < set(trials("out/small.db"))


def test_every_option_is_still_there(before):
    """A configuration file or a command line of an earlier version is not refused for a name."""
    if not any(before.glob("options.json*")):
        pytest.skip("a folder from before options were kept")
    for command, options in json.loads(content(before, "options.json")).items():
        program, *words = command.split()
        done = subprocess.run([PROGRAMS[program], *words, "--help"], capture_output=True, text=True)
        missing = [option for option in options if not re.search(rf"^  (-\w, )?{option}(?![\w-])", done.stdout, re.M)]
        assert done.returncode == 0 and not missing, f"{command} does not know {missing}"
        assert len(options) > 2, command


VARINT = {"TYPE_BOOL", "TYPE_UINT32", "TYPE_UINT64", "TYPE_INT32", "TYPE_INT64", "TYPE_ENUM"}


def parts_of(messages, where=""):
    """{path: (number, how it is on the wire)} of each field and enum value of these messages."""
    from google.protobuf.descriptor_pb2 import FieldDescriptorProto as Field
    parts = {}
    for message in messages:
        for field in message.field:
            kind = Field.Type.Name(field.type)
            name = field.type_name if kind == "TYPE_MESSAGE" else "varint" if kind in VARINT else kind
            parts[f"{where}{message.name}.{field.name}"] = (field.number, name, Field.Label.Name(field.label))
        parts |= parts_of(message.nested_type, f"{where}{message.name}.")
        for enum in message.enum_type:
            parts |= {f"{where}{enum.name}.{value.name}": (value.number,) for value in enum.value}
    return parts


# Messages that have another name now, which is not on the wire.
RENAMED = {"crowdveil.crowd.Campaign": "crowdveil.base.Terms"}


def renamed(parts):
    """The same parts under today's names."""
    def today(text):
        for old, new in RENAMED.items():
            text = re.sub(rf"{re.escape(old)}(?=\.|$)", new, text) if isinstance(text, str) else text
        return text
    return {today(name): tuple(today(value) for value in part) for name, part in parts.items()}


def wire(before):
    from google.protobuf.descriptor_pb2 import FileDescriptorSet
    parts = {}
    for file in FileDescriptorSet.FromString(content(before, "wire.binpb")).file:
        parts |= parts_of(file.message_type, f"{file.package}.")
        parts |= {f"{file.package}.{enum.name}.{value.name}": (value.number,)
                  for enum in file.enum_type for value in enum.value}
    return parts


def test_every_message_is_still_read(before, today):
    """On the wire each field of an earlier version has its number, its kind and its label still; there may be more."""
    if not any(before.glob("wire.binpb*")):
        pytest.skip("a folder from before the wire schemas were kept; its wire is another version")
    then, now = renamed(wire(before)), wire(today)
    changed = {name: (part, now.get(name)) for name, part in then.items() if now.get(name) != part}
    assert len(then) > 200 and not changed
