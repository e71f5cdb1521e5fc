# SPDX-License-Identifier: Apache-2.0
"""
A TCP relay between two parties. It records every byte that passes, as an observer on the network could; and it can act
as a failing network: it resets connections, or holds data back without closing anything.
"""
import socket
import struct
import threading

from support.address import HOST

NO_LINGER = struct.pack("ii", 1, 0)


class Relay:
    def __init__(self, target):
        host, port = target.rsplit(":", 1)
        self.target, self.captured, self.sockets = (host, int(port)), [], []
        self.listener = socket.create_server((HOST, 0))
        self.address = f"{HOST}:{self.listener.getsockname()[1]}"
        self.flows = {"to": threading.Event(), "from": threading.Event()}
        self.release()
        self.threads = [self._spawn(self._accept)]

    def _spawn(self, run, *args):
        thread = threading.Thread(target=run, args=args, daemon=True)
        thread.start()
        return thread

    def _accept(self):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(self.target)
            except OSError:
                near.close()
                continue
            self.sockets += [near, far]
            self.threads += [self._spawn(self._pump, near, far, "to"), self._spawn(self._pump, far, near, "from")]

    def _pump(self, source, sink, way):
        try:
            while data := source.recv(65536):
                self.captured.append(data)
                self.flows[way].wait()
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            # the end that is still there learns of it
            for sock in (source, sink):
                try:
                    sock.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass

    def reset(self):
        """Every connection ends with a reset, both ways."""
        open_, self.sockets = self.sockets, []
        for sock in open_:
            try:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NO_LINGER)
                sock.shutdown(socket.SHUT_RD)  # wakes the thread that reads it
            except OSError:
                pass
            sock.close()

    def hold(self, *ways):
        """From now on nothing passes in that direction, "to" or "from" the target; nothing is closed or lost either."""
        for way in ways:
            self.flows[way].clear()

    def release(self):
        for flow in self.flows.values():
            flow.set()

    def bytes(self):
        return b"".join(self.captured)

    def close(self):
        self.listener.close()
        self.release()
        for sock in self.sockets:
            sock.close()
