# SPDX-License-Identifier: Apache-2.0
"""
The packages in a clean Debian: installed, configured as docs/packages.md says, started as their units say, upgraded,
removed and purged. The tests of this file follow each other.
"""
import os
import re
import shutil
import signal
import stat
import subprocess
import sys

import pytest

from support import base, postgres
from conftest import ROOT
from machine import Machine, Notifications

DAEMONS = ("crowdveil-broker", "crowdveil-broker-postgresql", "crowdveil-cobroker", "crowdveil-thirdparty",
           "crowdveil-worker")
PACKAGES = ("crowdveil", *DAEMONS, "crowdveil-lab", "crowdveil-doc", "python3-crowdveil")
CAMPAIGN = """campaign: installed
items: {list: [{name: a, mean: 0.9}, {name: b, mean: 0.2}]}
policy: {name: ppar, alpha: 0.2, tokens_per_round: 500}
privacy: {epsilon: 1, share_names: true}
limits: {tokens: 20000, idle: 60s}
"""
REQUESTER = ("--broker", "broker.example:7401", "--broker-name", "main", "--patience", "30s", "--tls-ca",
             "/root/alice/ca.pem", "--tls-cert", "/root/alice/cert.pem", "--tls-key", "/root/alice/key.pem")


def reason():
    """Why nothing can be installed here, or None."""
    if os.geteuid() != 0:
        return "a chroot and its mounts need root"
    missing = [name for name in ("debootstrap", "dpkg-buildpackage", "unshare", "ip") if shutil.which(name) is None]
    if missing:
        return f"{', '.join(missing)} cannot be found; deploy/bootstrap package installs it"
    try:
        import seccomp  # noqa: F401
    except ImportError:
        return "no python3-seccomp"
    tried = subprocess.run(["unshare", "--mount", "--net", "true"], stderr=subprocess.PIPE, text=True)
    return f"no namespaces here: {tried.stderr.strip()}" if tried.returncode else None


# In a container root may not raise this limit; then only the keys are locked.
LOCKS = subprocess.run(["prlimit", "--memlock=unlimited", "true"], stderr=subprocess.PIPE).returncode == 0

if why := reason():
    pytest.skip(why, allow_module_level=True)


@pytest.fixture(scope="module")
def machine(tmp_path_factory):
    try:
        base.archive()
    except base.Unavailable as unavailable:
        pytest.skip(str(unavailable))
    made = Machine(tmp_path_factory.mktemp("machine"))
    made.apt("update")
    yield made
    made.close()


@pytest.fixture(scope="module")
def files(debs):
    return [path for path in sorted(debs["first"].glob("*.deb")) if "-dbgsym_" not in path.name]


@pytest.fixture(scope="module")
def units(machine):
    return {"thirdparty": machine.unit("crowdveil-thirdparty.service"),
            "broker": machine.unit("crowdveil-broker.service"),
            "worker": machine.unit("crowdveil-worker@.service", "lyon")}


def mode(machine, path):
    """(owner, group, permissions) of a file inside."""
    info = machine.path(path).stat()
    return info.st_uid, info.st_gid, oct(stat.S_IMODE(info.st_mode))


def test_all_are_installed(machine, files, say):
    base_size = len(machine.run("dpkg-query", "-W").stdout.splitlines())
    machine.install(files)
    assert {name: machine.state(name) for name in PACKAGES} == {name: "installed" for name in PACKAGES}
    say(f"a clean Debian has {base_size} packages, and {len(machine.run('dpkg-query', '-W').stdout.splitlines())} with "
        "all of Crowdveil's")
    version = re.search(r"version: '([^']+)'", (ROOT / "meson.build").read_text())[1]
    commit = subprocess.run([ROOT / "deploy/revision", version], capture_output=True, text=True, check=True).stdout
    made = f"{version} (commit {commit.strip()})" if commit else version
    for name in PACKAGES[:-2]:
        assert machine.run(name, "--version").stdout == f"{name} {made}\n"
        assert "not found" not in machine.run("ldd", f"/usr/bin/{name}").stdout


