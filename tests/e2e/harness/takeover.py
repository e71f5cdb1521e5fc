# SPDX-License-Identifier: Apache-2.0
"""A campaign over brokers that take over from each other."""
from harness.audit import audit
from harness.campaign import GATEWAYS, Run, outcome
from harness.daemon import wait_until


class SharedRun(Run):
    """A Run whose broker is whichever of several is active."""

    def __init__(self, deployment, brokers, **kwargs):
        self.brokers = brokers
        brokers.migrate()
        deployment.start_broker = lambda changes: self.start_brokers(deployment)
        super().__init__(deployment, broker=brokers.changes, **kwargs)

    def start_brokers(self, deployment):
        for i in range(len(self.brokers.running)):
            self.brokers.start(i)
        deployment.broker = self.brokers.running[self.brokers.active()]
        deployment.broker_for = lambda party: ",".join(self.brokers.addresses)

    def start_crowd(self, rate, **settings):
        self.gateways = [self.start_worker(identity, arrival_rate=rate, exit_when_done=False, **settings)
                         for identity in GATEWAYS]

    def disturb(self, how):
        """Calls `how` with the brokers and which is active, and starts that one again if it has ended."""
        active = self.brokers.active(every=.01)
        how(self.brokers, active)
        if self.brokers.running[active].process.poll() is not None:
            self.brokers.start(active)

    def commits(self):
        return self.brokers.server.commits()

    def go_on(self, commits=20, skip=()):
        """Starts again what has ended, except for these brokers, until there are so many more commits."""
        until = self.commits() + commits

        def is_there():
            for i, daemon in enumerate(self.brokers.running):
                if i not in skip and daemon.process.poll() is not None:
                    self.brokers.start(i)
            return self.commits() >= until
        wait_until(is_there, f"{commits} more commits", every=.2)

    def check_end(self, undisturbed):
        self.brokers.active()
        finished, export = self.finish()
        assert outcome(finished, export) == undisturbed
        for daemon in self.brokers.running:
            daemon.wait_for("standing by on ")  # earlier, the signal ends it before it could say how
            assert daemon.stop() == 0
        assert self.deployment.thirdparty.stop() == 0
        self.deployment.anchor = str(self.brokers.anchor(self.last_active()))
        self.brokers.save(f"{self.deployment.state('broker-state')}/broker.db")
        audit(self.deployment, self.campaign, export, finished)

    def last_active(self):
        holder = self.brokers.server.sql("SELECT address FROM crowdveil.term ORDER BY number DESC LIMIT 1", "crowdveil")
        return self.brokers.addresses.index(holder)
