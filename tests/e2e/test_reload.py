# SPDX-License-Identifier: Apache-2.0
"""SIGHUP in the middle of a campaign: new certificates, a new authority, denied ones; and invalid files."""
import os
import shutil
import signal
import ssl
import subprocess
from pathlib import Path

import pytest

from crowdveil.wire import Connection, context
from harness import machine
from harness.admin import metrics
from harness.campaign import GATEWAYS, Run
from harness.daemon import wait_until
from harness.machine import needs
from harness.pki import Pki, der, served
from harness.sockets import connections_of

pytestmark = pytest.mark.usefixtures("worker_program")

READ_AGAIN, AS_THEY_WERE = "certificates reloaded", "keeping the old certificates: "


class Party:
    """A party's certificate files, in a folder of its own where they can be replaced."""

    def __init__(self, folder, files):
        folder.mkdir()
        self.folder = folder
        self.install(files)
        self.deny()

    def config(self):
        return {"ca": str(self.folder / "ca.pem"), "cert": str(self.folder / "cert.pem"),
                "key": str(self.folder / "key.pem"), "denied": str(self.folder / "denied")}

    def put(self, name, data):
        """As a careful person replaces a file: writes a new one beside it and renames it."""
        beside = self.folder / f"{name}.new"
        beside.write_bytes(data)
        beside.chmod(0o600)
        os.replace(beside, self.folder / name)

    def install(self, files):
        for name, path in (("ca.pem", files.ca), ("cert.pem", files.cert), ("key.pem", files.key)):
            self.put(name, Path(path).read_bytes())

    def trust(self, *authorities):
        self.put("ca.pem", b"".join(Path(pki.ca).read_bytes() for pki in authorities))

    def deny(self, *files):
        self.put("denied", b"".join(serial(one.cert) for one in files))


def serial(path):
    done = subprocess.run(["openssl", "x509", "-in", path, "-noout", "-serial"], check=True, capture_output=True)
    return done.stdout.split(b"=")[1]


class Reloading(Run):
    IDENTITIES = {"thirdparty": "thirdparty/ranker", "broker": "broker/main", **{name: name for name in GATEWAYS}}

    def __init__(self, deployment):
        self.pki = deployment.pki
        self.parties = {party: Party(deployment.folder / f"tls-{party.replace('/', '-')}", self.issue(party))
                        for party in self.IDENTITIES}
        super().__init__(deployment, thirdparty={"tls": self.parties["thirdparty"].config()},
                         broker={"tls": self.parties["broker"].config()})
        self.daemons = {identity: self.start_worker(identity, tls=self.parties[identity].config())
                        for identity in GATEWAYS}
        for daemon in self.daemons.values():
            daemon.wait_for(r"broker/\w+: connected to")
        self.daemons.update(thirdparty=deployment.thirdparty, broker=deployment.broker)
        self.when(1000)

    def issue(self, party, generation=0, pki=None):
        identity = self.IDENTITIES[party]
        stem = f"{identity.replace('/', '-')}-{generation}" if generation else None
        return (pki or self.pki).issue(identity, name=stem)

    def reload(self, party, says=READ_AGAIN):
        """The line that follows the signal."""
        daemon = self.daemons[party]
        since = daemon.mark()
        daemon.signal(signal.SIGHUP)
        daemon.wait_for(says, after=since)
        return next(line for line in daemon.lines[since:] if says in line)

    def marks(self):
        return {party: daemon.mark() for party, daemon in self.daemons.items()}

    def connections(self):
        """The open connections between the parties: those to the broker and to the third-party."""
        return {party: connections_of(daemon) for party, daemon in self.daemons.items() if party != "broker"}

    def have_ended(self, connections):
        now = self.connections()
        return {party: gone for party, before in connections.items() if (gone := before - now[party])}

    def workers(self):
        now = metrics(self.deployment.folder / "broker.sock")
        return sum(now[f'crowdveil_connections{{role="{role}"}}'] for role in ("worker", "gateway"))

    def certificate_of(self, program):
        files = self.deployment.pki.issue("requester/alice" if program == "broker" else "broker/main")
        return served(self.settings[program]["listen"], files, program)


@needs(machine.others)
def test_new_certificates_end_no_connection(deployment, undisturbed):
    run = Reloading(deployment)
    assert run.certificate_of("broker") == der(run.issue("broker"))
    connections = run.connections()
    for party in run.parties:
        run.parties[party].install(run.issue(party, 1))
        run.reload(party)
    run.when(6000)
    assert run.certificate_of("broker") == der(run.issue("broker", 1))
    assert all(connections.values()) and not run.have_ended(connections)
    # from now on the old ones may have been stolen
    for party in ("thirdparty", "broker"):
        run.parties[party].deny(*(run.issue(other) for other in run.parties))
        run.reload(party)
    run.finish()
    assert [run.daemons[name].wait() for name in GATEWAYS] == [0, 0]  # while the broker is there to tell them
    run.check(undisturbed)


