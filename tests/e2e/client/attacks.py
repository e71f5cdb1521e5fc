# SPDX-License-Identifier: Apache-2.0
"""
Attacks of hostile peers on a listener, one attack a process: `attacks.py NAME ADDRESS CA [CERT KEY]...`. Each prints
"on" once it has begun and runs until its standard input ends. Several certificates are used in turn.
"""
import os
import socket
import ssl
import struct
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from client.worker import Session  # noqa: E402
from crowdveil.schema import schema  # noqa: E402
from crowdveil.wire import VERSION, Splitter, context, frame  # noqa: E402


class Attack:
    def __init__(self, address, ca, *files):
        host, port = address.rsplit(":", 1)
        self.target, self.over, self.at = (host, int(port)), False, 0
        self.files = (ca, *files[:2])
        self.anonymous = context(ca)
        self.tls = [context(ca, *pair) for pair in zip(files[::2], files[1::2])]
        self.first = [int(os.path.basename(path).split("-")[1]) if "gateway" in path else 0 for path in files[::2]]

    def raw(self):
        return socket.create_connection(self.target, timeout=20)

    def connect(self, which=None, hello=True, schema_name="crowd"):
        """A TLS connection with the next certificate, and the hello."""
        which = self.at % len(self.tls) if which is None else which
        self.at += 1
        sock = self.tls[which].wrap_socket(self.raw())
        if hello:
            envelope = schema(schema_name).Envelope()
            envelope.hello.version = VERSION
            sock.sendall(frame(envelope.SerializeToString()))
        return sock

    def again_and_again(self, act, most=400):
        """`act` makes and returns a connection; the latest `most` are kept open."""
        kept = []
        while not self.over:
            try:
                kept.append(act())
            except OSError:
                time.sleep(.01)
            while len(kept) > most:
                kept.pop(0).close()

    # --- before the handshake is complete

    def silent(self):
        self.again_and_again(self.raw)

    def loris(self):
        """Handshakes a byte at a time."""
        def begin():
            sock = self.raw()
            sock.sendall(b"\x16\x03\x01\x02\x00\x01")
            return sock
        self.again_and_again(begin)

    def plain_text(self):
        def say():
            sock = self.raw()
            sock.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            return sock
        self.again_and_again(say, 50)

    def hellos(self):
        """Complete hellos; the broker would have to answer each with a key exchange and a signature."""
        coming, going = ssl.MemoryBIO(), ssl.MemoryBIO()
        try:
            self.anonymous.wrap_bio(coming, going).do_handshake()
        except ssl.SSLWantReadError:
            pass
        hello = going.read()
        def say():
            sock = self.raw()
            sock.sendall(hello)
            return sock
        self.again_and_again(say)

    # --- with a certificate

    def idle(self):
        """As many connections as possible, which send a hello and nothing else."""
        self.again_and_again(self.connect, 2000)

    def reconnect(self):
        while not self.over:
            try:
                self.connect().close()
            except OSError:
                pass

    def stream(self, payload, schema_name="crowd"):
        """One message for ever, as fast as it is accepted, on one connection per certificate; answers are read and
        dropped."""
        def flood(which):
            while not self.over:
                try:
                    with self.connect(which, schema_name=schema_name) as sock:
                        threading.Thread(target=drain, args=(sock,), daemon=True).start()
                        while not self.over:
                            sock.sendall(payload)
                except (OSError, ValueError):
                    time.sleep(.02)
        threads = [threading.Thread(target=flood, args=(which,), daemon=True) for which in range(len(self.tls))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def forged_tokens(self):
        envelope = schema("crowd").Envelope()
        for n in range(500):
            envelope.tokens.add(ticket=os.urandom(48), values=[n])
        self.stream(frame(envelope.SerializeToString()))

    def garbage(self):
        self.stream(frame(b"\xff" * 300))

    def arrivals(self):
        """Thousands of workers that ask for assignments and never answer one."""
        def ask(which):
            first = self.first[which]
            with self.connect(which) as sock:
                threading.Thread(target=drain, args=(sock,), daemon=True).start()
                envelope = schema("crowd").Envelope()
                envelope.arrives.add(workers=range(first, first + 5000), credit=8192)
                while not self.over:
                    sock.sendall(frame(envelope.SerializeToString()))
                    time.sleep(.2)
        threads = [threading.Thread(target=ask, args=(which,), daemon=True) for which in range(len(self.tls))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def wide(self):
        """Workers as far apart as a certificate's range allows: they arrive, and decline every assignment."""
        pb, step = schema("crowd"), 1 << 20
        at = self.first[0]
        with self.connect(0) as sock:
            splitter = Splitter()
            while not self.over:
                envelope = pb.Envelope()
                envelope.arrives.add(workers=range(at, at + 1000 * step, step), credit=8192)
                at += 1000 * step
                sock.sendall(frame(envelope.SerializeToString()))
                time.sleep(.02)
                envelope = pb.Envelope()
                for payload in splitter.feed(sock.recv(1 << 20)):
                    for assign in pb.Envelope.FromString(payload).assigns:
                        envelope.declines.add(ticket=assign.ticket)
                if envelope.declines:
                    sock.sendall(frame(envelope.SerializeToString()))

    def worn_out(self):
        """A worker that has given all its tokens arrives 2,000 times in every frame."""
        first = self.first[0]
        with Session("%s:%d" % self.target, *self.files) as session:
            session.arrive([first], 8192)
            tokens = session.until("campaign").tokens_per_worker
            session.arrive([first] * min(tokens, 8000))
            for _ in range(tokens):
                ticket = session.until("assign").ticket
                session.token(ticket, [1])
                session.arrive([first])
        envelope = schema("crowd").Envelope()
        envelope.arrives.add(workers=[first] * 2000, credit=8192)
        print("worn out", flush=True)
        self.stream(frame(envelope.SerializeToString()))

    def same_again(self):
        """One worker, thousands of times in a frame."""
        envelope = schema("crowd").Envelope()
        envelope.arrives.add(workers=[self.first[0]] * 8192, credit=8192)
        self.stream(frame(envelope.SerializeToString()))

    def tiny_arrives(self):
        """Frames with as many empty arrivals as fit."""
        envelope = schema("crowd").Envelope()
        for _ in range(4000):
            envelope.arrives.add()
        self.stream(frame(envelope.SerializeToString()))

    def status(self):
        """A requester that asks for the status without waiting for the answers."""
        self.ask("status")

    def watch(self):
        self.ask("watch")

    def ask(self, what):
        envelope = schema("order").Envelope()
        getattr(envelope, what).SetInParent()
        if what == "watch":
            envelope.watch.campaign = 1
        self.stream(frame(envelope.SerializeToString()), "order")

    def resume(self):
        """Resumes one session after another, and closes each connection at once."""
        session = None
        while not self.over:
            try:
                with self.tls[0].wrap_socket(self.raw(), session=session) as sock:
                    envelope = schema("crowd").Envelope()
                    envelope.hello.version = VERSION
                    sock.sendall(frame(envelope.SerializeToString()))
                    sock.recv(4096)
                    session = sock.session
            except (OSError, ValueError):
                session = None

    def deaf(self):
        """Sends and never reads: acknowledgements pile up."""
        envelope = schema("crowd").Envelope()
        for n in range(500):
            envelope.tokens.add(ticket=os.urandom(48), values=[n])
        payload = frame(envelope.SerializeToString())
        def ask(which):
            while not self.over:
                try:
                    with self.connect(which) as sock:
                        sock.settimeout(5)
                        while not self.over:
                            sock.sendall(payload)
                except OSError:
                    pass
        threads = [threading.Thread(target=ask, args=(which,), daemon=True) for which in range(len(self.tls))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def slow_frames(self):
        """A frame of 256 KiB, a byte now and then, on as many connections as there are certificates."""
        socks = [self.connect(which) for which in range(len(self.tls))]
        for sock in socks:
            sock.sendall(struct.pack(">I", 256 * 1024))
        while not self.over:
            for sock in socks:
                try:
                    sock.sendall(b"\x1a")
                except OSError:
                    pass
            time.sleep(.2)

    def tiny_records(self):
        """Every byte of a valid frame in a TLS record of its own."""
        envelope = schema("crowd").Envelope()
        envelope.arrives.add(workers=[self.first[0]], credit=1)
        payload = frame(envelope.SerializeToString())
        with self.connect(0) as sock:
            threading.Thread(target=drain, args=(sock,), daemon=True).start()
            while not self.over:
                for byte in payload:
                    sock.send(bytes([byte]))


def drain(sock):
    try:
        while sock.recv(65536):
            pass
    except (OSError, ValueError):
        pass


def main():
    attack = Attack(*sys.argv[2:])
    threading.Thread(target=getattr(attack, sys.argv[1]), daemon=True).start()
    print("on", flush=True)
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    main()
