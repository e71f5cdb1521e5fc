# SPDX-License-Identifier: Apache-2.0
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BUILD = Path(os.environ.get("CROWDVEIL_BUILD", ROOT / "build")).resolve()
sys.path[:0] = [str(HERE), str(HERE.parent)]


@pytest.fixture(scope="session")
def installed(tmp_path_factory):
    """What `meson install` installs below its prefix, which is /usr/local."""
    folder = tmp_path_factory.mktemp("installed")
    done = subprocess.run(["meson", "install", "-C", BUILD, "--no-rebuild", "--destdir", folder],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout
    return folder / "usr/local"


BUILT = os.environ.get("CROWDVEIL_DEBS")  # a folder with packages that are built already, to work on these tests
# dh has a home of its own, which has no cache
CACHED = {"CROWDVEIL_CCACHE": "1", "CCACHE_NOHASHDIR": "1",
          "CCACHE_DIR": os.environ.get("CCACHE_DIR", str(Path.home() / ".cache/ccache"))}
VARIANTS = {"first": CACHED, "second": {"LC_ALL": "C.UTF-8", "TZ": "Asia/Tokyo", "HOME": "/nonexistent"}}


@pytest.fixture(scope="session", autouse=True)
def builds(request, tmp_path_factory):
    """Starts two builds of the packages, in the background, if a test needs them: {variant: (folder, process)}. They
    differ in their folders, the umask, the time zone and the locale."""
    if BUILT or not any("debs" in item.fixturenames for item in request.session.items):
        yield {}
        return
    started = {}
    for variant, env in VARIANTS.items():
        folder = tmp_path_factory.mktemp(variant + "-longer" * len(started))
        log = open(folder / "log", "w")
        process = subprocess.Popen([ROOT / "deploy/debian/build", folder / "out"], stdin=subprocess.DEVNULL, stdout=log,
                                   stderr=log, umask=0o022 if env is CACHED else 0o077,
                                   env=dict(os.environ, TMPDIR=str(folder), **env))
        started[variant] = (folder, process)
    yield started
    for _, process in started.values():
        process.kill()
        process.wait()


@pytest.fixture(scope="session")
def debs(builds):
    """{variant: folder of .deb files}, after both builds."""
    if BUILT:
        return {"first": Path(BUILT)}
    folders = {}
    for variant, (folder, process) in builds.items():
        assert process.wait(1800) == 0, (folder / "log").read_text()
        folders[variant] = folder / "out"
    return folders


@pytest.fixture
def say(record_property):
    """Adds a line to the report."""
    def line(text):
        print(text)
        record_property("say", text)
    return line
