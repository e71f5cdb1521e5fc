# SPDX-License-Identifier: Apache-2.0
"""A ranking's containers, examined from inside and disturbed from outside."""
import os
import re
import shutil
import sqlite3
import subprocess
from pathlib import Path

import engine
from harness.admin import metric
from harness.pki import Files, served
from project import wait_until

BUILD = Path(os.environ.get("CROWDVEIL_BUILD", engine.ROOT / "build"))
PARTIES = ("worker-1", "worker-2", "worker-3", "broker", "thirdparty")
NOISE = ["--unsafe-noise-seeded", "--unsafe-noise-seed=7"]


def can_connect(project, service, host, port):
    done = project.execute(service, "timeout", "20", "bash", "-c", f"exec 3<> /dev/tcp/{host}/{port}")
    return done.returncode == 0


def gateways(project, service):
    return [of["Gateway"] for of in project.inspect(service)["NetworkSettings"]["Networks"].values()]


RELEASES = "SELECT plan, arm, tokens, noisy_sum FROM release WHERE campaign = 1 ORDER BY plan, arm"
STANDINGS = "SELECT arm, class FROM standing WHERE campaign = 1 ORDER BY arm"


def outcome(database):
    """The database of a third-party that has ended: two runs with the same seeds must agree on it."""
    db = sqlite3.connect(database)
    return db.execute(RELEASES).fetchall(), db.execute(STANDINGS).fetchall()


def undisturbed(tmp_path):
    """The same campaign and seeds, with undisturbed processes on this machine."""
    state = tmp_path / "undisturbed"
    engine.run(BUILD / "deploy/launcher/crowdveil", "up", engine.ROOT / "deploy/campaigns/demo.yaml", "--seed", "244",
               "--unsafe-noise-seed", "7", "--gateways", "3", "--state", state)
    return outcome(state / "thirdparty/thirdparty.db")


def test_kills_in_mid_campaign(project, tmp_path):
    """kill -9 of the broker and later of the third-party: the same releases and the same ranking, nothing lost."""
    expected = undisturbed(tmp_path)
    pace = ["--arrival-rate=20000"]
    disturbed = project("rank", broker=NOISE, worker_1=pace, worker_2=pace, worker_3=pace).up()
    for share, service in ((.2, "broker"), (.5, "thirdparty")):
        wait_until(lambda share=share: released(disturbed) > share * len(expected[0]), f"{share} of all releases")
        disturbed.kill(service)
    assert released(disturbed) < .5 * len(expected[0]), "it was over before the kills"
    assert disturbed.wait() == 0, disturbed.log("requester")
    assert "complete, every item is ranked" in disturbed.log("requester")
    engine.podman("stop", disturbed.id("thirdparty"))
    assert outcome(f"{disturbed.volume('rank-thirdparty-state')}/thirdparty.db") == expected
    assert [disturbed.inspect(service)["RestartCount"] for service in ("broker", "thirdparty")] == [1, 1]


def released(project):
    """The number of releases that the third-party has received since its start, from its metrics."""
    try:
        folder = Path(f"/proc/{project.pid('thirdparty')}/root/var/lib/crowdveil-admin")
        return metric(folder, "thirdparty", "crowdveil_thirdparty_releases_total")
    except OSError:  # it is starting
        return 0


def test_local_privacy_and_a_person_of_its_own(project):
    """Includes the use of podman-compose alone: the requester's service is run once all others are up."""
    started = project("local-privacy").up("requester")
    assert started.wait() == 0
    assert "complete, every item is ranked" in started.log("requester")
    person = "connected as worker/5100001"
    wait_until(lambda: person in started.log("worker-4"), f"worker-4 {person}: {started.log('worker-4')}")
    # a gateway that learns the broker's address late may find the campaign complete without its workers
    gave = {service: accepted(started, service) for service in ("worker-1", "worker-2", "worker-3", "worker-4")}
    assert gave.pop("worker-4") in (0, 1), gave
    assert sum(gave.values()) > 100000, gave