def test_the_python_package_is_imported_and_its_example_runs(machine):
    said = machine.run("python3", "-c", "import crowdveil as c; print(c.__version__, c.Spec('a', 2).message().arms)")
    assert re.fullmatch(r"\d+\.\d+\.\d+(\.dev0)? 2\n", said.stdout)
    assert "--listen" in machine.run("python3", "/usr/share/doc/python3-crowdveil/examples/bayes.py", "--help").stdout


def test_each_daemon_has_a_user_and_private_folders(machine):
    users = [machine.user(name) for name in DAEMONS]
    assert all(users) and len(set(users)) == len(DAEMONS) and all(0 < uid < 1000 for uid, _ in users)
    for name, (uid, gid) in zip(DAEMONS, users):
        assert mode(machine, f"/var/lib/{name}") == (uid, gid, "0o700")
    assert mode(machine, "/etc/crowdveil/broker") == (0, 0, "0o700")
    assert mode(machine, "/etc/crowdveil/campaigns") == (0, users[-1][1], "0o750")


def test_services_are_enabled_and_wait_for_their_configuration(machine, units):
    """A worker's instances are the administrator's."""
    wanted = {path.name for path in machine.path("/etc/systemd/system/multi-user.target.wants").iterdir()}
    assert {name for name in wanted if name.startswith("crowdveil")} == \
        {f"{name}.service" for name in DAEMONS[:-1]}
    for unit in units.values():
        assert not machine.path(unit.one("ConditionPathExists")).exists()


def test_up_runs_a_whole_campaign(machine):
    machine.path("/root/campaign.yaml").write_text(CAMPAIGN)
    done = machine.run("crowdveil", "up", "/root/campaign.yaml", "--seed", "1")
    assert re.search(r"^ *1 +a ", done.stdout, re.M), done.stdout


# ---- over PostgreSQL


@pytest.fixture
def server(machine):
    """A PostgreSQL server in the machine's network, whose files the machine has as its configuration says."""
    if not postgres.is_installed():
        pytest.skip("no PostgreSQL server; deploy/bootstrap test installs it")
    made = postgres.Server(network=machine.network)
    try:
        made.start().add_store()
        yield made
    finally:
        made.close()


def test_a_broker_over_postgresql_starts_and_takes_the_term(machine, server):
    """Configured from its sample, with the owner's command, as its unit says."""
    name = "crowdveil-broker-postgresql"
    unit, folder = machine.unit(f"{name}.service"), "/etc/crowdveil/broker-postgresql"
    sample = machine.path(f"/usr/share/doc/{name}/examples/broker-postgresql.yaml").read_text()
    config = sample.replace("db1.example,db2.example", f"{server.host}:{server.port}")
    config = config.replace("replicated\n", "one-server\n")
    machine.path("/etc/crowdveil/broker-postgresql.yaml").write_text(config)
    machine.path("/etc/crowdveil/db-ca.pem").write_bytes(server.ca.read_bytes())
    passwords = machine.path(f"/var/lib/{name}/passwords")
    passwords.write_bytes(server.passfile.read_bytes())
    passwords.chmod(0o600)
    machine.run("chown", f"{name}:", f"/var/lib/{name}/passwords")
    machine.run("crowdveil", "pki", "make", "--dir", "/root/store-ca", f"broker/main@broker.example={folder}")
    machine.run("cp", f"{folder}/crl.pem", "/etc/crowdveil/crl.pem")
    owner = (f"postgresql://crowdveil_owner@{server.host}:{server.port}/crowdveil?sslmode=verify-full"
             "&sslrootcert=/etc/crowdveil/db-ca.pem&passfile=/root/passwords")
    machine.run("install", "-m", "600", f"/var/lib/{name}/passwords", "/root/passwords")
    machine.run(name, "--config", "/etc/crowdveil/broker-postgresql.yaml", "--migrate", owner)
    assert mode(machine, f"{folder}/seal.key") == (0, 0, "0o600")
    manager = Notifications(machine, "/run/notify-postgresql")
    machine.start(unit, "/run/notify-postgresql")
    manager.wait_for("READY=1")
    machine.wait_for(unit, "active: term 1,")
    assert unit.one("Restart") == "always"
    assert machine.stop(unit) == 0
    assert server.sql("SELECT max(number) FROM crowdveil.term", "crowdveil") == "1"
    for path in ("/etc/crowdveil/broker-postgresql.yaml", "/etc/crowdveil/db-ca.pem"):
        machine.path(path).unlink()


