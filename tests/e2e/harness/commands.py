# SPDX-License-Identifier: Apache-2.0
"""The `crowdveil` command, run to its end."""
import subprocess

from harness.daemon import PROGRAMS


def crowdveil(*args, cwd=None, timeout=300, env=None):
    return subprocess.run([PROGRAMS["crowdveil"], *map(str, args)], cwd=cwd, timeout=timeout, capture_output=True,
                          text=True, stdin=subprocess.DEVNULL, env=env)


def as_requester(deployment, name="alice"):
    """The options with which a requester's command reaches the broker."""
    files = deployment.pki.issue(f"requester/{name}")
    return ["--broker", deployment.broker.address, "--broker-name", "main",
            *(word for name, path in files.config().items() for word in (f"--tls-{name}", path))]
