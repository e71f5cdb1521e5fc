# SPDX-License-Identifier: Apache-2.0
"""A TCP relay that keeps every byte that passes: what somebody on the network sees."""
import socket
import threading


class Relay:
    def __init__(self, target):
        host, port = target.rsplit(":", 1)
        self.target, self.captured, self.sockets = (host, int(port)), [], []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"
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
            far = socket.create_connection(self.target)
            self.sockets += [near, far]
            self.threads += [self._spawn(self._pump, near, far), self._spawn(self._pump, far, near)]

    def _pump(self, source, sink):
        try:
            while data := source.recv(65536):
                self.captured.append(data)
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def bytes(self):
        return b"".join(self.captured)

    def close(self):
        self.listener.close()
        for sock in self.sockets:
            sock.close()
