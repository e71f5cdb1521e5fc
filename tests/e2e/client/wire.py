# SPDX-License-Identifier: Apache-2.0
"""A connection that is made step by step."""
import socket
import ssl
import time


def slow_connection(address, tls, delay, source="", timeout=20):
    """A connection made step by step to a party that is `delay` seconds away: what arrives is read that much later.
    Returns the socket and the TLS object over its two memory BIOs once the other side may accept our certificate."""
    host, port = address.rsplit(":", 1)
    raw = socket.create_connection((host, int(port)), timeout=timeout, source_address=(source, 0))
    coming, going = ssl.MemoryBIO(), ssl.MemoryBIO()
    side = tls.wrap_bio(coming, going)
    done = False
    while not done:
        try:
            side.do_handshake()
            done = True
        except ssl.SSLWantReadError:
            pass
        raw.sendall(going.read())
        if not done:
            data = raw.recv(65536)
            if not data:
                raw.close()
                raise ConnectionError("closed during the handshake")
            time.sleep(delay)
            coming.write(data)
    return raw, side, coming, going
