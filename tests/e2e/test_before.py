# SPDX-License-Identifier: Apache-2.0
"""Databases of released versions, and of this one: every program opens them, gives the same answers, and goes on.
Files of versions before 0.3.0 are refused."""
import contextlib
import json
import re
import shutil
import sqlite3
import subprocess
from pathlib import Path

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
    replay = crowdveil("replay", deployment.folder / "thirdparty-state/thirdparty.db")
    assert replay.returncode == 0, replay.stdout + replay.stderr
    deployment.up(broker=LIMITS)
    assert set(deployment.stop().values()) == {0}
    put(before, "broker.db", deployment.folder / "broker-state")
    broker = deployment.launch_broker(LIMITS)
    assert broker.wait() == 1
    assert "expected the database not to be older than its anchor" in broker.text()
    done = crowdveil("recover", deployment.folder / "broker.yaml")
    assert done.returncode == 0, done.stderr


def test_a_wrong_key_changes_nothing(deployment, before):
    """The right key fits afterwards."""
    put_all(before, deployment)
    right = (deployment.folder / "seal.key").read_bytes()
    key_file(deployment.folder / "seal.key")
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
    for database in reversed(files.values()):
        with contextlib.closing(sqlite3.connect(database)) as db:
            version, = db.execute("PRAGMA user_version").fetchone()
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
        db.execute(f"PRAGMA user_version = {version}")
    anchor = deployment.folder / "anchor"
    anchor.write_text(re.sub(r"^crowdveil-anchor \d ", "crowdveil-anchor 9 ", anchor.read_text()))
    broker = deployment.launch_broker(LIMITS)
    assert broker.wait() == 1 and broker.text().count("\n") == 0, broker.text()
    assert f"{anchor}: an anchor of version 9, of a later release; expected version " in broker.text()


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
    then, now = wire(before), wire(today)
    changed = {name: (part, now.get(name)) for name, part in then.items() if now.get(name) != part}
    assert len(then) > 200 and not changed


# --- before 0.3.0: formats, and the wire, that no released version has

BEFORE = "of a Crowdveil before 0.3.0, whose files are not read; "
BROKERS = "move the files in the state folder, the anchor and the seal key away together, and set up anew"
THIRDPARTY = "move the files in its folder away; the next start makes new ones"
WORKER = THIRDPARTY + ", counts given scores from 0 and randomizes each score anew"
LAB = "move it away, and run the experiment again"
ID = {"broker": 0x43564252, "cobroker": 0x43564342, "thirdparty": 0x43565450, "worker": 0x43565747, "lab": 0x43564c42}


def old_database(path, kind, version):
    """What a program before 0.3.0 might have left, as far as that is read."""
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute(f"PRAGMA application_id = {ID[kind]}")
        db.execute("CREATE TABLE meta (id INTEGER PRIMARY KEY)")
        db.execute(f"PRAGMA user_version = {version}")
        db.commit()
    path.chmod(0o600)
    return path


def key_file(path):
    path.write_text(f"crowdveil seal keys 1\n1 0 {'0' * 64}\n")
    path.chmod(0o600)


def refuses(done, line, *files):
    """One line says it, and nothing has changed."""
    kept = {file: file.read_bytes() for file in files}
    what = done()
    said = what.stdout + what.stderr
    assert what.returncode == 1 and said.count(line) == 1 and "restore" not in said, said
    assert {file: file.read_bytes() for file in files} == kept
    assert not [path for file in files for path in file.parent.glob(f"{file.name}-*")]


def started(daemon):
    """A daemon that has ended, as a finished process."""
    status = daemon.wait()
    assert daemon.text().count("\n") == 0, daemon.text()
    return subprocess.CompletedProcess([], status, daemon.text(), "")


@pytest.mark.parametrize("version", [1, 2, 5])
def test_a_brokers_database_of_before_is_refused(deployment, version):
    database = old_database(deployment.folder / deployment.state("broker-state") / "broker.db", "broker", version)
    config = write_config(deployment.folder / "broker.yaml", deployment.broker_settings())
    key_file(deployment.folder / "seal.key")
    line = f"{database}: schema version {version}, {BEFORE}{BROKERS}"
    refuses(lambda: started(deployment.launch_broker(LIMITS)), line, database)
    refuses(lambda: crowdveil("doctor", config), line, database)
    refuses(lambda: crowdveil("recover", config), line, database)
    refuses(lambda: crowdveil("seal", "status", config), line, database)


