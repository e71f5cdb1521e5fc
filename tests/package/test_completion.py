# SPDX-License-Identifier: Apache-2.0
"""Completion in bash and zsh: what a person gets for a Tab."""
import os
import pty
import re
import select
import shlex
import shutil
import subprocess
import time

import pytest

from conftest import BUILD

PROGRAMS = {"crowdveil": BUILD / "deploy/launcher/crowdveil", "crowdveil-lab": BUILD / "lab/crowdveil-lab",
            "crowdveil-broker": BUILD / "broker/crowdveil-broker",
            "crowdveil-broker-postgresql": BUILD / "broker/crowdveil-broker-postgresql",
            "crowdveil-cobroker": BUILD / "cobroker/crowdveil-cobroker",
            "crowdveil-thirdparty": BUILD / "thirdparty/crowdveil-thirdparty",
            "crowdveil-worker": BUILD / "worker/crowdveil-worker"}
BASH, ZSH = "share/bash-completion/completions", "share/zsh/site-functions"


def bash(installed, *words, folder=None):
    """What bash offers for the last word; bash itself makes a word of each `=`."""
    split = [part for word in words for part in (re.split("(=)", word) if "=" in word else [word])]
    split = split[:-1] if len(split) > 1 and split[-1] == "" and split[-2] == "=" else split
    script = (f"source {shlex.quote(str(installed / BASH / words[0]))}; COMP_WORDS=({shlex.join(split)}); "
              f"COMP_CWORD={len(split) - 1}; _{words[0].replace('-', '_')}; printf '%s\\n' \"${{COMPREPLY[@]}}\"")
    done = subprocess.run(["bash", "--norc", "-c", script], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, check=True)
    assert done.stderr == ""
    return set(done.stdout.split("\n")) - {""}


def said(program, *words):
    return subprocess.run([PROGRAMS[program], *words, "--help"], check=True, stdout=subprocess.PIPE, text=True).stdout


def options_of(program, *words):
    return set(re.findall(r"^  (?:-\w, )?(--[a-z-]+)", said(program, *words), re.M))


def commands_of(program):
    return re.findall(r"^  ([a-z]+) ", said(program), re.M)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "my campaign.yaml").write_text("")
    (tmp_path / "mine").mkdir()
    return tmp_path


@pytest.mark.parametrize("program", [name for name in PROGRAMS if commands_of(name)])
def test_bash_offers_every_command_and_all_its_options(installed, program):
    commands = commands_of(program)
    assert len(commands) > 4
    assert bash(installed, program, "") == {*commands, "--help", "--version"}
    for command in commands:
        assert bash(installed, program, command, "--") == options_of(program, command), command


@pytest.mark.parametrize("program", [name for name in PROGRAMS if not commands_of(name)])
def test_bash_offers_all_options_of_a_daemon(installed, program):
    assert len(options_of(program)) > 15
    assert bash(installed, program, "--") == options_of(program)


def test_bash_offers_what_a_value_can_be(installed, folder):
    assert bash(installed, "crowdveil", "su") == {"submit"}
    assert bash(installed, "crowdveil", "up", "my", folder=folder) == {"my campaign.yaml"}
    assert bash(installed, "crowdveil", "submit", "--tls-ca", "m", folder=folder) == {"my campaign.yaml", "mine"}
    assert bash(installed, "crowdveil", "submit", "--tls-ca=mi", folder=folder) == {"mine"}
    assert bash(installed, "crowdveil-broker", "--sandbox", "") == {"on", "require", "off"}
    assert bash(installed, "crowdveil-broker", "--sandbox=re") == {"require"}
    assert bash(installed, "crowdveil-worker", "--accept-privatizers", "la") == {"laplace"}
    assert bash(installed, "crowdveil", "export", "--format", "") == {"json", "csv"}
    assert {"ca", "issue", "make"} <= bash(installed, "crowdveil", "pki", "", folder=folder)
    assert not {"mine", "my campaign.yaml"} & bash(installed, "crowdveil", "pki", "", folder=folder), "no file yet"
    assert bash(installed, "crowdveil", "pki", "make", "broker/main=mi", folder=folder) == {"mine"}
    assert bash(installed, "crowdveil-lab", "run", "ppar-fig5") == {"ppar-fig5"}
    assert bash(installed, "crowdveil", "submit", "--broker", "m", folder=folder) == set(), "an address is no file"


