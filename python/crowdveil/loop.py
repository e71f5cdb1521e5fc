# SPDX-License-Identifier: Apache-2.0
"""What programs of this package share about their event loop."""
import asyncio
import signal
import threading
from collections.abc import Callable


def on_signals(stop: Callable[[], None]) -> None:
    """SIGTERM and SIGINT end the program in order; in another thread than the main one its owner does."""
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, stop)
