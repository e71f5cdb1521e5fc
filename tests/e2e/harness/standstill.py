# SPDX-License-Identifier: Apache-2.0
"""A program that is there and does nothing."""
import signal
from contextlib import contextmanager


@contextmanager
def stopped(daemon):
    daemon.signal(signal.SIGSTOP)
    try:
        yield
    finally:
        daemon.signal(signal.SIGCONT)


def resident_kib(daemon):
    with open(f"/proc/{daemon.pid}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS:"))