class Terminal:
    """An interactive shell."""

    def __init__(self, *command, env):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execvpe(command[0], command, dict(os.environ, TERM="dumb", **env))
        self.seen = ""

    def type(self, text):
        os.write(self.fd, text.encode())

    def wait_for(self, pattern, seconds=20):
        """The first match in what the shell prints from now on."""
        deadline = time.monotonic() + seconds
        while not (found := re.search(pattern, self.seen)):
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.fd], [], [], left)[0]:
                raise AssertionError(f"not printed within {seconds} s: {pattern}\n{self.seen}")
            self.seen += os.read(self.fd, 4096).decode(errors="replace")
        self.seen = self.seen[found.end():]
        return found

    def close(self):
        os.close(self.fd)
        os.waitpid(self.pid, 0)


@pytest.fixture
def zsh(installed, folder):
    if shutil.which("zsh") is None:
        pytest.skip("no zsh")
    shell = Terminal("zsh", "-f", "-i", env={"ZDOTDIR": str(folder), "HOME": str(folder)})
    shell.type(f"PS1=; unsetopt zle_bracketed_paste; cd {folder}; fpath=({installed / ZSH} $fpath); "
               "autoload -U compinit; compinit -u -D; echo rea''dy\n")
    shell.wait_for("ready")
    yield shell
    shell.close()


@pytest.mark.parametrize("typed, completed", [
    ("crowdveil sub", r"crowdveil submit "),
    ("crowdveil up my", r"my\\ campaign\.yaml"),
    ("crowdveil submit --tls-c", r"--tls-ce?"),
    ("crowdveil submit --broker-n", r"--broker-name="),
    ("crowdveil pki iss", r"pki issue"),
    ("crowdveil pki make broker/main=mi", r"broker/main=mine/"),
    ("crowdveil-broker --sandbox=req", r"--sandbox=require"),
    ("crowdveil-worker --accept-tok", r"--accept-tokens="),
    ("crowdveil-thirdparty --config=mi", r"--config=mine"),
    ("crowdveil-lab run ppar-fig4-c", r"run ppar-fig4-classes"),
    ("crowdveil-lab aud", r"crowdveil-lab audit "),
    ("crowdveil-lab audit --ful", r"audit --full ")])
def test_zsh_completes(zsh, typed, completed):
    zsh.type(typed + "\t")
    zsh.wait_for(completed)


def test_zsh_shows_the_help_of_each_command(zsh):
    zsh.type("crowdveil \t")
    zsh.wait_for(r"recover\s+-- recover a broker whose database is outdated or lost")


@pytest.mark.parametrize("program", PROGRAMS)
def test_zsh_knows_every_option(installed, program):
    text = (installed / ZSH / f"_{program}").read_text()
    for command in commands_of(program) or [None]:
        part = text if command is None else re.search(rf"^    {command}\)\n(.*?)^      ;;$", text, re.M | re.S)[1]
        named = set(re.findall(r"^ +'(--[a-z-]+)", part, re.M))
        assert named == options_of(program, *([command] if command else [])), command


def test_bash_completes_for_a_person(installed, folder):
    """In a terminal, where bash splits the line itself."""
    shell = Terminal("bash", "--norc", "--noprofile", "-i", env={"HOME": str(folder)})
    for name in ("crowdveil", "crowdveil-broker"):
        shell.type(f"source {installed / BASH / name}\n")
    shell.type(f"PS1=; cd {folder}; echo rea''dy\n")
    shell.wait_for("ready")
    shell.type("crowdveil sub\t")
    shell.wait_for("crowdveil submit ")
    shell.type("my\t")
    shell.wait_for(r"my\\ campaign\.yaml")
    shell.type("\x15crowdveil-broker --sandbox=req\t")
    shell.wait_for("--sandbox=require")
    shell.close()
