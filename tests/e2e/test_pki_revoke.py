# SPDX-License-Identifier: Apache-2.0
"""`crowdveil pki revoke`, `renew` and `list`: what daemons, requesters and the openssl program make of them."""
import json
import re
import signal
import subprocess
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from client.requester import end_name
from harness.admin import get, metric, metrics
from harness.campaign import GATEWAYS, Run
from harness.commands import as_requester, crowdveil
from harness.daemon import wait_until, write_config
from harness.made import Made
from harness.pki import der, openssl, served
from harness.sockets import connections_of

BOTH = ("broker/main", "thirdparty/ranker")


@pytest.fixture
def made(deployment, tmp_path):
    deployment.pki = pki = Made(tmp_path)
    pki.made()
    return pki


def reload(daemon, says="certificates reloaded"):
    since = daemon.mark()
    daemon.signal(signal.SIGHUP)
    daemon.wait_for(says, after=since)


def revoke(made, *identities):
    """Revokes, and brings the list to every party, as an operator does."""
    for identity in identities:
        done = made.pki("revoke", identity)
        assert done.returncode == 0 and done.stdout.splitlines()[-1] == str(made.folder / "ca/crl.pem"), done.stderr
    made.made()


def listed(made):
    done = made.pki("list", "--json")
    assert done.returncode == 0 and done.stderr == ""
    return [json.loads(line) for line in done.stdout.splitlines()]


def states(made, identity):
    return [one["state"] for one in listed(made) if one["identity"] == identity]


def verify(made, folder):
    """What the openssl program says of a certificate, with the revocations."""
    ca = made.folder / "ca"
    done = subprocess.run(["openssl", "verify", "-x509_strict", "-crl_check", "-CAfile", ca / "ca.pem", "-CRLfile",
                           ca / "crl.pem", folder / "cert.pem"], capture_output=True, text=True)
    return done.stdout + done.stderr


# --- connections


def connected(deployment, what):
    return metric(deployment.folder, "broker", f"crowdveil_{what}")


def test_a_revoked_gateway_is_disconnected_and_the_others_go_on(deployment, made, undisturbed, worker_program):
    run = Run(deployment, broker={"admin": str(deployment.folder / "broker.sock")})
    gone, stays = run.start_workers()
    run.when(1000)
    revoke(made, GATEWAYS[0])
    before, since = connections_of(stays), gone.mark()
    reload(deployment.broker)
    gone.wait_for("our certificate is revoked", after=since)  # its next attempt
    assert connected(deployment, 'connections{role="gateway"}') == 1
    run.when(20000)
    assert connected(deployment, 'connections{role="gateway"}') == 1 and connections_of(stays) == before != set()
    # with another certificate it is welcome
    said = made.made("--renew", words=[f"{GATEWAYS[0]}={made.of[GATEWAYS[0]]}"])
    assert said == {GATEWAYS[0]: "renewed with a new key"}
    reload(gone)
    wait_until(lambda: connected(deployment, 'connections{role="gateway"}') == 2, "it comes back")
    run.check(undisturbed)


def with_cobroker(made):
    made.parties = {**made.parties, "cobroker/second@localhost,127.0.0.1": "cobroker"}
    made.of["cobroker/second"] = made.folder / "cobroker"
    made.made()


def test_a_revoked_gateway_has_no_session_with_the_co_broker(deployment, made, worker_program):
    """A session outlives its connection, but not its certificate; here only the co-broker knows of the revocation."""
    def at_cobroker(what):
        return metric(deployment.folder, "cobroker", f"crowdveil_cobroker_{what}")

    with_cobroker(made)
    run = Run(deployment, cobroker={})
    gone, stays = run.start_workers(exit_when_done=False)
    run.when(1000)
    wait_until(lambda: at_cobroker("sessions") == 2, "both have a session, though one may have given all tokens so far")
    gone.kill()
    wait_until(lambda: at_cobroker("crowd") == 1, "one is gone")
    assert at_cobroker("sessions") == 2
    revoke(made, GATEWAYS[0])
    reload(deployment.cobroker, "1 session ended: the certificate is revoked")
    assert at_cobroker("sessions") == 1
    run.when(run.when(0).tokens + 500)  # the other one goes on
    revoke(made, GATEWAYS[1])
    since = stays.mark()
    reload(deployment.cobroker, "1 session ended: the certificate is revoked")
    assert at_cobroker("sessions") == 0
    stays.wait_for("our certificate is revoked", after=since)


