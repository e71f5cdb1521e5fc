# SPDX-License-Identifier: Apache-2.0
"""What does not fit between a broker and its PostgreSQL database is one clear line, and nothing is lost by it."""
import re
import socket

import pytest

from harness.admin import get, metrics
from harness.commands import crowdveil
from harness.daemon import PROGRAMS, Daemon, wait_until, write_config
from harness.shared import Brokers, postgres
from support.address import HOST, free_port

pytestmark = pytest.mark.skipif(not postgres.is_installed(), reason="postgresql-15 is not installed")


# --- settings

URI = "postgresql://u@db.example:5432/crowdveil"
SOCKET = "postgresql://u@%2Fvar%2Frun/x"
LOCAL = "postgresql://u@127.0.0.1:1/crowdveil?sslrootcert=/ca.pem"
SETTINGS = {
    "a password in the text": ({"store": "postgresql://u:secret@127.0.0.1/x"},
                               "a password in the text; expected passfile=FILE"),
    "no TLS over a network": ({"store": f"{URI}?sslmode=disable"}, "sslmode disable; expected verify-full"),
    "no TLS on this machine": ({"store": "postgresql://u@127.0.0.1/x?sslmode=disable"},
                               "sslmode disable; expected verify-full, or a socket's folder"),
    "a server that is not verified": ({"store": f"{URI}?sslmode=require"}, "sslmode require; expected verify-full"),
    "no CA": ({"store": URI}, "no sslrootcert; expected the file of the CA"),
    "no user": ({"store": "postgresql://127.0.0.1/x"}, "no user; expected postgresql://USER@"),
    "no database": ({"store": "postgresql://u@127.0.0.1"}, "no database; expected postgresql://"),
    "a socket that nobody owns": ({"store": "postgresql://u@%40crowdveil/x"}, "host \"@crowdveil\"; expected names or"),
    "a socket and a network": ({"store": "postgresql://u@%2Fvar%2Frun,db.example/x"}, "host \"db.example\"; expected"),
    "a password at a socket": ({"store": f"{SOCKET}?passfile=/p"},
                               "passfile at a socket, which has no TLS; expected none"),
    "TLS at a socket": ({"store": f"{SOCKET}?sslmode=verify-full"}, "TLS at a socket; expected no sslmode"),
    "a socket's owner over a network": ({"store": f"{LOCAL}&requirepeer=postgres"}, "requirepeer over a network; exp"),
    "another parameter": ({"store": f"{LOCAL}&options=x"}, "parameter options; expected sslmode,"),
    "an unknown parameter": ({"store": f"{LOCAL}&colour=red"}, "invalid URI query parameter: \"colour\""),
    "not a URI": ({"store": "db.example"}, "\"db.example\"; expected postgresql://USER@HOST:PORT/DATABASE"),
    "both": ({"store": LOCAL, "state": "/tmp"}, "state and store; expected one of them"),
    "none": ({"store": None}, "no state and no store; expected one of them"),
    "a co-broker": ({"store": LOCAL, "cobroker": "127.0.0.1:1", "cobroker_key": "0" * 64},
                    "cobroker with store; expected state"),
    "another durability": ({"store": LOCAL, "store_durability": "some"}, "expected replicated or one-server"),
}


@pytest.mark.parametrize("what", SETTINGS)
def test_a_setting_that_does_not_fit(deployment, what):
    changes, line = SETTINGS[what]
    settings = {**deployment.broker_settings(), "state": None, **changes}
    config = write_config(deployment.folder / "b.yaml", {key: value for key, value in settings.items() if value})
    daemon = deployment.launch("broker", [PROGRAMS["broker-postgresql"], "--config", config, "--check-config"])
    assert daemon.wait() == 2
    assert line in daemon.text() and len(daemon.lines) == 1, daemon.text()


def test_the_program_without_a_client_of_the_server_says_so(deployment):
    settings = {key: value for key, value in deployment.broker_settings().items() if key != "state"}
    config = write_config(deployment.folder / "b.yaml", {**settings, "store": LOCAL})
    daemon = deployment.launch("broker", [PROGRAMS["broker"], "--config", config])
    assert daemon.wait() == 2
    assert "expected the program crowdveil-broker-postgresql" in daemon.text() and len(daemon.lines) == 1


