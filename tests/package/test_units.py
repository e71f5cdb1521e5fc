# SPDX-License-Identifier: Apache-2.0
"""The units of systemd, their users and folders, and the sample configurations, checked by systemd's own tools."""
import re
import shutil
import subprocess

import pytest

from conftest import ROOT
from units import Unit, group

PARTIES = ("broker", "broker-postgresql", "cobroker", "thirdparty", "worker")
UNITS = {"broker": "crowdveil-broker.service", "broker-postgresql": "crowdveil-broker-postgresql.service",
         "cobroker": "crowdveil-cobroker.service", "thirdparty": "crowdveil-thirdparty.service",
         "worker": "crowdveil-worker@.service"}
OWN_SANDBOX = {"seccomp", "landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self", "prctl", "capset",
               "mlockall", "mlock", "mlock2", "prlimit64"}
# SQLite gives a file that root makes to the database's owner. Under a unit no program is root.
ONLY_ROOT = {"fchown"}

if shutil.which("systemd-analyze") is None:
    pytest.skip("no systemd-analyze", allow_module_level=True)


def run(*command):
    return subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=60)


@pytest.fixture(params=PARTIES)
def unit(request, installed):
    return Unit(installed / "lib/systemd/system" / UNITS[request.param], "lyon" if request.param == "worker" else "")


def party_of(unit):
    return re.match(r"crowdveil-([\w-]+)", unit.name)[1]


def test_it_exposes_little(unit, say):
    done = run("systemd-analyze", "security", "--no-pager", "--offline=true", "--threshold=15", unit.path)
    assert done.returncode == 0, done.stdout
    level = re.search(r"Overall exposure level for \S+: ([\d.]+)", done.stdout)[1]
    say(f"{unit.path.name}: exposure {level} by systemd-analyze security")
    assert float(level) < 1.5


def test_the_threshold_can_fail(unit, tmp_path):
    """The same unit without its hardening."""
    bare = tmp_path / unit.path.name
    bare.write_text(re.sub(r"^(Protect|Private|Restrict|SystemCall)\w+=.*\n", "", unit.path.read_text(), flags=re.M))
    assert run("systemd-analyze", "security", "--no-pager", "--offline=true", "--threshold=15", bare).returncode != 0


def test_systemd_understands_every_line(unit, installed, tmp_path):
    """An unknown key or value is a warning, and a program that does not exist is an error."""
    copy = tmp_path / unit.path.name
    copy.write_text(unit.path.read_text().replace("/usr/local/bin", str(installed / "bin")))
    done = run("systemd-analyze", "verify", "--man=no", "--recursive-errors=no", copy)
    assert (done.returncode, done.stdout) == (0, "")
    copy.write_text(copy.read_text().replace("WatchdogSec=60s", "WatchdogSec=often"))
    assert "often" in run("systemd-analyze", "verify", "--man=no", "--recursive-errors=no", copy).stdout


def listed_calls():
    """The system calls that common/sandbox/seccomp.c allows, without those that it kills for."""
    text = (ROOT / "common/sandbox/seccomp.c").read_text()
    lists = re.findall(r"static const char \*const (\w+)\[\] = \{(.*?)\};", text, re.S)
    names = {call for name, body in lists if name != "deadly"
             for call in re.findall(r'"(\w+)"', re.sub(r"/\*.*?\*/", "", body, flags=re.S))}
    return names | set(re.findall(r'allow_if\(filter, "(\w+)"', text))


def test_its_filter_allows_what_the_programs_own_filter_allows(unit):
    """And what the program needs to build its sandbox: a call that is missing would switch a part of it off."""
    calls = listed_calls()
    assert len(calls) > 80 and {"read", "clone", "ioctl", "bind", "connect"} <= calls
    assert calls - unit.calls() == ONLY_ROOT
    assert OWN_SANDBOX - unit.calls() == set()
    assert not unit.calls() & {"mount", "chroot", "init_module", "reboot", "swapon", "settimeofday", "bpf", "setuid"}


def test_no_group_of_systemd_has_the_calls_of_the_sandbox(unit):
    """Why the unit names them; a newer systemd may have them in @system-service."""
    own = {"seccomp", "landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self"}
    words = [word for value in unit.values["SystemCallFilter"] for word in value.split()]
    assert own <= set(words) and own <= group("@known")


