# SPDX-License-Identifier: Apache-2.0
"""A requester's connection to a broker: submit, watch, cancel, export, ledger, status, purge."""
from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, Optional, Union

from .errors import Lost, ProtocolError, Refused
from .model import Accepted, Export, Gold, Progress, Result, Spec, Standing, Statement, Status
from .schema import schema
from .wire import LARGE_FRAME_LIMIT, Closing, Connection, Tls, check_hello, decode, hello, lost, opened


class Requester(Closing):
    """
    One connection; `with` closes it. `broker_name` is the name in the broker's certificate, None for any; `timeout` is
    the number of seconds to wait for an answer. Requests are answered in order, one at a time.
    """

    def __init__(self, address: str, tls: Tls, broker_name: Optional[str] = None, timeout: float = 30) -> None:
        self.address, self.greeted = address, False
        try:
            self.connection = Connection(address, opened(tls), timeout=timeout, name=broker_name,
                                         limit=LARGE_FRAME_LIMIT)
            self.connection.send(hello("order").SerializeToString())
        except OSError as error:
            raise lost(address, error) from error

    # --- requests and answers as messages

    def ask(self, **request: Any) -> None:
        """Sends one request: the field's name and its message's fields."""
        (kind, values), = request.items()
        envelope = schema("order").Envelope()
        message = getattr(envelope, kind)
        message.SetInParent()
        for key, value in values.items():
            if hasattr(value, "DESCRIPTOR"):
                getattr(message, key).CopyFrom(value)
            else:
                setattr(message, key, value)
        try:
            self.connection.send(envelope.SerializeToString())
        except OSError as error:
            raise lost(self.address, error) from error

    def answer(self) -> Any:
        """The next envelope with more than a hello. Refused: the broker's error. Lost: the end of the connection."""
        while True:
            try:
                payload = self.connection.receive()
            except OSError as error:
                raise lost(self.address, error) from error
            if payload is None:
                raise Lost(f"{self.address}: the broker closed the connection")
            envelope = decode("order", payload)
            check_hello(envelope, self.greeted)
            self.greeted = True
            if envelope.HasField("goodbye"):
                raise Lost(f"{self.address}: the broker says goodbye: {envelope.goodbye.why}")
            if envelope.HasField("error"):
                raise Refused(envelope.error.why)
            if any(field.name != "hello" for field, _ in envelope.ListFields()):
                return envelope

    def expect(self, kind: str) -> Any:
        """The next message of this kind; news of a watched campaign, which may come at any time, are skipped."""
        while True:
            envelope = self.answer()
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
        timeout = self.connection.sock.gettimeout()
        self.connection.sock.settimeout(None)
        try:
            *_, last = self.watch(campaign)
        finally:
            self.connection.sock.settimeout(timeout)
        assert isinstance(last, Result)
        return last

    def standings(self, campaign: int = 0) -> tuple[Standing, ...]:
        """The standings after the latest plan, or at the end; empty before the first plan, and with exact sums."""
        self.ask(watch={"campaign": campaign, "standings": True})
        found: tuple[Standing, ...] = ()
        while True:
            envelope = self.answer()
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
            envelope = self.answer()
            if envelope.HasField("description"):
                return Spec.of(envelope.description.spec)

    def cancel(self, campaign: int) -> None:
        """Cancels a campaign; that it ends is seen by watching."""
        self.ask(cancel={"campaign": campaign})
        self.expect("accepted")

    def export(self, campaign: int = 0) -> Export:
        """Spec, plans, releases and standings of a campaign."""
        self.ask(export={"campaign": campaign})
        parts = [self.expect("part")]
        while not parts[-1].last:
            parts.append(self.expect("part"))
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