# --- databases

def is_refused(brokers, line):
    """The broker stands by, says this line once, and is not healthy."""
    daemon = brokers.start(0)
    daemon.wait_for(f"warning: standing by: .*{re.escape(line)}")
    status, text = get(brokers.socket(0), "/health")
    assert status == 503 and line in text, text
    assert get(brokers.socket(0), "/active")[0] == 503
    assert len([text for text in daemon.lines if "warning: standing by" in text]) == 1, daemon.text()
    assert daemon.stop() == 0


def test_a_database_that_is_not_there(deployment, store):
    brokers = Brokers(deployment, store, 1)
    brokers.migrate()
    brokers.changes["store"] = store.uri(database="another")
    is_refused(brokers, 'database "another" does not exist')


def test_a_server_that_is_not_there(deployment, store):
    brokers = Brokers(deployment, store, 1)
    brokers.migrate()
    brokers.changes["store"] = f"postgresql://u@{HOST}:{free_port()}/x?sslrootcert={store.ca}"
    is_refused(brokers, "Connection refused")


def test_a_host_that_is_off_keeps_the_next_one_waiting_for_a_moment_only(deployment, store):
    """A full queue of connections: the kernel drops what comes, as a machine does that is off."""
    brokers = Brokers(deployment, store, 1)
    with socket.socket() as off:
        off.bind((store.host, 0))
        off.listen(0)
        with socket.create_connection(off.getsockname()), socket.socket() as more:
            more.setblocking(False)
            more.connect_ex(off.getsockname())
            brokers.changes["store"] = store.uri().replace(
                f"{store.host}:", f"{store.host}:{off.getsockname()[1]},{store.host}:")
            began = deployment.clock.ms
            brokers.start_all()
            assert deployment.clock.ms - began < 30_000, "the host that is off was waited for"


def test_a_password_that_is_refused(deployment, store):
    wrong = deployment.folder / "passwords"
    wrong.write_text("*:*:*:*:guess\n")
    wrong.chmod(0o600)
    uri = store.uri().replace(str(store.passfile), str(wrong))
    brokers = Brokers(deployment, store, 1)
    brokers.migrate()
    brokers.changes["store"] = uri
    is_refused(brokers, 'password authentication failed for user "crowdveil"')


def test_a_server_of_another_ca(deployment, store):
    brokers = Brokers(deployment, store, 1)
    brokers.migrate()
    brokers.changes["store"] = store.uri().replace(str(store.ca), deployment.pki.issue("broker/main").ca)
    is_refused(brokers, "certificate verify failed")


def test_a_database_without_tables(deployment, store):
    brokers = Brokers(deployment, store, 1)
    brokers.migrate()
    store.sql("DROP SCHEMA crowdveil CASCADE", "crowdveil")
    is_refused(brokers, "no tables; expected --migrate to have made them")


def test_what_somebody_has_added_to_the_tables_is_named(deployment, store):
    brokers = Brokers(deployment, store, 1)
    brokers.start_all()
    assert brokers.running[0].stop() == 0
    config = write_config(deployment.folder / "b.yaml", brokers.settings(0))
    done = crowdveil("doctor", config)
    assert "expected nothing besides its own tables" not in done.stdout, done.stdout
    store.sql("CREATE FUNCTION crowdveil.look() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';"
              "CREATE TRIGGER planted BEFORE INSERT ON crowdveil.release FOR EACH ROW"
              " EXECUTE FUNCTION crowdveil.look();"
              "CREATE TABLE crowdveil.more (x int); CREATE INDEX by_x ON crowdveil.more (x);"
              "CREATE RULE also AS ON INSERT TO crowdveil.plan DO ALSO NOTHING", "crowdveil")
    done = crowdveil("doctor", config)
    assert done.returncode == 1
    for what in ("trigger planted on release", "function look", "table more", "index by_x on more",
                 "rule also on plan"):
        assert f": {what}; expected nothing besides its own tables" in done.stdout, done.stdout