def accepted(project, service):
    folder = Path(f"/proc/{project.pid(service)}/root/var/lib/crowdveil-admin")
    return metric(folder, "worker", "crowdveil_worker_tokens_accepted_total")


def test_parties_of_a_ranking(project, tmp_path):
    """One deployment whose requester has its ranking, for all tests that do not disturb it."""
    ranking = project("rank").up()
    assert ranking.wait() == 0, ranking.log("requester")
    separation(ranking)
    confinement(ranking)
    health(ranking)
    stolen_certificate(ranking, tmp_path)
    renewal(ranking)


def separation(project):
    thirdparty, broker = project.address("thirdparty", "ranking"), project.address("broker", "ranking")
    # a control: connections can be seen; a name server that is just being updated gives no answer
    for service, host, port in (("worker-1", "broker", 7401), ("broker", "thirdparty", 7402)):
        wait_until(lambda: can_connect(project, service, host, port), f"{service} reaches {host}")
    # the worker towards the third-party: name, address, and each bridge of the host
    assert project.execute("worker-1", "getent", "hosts", "thirdparty").returncode != 0
    hosts = {"thirdparty", thirdparty, broker, *gateways(project, "worker-1"), *gateways(project, "thirdparty")}
    for host in hosts:
        for port in (7401, 7402):
            assert not can_connect(project, "worker-1", host, port) or (host, port) == (broker, 7401), (host, port)
    # and in the other direction
    worker = project.address("worker-1", "crowd")
    assert project.execute("thirdparty", "getent", "hosts", "worker-1").returncode != 0
    listener = project.address("broker", "crowd")
    for host in ("worker-1", worker, listener, *gateways(project, "worker-1"), *gateways(project, "thirdparty")):
        assert not can_connect(project, "thirdparty", host, 7401), host
    for service in PARTIES:
        routes = project.execute(service, "cat", "/proc/net/route").stdout.splitlines()[1:]
        assert routes and all(route.split()[1] != "00000000" for route in routes), (service, routes)


def confinement(project):
    for service in PARTIES:
        status = project.execute(service, "cat", "/proc/1/status").stdout
        found = dict(re.findall(r"^(CapEff|CapPrm|CapBnd|NoNewPrivs|Seccomp|Uid):\s+(\S+)", status, re.M))
        assert found == {"CapEff": "0" * 16, "CapPrm": "0" * 16, "CapBnd": "0" * 16, "NoNewPrivs": "1", "Seccomp": "2",
                         "Uid": str(engine.USER)}, (service, found)
        for place in ("/", "/etc", "/usr/bin", "/etc/crowdveil", "/etc/crowdveil/tls"):
            done = project.execute(service, "touch", f"{place}/x")
            assert "Read-only file system" in done.stdout, (service, place, done.stdout)
        mounted = {mount["Name"].split("_rank-")[1] for mount in project.inspect(service)["Mounts"] if "Name" in mount}
        assert all(name.startswith(service) for name in mounted), (service, mounted)


def health(project):
    project.wait_for_health(*PARTIES)
    for service in PARTIES:
        program = "worker" if service.startswith("worker") else service
        done = project.execute(service, f"crowdveil-{program}", "--config", f"/etc/crowdveil/{program}.yaml", "--probe")
        assert (done.returncode, done.stdout) == (0, f"crowdveil-{program}: ok\n")


# A peer with the certificate files of a folder that lets other persons than its own arrive; prints how that ended.
SPEAK_FOR_OTHERS = """
import sys
from client.worker import Session
address, folder = sys.argv[1:3]
try:
    with Session(address, *(f"{folder}/{name}.pem" for name in ("ca", "cert", "key"))) as session:
        session.arrive(range(1, 11), credit=64)
        kind, message = session.until("assign", "backoff", "goodbye")
        print(kind, getattr(message, "why", ""))
except OSError as why:
    print("closed", why)
"""


