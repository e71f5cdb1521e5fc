#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Cost of ended campaigns: one requester submits and cancels campaigns of the largest size again and again.

Prints the resident memory of broker and third-party before, after, and after a restart; the time of that restart; the
rate of an honest gateway and the waiting time of an honest requester meanwhile; whether the requester can submit again;
and what is left after it has purged all its campaigns.

    tests/bench/ended.py [CAMPAIGNS] [SUBMITS] [BUILD]

SUBMITS is limits.submits, the submits a minute; 0: the broker's default, also for a broker without that setting.
"""
import os
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path

from campaigns import whole

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/e2e"))

ARMS, MIB = 4096, 1 << 20


def memory(daemon):
    text = Path(f"/proc/{daemon.pid}/status").read_text()
    fields = dict(line.split(":", 1) for line in text.splitlines())
    return tuple(int(fields[name].split()[0]) / 1024 for name in ("VmRSS", "VmHWM"))


def processor(daemon):
    """Seconds of CPU time that it has used."""
    fields = Path(f"/proc/{daemon.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def tell(what, deployment):
    broker, thirdparty = memory(deployment.broker), memory(deployment.thirdparty)
    print(f"{what:24} broker {broker[0]:7.1f} MiB (peak {broker[1]:7.1f})   third-party {thirdparty[0]:7.1f} MiB "
          f"(peak {thirdparty[1]:7.1f})", flush=True)


class Honest:
    """A campaign of another requester, with a gateway, and a requester that asks for its status."""

    def __init__(self, deployment, folder, spec):
        self.requester = deployment.requester("bob")
        self.campaign = self.requester.submit(spec(2, name="honest", tokens=100_000_000, policy_params={
            "alpha": 0, "tokens_per_round": 200})).campaign
        file = folder / "honest.yaml"
        file.write_text("campaign: honest\nitems: {list: [{name: a, mean: 0.5}, {name: b, mean: 0.5}]}\n"
                        "policy: {name: ppar, alpha: 0}\nprivacy: {epsilon: 1}\n")
        deployment.start_worker("gateway/1-5000000", file, {"requesters": "bob"})

    def tokens(self):
        return next(each.tokens for each in self.requester.status().campaigns if each.campaign == self.campaign)

    def watch(self, stop):
        """(tokens a second, the 99th percentile of the answers' times in ms)."""
        waits, first, began = [], self.tokens(), time.monotonic()
        while not stop.is_set():
            asked = time.monotonic()
            last = self.tokens()
            waits.append(time.monotonic() - asked)
            time.sleep(.02)
        return (last - first) / (time.monotonic() - began), statistics.quantiles(waits, n=100)[-1] * 1000


def watched(honest, work):
    stop, told = threading.Event(), []
    thread = threading.Thread(target=lambda: told.append(honest.watch(stop)))
    thread.start()
    began = time.monotonic()
    work()
    seconds = time.monotonic() - began
    stop.set()
    thread.join()
    return seconds, *told[0]


def attack(requester, spec, campaigns, refused):
    names = [f"{i:026d}" for i in range(ARMS)]
    large = spec(ARMS, names=names, policy_params={"alpha": 0})
    done = 0
    while done < campaigns:
        try:
            requester.cancel(requester.submit(large).campaign)
            done += 1
        except refused as error:  # the third-party has not closed the last ones yet; or there were too many
            if "are open" not in str(error) and "try again" not in str(error):
                print(f"after {done} campaigns: {error}")
                return


def restart(deployment):
    for name, start in (("broker", deployment.start_broker), ("thirdparty", None)):
        daemon = getattr(deployment, name)
        daemon.stop()
        began = time.monotonic()
        if start is None:
            deployment.start_thirdparty({"listen": deployment.thirdparty_address})
        else:
            start()
        print(f"restart of {name:12} {time.monotonic() - began:6.2f} s", flush=True)


def main():
    campaigns = whole("ended.py", "CAMPAIGNS", 1, 1000)
    submits = whole("ended.py", "SUBMITS", 2, 1000000, least=0)
    build = Path(sys.argv[3] if len(sys.argv) > 3 else ROOT / "build")
    os.environ["CROWDVEIL_BUILD"] = str(build)
    from client.requester import spec
    from crowdveil import Refused
    from harness.deployment import Deployment
    from harness.pki import Pki
    limits = {"submits": submits} if submits > 0 else {}
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        deployment = Deployment(folder, Pki(folder / "ca"), has_clock=False).up(broker={"limits": limits})
        try:
            honest = Honest(deployment, folder, spec)
            time.sleep(2)
            _, alone, wait = watched(honest, lambda: time.sleep(5))
            print(f"alone: {alone:.0f} tokens a second, answers within {wait:.0f} ms (99 of 100)")
            tell("before", deployment)
            used = processor(deployment.broker), processor(deployment.thirdparty)
            with deployment.requester("mallory") as mallory:
                seconds, rate, wait = watched(honest, lambda: attack(mallory, spec, campaigns, Refused))
            print(f"{campaigns} submits and cancels in {seconds:.1f} s: {rate:.0f} tokens a second ({rate / alone:.2f} "
                  f"of alone), answers within {wait:.0f} ms; computed: broker "
                  f"{processor(deployment.broker) - used[0]:.1f} s, third-party "
                  f"{processor(deployment.thirdparty) - used[1]:.1f} s")
            tell("after", deployment)
            size = (folder / "broker-state/broker.db").stat().st_size / MIB
            restart(deployment)
            tell(f"restarted ({size:.0f} MiB)", deployment)
            with deployment.requester("mallory") as mallory:
                attack(mallory, spec, 1, Refused)
                print("submits again:", mallory.status().campaigns[-1].campaign)
                print("purged:", mallory.purge(0))
        finally:
            deployment.close()


if __name__ == "__main__":
    main()