def test_a_cobrokers_database_of_before_is_refused(deployment):
    settings = deployment.cobroker_settings()
    database = old_database(Path(settings["state"]) / "cobroker.db", "cobroker", 1)
    key_file(Path(settings["seal_key"]))
    line = f"{database}: schema version 1, {BEFORE}{BROKERS}"
    refuses(lambda: started(deployment.launch_cobroker()), line, database)
    refuses(lambda: crowdveil("doctor", deployment.folder / "cobroker.yaml"), line, database)


def test_a_thirdpartys_database_of_before_is_refused(deployment):
    folder = deployment.folder / deployment.state("thirdparty-state")
    database = old_database(folder / "thirdparty.db", "thirdparty", 3)
    line = f"{database}: schema version 3, {BEFORE}{THIRDPARTY}"
    refuses(lambda: started(deployment.launch_thirdparty()), line, database)
    refuses(lambda: crowdveil("replay", database), line, database)
    refuses(lambda: crowdveil("doctor", deployment.folder / "thirdparty.yaml"), line, database)


def test_a_workers_database_of_before_is_refused(deployment, tmp_path):
    state = deployment.folder / deployment.state("worker-state")
    database = old_database(state / "given.db", "worker", 2)
    path = tmp_path / "campaign.yaml"
    path.write_text("campaign: test\nitems: {list: [{name: a, mean: .5}]}\npolicy: {name: ppar, alpha: 0.3}\n"
                    "privacy: {epsilon: 1}\n")
    worker = {"broker": "127.0.0.1:1", "accept": {"tokens": 1}, "state": str(state)}
    refuses(lambda: started(deployment.start_worker("gateway/1-10", path, worker)),
            f"{database}: schema version 2, {BEFORE}{WORKER}", database)


def test_an_archive_of_before_is_refused(tmp_path):
    database = old_database(tmp_path / "small.db", "lab", 2)
    line = f"small.db: schema version 2, {BEFORE}{LAB}"
    refuses(lambda: lab("export", "small.db", cwd=tmp_path), line, database)
    refuses(lambda: lab("merge", "all.db", "small.db", cwd=tmp_path), line, database)


def test_an_anchor_and_a_key_of_before_are_refused(deployment):
    """A broker that was given a new state folder, and kept the rest."""
    anchor, key = deployment.folder / "anchor", deployment.folder / "seal.key"
    config = write_config(deployment.folder / "broker.yaml", deployment.broker_settings())
    anchor.write_text(f"crowdveil-anchor 3 {'0' * 32} {'0' * 20} {'0' * 64} " + " ".join(["0" * 20] * 4) + "\n")
    line = f"{anchor}: an anchor of version 3, {BEFORE}{BROKERS}"
    refuses(lambda: started(deployment.launch_broker(LIMITS)), line, anchor)
    refuses(lambda: crowdveil("doctor", config), line, anchor)
    refuses(lambda: crowdveil("recover", config, "--lost"), line, anchor)
    anchor.unlink()
    key.write_bytes(bytes(range(32)))
    key.chmod(0o600)
    line = f"{key}: a key of 32 bytes, {BEFORE}{BROKERS}"
    refuses(lambda: started(deployment.launch_broker(LIMITS)), line, key)
    refuses(lambda: crowdveil("doctor", config), line, key)
    refuses(lambda: crowdveil("seal", "rotate", config), line, key)


def test_a_ca_of_before_is_refused(tmp_path):
    ca = tmp_path / "ca"
    done = crowdveil("pki", "ca", "--dir", ca)
    assert done.returncode == 0, done.stderr
    index = ca / "index.tsv"
    index.write_text("CD34\tcrowdveil:broker/b\t9999999999\n")
    line = f"{index}: an index {BEFORE}make a new CA in another folder: crowdveil pki make"
    refuses(lambda: crowdveil("pki", "list", "--dir", ca), line, index)
    refuses(lambda: crowdveil("pki", "issue", "worker/1", "--dir", ca, "--out", tmp_path / "w"), line, index)
