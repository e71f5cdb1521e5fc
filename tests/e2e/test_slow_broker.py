# SPDX-License-Identifier: Apache-2.0
"""A broker that is silent, or drips, holds no requester longer than it wants to wait for a whole answer."""
import socket
import ssl
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from crowdveil import Lost, Requester, Spec
from crowdveil.schema import schema
from crowdveil.wire import frame, hello, server_context
from harness.daemon import PROGRAMS
from support.address import HOST

pytestmark = pytest.mark.alone
PATIENCE_S, HANDSHAKE_S, ANSWER_S, SLACK_S = 3, 10, 30, 5


class SlowBroker:
    """Takes every connection, and then does what `how` says until it is closed."""

    def __init__(self, files, how):
        self.tls, self.how, self.over = server_context(files), getattr(self, how), threading.Event()
        self.listener = socket.create_server((HOST, 0))
        self.address = f"{HOST}:{self.listener.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        with suppress(OSError):
            while True:
                threading.Thread(target=self._talk, args=(self.listener.accept()[0],), daemon=True).start()

    def _talk(self, raw):
        with suppress(OSError), raw:
            self.how(raw)

    def _greet(self, raw):
        sock = self.tls.wrap_socket(raw, server_side=True)
        sock.sendall(frame(hello("order").SerializeToString()))
        return sock

    def _drip(self, sock, data):
        for byte in data:
            sock.sendall(bytes([byte]))
            if self.over.wait(.2):
                return

    def silent(self, raw):
        self.over.wait()

    def handshake(self, raw):
        """A TLS record a byte at a time."""
        self._drip(raw, b"\x16\x03\x03\x40\x00" + bytes(16384))

    def mute(self, raw):
        with self._greet(raw):
            self.over.wait()

    def drip(self, raw):
        with self._greet(raw) as sock:
            self._drip(sock, (2000).to_bytes(4, "big") + bytes(2000))

    def frames(self, raw):
        """A whole frame now and then, none of which answers."""
        envelope = schema("order").Envelope()
        envelope.progress.campaign = 1
        with self._greet(raw) as sock:
            while not self.over.wait(.2):
                sock.sendall(frame(envelope.SerializeToString()))

    def parts(self, raw):
        """An export without an end."""
        envelope = schema("order").Envelope()
        envelope.part.campaign = 1
        envelope.part.spec.CopyFrom(Spec("x", 2).message())
        with self._greet(raw) as sock:
            while not self.over.wait(.2):
                sock.sendall(frame(envelope.SerializeToString()))
                envelope.part.ClearField("spec")

    def resets(self, raw):
        """Says hello and leaves, again and again."""
        self._greet(raw).close()

    def close(self):
        self.over.set()
        self.listener.close()


@pytest.fixture
def brokers(pki):
    made = []

    def make(how):
        made.append(SlowBroker(pki.issue("broker/main"), how))
        return made[-1]
    yield make
    for broker in made:
        broker.close()


# how: the longest time that the requester's program in C may take
MODES = {"silent": HANDSHAKE_S, "handshake": HANDSHAKE_S, "mute": ANSWER_S, "drip": ANSWER_S, "frames": ANSWER_S,
         "parts": ANSWER_S, "resets": ANSWER_S}
COMMANDS = {"status": ["status"], "export": ["export", "1", "--out", "/dev/null"], "ledger": ["ledger", "1"],
            "cancel": ["cancel", "1"], "purge": ["purge", "1"]}


def test_a_command_ends_in_time_whatever_the_broker_does(brokers, pki):
    files = pki.issue("requester/alice")

    def took(address, command):
        began = time.monotonic()
        done = subprocess.run(
            [PROGRAMS["crowdveil"], *command, "--broker", address, "--broker-name", "main", "--tls-ca",
             files.ca, "--tls-cert", files.cert, "--tls-key", files.key], capture_output=True, text=True, timeout=100)
        return done, time.monotonic() - began
    cases = [(how, "status") for how in MODES] + [("mute", name) for name in COMMANDS] + [("parts", "export")]
    commands = [(brokers(how).address, COMMANDS[name]) for how, name in cases]
    with ThreadPoolExecutor(len(cases)) as pool:
        results = list(pool.map(lambda command: took(*command), commands))
    for (how, name), (done, seconds) in zip(cases, results):
        print(f"{how}, {name}: {seconds:.1f} s: {done.stderr.strip()}")
        assert done.returncode == 1 and seconds < MODES[how] + SLACK_S, (how, name, seconds, done.stderr)
        assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("how", MODES)
@pytest.mark.parametrize("several", [False, True], ids=["one", "several"])
def test_a_requester_in_python_has_one_time_for_a_whole_answer(brokers, pki, how, several):
    address = ",".join(brokers(how).address for _ in range(1 + several))
    began = time.monotonic()
    with pytest.raises((Lost, ssl.SSLError)):
        with Requester(address, pki.issue("requester/alice"), "main", timeout=2) as requester:
            began = time.monotonic()
            requester.export() if how == "parts" else requester.status()
    assert time.monotonic() - began < (8 if several else 4)
