# SPDX-License-Identifier: Apache-2.0
"""Bad input gives one clear line (what, where, what was expected), the right exit status, and leaves nothing behind.

Status 2: usage and configuration; 1: the rest.
"""
import os
import re
import socket
import subprocess

import pytest

from client.requester import spec
from client.worker import Session, work
from harness.daemon import PROGRAMS, write_config
from harness.deployment import merged, missing_programs

GOOD = """campaign: good
items:
  rewards: bernoulli
  list:
    - {name: a, mean: 0.9}
    - {name: b, mean: 0.2}
policy: {name: ppar, alpha: 0.2, tokens_per_round: 100}
privacy: {epsilon: 1, tokens_per_worker: 1}
limits: {tokens: 20000, idle: 30s}
"""
CSV = """campaign: csv
items: {source: csv, path: scores.csv, item: item, score: score, scale: [0, 1]}
policy: {name: ppar, alpha: 0.2, tokens_per_round: 100}
privacy: {epsilon: 1}
"""


def run(program, *args, cwd, timeout=60):
    """A finished program, which had an empty folder for temporary files."""
    temporary = cwd / "tmp"
    temporary.mkdir(exist_ok=True)
    env = dict(os.environ, TMPDIR=str(temporary))
    done = subprocess.run([PROGRAMS[program], *map(str, args)], cwd=cwd, env=env, timeout=timeout, capture_output=True,
                          text=True, stdin=subprocess.DEVNULL)
    assert not list(temporary.iterdir()), "something was left in the folder for temporary files"
    return done


def assert_one_line(done, status, pattern):
    lines = done.stderr.strip().split("\n")
    assert done.returncode in (status if isinstance(status, tuple) else (status,)), done.stderr
    assert len(lines) == 1, f"expected one line:\n{done.stderr}"
    assert re.search(pattern, lines[0]), f"{lines[0]!r} does not say {pattern!r}"
    assert done.stdout == ""


def snapshot(folder):
    return {str(path.relative_to(folder)): path.is_file() and path.read_bytes() for path in folder.rglob("*")}


# --- campaign files


CAMPAIGNS = {
    "unknown key": (GOOD.replace("limits:", "limts:"), r"campaign.yaml:9:1: unknown key .*limts.*(limits|expected)"),
    "unknown key inside": (GOOD.replace("mean: 0.2", "maen: 0.2"), r"campaign.yaml:6:\d+: unknown key .*maen"),
    "wrong type": (GOOD.replace("epsilon: 1", "epsilon: lots"), r"campaign.yaml:8:\d+: .*epsilon.*lots.*expected"),
    "a list for a number": (GOOD.replace("tokens: 20000", "tokens: [1]"), r"campaign.yaml:9:\d+: .*list.*expected"),
    "alpha below 0": (GOOD.replace("alpha: 0.2", "alpha: -0.1"), r"campaign.yaml:7:\d+: .*alpha.*-0.1.*expected"),
    "alpha missing": (GOOD.replace("alpha: 0.2, ", ""), r"campaign.yaml:7:.*missing alpha; expected a number"),
    "delta of 1": (GOOD.replace("alpha: 0.2", "alpha: 0.2, delta: 1"), r"campaign.yaml:7:\d+: .*delta.*expected"),
    "epsilon 0": (GOOD.replace("epsilon: 1", "epsilon: 0"), r"campaign.yaml:8:\d+: .*epsilon.*0.*expected"),
    "epsilon nan": (GOOD.replace("epsilon: 1", "epsilon: .nan"), r"campaign.yaml:8:\d+: .*epsilon.*expected"),
    "unknown policy": (GOOD.replace("name: ppar", "name: pparr"),
                       r'campaign.yaml:7:1: unknown policy "pparr"; did you mean "ppar"\?'),
    "unknown parameter": (GOOD.replace("alpha: 0.2", "alpha: 0.2, beta: 1"), r"campaign.yaml:7:\d+: .*beta"),
    "a mean above 1": (GOOD.replace("mean: 0.9", "mean: 1.9"), r"campaign.yaml:5:\d+: .*mean.*1.9.*expected"),
    "an item twice": (GOOD.replace("name: b", "name: a"), r"campaign.yaml:6:\d+: .*a.*expected"),
    "a key twice": (GOOD + "campaign: again\n", r"campaign.yaml:10:1: .*duplicate"),
    "no YAML": ("campaign: [unclosed\n", r"campaign.yaml:\d+:\d+: "),
    "empty": ("", r"campaign.yaml.*empty"),
    "binary": ("\x01\x02\x03", r"campaign.yaml"),
    "an anchor": (GOOD.replace("campaign: good", "campaign: &x good"), r"campaign.yaml:1:\d+: .*anchor"),
    "no privacy": (GOOD.replace("privacy: {epsilon: 1, tokens_per_worker: 1}\n", ""), r"campaign.yaml.*privacy"),
}