@pytest.mark.parametrize("party", ["broker/main", "cobroker/second"])
def test_a_new_key_ends_campaigns_with_two_brokers(deployment, made, party, worker_program):
    with_cobroker(made)
    run = Run(deployment, cobroker={})
    worker = run.start_worker(GATEWAYS[0], exit_when_done=False)
    run.when(1000)
    role, other = ("broker", "cobroker") if party == "broker/main" else ("cobroker", "broker")
    daemon, word = getattr(deployment, role), f"{party}@localhost,127.0.0.1={made.of[party]}"
    made.made("--renew", words=[word])
    reload(daemon)
    run.when(run.when(0).tokens + 500)  # the same key: nothing happens
    made.made("--renew", "--new-key", words=[word])
    reload(daemon, f"our key is a new one, {deployment.key_of(party)}: open campaigns")
    with deployment.requester() as requester:
        assert end_name(requester.watch(run.campaign).progress.end) == "frozen"
    export = deployment.folder / "export.json"
    assert crowdveil("export", run.campaign, "--output", export, *as_requester(deployment)).returncode == 0
    done = crowdveil("verify", export)
    assert done.returncode == 3 and "agree" not in done.stdout + done.stderr, done.stdout + done.stderr
    assert "only what is there could be compared, and fits: the campaign is frozen (" in done.stderr, done.stderr
    told = json.loads(crowdveil("verify", export, "--json").stdout)
    assert told["agrees"] is False and told["difference"] is None and "is frozen" in told["left_out"]
    # The others refuse it by the old fingerprint, until their settings have the new one.
    called = {"broker": "broker", "cobroker": "co-broker"}[role]
    worker.wait_for(f"the {called} closes the connection: the {called} has a new key")
    wait_until(lambda: get(deployment.folder / "broker.sock", "/health")[0] == 503, "they are disconnected")
    run.kill_and_restart(other)
    wait_until(lambda: get(deployment.folder / "broker.sock", "/health")[0] == 200, "they know each other again")


def test_broker_and_thirdparty_leave_each_other(deployment, made):
    """Either side closes on its own list alone, and takes the other back once that has a new certificate."""
    deployment.up()
    daemons = dict(zip(BOTH, (deployment.broker, deployment.thirdparty)))
    for revoked, judge in (BOTH, reversed(BOTH)):
        wait_until(lambda: connected(deployment, "thirdparty_connected") == 1, "they are connected")
        since = daemons[judge].mark()
        revoke(made, revoked)
        reload(daemons[judge])
        daemons[judge].wait_for("certificate is revoked", after=since)
        wait_until(lambda: connected(deployment, "thirdparty_connected") == 0, "they are not")
        word = f"{revoked}@localhost,127.0.0.1={made.of[revoked]}"
        assert made.made("--renew", words=[word])[revoked].startswith("renewed with a new key")
        reload(daemons[revoked])
    wait_until(lambda: connected(deployment, "thirdparty_connected") == 1, "they are connected again")


