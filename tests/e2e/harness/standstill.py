# SPDX-License-Identifier: Apache-2.0
"""A program that is stopped and still present."""
import signal
import time
from contextlib import contextmanager

STEP_S = .002


@contextmanager
def stopped(daemon):
    daemon.signal(signal.SIGSTOP)
    try:
        yield
    finally:
        daemon.signal(signal.SIGCONT)


def step(process):
    """Lets a process run for a moment and stops it again: it is as slow as the test needs it."""
    process.send_signal(signal.SIGCONT)
    time.sleep(STEP_S)
    process.send_signal(signal.SIGSTOP)


def resident_kib(daemon):
    with open(f"/proc/{daemon.pid}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS:"))
