# SPDX-License-Identifier: Apache-2.0
"""A third-party whose policies are written in Python: it listens for brokers and ranks what they release."""
from __future__ import annotations

import asyncio
import logging
import os
import secrets
import ssl
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Optional, Union

from .book import Book
from .errors import Error, ProtocolError
from .loop import on_signals
from .model import Plan, Spec
from .policy import Policy
from .schema import schema
from .store import Store
from .wire import (FRAME_S, LARGE_FRAME_LIMIT, Splitter, Tls, check_hello, check_peer, decode, frame, hello,
                   host_and_port, opened)

log = logging.getLogger("crowdveil.thirdparty")
CAMPAIGNS_MAX = 256  # open at a time, of one broker
WHY_BYTES = 200


class _Peer:
    """One connection of a broker."""

    def __init__(self, name: str, writer: asyncio.StreamWriter) -> None:
        self.name, self.writer, self.splitter, self.greeted = name, writer, Splitter(LARGE_FRAME_LIMIT), False
        self.term = 0  # of the broker that dialled, as its hello says
        self.refused: list[tuple[int, str]] = []

    def send(self, envelope: Any) -> None:
        self.writer.write(frame(envelope.SerializeToString()))

    def close(self, why: str) -> None:
        envelope = schema("rank").Envelope()
        envelope.goodbye.why = why
        self.send(envelope)
        self.writer.close()