# ---- configured and started


def documented():
    """The commands of docs/packages.md between the headings "Configure" and "Credentials", without those that need
    systemd."""
    text = (ROOT / "docs/packages.md").read_text()
    part = text[text.index("\n## Configure"):text.index("\n## Credentials")]
    lines = re.findall(r"^    (.*)$", part, re.M)
    return [line for line in lines if not line.startswith(("systemctl ", "apt ", "editor "))]


@pytest.fixture(scope="module")
def configured(machine):
    machine.path("/root/campaign.yaml").write_text(CAMPAIGN)
    machine.run("sh", "-ec", "cd /root\n" + "\n".join(documented()))
    machine.run("sed", "-i", "s/^# audit: /audit: /", "/etc/crowdveil/broker.yaml")


def test_the_documented_commands_configure_all_parties(machine, configured, units):
    for unit in units.values():
        for path in (unit.one("ConditionPathExists"), *unit.all("AssertPathExists")):
            assert machine.path(path).is_file(), path
        for path in unit.loaded().values():
            owner, _, permissions = mode(machine, path)
            assert owner == 0 and (permissions == "0o600" or path.endswith((".pem",)) and "key" not in path)
    assert mode(machine, "/etc/crowdveil/worker/lyon") == (0, 0, "0o700")


@pytest.fixture(scope="module")
def running(machine, configured, units):
    """All three parties, as their units start them."""
    for name, ready in (("thirdparty", "ready on"), ("broker", "ready on"), ("worker", "connected as gateway/")):
        machine.start(units[name])
        machine.wait_for(units[name], ready)
    return units


def test_a_start_a_reload_and_life_are_told(machine, running):
    """Type=notify and WatchdogSec: a service that told nothing would be ended."""
    if b"NOTIFY_SOCKET" not in machine.path("/usr/bin/crowdveil-thirdparty").read_bytes():
        pytest.skip("this version tells a service manager nothing")
    unit = running["thirdparty"]
    assert unit.one("Type") == "notify" and unit.one("WatchdogSec") == "60s"
    assert machine.stop(unit) == 0
    manager = Notifications(machine, "/run/notify")
    machine.start(unit, "/run/notify", watchdog_us=400_000)
    manager.wait_for("READY=1")
    manager.wait_for("WATCHDOG=1")
    machine.daemons[unit.name].send_signal(signal.SIGHUP)
    manager.wait_for("RELOADING=1")
    manager.wait_for("READY=1")
    assert machine.stop(unit) == 0
    manager.wait_for("STOPPING=1")
    machine.start(unit)
    machine.wait_for(unit, "ready on")


def test_a_unit_gives_its_program_the_whole_sandbox(machine, running):
    """Under the unit's filter of system calls, on its read-only root, no part of the program's own sandbox is off."""
    for unit in running.values():
        machine.wait_for(unit, "sandbox: ")
        told = re.search(r"sandbox: .*", machine.log(unit))[0]
        assert f"user: {unit.one('User')};" in told and "OFF" not in told, told
        assert "capabilities: none;" in told and ("swap: nothing;" in told or not LOCKS)
        assert "landlock: ABI" in told and f"reads {unit.credentials}" in told
        status = machine.path(f"/proc/{machine.daemons[unit.name].pid}/status").read_text()
        assert re.search(r"^CapBnd:\t0+$", status, re.M) and re.search(r"^NoNewPrivs:\t1$", status, re.M)
        assert int(re.search(r"^Seccomp_filters:\t(\d+)$", status, re.M)[1]) >= 2