def test_the_requesters_side(deployment, made):
    deployment.up()
    assert crowdveil("status", *as_requester(deployment)).returncode == 0
    # the broker refuses a revoked requester
    revoke(made, "requester/alice")
    reload(deployment.broker)
    done = crowdveil("status", *as_requester(deployment), "--patience", "500ms")
    assert done.returncode == 1 and re.fullmatch("crowdveil status: .*our certificate is revoked\n", done.stderr)
    assert made.made("--renew", words=[f"requester/alice={made.of['requester/alice']}"])
    assert crowdveil("status", *as_requester(deployment)).returncode == 0
    # a requester refuses a revoked broker, by its own list
    revoke(made, "broker/main")
    done = crowdveil("status", *as_requester(deployment), "--patience", "500ms")
    assert done.returncode == 1 and re.fullmatch("crowdveil status: .*: certificate is revoked\n", done.stderr)
    since = deployment.broker.mark()
    reload(deployment.broker)  # which serves on: others judge
    deployment.broker.wait_for("warning: our own certificate is revoked", after=since)
    files = made.issue("requester/alice")
    without = [word for word in as_requester(deployment) if word not in ("--tls-crl", files.crl)]
    assert crowdveil("status", *without).returncode == 0


# --- files that are refused


def spoil(made, tmp_path, how):
    path = Path(made.issue("broker/main").crl)
    if how == "gone":
        path.unlink()
    elif how == "damaged":
        path.write_text("-----BEGIN X509 CRL-----\nMIIB\n")
    elif how == "of another CA":
        other = tmp_path / "other"
        assert crowdveil("pki", "ca", "--dir", other).returncode == 0
        path.write_bytes((other / "crl.pem").read_bytes())
    else:
        write_expired(made.folder / "ca", path)


def write_expired(ca, path):
    """The openssl program signs lists, too: this one was good until a minute ago."""
    (path.parent / "empty").write_text("")
    (path.parent / "ca.conf").write_text(f"[ca]\ndefault_ca = own\n[own]\ndatabase = {path.parent}/empty\n"
                                         "default_md = sha256\n")
    now = datetime.now(timezone.utc)
    dates = [f"{now - timedelta(minutes=back):%Y%m%d%H%M%SZ}" for back in (10, 1)]
    openssl("ca", "-gencrl", "-config", path.parent / "ca.conf", "-cert", ca / "ca.pem", "-keyfile", ca / "ca.key",
            "-crl_lastupdate", dates[0], "-crl_nextupdate", dates[1], "-out", path, cwd=path.parent)


BAD = {"gone": "crl.pem: No such file", "damaged": "crl.pem: CRL 1 is damaged or not in PEM form",
       "of another CA": "crl.pem: a CRL is not signed by our CA",
       "expired": r"crl.pem: the CRL expired on \d{4}-.* UTC; expected the CA's current crl.pem"}


@pytest.mark.parametrize("how", BAD)
def test_a_list_that_is_no_good(deployment, made, tmp_path, how):
    """A running daemon keeps its old files, a new one does not start, a command ends; each with one line."""
    deployment.up()
    alice = made.issue("requester/alice")
    before = served(deployment.broker.address, alice, "broker")
    spoil(made, tmp_path, how)
    reload(deployment.broker, f"keeping the old certificates: .*{BAD[how]}")
    assert served(deployment.broker.address, alice, "broker") == before
    options, bad = as_requester(deployment), Path(made.issue("broker/main").crl)
    deployment.broker.stop()
    again = deployment.launch_broker()
    assert again.wait() == 2 and len(again.lines) == 1 and re.search(BAD[how], again.lines[0]), again.lines
    done = crowdveil("status", *options, "--tls-crl", bad)
    assert done.returncode == 2 and re.fullmatch(f"crowdveil status: .*{BAD[how]}.*\n", done.stderr), done.stderr
    made.made()  # repairs it
    deployment.start_broker()
    assert crowdveil("status", *as_requester(deployment)).returncode == 0


def test_a_running_daemon_takes_no_older_list(deployment, made):
    """As when a copy of yesterday is put back: it would let the revoked in again."""
    deployment.up()
    path = Path(made.issue("broker/main").crl)
    older = path.read_bytes()
    revoke(made, "requester/alice")
    reload(deployment.broker)
    newer = path.read_bytes()
    path.write_bytes(older)
    reload(deployment.broker, "keeping the old certificates: .*crl.pem: an older CRL than the one in use; expected")
    assert crowdveil("status", *as_requester(deployment)).returncode != 0
    path.write_bytes(newer)
    reload(deployment.broker)


