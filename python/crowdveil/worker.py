# SPDX-License-Identifier: Apache-2.0
"""A worker, or a gateway of a range of workers: it scores what a broker assigns, within what its owner accepts."""
from __future__ import annotations

import asyncio
import inspect
import logging
import random
import sqlite3
import ssl
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional, Union

from .checks import check_crowd
from .crew import Accept, Answer, Counts, Crew, Decline, Question, UsedUp
from .errors import Error, Lost, Moved, ProtocolError
from .loop import on_signals
from .notes import Notes
from .schema import schema
from .split import KeyLog, check_ready, fingerprint
from .store import U64, open_database, signed, transaction
from .wire import (QUIET_S, Addresses, Splitter, Tls, Turns, check_hello, check_peer, decode, frame, goodbye, grid,
                   hello, host_and_port, lost, opened, watch_silence)

log = logging.getLogger("crowdveil.worker")
Score = Union[float, None, Awaitable[Optional[float]]]
TICK_S = .05
GIVEN = """
CREATE TABLE given (worker INTEGER PRIMARY KEY, scores INTEGER NOT NULL);
CREATE TABLE answered (campaign INTEGER NOT NULL, name TEXT NOT NULL, worker INTEGER NOT NULL, item INTEGER NOT NULL,
  opponent INTEGER NOT NULL, PRIMARY KEY (campaign, name, worker, item, opponent)) WITHOUT ROWID;
"""
SINGLE = -1  # the opponent of a single item; in a pair the greater of the two


@dataclass(frozen=True)
class Link:
    """A connection that is made again when it ends: to whom, and what of the crew it concerns."""
    schema: str
    role: str
    turns: Turns
    names: Optional[frozenset[str]]
    tls: Callable[[], ssl.SSLContext]
    join: Callable[[Any], None]
    leave: Callable[[], None]
    hear: Callable[[Any, float], list[Question]]
    say: Callable[[Any], None]
    is_over: Callable[[], bool]

    @property
    def address(self) -> str:
        return self.turns.address

    @property
    def title(self) -> str:
        return {"cobroker": "co-broker"}.get(self.role, self.role)