@pytest.mark.parametrize("case", CAMPAIGNS)
def test_a_bad_campaign_file(tmp_path, case):
    if missing_programs("crowdveil"):
        pytest.fail("not built: crowdveil")
    text, pattern = CAMPAIGNS[case]
    (tmp_path / "campaign.yaml").write_text(text)
    before = snapshot(tmp_path)
    done = run("crowdveil", "up", "campaign.yaml", "--state", "state", cwd=tmp_path)
    assert_one_line(done, 2, pattern)
    assert snapshot(tmp_path).keys() - {"tmp"} == before.keys()


def test_an_unknown_mechanism_is_known_before_anything_starts(tmp_path):
    if missing_programs("crowdveil"):
        pytest.fail("not built: crowdveil")
    (tmp_path / "campaign.yaml").write_text(GOOD.replace("epsilon: 1", "mechanism: hybird, epsilon: 1"))
    done = run("crowdveil", "up", "campaign.yaml", "--state", "state", cwd=tmp_path)
    assert_one_line(done, 2, r'campaign.yaml:\d+: unknown mechanism "hybird"; did you mean "hybrid"\?')
    assert not (tmp_path / "state").exists()


DATA = {
    "no such file": (None, r"scores.csv.*No such file"),
    "an empty file": ("", r"scores.csv:1: .*empty; expected"),
    "a header alone": ("item,score\n", r"scores.csv.*no rows.*expected"),
    "a missing column": ("item,value\na,1\n", r'scores.csv:1: no column "score".*item, ?value|"score"'),
    "a score off the scale": ("item,score\na,1\nb,1.5\n", r"scores.csv:3: .*1.5.*0\.\.1"),
    "a score that is no number": ("item,score\na,1\nb,good\n", r"scores.csv:3: .*good.*not a number"),
    "a score nan": ("item,score\na,1\nb,nan\n", r"scores.csv:3: .*nan"),
    "a row too short": ("item,score\na,1\nb\n", r"scores.csv:3: .*1 fields.*expected 2"),
    "an open quote": ('item,score\na,1\n"b,1\n', r"scores.csv:3: "),
}


@pytest.mark.parametrize("case", DATA)
def test_a_bad_data_file(tmp_path, case):
    if missing_programs("crowdveil"):
        pytest.fail("not built: crowdveil")
    text, pattern = DATA[case]
    (tmp_path / "campaign.yaml").write_text(CSV)
    if text is not None:
        (tmp_path / "scores.csv").write_text(text)
    before = snapshot(tmp_path)
    done = run("crowdveil", "up", "campaign.yaml", "--state", "state", cwd=tmp_path)
    assert_one_line(done, 2, pattern)
    assert snapshot(tmp_path).keys() - {"tmp"} == before.keys()


@pytest.mark.parametrize("args, pattern", [
    (["up"], r"expected|missing"), (["up", "no-such.yaml"], r"no-such.yaml.*No such file"),
    (["up", "campaign.yaml", "--workers", "0"], r"--workers is .*0.*expected"),
    (["up", "campaign.yaml", "--worker-processes", "33"], r"--worker-processes is .*33.*expected .* 0 to 32"),
    (["up", "campaign.yaml", "--workers", "4", "--worker-processes", "4"],
     r"--worker-processes 4 of 4 workers leaves no worker for a gateway; expected fewer"),
    (["up", "campaign.yaml", "--workers", "1", "--worker-processes", "2"],
     r"--worker-processes 2 of 1 worker leaves no worker for a gateway; expected fewer"),
    (["up", "campaign.yaml", "--wrkers", "3"], r"unknown option .*--wrkers.*--workers"),
    (["up", "campaign.yaml", "--seed"], r"--seed.*no value"), (["upp"], r"upp"), ([], r"expected|crowdveil")])
