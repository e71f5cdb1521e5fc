# SPDX-License-Identifier: Apache-2.0
"""The harness's certificates, made with `crowdveil pki make`."""
from harness.campaign import FINISHER, GATEWAYS
from harness.commands import crowdveil
from harness.pki import Files

PARTIES = {"thirdparty/ranker@localhost,127.0.0.1": "thirdparty", "broker/main@localhost,127.0.0.1": "broker",
           GATEWAYS[0]: "gateway-1", GATEWAYS[1]: "gateway-2", FINISHER: "gateway-3", "worker/400001": "person",
           "requester/alice": "requester"}
FILES = ("ca.pem", "crl.pem", "cert.pem", "key.pem")


class Made:
    """The harness's certificates, all made by one command."""

    def __init__(self, folder):
        self.folder, self.parties = folder / "tls", PARTIES
        self.folder.mkdir()
        self.of = {word.split("@")[0]: self.folder / name for word, name in PARTIES.items()}

    def words(self):
        return [f"{word}={self.folder / name}" for word, name in self.parties.items()]

    def make(self, *options, words=None):
        return crowdveil("pki", "make", "--dir", self.folder / "ca", *options, *(words or self.words()))

    def made(self, *options, words=None):
        """Its line about each identity."""
        done = self.make(*options, words=words)
        assert done.returncode == 0 and done.stderr == "", done.stderr
        return dict(line.split(": ", 1) for line in done.stdout.splitlines())

    def issue(self, identity, **_):
        return Files(*(str(self.of[identity] / name) for name in ("ca.pem", "cert.pem", "key.pem", "crl.pem")))

    def pki(self, action, *words):
        """Another action of the same CA."""
        return crowdveil("pki", action, "--dir", self.folder / "ca", *words)

    def bytes(self):
        return {path: path.read_bytes() for path in sorted(self.folder.rglob("*")) if path.is_file()}
