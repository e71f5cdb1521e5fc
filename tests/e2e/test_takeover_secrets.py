# SPDX-License-Identifier: Apache-2.0
"""No token, exact sum, ticket or key is in the files, logs or backups of a broker's PostgreSQL server."""
import random
from collections import defaultdict

import pytest

from client.crowd import Crowd
from client.requester import spec
from crowdveil.wire import GRID
from harness.secrets import Secrets
from harness.shared import Brokers, postgres

pytestmark = pytest.mark.skipif(not postgres.is_installed(), reason="postgresql-15 is not installed")


def value(worker, arm):
    return random.Random(f"stored/{worker}/{arm}").randrange(1 << 17, GRID)


class KnownCrowd(Crowd):
    """Keeps the order in which tokens were counted, and their tickets."""

    def __init__(self, *args):
        super().__init__(*args)
        self.order, self.tickets = [], []

    def answered(self, session, ack):
        before = self.unanswered.get(ack.ticket)
        super().answered(session, ack)
        if before in self.acknowledged:
            self.order.append(before)
            self.tickets.append(bytes(ack.ticket))


def sums_near(values, round_of):
    """The exact sums around the end of each round: what is released without noise, or is open."""
    total, near = 0, []
    for at, one in enumerate(values, 1):
        total += one
        if at % round_of > round_of - 10 or at % round_of < 10 or at > len(values) - 50:
            near.append(total)
    return [total for total in near if total >= 1 << 31]


def test_the_servers_files_have_no_secret_in_the_clear(deployment):
    server = postgres.Server(in_memory=True).start()
    try:
        server.add_store()
        brokers = Brokers(deployment, server, 1)
        deployment.start_thirdparty()
        brokers.start_all()
        deployment.broker = brokers.running[0]
        crowd = KnownCrowd(brokers.addresses[0], deployment.pki.issue("gateway/1-20000"), range(1, 20_001), value)
        with deployment.requester() as requester:
            requester.submit(spec(2, epsilon=1, tokens=100_000, policy_params={
                "alpha": .0001, "delta": .1, "tokens_per_round": 3000}))
            crowd.start()
            # One round is released, and the next one is not complete: its sums are in the database, too.
            crowd.wait_for(8000)
            brokers.running[0].kill()
        folder = server.data / "base" / server.sql("SELECT oid FROM pg_database WHERE datname = 'crowdveil'")
        server.stop()
        rows = defaultdict(list)
        for worker, arm in crowd.order:
            rows[arm].append(value(worker, arm))
        key = bytes.fromhex((deployment.folder / "seal.key").read_text().split()[-1])
        secrets = Secrets([*rows.values(), [value(*at) for at in crowd.order]],
                          [total for values in rows.values() for total in sums_near(values, 3000)],
                          [*crowd.tickets[::50], key])
        files = b"".join(path.read_bytes() for place in (folder, server.data / "pg_wal") for path in place.rglob("*")
                         if path.is_file()) + (server.folder / "log").read_bytes()
        found = secrets.find(files)
        assert not found, found[:5]
        # The search finds what is there: a table's name, and a row of values that is planted.
        assert Secrets(blobs=[b"wrapped_key"]).find(files)
        assert secrets.find(files[:1 << 16] + b"".join(one.to_bytes(8, "little") for one in rows[0][5:12]))
    finally:
        server.close()
