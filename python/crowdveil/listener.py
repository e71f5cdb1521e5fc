# SPDX-License-Identifier: Apache-2.0
"""Accepts TLS connections within the bounds of callers.py: a peer without a certificate uses a bounded share."""
from __future__ import annotations

import asyncio
import gc
import os
import resource
import socket
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Optional

from .callers import HANDSHAKE_S, HANDSHAKES, Call, Callers, address_of
from .errors import Error

PEEK_S = .05      # between looks at a hello that has begun
BACKLOG = 511
OTHER_FILES = 64
TURN = 16         # connections that are accepted before others have their turn
RECORD = 5        # bytes of a TLS record's head
HANDSHAKE = 22    # the type of a record with a hello
GARBAGE = 20      # unfinished TLS connections that have ended, after which memory is tidied
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def allow_files(connections: int) -> None:
    """Raises the limit of open files as far as so many connections need; Error if the system does not allow it, said at
    the start and not when no file is left for the database."""
    needed = connections + sum(HANDSHAKES) + OTHER_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    if hard != resource.RLIM_INFINITY and hard < needed:
        raise Error(f"{connections} connections need {needed} open files, but the system allows {hard} (ulimit -n)")
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


class Listener:
    """`serve` gets each connection whose handshake is complete, and permits so many `connections`."""

    def __init__(self, host: str, port: int, tls: ssl.SSLContext, serve: Serve, connections: int) -> None:
        allow_files(connections)
        self.tls, self.serve, self.callers = tls, serve, Callers()
        self.tasks, self.garbage = set["asyncio.Task[None]"](), 0
        try:
            family, kind, proto, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM,
                                                                 flags=socket.AI_PASSIVE)[0]
            self.sock = socket.socket(family, kind, proto)
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self.sock.bind(address)
            self.sock.listen(BACKLOG)
            self.sock.setblocking(False)
        except OSError as error:
            raise Error(f"cannot listen on {host}:{port}: {error.strerror or os.strerror(error.errno or 0)}") from None
        name, bound = self.sock.getsockname()[:2]
        self.address = f"{name}:{bound}"

    async def run(self) -> None:
        """Accepts until it is cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                for _ in range(TURN):
                    raw, address = await loop.sock_accept(self.sock)
                    task = loop.create_task(self._call(raw, address_of(address)))
                    self.tasks.add(task)
                    task.add_done_callback(self.tasks.discard)
                await asyncio.sleep(0)
            except OSError:  # no file is left, or the peer has gone
                await asyncio.sleep(PEEK_S)

    def tidy(self) -> None:
        """Once a second: what is left of a TLS connection of asyncio are cycles of a quarter of a megabyte."""
        if self.garbage >= GARBAGE:
            self.garbage = 0
            gc.collect()

    async def close(self) -> None:
        """Ends the handshakes and connections."""
        self.sock.close()
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)

    # --- a handshake

    def _evict(self, call: Optional[Call]) -> None:
        if call is not None:
            self.callers.leave(call, False, asyncio.get_running_loop().time())
            call.handle.cancel()

    async def _call(self, raw: socket.socket, address: str) -> None:
        loop, call = asyncio.get_running_loop(), Call(address, asyncio.current_task())
        opened = None
        self._evict(self.callers.arrive(call, loop.time()))
        try:
            raw.setblocking(False)
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            opened = await asyncio.wait_for(self._shake(call, raw), HANDSHAKE_S)
        except (OSError, asyncio.TimeoutError, asyncio.CancelledError):  # cancelled: to make room, or at the end
            pass
        finally:
            self.callers.leave(call, opened is not None, loop.time())
            if opened is None and call.stage == 0:
                raw.close()
            elif opened is None:
                self.garbage += 1
                with suppress(OSError):  # its transport closes it
                    raw.shutdown(socket.SHUT_RDWR)
        if opened is not None:
            await self.serve(*opened)

    async def _shake(self, call: Call, raw: socket.socket
                     ) -> Optional[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        """A silent connection costs no more than its socket: TLS begins with a whole hello."""
        loop = asyncio.get_running_loop()
        if not await self._hello(raw):
            return None
        answered, other = self.callers.hello(call, loop.time())
        if not answered:
            return None
        self._evict(other)
        reader = asyncio.StreamReader()
        protocol = asyncio.StreamReaderProtocol(reader)
        transport, _ = await loop.connect_accepted_socket(lambda: protocol, raw, ssl=self.tls,
                                                          ssl_handshake_timeout=HANDSHAKE_S)
        return reader, asyncio.StreamWriter(transport, protocol, reader, loop)

    @staticmethod
    async def _hello(raw: socket.socket) -> bool:
        """Waits for the whole first record; False if it is none of a handshake, or at the end."""
        loop = asyncio.get_running_loop()
        while True:
            readable = loop.create_future()
            loop.add_reader(raw, lambda future=readable: future.done() or future.set_result(None))
            try:
                await readable
            finally:
                loop.remove_reader(raw)
            head = raw.recv(1 << 14, socket.MSG_PEEK)
            if not head or head[0] != HANDSHAKE:
                return False
            if len(head) >= RECORD and len(head) >= min(RECORD + int.from_bytes(head[3:5], "big"), 1 << 14):
                return True
            await asyncio.sleep(PEEK_S)