def test_bad_usage_of_the_launcher(tmp_path, args, pattern):
    if missing_programs("crowdveil"):
        pytest.fail("not built: crowdveil")
    (tmp_path / "campaign.yaml").write_text(GOOD)
    done = run("crowdveil", *args, cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert re.search(pattern, done.stderr)


@pytest.mark.parametrize("args, line", [
    (["submit"], "crowdveil submit: missing FILE; usage: crowdveil submit FILE"),
    (["submit", "a", "b"], 'crowdveil submit: unexpected argument "b"; usage: crowdveil submit FILE'),
    (["status", "x"], 'crowdveil status: unexpected argument "x"; usage: crowdveil status [OPTION]...'),
    (["pki", "mke"], 'crowdveil pki: unknown action "mke"; did you mean "make"?'),
    (["pki", "destroy", "--dir", "ca"],
     'crowdveil pki: unknown action "destroy"; expected one of ca, issue, make, renew, list, revoke or fingerprint'),
])
def test_wrong_arguments_are_reported_before_missing_options(tmp_path, args, line):
    assert_one_line(run("crowdveil", *args, cwd=tmp_path), 2, f"^{re.escape(line)}$")


def test_a_state_folder_that_is_not_empty_is_left_alone(tmp_path):
    if missing_programs("crowdveil"):
        pytest.fail("not built: crowdveil")
    (tmp_path / "campaign.yaml").write_text(GOOD)
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "precious").write_text("mine\n")
    before = snapshot(tmp_path)
    done = run("crowdveil", "up", "campaign.yaml", "--state", "state", cwd=tmp_path)
    assert done.returncode in (1, 2)
    assert re.search("state.*empty", done.stderr)
    assert snapshot(tmp_path).items() - {("tmp", False)} == before.items()


def test_the_beginning_of_an_option_stands_for_it_also_where_there_are_words(tmp_path):
    (tmp_path / "campaign.yaml").write_text(GOOD)
    done = run("crowdveil", "up", "campaign.yaml", "--gate", "0", cwd=tmp_path)
    assert_one_line(done, 2, r'--gateways is "0"; expected')
    done = run("crowdveil", "up", "campaign.yaml", "--g", "0", "--s", "1", cwd=tmp_path)  # seed or state
    assert_one_line(done, 2, r'unknown option "--s"')


def test_a_database_that_is_not_there(tmp_path):
    assert_one_line(run("crowdveil", "replay", "none.db", cwd=tmp_path), 2, r"none.db: no such database")
    (tmp_path / "text.db").write_text("text\n")
    assert_one_line(run("crowdveil", "replay", "text.db", cwd=tmp_path), 1, r"text.db: damaged or not a database")


# --- daemons


class Party:
    """Valid settings of one daemon, which tests spoil."""

    def __init__(self, deployment, program):
        self.deployment, self.program, self.folder = deployment, program, deployment.folder
        if program == "worker":
            (self.folder / "campaign.yaml").write_text(GOOD)
            self.settings = {"broker": "127.0.0.1:1", "broker_name": "main", "requesters": "alice",
                             "campaign": "campaign.yaml", "seed": 1, "tls": deployment.pki.issue("worker/1").config()}
        else:
            self.settings = getattr(deployment, f"{program}_settings")()

    def fails(self, changes, status, pattern, *words):
        settings = merged(self.settings, changes)
        settings = {key: value for key, value in settings.items() if value is not None}
        config = write_config(self.folder / "bad.yaml", settings)
        before = snapshot(self.folder).keys()
        done = run(self.program, "--config", config, *words, cwd=self.folder)
        assert_one_line(done, status, pattern)
        left = {path for path in snapshot(self.folder).keys() - before - {"tmp"}}
        return left


@pytest.fixture(params=["broker", "thirdparty", "worker"])
def party(deployment, request):
    if missing_programs(request.param):
        pytest.fail(f"not built: {request.param}")
    return Party(deployment, request.param)


@pytest.mark.parametrize("changes, status, pattern", [
    ({"lisen": "127.0.0.1:0"}, 2, r"bad.yaml:\d+:\d+: unknown key .*lisen"),
    ({"tls": {"cb": "x"}}, 2, r"bad.yaml:\d+:\d+: unknown key .*cb"),
    ({"tls": "x"}, 2, r"bad.yaml:\d+:\d+: .*tls.*expected"),
    ({"tls": {"key": "none.key"}}, 2, r"none.key: No such file"),
    ({"tls": {"cert": "none.pem"}}, 2, r"none.pem: No such file"),
    ({"tls": {"ca": "none.pem"}}, 2, r"none.pem: No such file"),
    ({"tls": {"ca": "bad.yaml"}}, 2, r"bad.yaml: no certificate"),
])
def test_bad_settings_of_a_daemon(party, changes, status, pattern):
    left = party.fails(changes, status, pattern)
    assert not left, "nothing may be left behind"