@needs(machine.others)
def test_an_authority_is_replaced_while_a_campaign_runs(deployment, undisturbed, tmp_path):
    """Trust both, replace every certificate, trust only the new one: nothing is closed before the last step."""
    run, new = Reloading(deployment), Pki(tmp_path / "new-ca")
    connections = run.connections()
    for party in run.parties.values():
        party.trust(run.pki, new)
    for party in run.parties:
        run.reload(party)
    for party in run.parties:
        files = run.issue(party, pki=new)
        run.parties[party].install(files)
        run.parties[party].trust(run.pki, new)
        run.reload(party)
    deployment.pki = new
    run.when(5000)
    assert all(connections.values()) and not run.have_ended(connections)
    for party in run.parties.values():
        party.trust(new)
    for party in run.parties:
        run.reload(party)
    old = run.pki.issue("requester/alice")
    with pytest.raises((OSError, ssl.SSLError, ConnectionError)):
        with Connection(deployment.broker.address, context(new.ca, old.cert, old.key)) as connection:
            assert connection.receive() is not None
            raise AssertionError("a peer with a certificate of the old authority was accepted")
    run.check(undisturbed)


def test_a_denied_certificate_is_disconnected_and_refused(deployment, undisturbed):
    run = Reloading(deployment)
    thief = run.issue(GATEWAYS[0])
    run.parties["broker"].deny(thief)
    marks = run.marks()
    run.reload("broker")
    run.daemons[GATEWAYS[0]].wait_for("revoked|refused", after=marks[GATEWAYS[0]])
    run.check(undisturbed)
    # the broker has ended and printed the counts of its suppressed lines
    lines = run.daemons["broker"].lines[marks["broker"]:]
    assert not [line for line in lines if f"{GATEWAYS[0]}: connected" in line]


def test_workers_heed_their_own_list(deployment, undisturbed):
    """A broker whose certificate is denied at a gateway gets no token of it until it has another one."""
    run = Reloading(deployment)
    stolen, gateway = run.issue("broker"), run.daemons[GATEWAYS[0]]
    run.parties[GATEWAYS[0]].deny(stolen)
    since = gateway.mark()
    run.reload(GATEWAYS[0])
    gateway.wait_for("revoked", after=since)
    wait_until(lambda: run.workers() == 1, "it has left")
    run.parties["broker"].install(run.issue("broker", 1))
    run.reload("broker")
    wait_until(lambda: run.workers() == 2, "it comes back")
    run.check(undisturbed)


BROKEN = {
    "no certificate": (lambda party: party.put("cert.pem", b"rubbish\n"), "cert.pem: no certificate in PEM form"),
    "cut short": (lambda party: party.put("ca.pem", (party.folder / "ca.pem").read_bytes()[:300]), "ca.pem: "),
    "another's key": (lambda party: party.put("key.pem", KEY), "the key does not belong to"),
    "a bad list": (lambda party: party.put("denied", b"not hex\n"), "denied:1: expected one serial number"),
    "gone": (lambda party: (party.folder / "key.pem").unlink(), "key.pem: No such file"),
}
KEY = subprocess.run(["openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:prime256v1"],
                     check=True, capture_output=True).stdout


@needs(machine.others)
def test_invalid_files_change_nothing(deployment, undisturbed):
    """One line for each, and everything goes on unchanged, including new connections."""
    run = Reloading(deployment)
    connections = run.connections()
    for party in ("broker", "thirdparty", GATEWAYS[1]):
        files = run.parties[party]
        good = deployment.folder / "good"
        shutil.copytree(files.folder, good)
        for what, (spoil, says) in BROKEN.items():
            spoil(files)
            line = run.reload(party, AS_THEY_WERE)
            assert says in line and str(files.folder) in line, f"{what}: {line}"
            for name in os.listdir(good):
                files.put(name, (good / name).read_bytes())
        shutil.rmtree(good)
    stranger = deployment.pki.issue("broker/other")
    run.parties["broker"].install(stranger)
    assert "certificate is for broker/other, expected broker/main" in run.reload("broker", AS_THEY_WERE)
    assert run.certificate_of("broker") == der(run.issue("broker"))
    assert all(connections.values()) and not run.have_ended(connections)
    run.check(undisturbed)
