# SPDX-License-Identifier: Apache-2.0
"""A limit on the time that foreign code may take."""
from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .judge import Slow

AGAIN_S = 1.0  # the code may catch the first one


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """
    Raises Slow in code that takes longer (0: no limit), by SIGALRM. So it works in a program's main thread only, and
    not in code in C that does not return to Python.
    """
    if not seconds or threading.current_thread() is not threading.main_thread():
        yield
        return

    def late(*_: Any) -> None:
        raise Slow(f"it has taken more than {seconds:g} s")
    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