def test_a_certificate_of_another_role(party):
    files = party.deployment.pki.issue("requester/alice").config()
    assert not party.fails({"tls": files}, 2, r"requester-alice.pem: .*role requester.*expected")


def test_a_key_that_others_may_read(party, tmp_path):
    key = tmp_path / "open.key"
    key.write_bytes(open(party.settings["tls"]["key"], "rb").read())
    key.chmod(0o644)
    assert not party.fails({"tls": {"key": str(key)}}, 2, r"open.key: mode is 0644.*chmod 600")


@pytest.mark.parametrize("setting", ["anchor", "seal_key"])
def test_what_must_not_go_back_or_away_with_the_database_lies_elsewhere(deployment, setting):
    inside = f"{deployment.broker_settings()['state']}/deep/er"
    os.makedirs(inside)
    for path in (inside + "/file", inside + "/../file", "link/file"):
        if not os.path.lexists(deployment.folder / "link"):
            os.symlink(inside, deployment.folder / "link")
        left = Party(deployment, "broker").fails({setting: path}, 2, rf"{setting}: .*file.* state.*.*outside")
        assert not left, "nothing may be left behind"


@pytest.mark.parametrize("key, words, problem", [
    ("privatizers", "none, lapalce", r'names "lapalce"; did you mean "laplace"\?'),
    ("privatizers", "none, rot13", 'names "rot13"; expected some of none, randomized-response or laplace'),
    ("mechanisms", "kary hybird", r'names "hybird"; did you mean "hybrid"\?'),
    ("mechanisms", "kary rot13", 'names "rot13"; expected some of hybrid, none, .*kary.* or kary-blocks'),
])
def test_an_unknown_word_in_a_worker_s_own_list(deployment, key, words, problem):
    worker = Party(deployment, "worker")
    worker.fails({"accept": {key: words}}, 2, rf"bad\.yaml:\d+:\d+: accept.{key} {problem}")


def test_a_limit_that_a_restart_would_forget(deployment, tmp_path):
    worker = Party(deployment, "worker")
    worker.fails({"accept": {"tokens": 3}}, 2, "missing state; expected a state folder .*, as accept.tokens is 3")
    worker.fails({"accept": {"tokens": 3}, "state": str(tmp_path / "none")}, 2, "folder .*none: No such file")
    (tmp_path / "given.db").write_bytes(b"no database at all" * 100)
    worker.fails({"accept": {"tokens": 3}, "state": str(tmp_path)}, 1, "given.db")


def test_a_limit_that_is_not_set(deployment, tmp_path):
    """Behind a privatizer a broker could ask one worker for ever: its owner sets a limit, or states that there is
    none."""
    worker = Party(deployment, "worker")
    worker.fails({"accept": {"privatizers": "none, laplace"}}, 2,
                 "missing state; expected a state folder.*accept.tokens is 1, or accept.tokens: 0")
    for words in ((), ("--check-config",)):
        worker.fails({}, 2, "missing state; expected a state folder.*accept.tokens is 1, or accept.tokens: 0", *words)
    (tmp_path / "given.db").write_bytes(b"no database at all" * 100)
    worker.fails({"accept": {"privatizers": "laplace"}, "state": str(tmp_path)}, 1, "given.db")


EXPECTED = {"broker": ["thirdparty_name"], "thirdparty": ["brokers"], "worker": ["broker_name", "requesters"]}


@pytest.mark.parametrize("program, key", [(program, key) for program, keys in EXPECTED.items() for key in keys])
def test_the_names_that_a_daemon_expects_must_be_set(deployment, program, key):
    party = Party(deployment, program)
    assert not party.fails({key: None}, 2, rf"bad.yaml:\d+:\d+: missing {key}; expected .*, here or as --")
    assert not party.fails({key: "broker/main"}, 2, rf'bad.yaml:\d+:\d+: {key} is "broker/main"; expected ')
    alone = {"thirdparty_name", "broker_name"}
    if key in alone:
        assert not party.fails({key: "any"}, 2, rf'bad.yaml:\d+:\d+: {key} is "any"; expected the name')
    else:
        assert not party.fails({key: "any, main"}, 2, rf'{key} is "any, main"; expected names .* or any')


