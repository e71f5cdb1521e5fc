# SPDX-License-Identifier: Apache-2.0
import os
import sys
import tempfile
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from harness import told  # noqa: E402
from harness.campaign import CLASSES, Run, outcome  # noqa: E402
from harness.daemon import ROOT  # noqa: E402
from harness.examples import played  # noqa: E402
from harness.deployment import Deployment, missing_programs  # noqa: E402
from harness.pki import Pki  # noqa: E402
from support import postgres  # noqa: E402


def pytest_configure(config):
    config.addinivalue_line("markers", "long: takes minutes; only tests/run long runs it")
    config.addinivalue_line("markers", "before: with programs of an earlier version; only tests/run before runs it")
    config.addinivalue_line("markers", "alone: measures times; no other test runs beside it")
    config.addinivalue_line("markers", "quick: also run by tests/run quick")
    if not hasattr(config, "workerinput"):
        told.read()


# The files that take longest, from the longest on; they come first, else a process has one of them to do alone in the
# end.
LONGEST = [f"test_{name}.py" for name in (
    "two_recovery", "crowd", "plan", "two", "lab_store", "seal", "launcher", "exec", "terminal", "takeover_bad_input",
    "takeover_drill", "takeover_campaign", "teaching", "takeover_secrets", "notify", "takeover_faults", "lab_presets",
    "takeover_recovery")]


def pytest_collection_modifyitems(items):
    rank = {name: at for at, name in enumerate(LONGEST)}
    items.sort(key=lambda item: rank.get(item.path.name, len(rank)))


DATA = Path(os.environ.get("CROWDVEIL_DATA", ROOT / "../shared/data")).resolve()


@pytest.fixture(scope="session")
def pki(tmp_path_factory):
    return Pki(tmp_path_factory.mktemp("pki") / "ca")


@pytest.fixture
def deployments(tmp_path, pki, request):
    """Deployments that are not started yet, one after another. A failed test prints the last lines of each program's
    log."""
    absent = missing_programs("broker", "thirdparty")
    if absent:
        pytest.fail(f"not built: {', '.join(absent)}")
    made = []

    def more():
        folder = tmp_path
        while True:
            made.append(Deployment(folder, pki))
            yield made[-1]
            folder = tmp_path / f"again{len(made)}"
            folder.mkdir()
    yield more()
    for deployment in made:
        deployment.close()
    if getattr(request.node, "failed_call", False):
        for name, text in (log for deployment in made for log in deployment.logs().items()):
            print(f"--- {name}\n" + "\n".join(text.split("\n")[-25:]))


@pytest.fixture
def deployment(deployments):
    return next(deployments)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    if report.when == "call" and report.failed:
        item.failed_call = True


@pytest.fixture(scope="session")
def example():
    """harness.examples.played by the name of an example; each runs once, in memory if there is space: a campaign of
    hundreds of plans syncs hundreds of times."""
    results = {}
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as folder:
        def once(name):
            if name not in results:
                (Path(folder) / name).mkdir(exist_ok=True)
                results[name] = played(name, Path(folder) / name)
            return results[name]
        yield once


@pytest.fixture
def data():
    """The folder of real data sets, by the name of a file in it."""
    def find(name):
        path = DATA / name
        if not path.exists():
            pytest.skip(f"no {path}; CROWDVEIL_DATA names the folder of data sets")
        return path
    return find


@pytest.fixture(scope="module")
def server():
    """A PostgreSQL server, for tests that ask for `store`."""
    if not postgres.is_installed():
        pytest.skip("postgresql-15 is not installed")
    made = postgres.Server(in_memory=True).start()
    try:
        yield made
    finally:
        made.close()


@pytest.fixture
def store(server):
    """The server, with a new database."""
    name = server.add_store()
    yield server
    server.sql(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def worker_program():
    if missing_programs("worker"):
        pytest.fail("not built: worker")


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory, pki):
    """The outcome of harness.campaign without any fault."""
    if missing_programs("broker", "thirdparty", "worker"):
        pytest.fail("not built")
    deployment = Deployment(tmp_path_factory.mktemp("undisturbed"), pki)
    try:
        run = Run(deployment)
        run.start_workers(arrival_rate=0)
        result = outcome(*run.finish())
        run.check(result)
    finally:
        deployment.close()
    assert [row[1] for row in result[0]] == CLASSES
    assert max(plan for plan, *_ in result[1]) > 1, "one round only"
    return result


def pytest_sessionfinish(session):
    if hasattr(session.config, "workerinput"):  # a process of pytest-xdist
        session.config.workeroutput["told"] = told.counts()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    told.add(getattr(node, "workeroutput", {}).get("told", {}))


def pytest_terminal_summary(terminalreporter):
    for line in told.lines():
        terminalreporter.write_line(line)
    told.write()