def test_no_secret_is_in_a_command_line_or_readable_by_another_party(machine, running):
    thirdparty, _ = machine.user("crowdveil-thirdparty")
    for path in ("/etc/crowdveil/broker/key.pem", "/etc/crowdveil/broker/seal.key",
                 "/var/lib/crowdveil-broker/broker.db", "/etc/crowdveil/campaigns/campaign.yaml"):
        assert machine.path(path).is_file()
        done = machine.run("setpriv", f"--reuid={thirdparty}", "--clear-groups", "cat", path, check=False)
        assert done.returncode == 1 and "Permission denied" in done.stdout


def test_a_campaign_runs_between_the_services(machine, running):
    done = machine.run("crowdveil", "submit", "/root/campaign.yaml", *REQUESTER, "--watch", timeout=120)
    assert re.search(r"^ *1 +a ", done.stdout, re.M), done.stdout
    ledger = machine.run("crowdveil", "ledger", "1", *REQUESTER).stdout
    assert "epsilon" in ledger
    audit = machine.path("/var/log/crowdveil-broker/audit")
    assert '"event":"submit","actor":"requester/alice"' in audit.read_text()
    assert mode(machine, "/var/log/crowdveil-broker/audit") == (*machine.user("crowdveil-broker"), "0o600")
    for party in ("broker", "thirdparty"):
        done = machine.run(f"crowdveil-{party}", "--config", f"/etc/crowdveil/{party}.yaml", "--probe")
        assert done.stdout == f"crowdveil-{party}: ok\n"


def test_a_revocation_needs_a_reload_only(machine, running):
    """The list lies in /etc/crowdveil and is no credential. A new certificate needs a restart."""
    pki = ("crowdveil", "pki")
    machine.run(*pki, "revoke", "gateway/1-50000", "--dir", "/root/ca")
    machine.run("install", "-m", "0644", "/root/ca/crl.pem", "/etc/crowdveil/crl.pem")
    machine.daemons[running["broker"].name].send_signal(signal.SIGHUP)
    machine.wait_for(running["broker"], "certificates reloaded")
    machine.wait_for(running["broker"], "certificate is revoked")
    machine.run(*pki, "make", "--renew", "--dir", "/root/ca", "gateway/1-50000=/etc/crowdveil/worker/lyon")
    machine.stop(running["worker"])
    machine.start(running["worker"])
    machine.wait_for(running["worker"], "connected as gateway/")


def test_a_restart_takes_a_renewed_certificate_and_keeps_the_state(machine, running):
    machine.run("crowdveil", "pki", "make", "--renew", "--dir", "/root/ca",
                "broker/main@broker.example=/etc/crowdveil/broker")
    broker = running["broker"]
    assert machine.stop(broker) == 0
    machine.start(broker)
    machine.wait_for(broker, "ready on")
    machine.wait_for(broker, "sandbox: ")
    assert "installed" in machine.run("crowdveil", "status", *REQUESTER).stdout


def served(machine):
    """The certificate that the broker shows."""
    ask = """if True:
        import socket, ssl
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
        tls.set_alpn_protocols(["crowdveil/1"])
        with tls.wrap_socket(socket.create_connection(("127.0.0.1", 7401))) as connection:
            print(ssl.DER_cert_to_PEM_cert(connection.getpeercert(True)))"""
    shown = subprocess.run(["ip", "netns", "exec", machine.network, sys.executable, "-c", ask], check=True,
                           stdout=subprocess.PIPE, text=True).stdout
    assert "BEGIN CERTIFICATE" in shown
    return shown