def test_a_folder_of_campaigns_that_cannot_be_served(deployment, tmp_path):
    folder = tmp_path / "campaigns"
    folder.mkdir()
    worker = Party(deployment, "worker")
    worker.fails({"campaign": str(folder)}, 2, r"campaigns: the folder has 0 files \*.yaml; expected 1 to 64")
    (folder / "b.yaml").write_text(GOOD)
    (folder / "a.yaml").write_text(GOOD)
    worker.fails({"campaign": str(folder)}, 2, "b.yaml: campaign .* is also defined in .*a.yaml; expected each name")
    (folder / "b.yaml").write_text("campaign: [")
    worker.fails({"campaign": str(folder)}, 2, r"b.yaml:\d+:")


def test_a_port_that_is_taken(deployment):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        for program in ("thirdparty", "broker"):
            Party(deployment, program).fails({"listen": address}, 1, re.escape(address) + ".*in use")


@pytest.mark.parametrize("program", ["thirdparty", "broker"])
@pytest.mark.parametrize("listen", ["nonsense", "127.0.0.1:99999", ":1"])
def test_an_address_that_is_none(deployment, program, listen):
    Party(deployment, program).fails({"listen": listen}, 2, re.escape(listen) + ".*expected")


@pytest.mark.parametrize("program", ["thirdparty", "broker"])
def test_a_state_folder_that_is_missing(deployment, program):
    assert not Party(deployment, program).fails({"state": "nowhere"}, 2, r"nowhere")


def started_once(deployment):
    """A deployment that ran and stopped, so that there are databases."""
    deployment.up()
    assert set(deployment.stop().values()) == {0}


DAMAGE = {
    "cut off": lambda data: data[:len(data) // 2],
    "no database": lambda data: b"this is no database\n" * 300,
    "header spoilt": lambda data: b"\xff" * 100 + data[100:],
    "pages spoilt": lambda data: data[:4096] + bytes(byte ^ 0x5A for byte in data[4096:]),
}


@pytest.mark.parametrize("program", ["thirdparty", "broker"])
@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_database_is_refused_and_left_alone(deployment, program, damage):
    started_once(deployment)
    path = deployment.folder / f"{program}-state" / f"{program}.db"
    spoilt = DAMAGE[damage](path.read_bytes())
    path.write_bytes(spoilt)
    Party(deployment, program).fails({}, 1, rf"{program}.db")
    assert path.read_bytes() == spoilt


def test_the_database_of_another_program_is_refused(deployment):
    started_once(deployment)
    state = deployment.folder
    data = (state / "thirdparty-state/thirdparty.db").read_bytes()
    (state / "broker-state/broker.db").write_bytes(data)
    Party(deployment, "broker").fails({}, 2, r"broker.db")


def test_a_brokers_database_from_before_is_refused(deployment):
    """An old copy of the database would draw noise a second time for a release that has left."""
    started_once(deployment)
    path = deployment.folder / "broker-state/broker.db"
    old = path.read_bytes()
    deployment.up()
    with deployment.requester() as requester:
        requester.submit(spec(2, policy_params={"alpha": .1}))
    deployment.stop()
    path.write_bytes(old)
    Party(deployment, "broker").fails({}, 1, r"anchor.*\d+.*\d+|\d+.*\d+.*anchor")


def test_another_seal_key_is_refused(deployment):
    deployment.up()
    with deployment.requester() as requester:
        requester.submit(spec(2, policy_params={"alpha": .1, "tokens_per_round": 100}))
        files = deployment.pki.issue("gateway/1-50")
        with Session(deployment.broker.address, files.ca, files.cert, files.key) as session:
            verdicts, _ = work(session, range(1, 51), lambda worker, arm, place: 5)
    assert verdicts["accepted"] == 50
    deployment.stop()
    (deployment.folder / "seal.key").write_text(f"crowdveil seal keys 1\n1 0 {os.urandom(32).hex()}\n")
    Party(deployment, "broker").fails({}, 1, "expected that key in the file")


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_says_its_version(program, tmp_path):
    said = subprocess.run([PROGRAMS[program], "--version"], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    name = program if program == "crowdveil" else f"crowdveil-{program}"
    assert said.returncode == 0 and re.fullmatch(rf"{name} \d+\.\d+\.\d+(-dev.*)?\n", said.stdout), said
