# SPDX-License-Identifier: Apache-2.0
"""Certificates made with the openssl program: the tests also need ones that `crowdveil pki` would not make."""
import hashlib
import shutil
import ssl
import subprocess
from pathlib import Path

from crowdveil.wire import Connection, Tls, context


class Files(Tls):
    def config(self):
        names = {"ca": self.ca, "cert": self.cert, "key": self.key, "crl": self.crl}
        return {name: path for name, path in names.items() if path}


def der(files):
    return ssl.PEM_cert_to_DER_cert(Path(files.cert).read_text())


def fingerprint(files):
    """Of the key in a certificate: SHA-256 of its DER form, by the openssl program."""
    pem = subprocess.run(["openssl", "x509", "-in", files.cert, "-pubkey", "-noout"], capture_output=True, check=True)
    of_key = subprocess.run(["openssl", "pkey", "-pubin", "-outform", "DER"], input=pem.stdout, capture_output=True,
                            check=True)
    return hashlib.sha256(of_key.stdout).hexdigest()


def served(address, files, role):
    """The certificate, as der() returns it, that a program with these files shows to a peer that dials it."""
    with Connection(address, context(files.ca, files.cert, files.key), role=role) as connection:
        return connection.sock.getpeercert(binary_form=True)


def openssl(*args, cwd):
    subprocess.run(["openssl", *args], cwd=cwd, check=True, capture_output=True)


class Pki:
    """A CA in a folder of its own. `issue` makes one identity's files, or returns the existing ones; they are in a
    folder of their own, with the CA's certificate, since a daemon may read all files beside its certificate."""

    def __init__(self, folder, days=2):
        self.folder = Path(folder)
        self.folder.mkdir(mode=0o700)
        self.ca = str(self.folder / "ca.pem")
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                "-days", str(days), "-keyout", "ca.key", "-out", "ca.pem", "-subj", f"/CN=CA {self.folder.name}",
                "-addext", "keyUsage=critical,keyCertSign", cwd=self.folder)

    def issue(self, identity, days=2, name=None, extra=""):
        """`identity` is ROLE/NAME; days -1 is expired since yesterday; `name` keeps several of one identity apart."""
        stem = name or identity.replace("/", "-")
        own = self.folder / stem
        files = Files(*(str(own / name) for name in ("ca.pem", f"{stem}.pem", f"{stem}.key")))
        if not Path(files.cert).exists():
            own.mkdir(mode=0o700, exist_ok=True)
            shutil.copy(self.ca, files.ca)
            openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-subj", f"/CN={stem}", "-keyout", f"{stem}.key", "-out", f"{stem}.csr",
                    "-addext", f"subjectAltName=URI:crowdveil:{identity}{extra}",
                    "-addext", "keyUsage=critical,digitalSignature",
                    "-addext", "extendedKeyUsage=clientAuth,serverAuth", cwd=own)
            openssl("x509", "-req", "-in", f"{stem}.csr", "-CA", "../ca.pem", "-CAkey", "../ca.key",
                    "-copy_extensions", "copy", "-days", str(days), "-out", f"{stem}.pem", cwd=own)
            Path(files.key).chmod(0o600)
        return files