def test_the_brokers_role_changes_neither_terms_nor_tables(deployment, store):
    Brokers(deployment, store, 1).start_all()
    before = store.sql("SELECT number, id, code FROM crowdveil.term", "crowdveil")
    for sql in ("UPDATE crowdveil.term SET number = number + 1", "DELETE FROM crowdveil.term",
                "TRUNCATE crowdveil.term", "DELETE FROM crowdveil.meta", "TRUNCATE crowdveil.meta",
                "UPDATE crowdveil.release SET number = 9", "UPDATE crowdveil.plan SET number = 9",
                "DELETE FROM crowdveil.recovery", "UPDATE crowdveil.version SET schema = 9",
                "CREATE TABLE crowdveil.more (x int)", "CREATE TABLE public.more (x int)",
                "ALTER TABLE crowdveil.meta DROP COLUMN code",
                "CREATE TRIGGER planted BEFORE UPDATE ON crowdveil.meta FOR EACH ROW"
                " EXECUTE FUNCTION suppress_redundant_updates_trigger()", "DROP SCHEMA crowdveil CASCADE"):
        with pytest.raises(RuntimeError, match="permission denied|must be owner"):
            store.sql(f"SET ROLE {postgres.USER}; {sql}", "crowdveil")
    assert store.sql("SELECT number, id, code FROM crowdveil.term", "crowdveil") == before


def test_tables_of_a_newer_version(deployment, store):
    brokers = Brokers(deployment, store, 1)
    brokers.migrate()
    store.sql("UPDATE crowdveil.version SET schema = 9", "crowdveil")
    is_refused(brokers, "tables of version 9.2; expected 1.2")


def test_a_role_without_its_rights(deployment, store):
    brokers = Brokers(deployment, store, 1)
    brokers.migrate()
    store.sql(f"REVOKE ALL ON ALL TABLES IN SCHEMA crowdveil FROM {postgres.USER}", "crowdveil")
    is_refused(brokers, "permission denied for table version")


def test_the_database_of_another_broker(deployment, store):
    brokers = Brokers(deployment, store, 1)
    brokers.start_all()
    assert brokers.running[0].stop() == 0
    brokers.changes["tls"] = deployment.pki.issue("broker/other").config()
    is_refused(brokers, "the database of broker main; this one is other")


def test_another_key(deployment, store):
    brokers = Brokers(deployment, store, 1)
    brokers.start_all()
    assert brokers.running[0].stop() == 0
    (deployment.folder / "seal.key").unlink()
    other = Brokers(deployment, store, 1)
    store.sql("ALTER SCHEMA crowdveil RENAME TO kept", "crowdveil")
    other.migrate()  # makes another key
    store.sql("DROP SCHEMA crowdveil CASCADE; ALTER SCHEMA kept RENAME TO crowdveil", "crowdveil")
    is_refused(brokers, "its keys are wrapped by seal key")


def test_no_key(deployment, store):
    brokers = Brokers(deployment, store, 1)
    brokers.migrate()
    (deployment.folder / "seal.key").unlink()
    daemon = brokers.start(0)
    assert daemon.wait() == 2
    assert "seal.key: cannot open the key file" in daemon.text() and not (deployment.folder / "seal.key").exists()


def test_a_server_that_does_not_sync(deployment, store):
    brokers = Brokers(deployment, store, 1)
    brokers.migrate()
    store.reload(fsync="off")
    try:
        is_refused(brokers, "fsync is off; expected on: a crash of the server would lose what it has stored")
    finally:
        store.reload(fsync="on")


def test_a_server_that_stops_to_sync_ends_the_term(deployment, store):
    brokers = Brokers(deployment, store, 1)
    brokers.start_all()
    store.reload(full_page_writes="off")
    try:
        assert brokers.running[0].wait() == 1
    finally:
        store.reload(full_page_writes="on")
    assert "fsync or full_page_writes is off; expected both on" in brokers.running[0].text()


