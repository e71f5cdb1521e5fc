# SPDX-License-Identifier: Apache-2.0
"""A requester's connection to a broker: submit, watch, cancel, export, ledger, status, purge."""
from __future__ import annotations

import os
import random
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Optional, Union

from .checks import check_order
from .errors import Error, Lost, Moved, ProtocolError, Refused
from .model import Accepted, Export, Gold, Progress, Result, Spec, Standing, Statement, Status
from .schema import schema
from .wire import (LARGE_FRAME_LIMIT, QUIET_S, Addresses, Closing, Connection, Tls, Turns, check_hello, decode, goodbye,
                   hello, left, lost, opened)


class Requester(Closing):
    """
    One connection; `with` closes it. `broker_name` is the name in the broker's certificate, None for any; `timeout` is
    the number of seconds for a whole answer, and for a connection. Requests are answered in order, one at a time.

    `address` may be several, of a broker's processes of which one is active. Then a lost connection is made again, for
    up to `timeout` seconds, and the request sent again; every request can be repeated. With one address this is so if
    the broker says that it moves; else a lost connection raises Lost.
    """
    connection: Connection

    def __init__(self, address: Addresses, tls: Tls, broker_name: Optional[str] = None, timeout: float = 30) -> None:
        self.turns, self.tls, self.broker_name = Turns(address), opened(tls), broker_name
        self.patience = timeout
        self.timeout: Optional[float] = timeout
        self.until: Optional[float] = None  # of the answer to the last request
        self.lost_at: Optional[float] = None  # since when nothing was heard after a loss
        self.request = b""
        self._connect()

    @property
    def address(self) -> str:
        return self.turns.address

    # --- the connection

    def _connect(self, until: float = 0) -> None:
        """At the first address that takes it; repeats whole cycles until this time, and makes one at least."""
        missed = list[Error]()
        while True:
            try:
                self.connection = Connection(self.address, self.tls, name=self.broker_name, limit=LARGE_FRAME_LIMIT,
                                             timeout=min(self.patience, self.turns.limit or self.patience))
                self.connection.send(hello("order").SerializeToString(), time.monotonic() + self.patience)
                self.connection.sock.settimeout(self.timeout)
                self.greeted = False
                self.turns.begin()
                return
            except (OSError, ProtocolError) as error:
                missed.append(error if isinstance(error, ProtocolError) else lost(self.address, error))
            pause = self.turns.failed()
            if pause and time.monotonic() + pause > until:
                raise missed[0] if len(missed) == 1 else Lost("; ".join(map(str, missed)))
            if pause:
                missed.clear()
                time.sleep(pause)

    def _again(self, why: Lost, until: Optional[float]) -> None:
        """Connects again after a loss, and sends the request again; raises `why` if that is not to be."""
        while True:
            now = time.monotonic()
            self.lost_at = now if self.lost_at is None else self.lost_at
            late = until is not None and now > until
            if late or now > self.lost_at + self.patience or not (self.turns.are_several or isinstance(why, Moved)):
                raise why
            self.connection.close()
            time.sleep(self.turns.lost())
            self._connect(self.lost_at + self.patience)
            try:
                self.connection.send(self.request, until)
                return
            except OSError as error:
                why = lost(self.address, error)

    def _receive(self, until: Optional[float]) -> Optional[bytes]:
        """The next frame, or None at the end. Lost: the broker is silent, and another address answers."""
        began = time.monotonic()
        while self.turns.are_several:
            now = time.monotonic()
            quiet = now - max(began, self.connection.heard)
            pause = QUIET_S * (1 if quiet < QUIET_S else random.uniform(.5, 1))
            try:
                return self.connection.receive(now + (pause if until is None else min(pause, left(until))))
            except socket.timeout:
                if until is not None:
                    left(until)
                if time.monotonic() - self.connection.heard < QUIET_S:
                    continue  # a long frame is on its way
                other = self.turns.knock()
                if other is not None and not self.connection.has_data():
                    raise self.turns.leave(other) from None
        if until is None:
            self.connection.sock.settimeout(None)
        return self.connection.receive(until)

    # --- requests and answers as messages

    def _limit(self) -> Optional[float]:
        """Of an answer that begins now."""
        return None if self.timeout is None else time.monotonic() + self.timeout

    def ask(self, **request: Any) -> None:
        """Sends one request: the field's name and its message's fields."""
        self.until = self._limit()
        (kind, values), = request.items()
        envelope = schema("order").Envelope()
        message = getattr(envelope, kind)
        message.SetInParent()
        for key, value in values.items():
            if hasattr(value, "DESCRIPTOR"):
                getattr(message, key).CopyFrom(value)
            else:
                setattr(message, key, value)
        self.request = envelope.SerializeToString()
        try:
            self.connection.send(self.request, self.until)
        except OSError as error:
            self._again(lost(self.address, error), self.until)

    def answer(self, until: Optional[float] = None) -> Any:
        """The next envelope with more than a hello, by this time (None: within the timeout from now on). Refused: the
        broker's error. Lost: the end of the connection, or no answer in time."""
        until = self._limit() if until is None else until
        while True:
            try:
                payload = self._receive(until)
            except Lost as why:
                self._again(why, until)
                continue
            except socket.timeout as error:
                raise lost(self.address, error) from error
            except OSError as error:
                self._again(lost(self.address, error), until)
                continue
            if payload is None:
                self._again(Lost(f"{self.address}: the broker closed the connection"), until)
                continue
            envelope = decode("order", payload)
            check_order(envelope)
            check_hello(envelope, self.greeted)
            self.greeted, self.lost_at = True, None
            if envelope.HasField("goodbye"):
                end = goodbye(self.address, "broker", envelope.goodbye.why)
                if not isinstance(end, Moved):
                    raise end
                self._again(end, until)
                continue
            if envelope.HasField("error"):
                raise Refused(envelope.error.why)
            if any(field.name != "hello" for field, _ in envelope.ListFields()):
                return envelope

    def expect(self, kind: str) -> Any:
        """The next message of this kind; news of a watched campaign, which may come at any time, are skipped."""
        while True:
            envelope = self.answer(self.until)
            if envelope.HasField(kind):
                return getattr(envelope, kind)
            for field, _ in envelope.ListFields():
                if field.name not in ("hello", "progress", "finished", "standings", "description"):
                    raise ProtocolError(f"the broker answers with {field.name}; expected {kind}")

    # --- requests

    def submit(self, spec: Spec, gold: Optional[Gold] = None, client_key: Optional[bytes] = None) -> Accepted:
        """Submits a campaign. The same 16 bytes as `client_key` give the same campaign, so a submission whose answer
        was lost can be repeated."""
        fields = {"client_key": client_key or os.urandom(16), "spec": spec.message()}
        self.ask(submit=fields if gold is None else {**fields, "gold": gold.message()})
        message = self.expect("accepted")
        return Accepted(message.campaign, message.existed)

    def watch(self, campaign: int = 0) -> Iterator[Union[Progress, Result]]:
        """Each change of a campaign (0: the newest); the last one is the Result. The next change may be later than
        the timeout: then Lost is raised, and another watch continues."""
        self.ask(watch={"campaign": campaign})
        while True:
            envelope = self.answer()
            if envelope.HasField("finished"):
                yield Result.of(envelope.finished)
                return
            if envelope.HasField("progress"):
                yield Progress.of(envelope.progress)

    def wait(self, campaign: int = 0) -> Result:
        """Waits for the end of a campaign, as long as it takes."""
        timeout, self.timeout = self.timeout, None
        self.connection.sock.settimeout(None)
        try:
            *_, last = self.watch(campaign)
        finally:
            self.timeout = timeout
            with suppress(OSError):  # it may be closed
                self.connection.sock.settimeout(timeout)
        assert isinstance(last, Result)
        return last

    def standings(self, campaign: int = 0) -> tuple[Standing, ...]:
        """The standings after the latest plan, or at the end; empty before the first plan, and with exact sums."""
        self.ask(watch={"campaign": campaign, "standings": True})
        found: tuple[Standing, ...] = ()
        while True:
            envelope = self.answer(self.until)
            if envelope.HasField("standings"):
                found = tuple(map(Standing.of, envelope.standings.standings))
            if envelope.HasField("finished"):
                return Result.of(envelope.finished).standings
            if envelope.HasField("progress"):
                return found

    def describe(self, campaign: int = 0) -> Spec:
        """The submitted spec, with the mechanism's parameters filled in."""
        self.ask(watch={"campaign": campaign, "describe": True})
        while True:
            envelope = self.answer(self.until)
            if envelope.HasField("description"):
                return Spec.of(envelope.description.spec)

    def cancel(self, campaign: int) -> None:
        """Cancels a campaign; that it ends is seen by watching."""
        self.ask(cancel={"campaign": campaign})
        self.expect("accepted")

    def export(self, campaign: int = 0) -> Export:
        """Spec, plans, releases and standings of a campaign."""
        self.ask(export={"campaign": campaign})
        parts = list[Any]()
        while not parts or not parts[-1].last:
            part = self.expect("part")
            if part.HasField("spec"):  # the first one; a repeated request is answered from the beginning
                parts.clear()
            parts.append(part)
        return Export.of(parts)

    def ledger(self, campaign: int = 0) -> Statement:
        """The privacy account of a campaign."""
        self.ask(ledger={"campaign": campaign})
        return Statement.of(self.expect("statement"))

    def plan(self, spec: Spec) -> Statement:
        """The largest privacy account of a campaign that is not submitted."""
        self.ask(ledger={"plan": spec.message()})
        return Statement.of(self.expect("statement"))

    def status(self) -> Status:
        self.ask(status={})
        return Status.of(self.expect("status_answer"))

    def purge(self, campaign: int = 0) -> int:
        """Deletes an ended campaign at the broker (0: all ended ones); how many were deleted."""
        self.ask(purge={"campaign": campaign})
        purged: int = self.expect("purged").campaigns
        return purged
