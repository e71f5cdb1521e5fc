# SPDX-License-Identifier: Apache-2.0
"""Brokers over PostgreSQL: one is active, another takes over, and the end is the same as without."""
import pytest

from harness.campaign import Run
from harness.shared import Brokers, postgres

pytestmark = [pytest.mark.usefixtures("worker_program"),
              pytest.mark.skipif(not postgres.is_installed(), reason="postgresql-15 is not installed")]


@pytest.fixture(scope="module")
def server():
    made = postgres.Server().start()
    try:
        yield made
    finally:
        made.close()


@pytest.fixture
def store(server):
    name = server.add_store()
    yield server
    server.sql(f"DROP DATABASE {name} WITH (FORCE)")


def test_one_broker(deployment, store):
    brokers = Brokers(deployment, store, 1)
    made = brokers.migrate()
    assert made.returncode == 0, made.stderr
    print(made.stdout)
    deployment.start_thirdparty()
    daemon = brokers.start(0)
    print(daemon.address)
    try:
        print(brokers.active())
    finally:
        print(daemon.text())
    assert daemon.stop() == 0
