# SPDX-License-Identifier: Apache-2.0
"""A third-party whose policies are written in Python: it listens for brokers and ranks what they release."""
from __future__ import annotations

import asyncio
import logging
import secrets
import ssl
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, Optional, Union

from .alarm import within
from .book import Book, Queued
from .checks import ARMS_MAX, WHY_BYTES, Unfit, check_form, check_spec
from .errors import Error, ProtocolError, clean, cut
from .judge import FAILURES, refusal_of
from .listener import Listener
from .loop import on_signals
from .model import Plan, Spec
from .notes import Notes
from .policy import Policy
from .schema import schema
from .store import Store
from .wire import (FRAME_LIMIT, FRAME_S, LARGE_FRAME_LIMIT, Splitter, Stopwatch, Tls, check_hello, check_peer, decode,
                   frame, hello, host_and_port, opened)

log = logging.getLogger("crowdveil.thirdparty")
CAMPAIGNS, ARMS = 256, 4096  # open at a time, of one broker; of a campaign
CONNECTIONS = 8      # of one broker: the newest of its hellos has the campaigns
REFUSALS_MAX = 256   # campaigns refused in a frame
TICK_S = 1.0
PATIENCE_S = 60.0


def _nothing(campaign: int) -> dict[str, Any]:
    """The position of a campaign that is not open."""
    return {"campaign": campaign, "releases_hash": bytes(32), "plans_hash": bytes(32)}


class _Peer:
    """One connection of a broker."""

    def __init__(self, name: str, writer: asyncio.StreamWriter, now: float) -> None:
        self.name, self.writer, self.splitter, self.greeted = name, writer, Splitter(FRAME_LIMIT), False
        self.watch = Stopwatch(self.splitter, now)
        self.term = 0  # of the broker that dialled, as its hello says
        self.refused: list[tuple[int, str]] = []

    def send(self, envelope: Any) -> None:
        self.writer.write(frame(envelope.SerializeToString()))

    def close(self, why: str) -> None:
        envelope = schema("rank").Envelope()
        envelope.goodbye.why = cut(clean(why), WHY_BYTES)
        self.send(envelope)
        self.end()

    def end(self) -> None:
        """What was sent has FRAME_S to leave."""
        if not self.writer.is_closing():
            self.writer.close()
            asyncio.get_running_loop().call_later(FRAME_S, self.writer.transport.abort)