def test_doctor_reads_the_list(deployment, made, tmp_path):
    deployment.up()
    deployment.stop()
    config = write_config(tmp_path / "b.yaml", deployment.broker_settings())

    def found():
        done = crowdveil("doctor", config, "--json")
        return [one for one in map(json.loads, done.stdout.splitlines()) if "crl.pem" in one["what"]
                or "revoked" in one["what"]]

    assert [one["level"] for one in found()] == ["ok"] and "valid until" in found()[0]["what"]
    revoke(made, "broker/main")
    assert [(one["level"], "revoked" in one["what"]) for one in found()] == [("ok", False), ("wrong", True)]
    spoil(made, tmp_path, "expired")
    assert [one["level"] for one in found()] == ["wrong"] and "expired on" in found()[0]["what"]
    assert "crowdveil pki make" in found()[0]["advice"]
    spoil(made, tmp_path, "damaged")
    assert [one["level"] for one in found()] == ["wrong"] and "not in PEM form" in found()[0]["what"]


# --- the commands


def test_openssl_agrees_with_list(made):
    gateway, worker = made.of[GATEWAYS[0]], made.of["worker/400001"]
    assert "OK" in verify(made, gateway) and "OK" in verify(made, worker)
    revoke(made, GATEWAYS[0])
    assert "certificate revoked" in verify(made, gateway) and "OK" in verify(made, worker)
    serials = {one["identity"]: one["serial"] for one in listed(made)}
    text = subprocess.run(["openssl", "crl", "-in", made.folder / "ca/crl.pem", "-CAfile", made.folder / "ca/ca.pem",
                           "-noout", "-text"], check=True, capture_output=True, text=True)
    assert "verify OK" in text.stderr and re.findall("Serial Number: (.*)", text.stdout) == [serials[GATEWAYS[0]]]
    # as openssl prints a serial number, it can be given
    shown = subprocess.run(["openssl", "x509", "-in", worker / "cert.pem", "-noout", "-serial"], check=True,
                           capture_output=True, text=True).stdout.strip().split("=")[1]
    revoke(made, shown.lower())
    assert "certificate revoked" in verify(made, worker)
    assert (worker / "crl.pem").read_bytes() == (made.folder / "ca/crl.pem").read_bytes()


@pytest.mark.parametrize("lost", ["the revocation", "the certificate"])
def test_an_older_index_takes_no_revocation_back(made, lost):
    """As when index.tsv alone comes from a backup."""
    index, parts = made.folder / "ca/index.tsv", made.bytes
    older = index.read_text()
    if lost == "the certificate":
        made.parties = {**made.parties, "worker/400002": "late"}
        made.made()
    revoke(made, "worker/400002" if lost == "the certificate" else GATEWAYS[0])
    newer, serial = index.read_text(), next(one["serial"] for one in listed(made) if one["state"] == "revoked")
    index.write_text(older)
    before = parts()
    way_out = "a new CA in another folder" if lost == "the certificate" else "crowdveil pki revoke of this number"
    for words in (("make", *made.words()), ("issue", "--out", made.folder / "more", "worker/400003"),
                  ("renew", "--out", made.of["worker/400001"], "worker/400001")):
        done = made.pki(*words)
        assert done.returncode != 0 and f"has certificate {serial} as revoked" in done.stderr, done.stderr
        assert way_out in done.stderr and str(index) in done.stderr and len(done.stderr.splitlines()) == 1
    assert {path: text for path, text in parts().items() if path.parent.name != "more"} == before
    # with the list lost, too, the parties still have it
    (made.folder / "ca/crl.pem").unlink()
    assert "as revoked" in made.make().stderr
    assert serial in subprocess.run(["openssl", "crl", "-in", made.folder / "person/crl.pem", "-noout", "-text"],
                                    capture_output=True, text=True).stdout
    # ways out
    if lost == "the revocation":
        revoke(made, serial)
    else:
        index.write_text(newer)
        made.made()
    assert [one["serial"] for one in listed(made) if one["state"] == "revoked"] == [serial]


