# SPDX-License-Identifier: Apache-2.0
"""
podman with runc and podman-compose of Debian, with a storage of its own: images that these tests build are separate
from the user's, and are kept for the next run. No registry is needed: debootstrap makes the base image. Once the images
are built, all of it is in a network namespace: nobody else on this machine sees interfaces come and go.
"""
import ctypes
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
COMPOSE = ROOT / "deploy/compose"
CONTAINERFILE = ROOT / "deploy/containers/Containerfile"
sys.path.append(str(ROOT / "tests/support"))
import base  # noqa: E402
from base import Unavailable  # noqa: E402

CACHE = base.CACHE / "containers"
RUN = Path("/run/crowdveil-containers")
BASE = "docker.io/library/debian:bookworm-slim"
TARGETS = {"thirdparty": "crowdveil-thirdparty", "broker": "crowdveil-broker", "cobroker": "crowdveil-cobroker",
           "worker": "crowdveil-worker", "crowdveil": "crowdveil", "lab": "crowdveil-lab",
           "broker-postgresql": "crowdveil-broker-postgresql", "database": "crowdveil-database"}
FILES = ("rank", "recruit", "local-privacy", "two-brokers", "own-data")  # of one broker each
ALL = (*FILES, "ha")
USER = 10001

# Limits that a container can give to others even if it may not raise its own.
CONFIGURATION = """[containers]
default_ulimits = ["nofile=1024:4096", "nproc=1024:2048"]
log_driver = "k8s-file"
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
tmp_dir = "{run}/libpod"
[network]
network_backend = "netavark"
network_config_dir = "{cache}/networks"
"""
STORAGE = """[storage]
driver = "overlay"
graphroot = "{cache}/storage"
runroot = "{run}/storage"
"""


def environment():
    env = dict(os.environ, CONTAINERS_CONF=str(CACHE / "containers.conf"),
               CONTAINERS_STORAGE_CONF=str(CACHE / "storage.conf"))
    return {name: value for name, value in env.items() if not name.startswith("CROWDVEIL_")}


def run(*command, check=True, timeout=300, **kwargs):
    """Runs a command to its end; both streams are in stdout."""
    done = subprocess.run([str(part) for part in command], env=kwargs.pop("env", environment()), text=True,
                          errors="replace", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=kwargs.pop("stderr", subprocess.STDOUT), timeout=timeout, **kwargs)
    if check and done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, command))} ended with status {done.returncode}:\n{done.stdout}")
    return done


def podman(*args, **kwargs):
    return run("podman", *args, **kwargs)


def output(*args):
    """What podman prints, without its warnings."""
    return podman(*args, stderr=subprocess.DEVNULL).stdout.strip()


def inspect(container):
    return json.loads(output("inspect", container))[0]


def write_configuration():
    for folder in (CACHE, CACHE / "networks", RUN):
        folder.mkdir(parents=True, exist_ok=True)
    (CACHE / "containers.conf").write_text(CONFIGURATION.format(cache=CACHE, run=RUN))
    (CACHE / "storage.conf").write_text(STORAGE.format(cache=CACHE, run=RUN))


def make_base():
    """The base of the images; other suites use it, too."""
    podman("import", base.archive(), BASE)


def prepare():
    """Prepares everything but the images; raises Unavailable."""
    missing = [name for name in ("podman", "runc", "podman-compose", "debootstrap") if shutil.which(name) is None]
    if missing:
        raise Unavailable(f"{', '.join(missing)} cannot be found; deploy/bootstrap containers installs them")
    if os.geteuid() != 0:
        raise Unavailable("debootstrap and these networks need root")
    write_configuration()
    if podman("image", "exists", BASE, check=False).returncode != 0:
        make_base()
    tried = podman("run", "--rm", "--network", "none", BASE, "true", check=False)
    if tried.returncode != 0:
        raise Unavailable(f"podman cannot run a container here: {tried.stdout.strip().splitlines()[-1]}")


def build(target):
    podman("build", "--network", "host", "--target", target, "-t", TARGETS[target], "-f", CONTAINERFILE, ROOT,
           timeout=1200)


CLONE_NEWNET = 0x40000000


def leave_network():
    """From here on this process, and what it starts, has a network of its own, with nothing but the loopback device."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    run("ip", "link", "set", "lo", "up")


def unpacked(image):
    """The size in bytes of an image's files on disk."""
    return int(output("image", "inspect", "--format", "{{.Size}}", image))