def test_a_replica_only_reads(deployment, store):
    brokers = Brokers(deployment, store, 1)
    brokers.migrate()
    replica = postgres.Server(replica_of=store, in_memory=True)
    try:
        replica.start()
        brokers.changes["store"] = store.uri(servers=[replica])
        is_refused(brokers, "session is read-only")
    finally:
        replica.close()


# --- without a replica

def test_without_a_replica_nothing_is_served(deployment, store):
    brokers = Brokers(deployment, store, 1, durability="replicated")
    brokers.migrate()
    is_refused(brokers, "no synchronous replica has commit 0; expected one (store_durability)")


@pytest.fixture
def replica(store):
    made = postgres.Server(replica_of=store, in_memory=True)
    try:
        made.start()
        store.reload(synchronous_standby_names="replica")
        yield made
    finally:
        store.reload(synchronous_standby_names="")
        made.close()


def test_an_emptied_list_of_replicas_ends_the_term(deployment, store, replica):
    """Then the server commits without a replica and says nothing."""
    brokers = Brokers(deployment, store, 1, durability="replicated")
    brokers.start_all()
    wait_until(lambda: "replica=sync" in get(brokers.socket(0), "/active")[1], "the replica is told of")
    assert metrics(brokers.socket(0))["crowdveil_broker_replica"] == 1
    store.reload(synchronous_standby_names="")
    with deployment.clock.fast():
        assert brokers.running[0].wait() == 1
    assert "no synchronous replica has commit" in brokers.running[0].text()


@pytest.mark.long
def test_a_replica_that_goes_away_ends_the_term_and_one_that_returns_begins_the_next(deployment, store, replica):
    brokers = Brokers(deployment, store, 1, durability="replicated")
    brokers.start_all()
    replica.stop()
    with deployment.clock.fast():
        assert brokers.running[0].wait() == 1
    assert "no answer within 5000 ms" in brokers.running[0].text()
    brokers.start(0)
    replica.start()
    brokers.active()


def test_a_standby_says_that_a_commit_waits_in_vain(deployment, store, replica):
    """The server keeps the session of the broker that has ended until a replica has its commit."""
    brokers = Brokers(deployment, store, 2, durability="replicated")
    active = brokers.start_all()
    standby = 1 - active
    wait_until(lambda: get(brokers.socket(standby), "/health")[1].startswith("ok role=standby term=1 "),
               "the standby has seen the first term")
    replica.stop()
    line = "the last commit waits for a synchronous replica"
    with deployment.clock.fast():
        assert brokers.running[active].wait() == 1
        brokers.running[standby].wait_for(f"warning: standing by: .*{line}")
    status, text = get(brokers.socket(standby), "/health")
    assert status == 503 and line in text, text
    replica.start()
    assert brokers.active() == standby
    assert brokers.running[standby].text().count(line) == 1, brokers.running[standby].text()


def test_a_promoted_replica_serves_what_was_acknowledged(deployment, store, replica):
    brokers = Brokers(deployment, store, 2, durability="replicated", servers=[store, replica])
    active = brokers.start_all()
    store.kill()
    with deployment.clock.fast():
        assert brokers.running[active].wait() == 1
    replica.promote()
    try:
        further = postgres.Server(replica_of=replica, in_memory=True)
        further.start()
        replica.reload(synchronous_standby_names="replica")
        assert brokers.active() == 1 - active
        brokers.running[1 - active].wait_for("active: term 2,")
    finally:
        further.close()
        store.start()


def test_another_server_is_refused_without_a_replica(deployment, store):
    """A restored or promoted server may lack what this one has said."""
    brokers = Brokers(deployment, store, 1)
    brokers.start_all()
    assert brokers.running[0].stop() == 0
    copy = postgres.Server(replica_of=store, in_memory=True)
    try:
        copy.start()
        copy.promote()
        brokers.changes["store"] = store.uri(servers=[copy])
        is_refused(brokers, "another server, or a promoted or restored one, and store_durability is one-server")
    finally:
        copy.close()