def test_list_says_what_there_is(made):
    assert {one["identity"] for one in listed(made)} == set(made.of)
    assert {one["state"] for one in listed(made)} == {"valid"}
    word = f"worker/400001={made.of['worker/400001']}"
    made.made("--renew", words=[word])
    revoke(made, GATEWAYS[1])
    made.made("--renew", "--seconds", "-60", words=[f"requester/alice={made.of['requester/alice']}"])
    assert states(made, "worker/400001") == ["superseded", "valid"]
    assert states(made, GATEWAYS[1]) == ["revoked"]
    assert states(made, "requester/alice") == ["superseded", "expired"]
    for one in listed(made):
        assert set(one) == {"identity", "serial", "state", "made", "expires", "superseded", "revoked"}
        lives = datetime.fromisoformat(one["expires"][:-1]) - datetime.fromisoformat(one["made"][:-1])
        assert lives == timedelta(days=90) or one["state"] == "expired", "ninety days unless said otherwise"
        assert (one["revoked"] is not None) == (one["state"] == "revoked")
    table = made.pki("list").stdout.splitlines()
    assert table[0].split() == ["identity", "serial", "made", "expires", "state"]
    assert [line.split()[0] for line in table[1:]] == [one["identity"] for one in listed(made)]
    assert [line.split()[-1] for line in table[1:]] == [one["state"] for one in listed(made)]
    ca = subprocess.run(["openssl", "x509", "-in", made.folder / "ca/ca.pem", "-noout", "-enddate", "-dateopt",
                         "iso_8601"], check=True, capture_output=True, text=True).stdout
    ends = datetime.fromisoformat(ca.strip().split("=")[1][:-1])
    assert timedelta(days=3649) < ends - datetime.utcnow() < timedelta(days=3651)


def test_a_certificate_never_outlives_its_ca(tmp_path):
    ca = tmp_path / "ca"
    assert crowdveil("pki", "ca", "--dir", ca, "--days", "5").returncode == 0
    assert crowdveil("pki", "issue", "--dir", ca, "requester/alice").returncode == 0
    assert crowdveil("pki", "make", "--dir", ca, f"requester/bob={tmp_path}/bob", "--days", "30").returncode == 0
    ends = [subprocess.run(["openssl", "x509", "-in", path, "-noout", "-enddate"], check=True,
                           capture_output=True).stdout for path in
            (ca / "ca.pem", ca / "requester-alice.pem", tmp_path / "bob/cert.pem")]
    assert len(set(ends)) == 1, ends
    assert crowdveil("pki", "ca", "--dir", tmp_path / "old", "--seconds=-60").returncode == 0
    done = crowdveil("pki", "issue", "--dir", tmp_path / "old", "--out", tmp_path / "out", "requester/alice")
    assert done.returncode == 1 and re.fullmatch("crowdveil pki: .*ca.pem: the CA has expired; .*\n", done.stderr)
    assert not (tmp_path / "out").exists()