class ThirdParty:
    """
    `policies` are subclasses of Policy, found by their name; `listen` is HOST:PORT (port 0: any), `state` a folder for
    the database, `brokers` the names of the brokers to serve. Whatever the broker is told has been stored before, so a
    third-party that is killed continues where it was. A broker has at most `campaigns` open at a time, each of at most
    `arms` items. An exception of a policy ends its campaign, and so does a call that takes longer than `patience`
    seconds (0: no limit).
    """

    def __init__(self, policies: Iterable[type[Policy]], listen: str, tls: Tls, state: Union[str, Path],
                 brokers: Iterable[str] = ("main",), campaigns: int = CAMPAIGNS, arms: int = ARMS,
                 patience: float = PATIENCE_S) -> None:
        self.policies = {policy.name: policy for policy in policies}
        self.listen, self.tls, self.brokers = host_and_port(listen), opened(tls, server=True), frozenset(brokers)
        self.campaigns_max, self.arms_max, self.patience = campaigns, min(arms, ARMS_MAX), patience
        self.address = ""  # HOST:PORT, once it listens
        self.store, self.notes = Store(state), Notes()
        try:
            self.books = {(broker, book.campaign): book for broker, book in self.store.load(self._policy, self._within)}
            self.closed = self.store.closed()
        except BaseException:
            self.store.close()
            raise
        self.queued: dict[str, Queued] = {}
        for (broker, _), book in self.books.items():
            book.queued = self._queued(broker)
        self.peers: dict[str, _Peer] = {}
        self.links: dict[str, list[_Peer]] = {}  # the connections of each broker, the oldest first
        self.failed: Optional[BaseException] = None
        self._over: Optional[asyncio.Event] = None

    def _queued(self, broker: str) -> Queued:
        return self.queued.setdefault(broker, Queued())

    def _within(self) -> Any:
        return within(self.patience)

    # --- its life

    def run(self) -> None:
        """Serves until SIGTERM or SIGINT; Error if the database cannot be used any more."""
        asyncio.run(self.serve())

    async def serve(self) -> None:
        """As `run`, in a program that has an event loop."""
        self._over = asyncio.Event()
        on_signals(self.stop)
        try:
            listener = Listener(*self.listen, self.tls, self._serve, (CONNECTIONS + 1) * len(self.brokers))
            self.address = listener.address
            log.info("ready on %s", self.address)
            tasks = [asyncio.ensure_future(listener.run()), asyncio.ensure_future(self._tick(listener))]
            await self._over.wait()
            for task in tasks:
                task.cancel()
            for peer in self.peers.values():
                peer.close("the third-party is stopping")
            await listener.close()
            self._sum(early=True)
        finally:
            self.store.close()
        if self.failed is not None:
            raise self.failed

    def stop(self) -> None:
        """Ends `serve`; from its own event loop."""
        if self._over is not None:
            self._over.set()

    # --- the log: lines that a peer causes are bounded

    def _note(self, peer: str, text: str, level: int = logging.INFO) -> None:
        line = self.notes.take(peer, text, asyncio.get_running_loop().time())
        if line:
            log.log(level, "%s", line)

    def _sum(self, early: bool = False) -> None:
        for line in self.notes.sums(asyncio.get_running_loop().time(), early):
            log.info("%s", line)

    async def _tick(self, listener: Listener) -> None:
        while True:
            await asyncio.sleep(TICK_S)
            self._sum()
            listener.tidy()

    # --- connections

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = None
        try:
            name = check_peer(writer.get_extra_info("ssl_object"), "broker", self.brokers)
            peer = self._join(name, writer)
            peer.send(hello("rank"))
            await self._listen(peer, reader)
        except ProtocolError as error:
            self._note("", f"a connection is refused: {error}", logging.WARNING)
        except (OSError, ssl.SSLError, asyncio.TimeoutError):
            pass
        except Exception as error:  # of the database: what is in memory must not be told any more
            self.failed = self.failed or error
            self.stop()
        finally:
            if peer is not None:
                self._leave(peer)
            writer.close()

    def _join(self, name: str, writer: asyncio.StreamWriter) -> _Peer:
        """Of too many connections of a broker the oldest one that has no campaigns leaves."""
        peer, links = _Peer(name, writer, asyncio.get_running_loop().time()), self.links.setdefault(name, [])
        links.append(peer)
        if len(links) > CONNECTIONS:
            next(each for each in links if self.peers.get(name) is not each).writer.transport.abort()
        return peer

    def _leave(self, peer: _Peer) -> None:
        with suppress(ValueError):
            self.links[peer.name].remove(peer)
        if self.peers.get(peer.name) is peer:
            del self.peers[peer.name]
            self._note(f"broker {peer.name}", "the connection has ended")

    def _link(self, peer: _Peer, term: int) -> None:
        """A broker that dials again has mostly lost its older connection, but one whose term is over, and that has not
        found out yet, takes nothing over."""
        before = self.peers.get(peer.name)
        if before is not None and before.term > term:
            raise ProtocolError(f"term {term}; a broker of term {before.term} is connected")
        if before is not None:
            before.close("a newer connection of the same broker takes over")
        peer.term, self.peers[peer.name] = term, peer
        peer.splitter.limit = LARGE_FRAME_LIMIT
        self._note("", f"broker {peer.name} is connected")

    async def _listen(self, peer: _Peer, reader: asyncio.StreamReader) -> None:
        loop = asyncio.get_running_loop()
        while not peer.writer.is_closing():
            until = peer.watch.until
            data = await asyncio.wait_for(reader.read(65536), None if until is None else max(0.0, until - loop.time()))
            if not data or peer.writer.is_closing() or self.failed:
                return
            why = self._turn(peer, data)
            peer.watch.take(loop.time())
            if why:
                self._note(f"broker {peer.name}", f"closing the connection: {why}", logging.WARNING)
                peer.close(why)
                return
            await asyncio.wait_for(peer.writer.drain(), FRAME_S)

    def _turn(self, peer: _Peer, data: bytes) -> str:
        """Takes what has come, stores what follows from it, then sends it. Returns why the connection must end."""
        why = ""
        try:
            for payload in peer.splitter.feed(data):
                self._hear(peer, decode("rank", payload))
        except ProtocolError as error:
            why = str(error)
        if self.peers.get(peer.name) is not peer:
            return why
        self._speak(peer, {key: book for key, book in self.books.items()
                           if key[0] == peer.name and (book.changed or book.due)})
        return why

    def _store(self, books: dict[tuple[str, int], Book]) -> None:
        if any(book.changed for book in books.values()):
            self.store.commit([(broker, book) for (broker, _), book in books.items()])

    def _speak(self, peer: _Peer, books: dict[tuple[str, int], Book]) -> None:
        self._store(books)
        for campaign, reason in peer.refused:
            envelope = schema("rank").Envelope()
            envelope.opened.add(position=_nothing(campaign), refused=cut(clean(reason), WHY_BYTES))
            peer.send(envelope)
        peer.refused.clear()
        for key, book in books.items():  # a frame each: a plan of thousands of arms nearly fills one
            envelope = schema("rank").Envelope()
            book.say(envelope)
            self._store({key: book})  # its policy may have failed in this moment
            self._tell_failure(key, book)
            if envelope.ListFields():
                peer.send(envelope)
            if book.closed:
                self._note(f"broker {key[0]}", f"campaign {key[1]} is closed: {book.end}")
                self.closed.add(key)
                del self.books[key]

    def _tell_failure(self, key: tuple[str, int], book: Book) -> None:
        if book.cause:
            self._note(f"broker {key[0]}", f"campaign {key[1]} has ended: {book.cause}", logging.ERROR)
            book.cause = ""

    # --- messages

    def _hear(self, peer: _Peer, envelope: Any) -> None:
        check_form(envelope)
        check_hello(envelope, peer.greeted)
        if envelope.HasField("hello") and not peer.greeted:
            self._link(peer, envelope.hello.term)
            peer.greeted = True
        if envelope.HasField("goodbye"):
            self._note(f"broker {peer.name}", f"it closes the connection: {envelope.goodbye.why}")
        if envelope.opened or envelope.acks or envelope.plans or envelope.results:
            raise ProtocolError("the broker sent a message that only a third-party may send")
        if self.peers.get(peer.name) is not peer:
            return  # a goodbye without a hello
        for message in envelope.opens:
            self._open(peer, message)
        for kind, act in (("recorded", self._record), ("releases", self._release), ("accepted", self._accept),
                          ("refused", self._refuse), ("stops", self._stop), ("closed", self._close)):
            for message in getattr(envelope, kind):
                campaign = message.plan.campaign if kind == "recorded" else message.campaign
                book = self.books.get((peer.name, campaign))
                if book is not None:
                    act(book, message)
                elif (peer.name, campaign) not in self.closed and kind != "closed":
                    raise ProtocolError(f"campaign {campaign} has not been opened")

    def _open(self, peer: _Peer, message: Any) -> None:
        key = peer.name, message.position.campaign
        message.spec.DiscardUnknownFields()
        try:
            book = self.books.get(key)
            if key in self.closed:
                raise ValueError("this campaign has been closed")
            if book is None:
                self.books[key] = book = self._create(key, message)
            if book.spec != Spec.of(message.spec) or message.seed not in (b"", book.seed):
                raise ValueError("this campaign was opened before with another spec or seed")
        except (ValueError, Error) as error:
            self._refuse_open(peer, key[1], error)
            return
        book.open(message.position, message.stop)

    def _refuse_open(self, peer: _Peer, campaign: int, why: Exception) -> None:
        if len(peer.refused) == REFUSALS_MAX:
            raise ProtocolError(f"more than {REFUSALS_MAX} invalid campaigns in a row")
        self._note(f"broker {peer.name}", f"campaign {campaign} is refused: {why}", logging.WARNING)
        peer.refused.append((campaign, str(why)))

    def _create(self, key: tuple[str, int], message: Any) -> Book:
        check_spec(message.spec, self.arms_max)
        if sum(broker == key[0] for broker, _ in self.books) >= self.campaigns_max:
            raise ValueError(f"{self.campaigns_max} campaigns are open already")
        spec, seed = Spec.of(message.spec), bytes(message.seed) or secrets.token_bytes(8)
        try:
            with self._within():
                if spec.policy.name in self.policies:
                    self.policies[spec.policy.name].check(spec.policy)
                policy = self._policy(spec, int.from_bytes(seed, "little"))
        except Unfit:
            raise
        except FAILURES as error:
            raise Error(refusal_of(spec.policy.name, error)) from error
        book = Book(key[1], policy, seed, self._queued(key[0]), self._within)
        book.message = message.spec.SerializeToString()
        book.begin()
        if book.why:
            raise Error(book.why)
        self._note(f"broker {key[0]}", f"campaign {key[1]} ({spec.name}) is open: {spec.arms} arms, policy "
                   f"{spec.policy.name}")
        return book

    def _policy(self, spec: Spec, seed: int) -> Policy:
        if spec.policy.name not in self.policies:
            raise Unfit(f"unknown policy {spec.policy.name}; expected {' or '.join(self.policies)}")
        return self.policies[spec.policy.name](spec, seed)

    @staticmethod
    def _record(book: Book, message: Any) -> None:
        book.record(Plan.of(message.plan))

    @staticmethod
    def _release(book: Book, message: Any) -> None:
        book.release(message)

    @staticmethod
    def _accept(book: Book, message: Any) -> None:
        book.accept(message.plan)

    def _refuse(self, book: Book, message: Any) -> None:
        self._note(f"campaign {book.campaign}", f"plan {message.plan} is refused: {message.why} (asked "
                   f"{message.asked}, left {message.left})")
        book.refuse(message.plan, message.reason)

    @staticmethod
    def _stop(book: Book, message: Any) -> None:
        book.stop(message.reason)

    @staticmethod
    def _close(book: Book, _: Any) -> None:
        book.close()
