#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Cost of a scrape: the time in which a broker with many open campaigns answers /metrics and /readyz on its socket.

Prints the median and the 95th percentile, and the size of the answer, without campaigns and with CAMPAIGNS. The first
100, which have metrics of their own, have the largest number of items.

    tests/bench/scrape.py [CAMPAIGNS] [SCRAPES] [BUILD]
"""
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

from campaigns import whole

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/e2e"))

ARMS, LISTED = 4096, 100


def measure(get, socket, url, scrapes):
    times, size = [], 0
    for _ in range(scrapes):
        began = time.perf_counter()
        status, text = get(socket, url)
        times.append((time.perf_counter() - began) * 1000)
        assert status == 200, text
        size = len(text)
    return statistics.median(times), statistics.quantiles(times, n=20)[-1], size


def tell(what, get, socket, scrapes):
    for url in ("/metrics", "/readyz"):
        median, most, size = measure(get, socket, url, scrapes)
        print(f"{what:16} {url:9} median {median:.2f} ms, 95 of 100 within {most:.2f} ms, {size} bytes", flush=True)


def main():
    campaigns = whole("scrape.py", "CAMPAIGNS", 1, 1000)
    scrapes = whole("scrape.py", "SCRAPES", 2, 500)
    build = Path(sys.argv[3] if len(sys.argv) > 3 else ROOT / "build")
    os.environ["CROWDVEIL_BUILD"] = str(build)
    from client.requester import spec
    from harness.admin import get
    from harness.deployment import Deployment
    from harness.pki import Pki
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        deployment = Deployment(folder, Pki(folder / "ca"), has_clock=False)
        try:
            # Without a third-party: it would take 256 campaigns, and a broker's figures are the same without it.
            deployment.start_broker({"limits": {"submits": 1000000, "campaigns": 1000, "kept": 1000000}})
            socket = folder / "broker.sock"
            tell("no campaign", get, socket, scrapes)
            for part in range(0, campaigns, 1000):
                with deployment.requester(f"requester{part // 1000}") as requester:
                    for i in range(part, min(part + 1000, campaigns)):
                        requester.submit(spec(ARMS if i < LISTED else 20, policy_params={"alpha": .1}))
            tell(f"{campaigns} campaigns", get, socket, scrapes)
        finally:
            deployment.close()


if __name__ == "__main__":
    main()