def test_each_credential_is_required_and_used(unit):
    """A start without a file fails with a line that names it; and each copy is the value of an option."""
    loaded = unit.loaded()
    assert set(loaded) >= {"ca.pem", "cert.pem", "key.pem"}
    assert ("seal.key" in loaded) == (party_of(unit) in ("broker", "broker-postgresql", "cobroker"))
    assert sorted(unit.all("AssertPathExists")) == sorted(loaded.values())
    options = unit.one("ExecStart").split()
    for name in loaded:
        assert f"{unit.credentials}/{name}" in options


def test_a_sample_agrees_with_its_unit(unit, installed):
    """The sample's folders are the unit's, and its keys are where the unit takes the credentials from."""
    text = (installed / f"share/doc/crowdveil/examples/{party_of(unit)}.yaml").read_text().replace("NAME", "lyon")
    values = dict(re.findall(r"^ *(?:# )?(\w+): (\S+)$", text, re.M))
    assert values["state"] in unit.folders() if "store" not in values else "state" not in values
    for key in ("admin", "audit"):
        assert values[key].rpartition("/")[0] in unit.folders()
    if "anchor" in values:
        assert values["anchor"].rpartition("/")[0] in unit.folders()
    base = unit.one("ConditionPathExists").rpartition("/")[0]
    for key, name in (("ca", "ca.pem"), ("cert", "cert.pem"), ("key", "key.pem"), ("seal_key", "seal.key")):
        if key in values:
            path = values[key] if values[key].startswith("/") else f"{base}/{values[key]}"
            assert path == unit.loaded()[name]


@pytest.mark.parametrize("party", PARTIES)
def test_a_sample_is_a_valid_configuration(installed, party, tmp_path):
    program = installed / "bin" / f"crowdveil-{party}"
    sample = installed / f"share/doc/crowdveil/examples/{party}.yaml"
    # a worker's campaigns are checked as well; the sample's folder is empty until somebody fills it
    more = ("--campaign", ROOT / "deploy/campaigns/first.yaml") if party == "worker" else ()
    done = run(program, "--config", sample, "--check-config", *more)
    assert (done.returncode, done.stdout) == (0, f"crowdveil-{party}: the configuration is valid\n")
    # also with its comments taken away from the keys
    full = tmp_path / f"{party}.yaml"
    full.write_text(re.sub(r"^( *)# (sandbox|audit): ", r"\1\2: ", sample.read_text(), flags=re.M))
    assert "\nsandbox: require" in full.read_text()
    assert run(program, "--config", full, "--check-config", *more).returncode == 0


@pytest.mark.parametrize("party", PARTIES)
def test_its_user_and_folders_are_made(installed, party, tmp_path):
    """In an empty machine, by systemd's own programs; the folders of keys are root's, those of the state the user's."""
    if subprocess.run(["id", "-u"], stdout=subprocess.PIPE, text=True).stdout.strip() != "0":
        pytest.skip("only root may make folders of other users")
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/passwd").write_text("root:x:0:0::/root:/bin/sh\n")
    (tmp_path / "etc/group").write_text("root:x:0:\n")
    name = f"crowdveil-{party}"
    done = run("systemd-sysusers", f"--root={tmp_path}", installed / f"lib/sysusers.d/{name}.conf")
    assert done.returncode == 0, done.stdout
    user = re.search(rf"^{name}:x:(\d+):(\d+):.*:/usr/sbin/nologin$", (tmp_path / "etc/passwd").read_text(), re.M)
    assert user and user[1] != "0"
    done = run("systemd-tmpfiles", f"--root={tmp_path}", "--create", installed / f"lib/tmpfiles.d/{name}.conf")
    assert done.returncode == 0, done.stdout
    state, keys = (tmp_path / f"var/lib/{name}").stat(), (tmp_path / f"etc/crowdveil/{party}").stat()
    assert (state.st_uid, state.st_mode & 0o777) == (int(user[1]), 0o700)
    assert (keys.st_uid, keys.st_mode & 0o777) == (0, 0o755 if party == "worker" else 0o700)
