# SPDX-License-Identifier: Apache-2.0
"""The clock of a test's daemons (unsafe_clock; common/base/clock.h has the file's layout).

It goes as the real one does, or `rate` times as fast, but waits for each daemon that has not yet seen the time: on a
machine that is slow it is slow, and no limit is reached by chance. A test may hold it, and advance it to where a limit
is.
"""
import contextlib
import ctypes
import mmap
import os
import threading
import time

from harness.daemon import Failed

FOLLOWERS = 255
LOOK_S, STEP_MS, SEEN_S = .01, 100, 60


class Follower(ctypes.Structure):
    _fields_ = [("pid", ctypes.c_uint64), ("seen_ms", ctypes.c_uint64)]


class File(ctypes.Structure):
    """Each number is written at once: daemons read it meanwhile (struct.pack_into() fills with zeros first)."""
    _fields_ = [("mono_ms", ctypes.c_uint64), ("wall_ms", ctypes.c_uint64), ("follower", Follower * FOLLOWERS)]


def look(pid):
    """(state, when it was started) of a process; "X" for one that is no more."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
            return fields[0], fields[19]
    except OSError:
        return "X", None


class Clock:
    def __init__(self, path):
        self.path = str(path)
        with open(path, "w+b") as file:
            file.truncate(ctypes.sizeof(File))
            self.file = File.from_buffer(mmap.mmap(file.fileno(), ctypes.sizeof(File)))
        # not the machine's monotonic time: nobody may compare the two
        self.file.mono_ms, self.file.wall_ms = 1_000_000, time.time_ns() // 1_000_000
        self.started = {}  # when the process of an entry was; None: it has ended, and its number may be another's
        self.lock, self.held, self.rate, self.ended = threading.RLock(), 0, 1, threading.Event()
        self.thread = threading.Thread(target=self._go, daemon=True)
        self.thread.start()

    @property
    def ms(self):
        return self.file.mono_ms

    @property
    def wall_ms(self):
        return self.file.wall_ms

    def late(self):
        """Processes that follow and have not seen the present time."""
        now = self.ms
        for entry, one in enumerate(self.file.follower):
            if one.pid == 0:
                return
            if entry in self.started and (self.started[entry] is None or one.seen_ms >= now):
                continue
            state, started = look(one.pid)
            if state in "ZX" or self.started.setdefault(entry, started) != started:
                self.started[entry] = None
            elif state not in "Tt" and one.seen_ms < now:
                yield one.pid

    def _add(self, ms):
        self.file.mono_ms += ms
        self.file.wall_ms += ms

    def _go(self):
        last = time.monotonic()
        while not self.ended.wait(LOOK_S):
            with self.lock:
                now = time.monotonic()
                if self.held:
                    last = now
                elif not any(self.late()):
                    self._add(min(int((now - last) * 1000 * self.rate), STEP_MS))
                    last = now

    def advance(self, ms):
        """At once, after each daemon has read what had arrived; returns when each has begun what is due by then."""
        with self.lock:
            for part in (1, ms - 1):
                self._add(part)
                self.seen()

    def seen(self):
        until = time.monotonic() + SEEN_S
        while any(late := list(self.late())):
            if time.monotonic() > until:
                raise Failed(f"processes {late} do not follow the clock: {os.readlink(f'/proc/{late[0]}/exe')}")
            time.sleep(.002)

    @contextlib.contextmanager
    def hold(self):
        """Meanwhile only advance() moves it."""
        with self.lock:
            self.held += 1
        try:
            yield self
        finally:
            with self.lock:
                self.held -= 1

    def until(self, holds, what, within_ms=120_000, step_ms=100):
        """Advances until it holds; what has to happen by itself meanwhile gets real time, too."""
        with self.hold():
            end = self.ms + within_ms
            while not holds():
                if self.ms >= end:
                    raise Failed(f"not within {within_ms} ms of the daemons' clock: {what}")
                self.advance(step_ms)

    @contextlib.contextmanager
    def fast(self, rate=10):
        """For a wait until a limit is reached."""
        before, self.rate = self.rate, rate
        try:
            yield
        finally:
            self.rate = before

    def sleep(self, seconds):
        """Until so much time has passed for the daemons."""
        end = self.ms + seconds * 1000
        while self.ms < end:
            time.sleep(.002)

    def close(self):
        self.ended.set()
        self.thread.join()