def test_with_the_documented_drop_in_a_reload_takes_a_renewed_certificate(machine, running):
    """The daemon reads the original files, which its user then owns."""
    text = (ROOT / "docs/packages.md").read_text()
    drop_in = re.search(r"^    \[Service\]\n((?:    .*\n)+)", text[text.index("\n## Credentials"):], re.M)[1]
    unit = machine.unit("crowdveil-broker.service")
    original, unit.path = unit.path, machine.path("/root/crowdveil-broker.service")
    unit.path.write_text(original.read_text() + re.sub("(?m)^    ", "", drop_in))
    assert machine.stop(running["broker"]) == 0
    machine.run("chown", "-R", "crowdveil-broker:", "/etc/crowdveil/broker")
    machine.start(unit)
    machine.wait_for(unit, "ready on")
    machine.wait_for(unit, "sandbox: ")
    assert "OFF" not in machine.log(unit)
    before = served(machine)
    machine.run("crowdveil", "pki", "make", "--renew", "--dir", "/root/ca",
                "broker/main@broker.example=/etc/crowdveil/broker")
    machine.daemons[unit.name].send_signal(signal.SIGHUP)
    machine.wait_for(unit, "certificates reloaded")
    assert served(machine) != before
    assert machine.stop(unit) == 0
    machine.run("chown", "-R", "root:", "/etc/crowdveil/broker")
    machine.start(running["broker"])
    machine.wait_for(running["broker"], "ready on")


def documented_recovery():
    text = (ROOT / "docs/packages.md").read_text()
    part = text[text.index("\n## Recover"):text.index("\n## Remove")]
    return [line for line in re.findall(r"^    (.*)$", part, re.M) if not line.startswith("systemctl ")]


def test_an_older_copy_of_the_state_is_recovered_as_documented(machine, running):
    """By root, with the original keys; afterwards the service can write what root has written."""
    broker, state = running["broker"], machine.path("/var/lib/crowdveil-broker")
    assert machine.stop(broker) == 0
    machine.run("cp", "-a", "/var/lib/crowdveil-broker", "/root/copy")
    machine.start(broker)
    machine.run("crowdveil", "submit", "/root/campaign.yaml", *REQUESTER, "--watch", timeout=120)
    assert machine.stop(broker) == 0
    shutil.rmtree(state)
    machine.run("cp", "-a", "/root/copy", "/var/lib/crowdveil-broker")
    machine.start(broker)
    assert machine.daemons.pop(broker.name).wait(60) == 1
    assert "expected the database not to be older than its anchor" in machine.log(broker)
    machine.run("sh", "-ec", "\n".join(documented_recovery()))
    machine.start(broker)
    machine.wait_for(broker, "ready on")
    done = machine.run("crowdveil", "submit", "/root/campaign.yaml", *REQUESTER, "--watch", timeout=120)
    assert re.search(r"^ *1 +a ", done.stdout, re.M), done.stdout


def test_doctor_finds_the_keys_by_the_configuration(machine, running):
    """Root starts it by hand, without the unit's options."""
    for unit in (running["worker"], running["broker"], running["thirdparty"]):
        assert machine.stop(unit) == 0
    done = machine.run("crowdveil", "doctor", "/etc/crowdveil/broker.yaml", "/etc/crowdveil/thirdparty.yaml",
                       check=False)
    assert re.search("key /etc/crowdveil/broker/seal.key: key [0-9a-f]{8}, private", done.stdout), done.stdout
    assert "anchor /var/lib/crowdveil-anchor/broker.anchor: agrees" in done.stdout, done.stdout


def test_a_filter_without_the_calls_of_the_sandbox_would_show(machine, units):
    """The fault that the units avoid: systemd's groups alone switch the program's own sandbox off."""
    unit = machine.unit("crowdveil-thirdparty.service")
    copy = machine.path("/root/crowdveil-thirdparty.service")
    copy.write_text(re.sub(r"(?m)^SystemCallFilter=capset\n", "", units["thirdparty"].path.read_text()).replace(
        "SystemCallFilter=@system-service seccomp landlock_create_ruleset landlock_add_rule landlock_restrict_self",
        "SystemCallFilter=@system-service"))
    unit.path = copy
    machine.start(unit)
    machine.wait_for(unit, "ready on")
    machine.wait_for(unit, "sandbox: ")
    told = machine.log(unit)
    assert machine.stop(unit) == 0
    assert "landlock: OFF" in told and "seccomp: OFF" in told and "capabilities: OFF" in told