def test_renewed_in_place_a_daemon_reads_it(deployment, made):
    deployment.up()
    broker, alice = made.issue("broker/main"), made.issue("requester/alice")
    old = der(broker)
    done = made.pki("renew", "--out", made.of["broker/main"], "broker/main")
    assert done.returncode == 0 and done.stdout.split() == [broker.cert, broker.key], done.stderr
    assert served(deployment.broker.address, alice, "broker") == old
    reload(deployment.broker)
    assert served(deployment.broker.address, alice, "broker") == der(broker) != old
    assert states(made, "broker/main") == ["superseded", "valid"]
    ends = metrics(deployment.folder / "broker.sock")
    ends = ends['crowdveil_certificate_expiry_timestamp_seconds{certificate="crl"}']
    assert ends - time.time() > 89 * 86400, "the metric by which a person is warned"
    names = subprocess.run(["openssl", "x509", "-in", broker.cert, "-noout", "-ext", "subjectAltName"], check=True,
                           capture_output=True, text=True).stdout
    assert "DNS:localhost, IP Address:127.0.0.1" in names, "the hosts stay"
    assert made.pki("renew", "--out", made.of["broker/main"], "broker/main", "--host", "b.example").returncode == 0
    assert "DNS:b.example" in subprocess.run(["openssl", "x509", "-in", broker.cert, "-noout", "-text"], check=True,
                                             capture_output=True, text=True).stdout


@pytest.mark.parametrize("words, status, says", [
    (("list", "x"), 2, 'too many arguments of "list"; usage: crowdveil pki list'),
    (("list", "--renew"), 2, "list does not take --renew; usage: crowdveil pki list"),
    (("revoke",), 2, r'missing arguments of "revoke"; usage: crowdveil pki revoke ROLE/NAME\|SERIAL'),
    (("revoke", "worker/1", "worker/2"), 2, 'too many arguments of "revoke"'),
    (("revoke", "--days", "5", "worker/400001"), 2, "revoke does not take --days"),
    (("revoke", "--json", "worker/400001"), 2, "revoke does not take --json"),
    (("revoke", "worker/x"), 2, "expected worker/ID with ID from 1"),
    (("revoke", "king/arthur"), 2, "unknown role"),
    (("revoke", "0x12"), 2, '"0x12": expected ROLE/NAME or a serial number in hex'),
    (("revoke", "12"), 1, 'no certificate of "12"; expected one that crowdveil pki list shows'),
    (("revoke", "worker/12"), 1, 'no unexpired certificate of "worker/12"'),
    (("renew",), 2, 'missing arguments of "renew"; usage: crowdveil pki renew ROLE/NAME'),
    (("renew", "worker/12"), 1, "worker-12.pem: No such file; expected the certificate to renew there, or as cert.pem"),
    (("renew", "--renew", "worker/400001"), 2, "renew does not take --renew"),
    (("renew", "worker/0"), 2, "expected worker/ID with ID from 1"),
    (("renew", "--out", "{}/person", "worker/12"), 1, "the certificate is of worker/400001; expected one of worker/12"),
    (("renew", "--out", "{}/broker", "broker/main", "--host", "a_b"), 2, "host 'a_b' is neither an IP address"),
    (("issue", "--out", "{}/new", "broker/other"), 2,
     "broker/other: no host; expected each host name or IP address that others dial"),
    (("issue", "--out", "{}/new", "thirdparty/other", "--host", ","), 2, "thirdparty/other: no host"),
    (("issue", "--out", "{}/new", "broker/main", "--host", "h"), 1,
     "broker/main: has a certificate already, [0-9A-F]{40}, valid until 20.*; expected --renew to make another"),
    (("issue", "--out", "{}/new", "requester/alice"), 1, "requester/alice: has a certificate already"),
    (("make", "requester/alice={}/new"), 1, "requester/alice: has a certificate already"),
    (("make", "--host", "h", "requester/bob={}/new"), 2, "make does not take --host"),
])
def test_wrong_arguments_change_nothing(made, words, status, says):
    before = made.bytes()
    done = made.pki(*(word.format(made.folder) for word in words))
    assert done.returncode == status and done.stdout == ""
    assert re.fullmatch(f"crowdveil pki: .*{says}.*\n", done.stderr), done.stderr
    assert made.bytes() == before and not (made.folder / "new").exists()


def test_list_without_a_ca(tmp_path):
    done = crowdveil("pki", "list", "--dir", tmp_path / "no")
    assert done.returncode == 1
    assert re.fullmatch("crowdveil pki: .*no/index.tsv: No such file or directory\n", done.stderr)