class ThirdParty:
    """
    `policies` are subclasses of Policy, found by their name; `listen` is HOST:PORT (port 0: any), `state` a folder for
    the database, `brokers` the names of the brokers to serve. Whatever the broker is told has been stored before, so a
    third-party that is killed continues where it was.
    """

    def __init__(self, policies: Iterable[type[Policy]], listen: str, tls: Tls, state: Union[str, Path],
                 brokers: Iterable[str] = ("main",)) -> None:
        self.policies = {policy.name: policy for policy in policies}
        self.listen, self.tls, self.brokers = host_and_port(listen), opened(tls, server=True), frozenset(brokers)
        self.address = ""  # HOST:PORT, once it listens
        self.store = Store(state)
        self.books = {(broker, book.campaign): book for broker, book in self.store.load(self._policy)}
        self.closed = self.store.closed()
        self.peers: dict[str, _Peer] = {}
        self.failed: Optional[BaseException] = None
        self._over: Optional[asyncio.Event] = None

    # --- its life

    def run(self) -> None:
        """Serves until SIGTERM or SIGINT; an exception of a policy ends it, too."""
        asyncio.run(self.serve())

    async def serve(self) -> None:
        """As `run`, in a program that has an event loop."""
        self._over = asyncio.Event()
        on_signals(self.stop)
        try:
            try:
                server = await asyncio.start_server(self._serve, *self.listen, ssl=self.tls,
                                                    ssl_handshake_timeout=FRAME_S)
            except OSError as error:
                raise Error(f"cannot listen on {self.listen[0]}:{self.listen[1]}: {os.strerror(error.errno or 0)}"
                            ) from None
            host, port = server.sockets[0].getsockname()[:2]
            self.address = f"{host}:{port}"
            log.info("ready on %s", self.address)
            await self._over.wait()
            server.close()
            for peer in self.peers.values():
                peer.close("the third-party is stopping")
        finally:
            self.store.close()
        if self.failed is not None:
            raise self.failed

    def stop(self) -> None:
        """Ends `serve`; from its own event loop."""
        if self._over is not None:
            self._over.set()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = None
        try:
            name = check_peer(writer.get_extra_info("ssl_object"), "broker", self.brokers)
            peer = _Peer(name, writer)
            peer.send(hello("rank"))
            await self._listen(peer, reader)
        except ProtocolError as error:
            log.warning("a connection is refused: %s", error)
        except (OSError, ssl.SSLError, asyncio.TimeoutError):
            pass
        except Exception as error:  # of a policy or of the database: what is in memory must not be told any more
            self.failed = self.failed or error
            self.stop()
        finally:
            if peer is not None and self.peers.get(peer.name) is peer:
                del self.peers[peer.name]
                log.info("broker %s is gone", peer.name)
            writer.close()

    def _link(self, peer: _Peer, term: int) -> None:
        """A broker that dials again has mostly lost its older connection, but one whose term is over, and that has not
        found out yet, takes nothing over."""
        before = self.peers.get(peer.name)
        if before is not None and before.term > term:
            raise ProtocolError(f"term {term}; a broker of term {before.term} is connected")
        if before is not None:
            before.close("a newer connection of the same broker takes over")
        peer.term, self.peers[peer.name] = term, peer
        log.info("broker %s is connected", peer.name)

    async def _listen(self, peer: _Peer, reader: asyncio.StreamReader) -> None:
        while not peer.writer.is_closing():
            waits = FRAME_S if peer.splitter.rest or not peer.greeted else None
            data = await asyncio.wait_for(reader.read(65536), waits)
            if not data or peer.writer.is_closing() or self.failed:
                return
            why = self._turn(peer, data)
            if why:
                log.warning("broker %s: closing the connection: %s", peer.name, why)
                peer.close(why[:WHY_BYTES])
                return
            await peer.writer.drain()

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
        books = {key: book for key, book in self.books.items() if key[0] == peer.name and (book.changed or book.due)}
        if any(book.changed for book in books.values()):
            self.store.commit([(broker, book) for (broker, _), book in books.items()])
        self._speak(peer, books)
        return why

    def _speak(self, peer: _Peer, books: dict[tuple[str, int], Book]) -> None:
        for campaign, reason in peer.refused:
            envelope = schema("rank").Envelope()
            envelope.opened.add(position={"campaign": campaign}, refused=reason[:WHY_BYTES])
            peer.send(envelope)
        peer.refused.clear()
        for key, book in books.items():  # a frame each: a plan of thousands of arms nearly fills one
            envelope = schema("rank").Envelope()
            book.say(envelope)
            if envelope.ListFields():
                peer.send(envelope)
            if book.closed:
                log.info("broker %s: campaign %d is closed: %s", *key, book.end)
                self.closed.add(key)
                del self.books[key]

    # --- messages

    def _hear(self, peer: _Peer, envelope: Any) -> None:
        check_hello(envelope, peer.greeted)
        if envelope.HasField("hello") and not peer.greeted:
            self._link(peer, envelope.hello.term)
            peer.greeted = True
        if envelope.HasField("goodbye"):
            log.info("broker %s closes the connection: %s", peer.name, envelope.goodbye.why)
        if envelope.opened or envelope.acks or envelope.plans or envelope.results:
            raise ProtocolError("the broker sent a message that only a third-party may send")
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
        spec = Spec.of(message.spec)
        try:
            book = self.books.get(key)
            if key in self.closed:
                raise ValueError("this campaign has been closed")
            if book is None:
                self.books[key] = book = self._create(key, spec, bytes(message.seed))
            if book.policy.spec != spec or message.seed not in (b"", book.seed):
                raise ValueError("this campaign was opened before with another spec or seed")
        except (ValueError, Error) as error:
            log.warning("broker %s: campaign %d is refused: %s", *key, error)
            peer.refused.append((key[1], " ".join(str(error).split())))
            return
        book.open(message.position, message.stop)

    def _create(self, key: tuple[str, int], spec: Spec, seed: bytes) -> Book:
        if sum(broker == key[0] for broker, _ in self.books) >= CAMPAIGNS_MAX:
            raise ValueError(f"{CAMPAIGNS_MAX} campaigns are open already")
        seed = seed or secrets.token_bytes(8)
        book = Book(key[1], self._policy(spec, int.from_bytes(seed, "little")), seed)
        book.begin()
        log.info("broker %s: campaign %d (%s) is open: %d arms, policy %s", *key, spec.name, spec.arms,
                 spec.policy.name)
        return book

    def _policy(self, spec: Spec, seed: int) -> Policy:
        if spec.policy.name not in self.policies:
            raise ValueError(f"unknown policy {spec.policy.name}; expected {' or '.join(self.policies)}")
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

    @staticmethod
    def _refuse(book: Book, message: Any) -> None:
        log.info("campaign %d: plan %d is refused: %s (asked %d, left %d)", book.campaign, message.plan, message.why,
                 message.asked, message.left)
        book.refuse(message.plan, message.reason)

    @staticmethod
    def _stop(book: Book, message: Any) -> None:
        book.stop(message.reason)

    @staticmethod
    def _close(book: Book, _: Any) -> None:
        book.close()