class Gateway:
    """
    Answers for the workers of `workers`, which its certificate must cover. `answer(worker, arm)` is a score from 0 to
    1, or None (or raises Decline) to decline; it may be a coroutine, of which as many run as `concurrency` permits. A
    score later than the broker's lease (5 s by default) may find its place given away. With `pairs` it is called as
    `answer(worker, arm, opponent)` in campaigns of comparisons. `state` is the file that records how much each worker
    has given and which items or pairs it has answered, each of which it is asked once; a limit of tokens needs it.
    `cobroker` is the address of the second broker of campaigns with two brokers; it needs `accept.pairs`, and the
    package cryptography. `address` may be several, of a broker's processes of which one is active. With `hires` the
    campaign is a recruitment: each item is a worker, which is asked again.
    """

    def __init__(self, address: Addresses, tls: Tls, workers: Sequence[int], answer: Callable[..., Score],
                 campaign: str, accept: Accept, state: Union[str, Path, None] = None, broker_name: Optional[str] = None,
                 concurrency: int = 64, pairs: bool = False, cobroker: Optional[str] = None,
                 hires: bool = False) -> None:
        if bool(accept.pairs) != bool(cobroker):
            raise Error("only one of cobroker and accept.pairs is set; expected both for campaigns with two brokers, "
                        "else none")
        if cobroker:
            check_ready()
        if accept.tokens and state is None:
            raise Error(f"accept: tokens is {accept.tokens}; expected also a state file, in which given tokens are "
                        "recorded, or tokens=0 for no limit")
        self.turns, self.cobroker, self.tls_files = Turns(address), cobroker, tls
        if cobroker:
            host_and_port(cobroker)
        self.tls, self.answer = opened(tls), answer
        self.broker_names = None if broker_name is None else frozenset([broker_name])
        self.db = None if state is None else open_database(state, GIVEN, 1)
        given = dict(self.db.execute("SELECT worker, scores FROM given").fetchall()) if self.db else {}
        self.crew = Crew(workers, accept, campaign, concurrency, pairs, given, self._answered(), hires)
        self.failed: Optional[BaseException] = None
        self._over: Optional[asyncio.Event] = None
        self._tasks = set[asyncio.Task[None]]()
        self._wake = asyncio.Event()
        self._notes = Notes()

    def _answered(self) -> list[Answer]:
        """What the workers have answered in earlier runs."""
        if self.db is None:
            return []
        rows = self.db.execute("SELECT campaign, name, worker, item, opponent FROM answered").fetchall()
        return [(number % U64, name, worker, (item,) if opponent == SINGLE else (item, opponent))
                for number, name, worker, item, opponent in rows]

    # --- its life

    def run(self, until_done: bool = True) -> Counts:
        """Works until the campaign has ended or all have given (or, without `until_done`, for ever), or until SIGTERM
        or SIGINT. An exception of the answer function ends it, too."""
        return asyncio.run(self.serve(until_done))

    def stop(self) -> None:
        """Ends `serve`; from its own event loop."""
        if self._over is not None:
            self._over.set()

    async def serve(self, until_done: bool = True) -> Counts:
        """As `run`, in a program that has an event loop."""
        self._over, self._wake = asyncio.Event(), asyncio.Event()
        on_signals(self.stop)
        work = asyncio.ensure_future(self._work(self._to_broker(until_done)))
        second = [] if self.cobroker is None else [asyncio.ensure_future(self._work(self._to_cobroker(self.cobroker)))]
        over = asyncio.ensure_future(self._over.wait())
        ends: list[asyncio.Future[Any]] = [work, over, *second]
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            for end in ends:
                if end.done():
                    end.result()
        finally:
            for end in (*ends, *self._tasks):
                end.cancel()
            await asyncio.gather(*ends, *self._tasks, return_exceptions=True)
            if self.db is not None:
                self.db.close()
        if self.failed is not None:
            raise self.failed
        return self.crew.counts

    def _to_broker(self, until_done: bool) -> Link:
        def join(sock: Any) -> None:
            if self.cobroker is not None:
                self.crew.sessions.broker = fingerprint(sock.getpeercert(True))
            self.crew.join()
        return Link("crowd", "broker", self.turns, self.broker_names, lambda: self.tls, join, self.crew.leave,
                    self.crew.hear, self._say, lambda: until_done and self.crew.is_done(time.monotonic()))

    def _to_cobroker(self, address: str) -> Link:
        keys: list[KeyLog] = []

        def forget() -> None:
            while keys:
                keys.pop().close()

        def tls() -> ssl.SSLContext:
            forget()
            made = opened(self.tls_files)
            keys.append(KeyLog(made))
            return made

        def join(sock: Any) -> None:
            self.crew.join_cobroker(fingerprint(sock.getpeercert(True)),
                                    lambda context: keys[-1].export(sock, context))

        def leave() -> None:
            self.crew.leave_cobroker()
            forget()
        return Link("share", "cobroker", Turns(address), None, tls, join, leave, self.crew.hear_cobroker,
                    lambda envelope: self.crew.say_cobroker(envelope, time.monotonic()), lambda: False)

    async def _work(self, link: Link) -> None:
        """Connects until the work is done."""
        said, missed = "", list[str]()
        while True:
            joined = False
            try:
                reader, writer = await self._open(link)
                try:
                    sock = writer.get_extra_info("ssl_object")
                    check_peer(sock, link.role, link.names)
                    log.info("connected to %s", link.address)
                    joined, said, missed = True, "", []
                    link.turns.begin()
                    link.join(sock)
                    if await self._talk(link, reader, writer):
                        return
                finally:
                    writer.close()
                    link.leave()
            except (OSError, ssl.SSLError, ProtocolError) as error:
                missed.append(str(error if isinstance(error, Error) else lost(link.address, error)))
                level = logging.INFO if isinstance(error, Moved) else logging.WARNING
            pause = link.turns.lost() if joined else link.turns.failed()
            if not pause:
                continue  # a standby refuses connections: only a cycle without success is worth a line
            text, missed = "; ".join(missed), []
            if text != said:
                log.log(level, "%s", text)
            said = text
            await asyncio.sleep(pause)

    async def _open(self, link: Link) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        connecting = asyncio.open_connection(*host_and_port(link.address), ssl=link.tls())
        try:
            reader, writer = await asyncio.wait_for(connecting, link.turns.limit)
        except asyncio.TimeoutError:
            raise TimeoutError from None  # they are the same only from Python 3.11 on
        watch_silence(writer.get_extra_info("socket"))
        return reader, writer

    async def _talk(self, link: Link, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """One connection; True once the work is done."""
        splitter, greeted = Splitter(), False
        writer.write(frame(hello(link.schema).SerializeToString()))
        self._speak(link, writer)
        reading: Optional[asyncio.Future[bytes]] = None
        heard = time.monotonic()
        knocking = asyncio.ensure_future(self._knock(link, lambda: heard)) if link.turns.are_several else None
        try:
            while not link.is_over():
                if knocking is not None and knocking.done():
                    raise knocking.result()
                reading = reading or asyncio.ensure_future(reader.read(65536))
                woken = asyncio.ensure_future(self._wake.wait())
                events: list[asyncio.Future[Any]] = [reading, woken]
                await asyncio.wait(events, timeout=TICK_S, return_when=asyncio.FIRST_COMPLETED)
                woken.cancel()
                self._wake.clear()
                if reading.done():
                    data, reading, heard = reading.result(), None, time.monotonic()
                    if not data:
                        raise Lost(f"{link.address}: the {link.title} closed the connection")
                    for payload in splitter.feed(data):
                        self._hear(link, payload, greeted)
                        greeted = True
                self._speak(link, writer)
                await writer.drain()
        finally:
            if reading is not None:
                reading.cancel()
            if knocking is not None:
                knocking.cancel()
        return True

    async def _knock(self, link: Link, heard: Callable[[], float]) -> Lost:
        """Ends once the broker is silent and another address answers."""
        while True:
            await asyncio.sleep(QUIET_S * random.uniform(.5, 1))
            if time.monotonic() - heard() >= QUIET_S:
                other = await asyncio.get_running_loop().run_in_executor(None, link.turns.knock)
                if other is not None and time.monotonic() - heard() >= QUIET_S:
                    self._wake.set()
                    return link.turns.leave(other)

    def _hear(self, link: Link, payload: bytes, greeted: bool) -> None:
        envelope = decode(link.schema, payload)
        check_crowd(envelope)
        check_hello(envelope, greeted)
        if envelope.HasField("goodbye"):
            raise goodbye(link.address, link.title, envelope.goodbye.why)
        for question in link.hear(envelope, time.monotonic()):
            self._ask(question)

    def _note(self, text: str) -> None:
        """A line that the broker causes."""
        line = self._notes.take("", text, time.monotonic())
        if line:
            log.warning("%s", line)

    def _speak(self, link: Link, writer: asyncio.StreamWriter) -> None:
        envelope = schema(link.schema).Envelope()
        link.say(envelope)
        for note in self.crew.notes:
            self._note(note)
        self.crew.notes.clear()
        for line in self._notes.sums(time.monotonic()):
            log.warning("%s", line)
        if envelope.ListFields():
            writer.write(frame(envelope.SerializeToString()))

    def _say(self, envelope: Any) -> None:
        """Stores what the workers have given and answered; then it may be sent."""
        self.crew.say(envelope, time.monotonic())
        if (self.crew.unstored or self.crew.answers) and self.db is not None:
            with transaction(self.db):
                self.db.executemany("INSERT OR REPLACE INTO given VALUES (?, ?)",
                                    [(worker, self.crew.given[worker]) for worker in self.crew.unstored])
                for is_given, (campaign, name, worker, item) in self.crew.answers:
                    number = signed(campaign)
                    self.db.execute("INSERT OR IGNORE INTO answered VALUES (?, ?, ?, ?, ?)" if is_given else
                                    "DELETE FROM answered WHERE campaign = ? AND name = ? AND worker = ? AND item = ? "
                                    "AND opponent = ?", (number, name, worker, item[0], (*item, SINGLE)[1]))
        self.crew.unstored.clear()
        self.crew.answers.clear()

    # --- answers

    def _call(self, question: Question, arm: int) -> Score:
        if question.opponent is None:
            return self.answer(question.worker, arm)
        return self.answer(question.worker, arm, question.opponent)

    def _ask(self, question: Question) -> None:
        """Answers at once, or starts a task if the function is a coroutine."""
        try:
            scores = [self._call(question, arm) for arm in question.arms]
        except Decline as declined:
            self.crew.decline(question, str(declined), isinstance(declined, UsedUp), time.monotonic())
            return
        if not any(inspect.isawaitable(score) for score in scores):
            self._take(question, scores)
            return
        task = asyncio.ensure_future(self._later(question, scores))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _later(self, question: Question, scores: Sequence[Any]) -> None:
        try:
            self._take(question, [await score if inspect.isawaitable(score) else score for score in scores])
        except Decline as declined:
            self.crew.decline(question, str(declined), isinstance(declined, UsedUp), time.monotonic())
        except Exception as error:
            self.failed = self.failed or error
            self.stop()
        self._wake.set()

    def _take(self, question: Question, scores: Sequence[Any]) -> None:
        if any(score is None for score in scores):
            self.crew.decline(question, "no score for this item", False, time.monotonic())
        else:
            self.crew.answer(question, [grid(score) for score in scores], time.monotonic())


class Worker(Gateway):
    """One worker with its own certificate: `answer(arm)` is its score, and in comparisons `answer(arm, opponent)`."""

    def __init__(self, address: Addresses, tls: Tls, worker: int, answer: Callable[..., Score], campaign: str,
                 accept: Accept, state: Union[str, Path, None] = None, broker_name: Optional[str] = None,
                 pairs: bool = False, cobroker: Optional[str] = None, hires: bool = False) -> None:
        super().__init__(address, tls, [worker], lambda _, *arms: answer(*arms), campaign, accept, state, broker_name,
                         concurrency=1, pairs=pairs, cobroker=cobroker, hires=hires)