# ---- upgraded, removed, purged


@pytest.fixture
def systemctl(machine):
    """A systemctl that writes down its arguments, as if systemd ran: the packages' scripts call it."""
    calls, program = machine.path("/root/calls"), machine.path("/usr/local/bin/systemctl")
    calls.write_text("")
    program.write_text('#!/bin/sh\necho "$*" >> /root/calls\ncase "$*" in *is-enabled*) echo enabled ;; esac\n')
    program.chmod(0o755)
    machine.path("/run/systemd/system").mkdir(parents=True)
    yield calls
    program.unlink()
    machine.path("/run/systemd/system").rmdir()


def with_stub(machine, *args):
    return machine.run("dpkg", *args, PATH="/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin").stdout


def test_an_upgrade_restarts_what_runs(machine, files, systemctl):
    with_stub(machine, "--install", *(f"/tmp/debs/{path.name}" for path in files))
    calls = systemctl.read_text().splitlines()
    for expected in ("daemon-reload", "restart crowdveil-broker.service", "restart crowdveil-thirdparty.service",
                     "try-restart crowdveil-worker@*.service"):
        assert any(line.endswith(expected) for line in calls), (expected, calls)


def test_a_removal_stops_the_services_and_keeps_everything(machine, systemctl):
    with_stub(machine, "--remove", *PACKAGES)
    calls = systemctl.read_text().splitlines()
    for expected in ("stop crowdveil-broker.service", "stop crowdveil-thirdparty.service",
                     "stop crowdveil-worker@*.service"):
        assert any(line.endswith(expected) for line in calls), (expected, calls)
    assert not list(machine.path("/usr/bin").glob("crowdveil*"))
    for path in ("/var/lib/crowdveil-broker/broker.db", "/var/lib/crowdveil-anchor/broker.anchor",
                 "/etc/crowdveil/broker.yaml", "/etc/crowdveil/broker/seal.key"):
        assert machine.path(path).is_file()


def test_a_purge_keeps_state_and_keys_and_says_so(machine):
    said = with_stub(machine, "--purge", *DAEMONS)
    for folder in ("broker: /var/lib/crowdveil-broker", "broker: /var/lib/crowdveil-anchor",
                   "broker: /etc/crowdveil/broker", "broker-postgresql: /etc/crowdveil/broker-postgresql",
                   "broker-postgresql: /var/lib/crowdveil-broker-postgresql",
                   "thirdparty: /var/lib/crowdveil-thirdparty",
                   "worker: /etc/crowdveil/worker", "worker: /etc/crowdveil/campaigns"):
        assert f"crowdveil-{folder} is kept; it may hold " in said
    assert machine.path("/var/lib/crowdveil-broker/broker.db").is_file()
    assert machine.user("crowdveil-broker"), "the owner of what is kept"
    assert not [name for name in PACKAGES if machine.state(name)]


def test_a_purge_of_an_unused_package_leaves_no_folder(machine, files):
    for folder in [machine.path("/etc/crowdveil"), *machine.path("/var/lib").glob("crowdveil-*"),
                   *machine.path("/var/log").glob("crowdveil-*")]:
        if folder.is_dir():
            shutil.rmtree(folder)
    machine.install(files)
    assert machine.path("/etc/crowdveil/broker").is_dir()
    said = with_stub(machine, "--purge", *PACKAGES)
    assert "is kept" not in said
    assert not machine.path("/etc/crowdveil").exists()
    assert not list(machine.path("/var/lib").glob("crowdveil*"))
