# SPDX-License-Identifier: Apache-2.0
"""
Connections that have not shown a certificate, bounded by their address as common/net/callers.h and listener.c bound
those of the C programs. An address is one IPv4 address or one IPv6 /64. Pure: time is an argument.
"""
from __future__ import annotations

import ipaddress
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any, Optional

HANDSHAKES = 128, 64  # unfinished ones: that have not sent a whole hello, and that have, which cost Python far more
HANDSHAKE_S = 10.0
HELLOS = 100       # a second that are answered for one address
STRANGERS = 4      # times as many for all unknown addresses together
KNOWN_S = 600.0    # after a handshake that was completed
FREE = 4           # unfinished handshakes of a known address that claim no place
KEPT = 2048        # addresses that are remembered


def address_of(peer: Any) -> str:
    """From what getpeername() gives."""
    try:
        address = ipaddress.ip_address(str(peer[0]).partition("%")[0])
    except (ValueError, TypeError, IndexError):
        return ""
    if isinstance(address, ipaddress.IPv6Address):
        mapped = address.ipv4_mapped
        return str(mapped or ipaddress.ip_network((int(address) >> 64 << 64, 64)))
    return str(address)


@dataclass
class Bucket:
    """Holds the hellos of one second, and refills continuously."""
    rate: float
    parts: float
    at: float = 0.0

    def fill(self, now: float) -> None:
        self.parts = min(self.rate, self.parts + max(0.0, now - self.at) * self.rate)
        self.at = now


@dataclass
class Caller:
    """An address."""
    bucket: Bucket
    known_until: float = 0.0
    open: int = 0

    def claim(self, now: float) -> int:
        return 0 if self.known_until > now and self.open <= FREE else self.open


@dataclass
class Call:
    """An unfinished handshake; `stage` 0 until its hello is whole. `handle` is the owner's."""
    address: str
    handle: Any = None
    stage: int = 0


@dataclass
class Callers:
    all: "OrderedDict[str, Caller]" = field(default_factory=OrderedDict)
    strangers: Bucket = field(default_factory=lambda: Bucket(STRANGERS * HELLOS, STRANGERS * HELLOS))
    stages: list[dict[int, Call]] = field(default_factory=lambda: [{}, {}])

    def _forget(self) -> None:
        for address in [address for address, caller in self.all.items() if not caller.open][:len(self.all) - KEPT]:
            del self.all[address]

    def _enter(self, call: Call, now: float) -> Optional[Call]:
        """Returns the one that has to leave: the oldest of the address that claims most."""
        stage = self.stages[call.stage]
        stage[id(call)] = call
        if len(stage) <= HANDSHAKES[call.stage]:
            return None
        claims = {address: self.all[address].claim(now) for address in {each.address for each in stage.values()}}
        others = [each for each in stage.values() if each is not call]
        return max(others, key=lambda each: claims[each.address])

    def arrive(self, call: Call, now: float) -> Optional[Call]:
        caller = self.all.get(call.address)
        if caller is None:
            caller = self.all[call.address] = Caller(Bucket(HELLOS, HELLOS, now))
            if len(self.all) > KEPT:
                self._forget()
        self.all.move_to_end(call.address)
        caller.open += 1
        return self._enter(call, now)

    def hello(self, call: Call, now: float) -> tuple[bool, Optional[Call]]:
        """Its hello is whole: whether it is answered now, and which other one has to leave."""
        caller = self.all[call.address]
        buckets = [caller.bucket] if caller.known_until > now else [caller.bucket, self.strangers]
        for bucket in buckets:
            bucket.fill(now)
        if any(bucket.parts < 1 for bucket in buckets):
            return False, None
        for bucket in buckets:
            bucket.parts -= 1
        del self.stages[call.stage][id(call)]
        call.stage = 1
        return True, self._enter(call, now)

    def leave(self, call: Call, let_in: bool, now: float) -> None:
        """The handshake is over."""
        if self.stages[call.stage].pop(id(call), None) is not None:
            caller = self.all[call.address]
            caller.open -= 1
            if let_in:
                caller.known_until = now + KNOWN_S