def speak_for_others(project, folder):
    """From inside worker-1's network."""
    done = engine.run("nsenter", f"--net=/proc/{project.pid('worker-1')}/ns/net", "/usr/bin/python3", "-c",
                      SPEAK_FOR_OTHERS, f"{project.address('broker', 'crowd')}:7401", folder,
                      env=dict(os.environ, PYTHONPATH=str(engine.ROOT / "tests/e2e")))
    return done.stdout


def connected_as(project, mount, tls, identity):
    """The worker's program with these files, beside worker-1, accepts this broker and no other."""
    started = project.run("worker-1", "-d", *mount, "--tmpfs", "/var/lib/crowdveil-admin", engine.TARGETS["worker"],
                          "--accept-tokens=0", *tls, stderr=subprocess.DEVNULL)
    container = started.stdout.strip()
    try:
        said = wait_until(lambda: re.search("connected as (.*)", engine.podman("logs", container).stdout), "connected")
        assert said[1] == identity
        wait_until(lambda: f"{identity}: connected" in project.log("broker"), "the broker logs the identity")
    finally:
        engine.podman("rm", "-f", "-t", "0", container)


def stolen_certificate(project, tmp_path):
    """The certificate of one worker, in a container of the same network: it is valid for that person alone."""
    volume, image = f"{project.name}_stolen", engine.TARGETS["crowdveil"]
    engine.podman("volume", "rm", "-f", volume)  # of a run that was killed: its certificate is of another CA
    engine.podman("run", "--rm", "-v", f"{project.name}_rank-ca:/certificates/ca", "-v",
                  f"{volume}:/certificates/worker-9", image, "pki", "make", "--dir=/certificates/ca",
                  "worker/6000000=/certificates/worker-9")
    try:
        folder = engine.output("volume", "inspect", "--format", "{{.Mountpoint}}", volume)
        tls = [f"--tls-{what}=/stolen/{what}.pem" for what in ("ca", "cert", "key", "crl")]
        mount = ["-v", f"{volume}:/stolen:ro"]
        asked = project.run("worker-1", *mount, image, "status", "--broker=broker:7401", "--broker-name=main", *tls)
        assert asked.returncode == 2 and "worker" in asked.stdout, asked.stdout
        connected_as(project, mount, tls, "worker/6000000")
        assert speak_for_others(project, folder).startswith("goodbye"), "its key gives no share of others"
        # nor does a gateway's certificate that this key signed
        forged = tmp_path / "forged"
        shutil.copytree(folder, forged)
        engine.run("openssl", "req", "-x509", "-new", "-key", f"{folder}/key.pem", "-subj", "/CN=gateway", "-days", "2",
                   "-out", f"{forged}/cert.pem", "-addext", "subjectAltName=URI:crowdveil:gateway/1-1700000",
                   "-addext", "keyUsage=critical,digitalSignature")
        assert speak_for_others(project, forged).startswith("closed")
    finally:
        engine.podman("volume", "rm", "-f", volume)


def renewal(project):
    """Certificates are replaced by rename under running daemons, which read them on SIGHUP and use the new ones."""
    requester = project.volume("rank-requester-tls")
    files = Files(*(f"{requester}/{name}.pem" for name in ("ca", "cert", "key")))

    def shown():
        return served(f"{project.address('broker', 'crowd')}:7401", files, "broker")
    before = shown()
    command = project.inspect("certificates")["Config"]["Cmd"]
    renewed = engine.podman("run", "--rm", "--volumes-from", project.id("certificates"), engine.TARGETS["crowdveil"],
                            *command, "--renew")
    assert renewed.stdout.count("renewed") == 6, renewed.stdout
    assert shown() == before, "nothing is read without SIGHUP"
    for service in PARTIES:
        engine.podman("kill", "--signal", "HUP", project.id(service))
        wait_until(lambda service=service: "certificates reloaded" in project.log(service), f"{service} read them")
    assert shown() != before
    project.wait_for_health(*PARTIES)
