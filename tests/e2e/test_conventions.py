# SPDX-License-Identifier: Apache-2.0
"""Checks for what every command has in common: help, version, JSON, a full device, Ctrl-C, profiles."""
import json
import os
import re
import shutil
import signal
import subprocess

import pytest

from harness.commands import as_requester, crowdveil
from harness.daemon import PROGRAMS, ROOT

# of a release, and of a tree that is none, with what it was made from
VERSION = re.compile(r"[\w -]+ (\d+\.\d+\.\d+|\d+\.\d+\.\d+-dev( \(commit [0-9a-f]{12}( and local changes)?\))?)\n")


def commands():
    """Every program, and every command of one."""
    for name in ("broker", "thirdparty", "worker"):
        yield (str(PROGRAMS[name]),)
    for name in ("crowdveil", "lab"):
        program = str(PROGRAMS[name])
        yield (program,)
        told = subprocess.run([program, "--help"], capture_output=True, text=True, check=True).stdout
        yield from ((program, command) for command in re.findall(r"^  ([a-z]+) ", told, re.M))


def run(*words, **more):
    return subprocess.run(words, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL, check=False,
                          **more)


def called(words):
    return " ".join([os.path.basename(words[0]), *words[1:]])


@pytest.mark.parametrize("words", list(commands()), ids=called)
def test_help_and_version_in_both_spellings(words):
    told = run(*words, "--help")
    assert told.returncode == 0 and told.stderr == "" and told.stdout.startswith("Usage: ")
    assert run(*words, "-h").stdout == told.stdout
    assert [line for line in told.stdout.splitlines() if len(line) > 100] == []
    version = run(*words, "-V")
    assert version.returncode == 0 and VERSION.fullmatch(version.stdout), version.stdout
    assert run(*words, "--version").stdout == version.stdout


def revision(root, *words):
    done = run(root / "deploy/revision", *words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def git(folder, *words):
    done = run("git", "-C", folder, "-c", "user.name=a", "-c", "user.email=a@example.org", *words)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_tree_says_what_it_was_made_from(tmp_path):
    """A checkout, an archive of it, and neither; a release says nothing."""
    tree, archive = tmp_path / "tree", tmp_path / "archive"
    for folder in (tree, archive):
        folder.mkdir()
    for name in (".gitattributes", "deploy/revision", "deploy/commit"):
        (tree / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tree / name)
    assert revision(tree, "1.2.3-dev") == ""
    git(tree, "init", "--quiet")
    git(tree, "add", ".")
    git(tree, "commit", "--quiet", "--message", "x")
    commit = git(tree, "rev-parse", "HEAD")[:12]
    assert revision(tree, "1.2.3-dev") == f"{commit}\n"
    assert revision(tree, "1.2.3") == "" and revision(tree, "1.2.3", "mine") == "mine\n"
    git(tree, "archive", "--output", tmp_path / "archive.tar", "HEAD")
    assert run("tar", "-x", "-C", archive, "-f", tmp_path / "archive.tar").returncode == 0
    assert revision(archive, "1.2.3-dev") == f"{commit}\n" and revision(archive, "1.2.3") == ""
    with (tree / ".gitattributes").open("a") as file:
        file.write("# more\n")
    assert revision(tree, "1.2.3-dev") == f"{commit} and local changes\n"
    inner = tree / "inner"
    shutil.copytree(archive, inner)
    assert revision(inner, "1.2.3-dev") == f"{commit}\n", "a folder within a checkout is not the checkout"


@pytest.mark.parametrize("words", list(commands()), ids=called)
def test_a_full_device_is_an_error(words):
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run([*words, "--help"], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60,
                              check=False)
    assert done.returncode == 1
    assert re.fullmatch(r".*: standard output: No space left on device\n", done.stderr)


SILENT = {"up", "tether", "export"}  # export writes a file of its own format


@pytest.mark.parametrize("words", [words for words in commands() if len(words) > 1], ids=called)
def test_every_command_that_prints_can_print_json(words):
    if words[1] in SILENT:
        return
    assert re.search(r"^  --(json|format)", run(*words, "--help").stdout, re.M)


CAMPAIGN = """campaign: restaurants
items: {ladder: {count: 4, mean: 0.9, distance: 0.2}}
policy: {name: ppar, alpha: 0.1}
privacy: {mechanism: segments, epsilon: 0.5}
"""


def test_ctrl_c_ends_up_with_130(tmp_path):
    (tmp_path / "campaign.yaml").write_text(CAMPAIGN.replace("0.1}", "0.2, tokens_per_round: 10000000}") +
                                            "limits: {tokens: 1000000000}\n")
    with subprocess.Popen([PROGRAMS["crowdveil"], "up", "campaign.yaml"], cwd=tmp_path, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True) as running:
        running.stdout.readline()  # the first line is printed before the parties start
        running.send_signal(signal.SIGINT)
        _, told = running.communicate(timeout=60)
    assert running.returncode == 130 and told == "crowdveil up: stopped by signal: Interrupt\n"


@pytest.fixture
def configured(tmp_path):
    """Writes profiles.yaml; returns the environment of a person who has it."""
    def write(text):
        folder = tmp_path / "config/crowdveil"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "profiles.yaml").write_text(text)
        return {**os.environ, "XDG_CONFIG_HOME": str(tmp_path / "config")}

    return write


def test_a_profile_names_a_broker_and_its_files(deployment, configured):
    deployment.up()
    options = as_requester(deployment)
    values = dict(zip(options[::2], options[1::2]))
    tls = {name: str(values[f"--tls-{name}"]) for name in ("ca", "cert", "key")}
    profile = {"broker": values["--broker"], "broker_name": values["--broker-name"], "tls": tls}
    gone = profile | {"broker": "127.0.0.1:1"}
    env = configured(json.dumps({"default": "city", "profiles": {"city": profile, "gone": gone}}))
    for words, more in (((), {}), (("--profile", "city"), {}), ((), {"CROWDVEIL_PROFILE": "city"})):
        done = crowdveil("status", *words, env=env | more)
        assert done.returncode == 0, done.stderr
    assert crowdveil("status", "--profile", "gone", env=env).returncode == 1
    # an option stands above the profile
    assert crowdveil("status", "--profile", "gone", "--broker", values["--broker"], env=env).returncode == 0
    listed = json.loads(crowdveil("profiles", "--json", env=env).stdout)
    assert listed["default"] == "city" and set(listed["profiles"]) == {"city", "gone"}
    assert "city" in crowdveil("profiles", env=env).stdout


@pytest.mark.parametrize("text, expected", [
    ("profiles: {city: {brokr: 'x:1'}}", 'unknown key "brokr"'),
    ("profiles: 3", "expected a mapping of names to profiles"),
    ("default: lab\nprofiles: {city: {broker_name: main}}", 'unknown profile "lab"; expected city'),
    ("[", "profiles.yaml"),
])
def test_a_wrong_profile_is_one_line(configured, text, expected):
    done = crowdveil("status", env=configured(text))
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and expected in done.stderr
