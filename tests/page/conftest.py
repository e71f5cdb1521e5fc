# SPDX-License-Identifier: Apache-2.0
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from browser import Browser  # noqa: E402
from server import Site  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
OWN = ("http://127.0.0.1:", "data:", "about:")
BUILD = Path(os.environ.get("CROWDVEIL_BUILD", ROOT / "build"))


def pytest_configure(config):
    config.addinivalue_line("markers", "alone: measures times; no other test runs beside it")


@pytest.fixture(scope="session")
def window():
    made = Browser()
    yield made
    made.close()


@pytest.fixture
def browser(window):
    """A wide light page without motion, whose console stays silent and whose requests stay at its own server."""
    window.look()
    window.driver.get("about:blank")
    window.said(), window.asked()
    window.silent = True
    yield window
    if window.silent:
        assert window.said() == []
    assert [address for address in window.asked() if not address.startswith(OWN)] == []


@pytest.fixture
def sites():
    """Starts servers, and stops them in the end."""
    made = []

    def start(*campaigns, **options):
        made.append(Site(campaigns, **options))
        return made[-1]
    yield start
    for site in made:
        site.stop()


@pytest.fixture(scope="session")
def shots():
    folder = BUILD / "page"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def npm(tmp_path_factory):
    """Installs what a lock file names into a new folder, without running any script of it."""
    def install(lock):
        folder = tmp_path_factory.mktemp("npm")
        for name in ("package.json", "package-lock.json"):
            shutil.copy(lock / name, folder)
        if shutil.which("npm") is None:
            pytest.skip("no npm")
        done = subprocess.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=folder, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode and any(word in done.stdout for word in ("ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED")):
            pytest.skip("the registry of npm cannot be reached")
        assert done.returncode == 0, done.stdout
        return folder / "node_modules"
    return install


@pytest.fixture(scope="session")
def axe(npm):
    """Finds faults in the open page that keep people from using it."""
    source = (npm(Path(__file__).resolve().parent) / "axe-core/axe.min.js").read_text()

    def check(browser):
        browser.run(source)
        found = browser.driver.execute_async_script("const done = arguments[0]; axe.run().then(done)")
        return [f"{fault['id']}: {fault['help']}: {[node['html'][:120] for node in fault['nodes'][:4]]}"
                for fault in found["violations"]]
    return check
