# SPDX-License-Identifier: Apache-2.0
"""A gateway that survives its connections: it dials again, sends unanswered tokens again, and counts."""
import threading

from .worker import Session

LOST = (OSError, ConnectionError)  # ssl.SSLError is an OSError
SLOWLY_S = .005


class Crowd(threading.Thread):
    """
    Gives one token for every worker of `workers`, until the campaign is done. `score(worker, arm)` is a grid value.
    `acknowledged` maps (worker, arm) to the value of each token that the broker reported as counted.
    """

    def __init__(self, address, files, workers, score, credit=128):
        super().__init__(daemon=True)
        self.address, self.files, self.score, self.credit = address, files, score, credit
        self.left, self.acknowledged, self.unanswered = set(workers), {}, {}
        self.connections, self.duplicates, self.failed = 0, 0, None
        self.pause = threading.Event()
        self.most, self.told = None, threading.Condition()

    def go_on_to(self, most):
        """Works at full speed until this many are acknowledged, then slowly; None: at full speed to the end."""
        self.most = most

    def wait_for(self, tokens, timeout=60):
        """Waits until this many are acknowledged."""
        with self.told:
            self.told.wait_for(lambda: self.failed or len(self.acknowledged) >= tokens, timeout)
        assert len(self.acknowledged) >= tokens, f"not {tokens} tokens within {timeout} s; {self.failed}"

    def run(self):
        done = False
        while not done:
            try:
                with Session(self.address, self.files.ca, self.files.cert, self.files.key) as session:
                    self.connections += 1
                    done = self.work(session)
            except LOST:
                self.pause.wait(.02)  # nothing announces when the broker is up
            except BaseException as error:
                with self.told:
                    self.failed = error
                    self.told.notify()
                raise

    def work(self, session):
        """True when the campaign is done; a lost connection raises."""
        for ticket, (worker, arm) in list(self.unanswered.items()):
            session.token(ticket, [self.score(worker, arm)])
        busy = {worker for worker, _ in self.unanswered.values()}
        session.arrive(sorted(self.left - busy), self.credit)
        while True:
            kind, message = session.next()
            if kind is None or kind == "goodbye":
                raise ConnectionError("closed")
            if kind == "assign":
                arm, = message.arms
                self.unanswered[message.ticket] = message.worker, arm
                if self.most is not None and len(self.acknowledged) >= self.most:
                    self.pause.wait(SLOWLY_S)
                session.token(message.ticket, [self.score(message.worker, arm)])
            elif kind == "ack" and message.ticket in self.unanswered:
                self.answered(session, message)
            elif kind == "done":
                return True

    def answered(self, session, ack):
        worker, arm = self.unanswered.pop(ack.ticket)
        verdict = session.verdict(ack)
        if verdict in ("accepted", "duplicate"):
            self.duplicates += verdict == "duplicate"
            assert (worker, arm) not in self.acknowledged, f"worker {worker} received twice that its token counts"
            self.left.discard(worker)
            with self.told:
                self.acknowledged[worker, arm] = self.score(worker, arm)
                self.told.notify()
        else:
            assert verdict == "expired", f"{verdict}: {ack.why}"
            session.arrive([worker])

    def wait(self, timeout=60):
        self.join(timeout)
        assert not self.is_alive(), "the crowd is not done"
        if self.failed:
            raise self.failed
