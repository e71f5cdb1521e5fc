# SPDX-License-Identifier: Apache-2.0
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "e2e")]

import engine  # noqa: E402
from project import Project  # noqa: E402


@pytest.fixture(scope="session", autouse=True)
def images():
    """All images, built from this tree."""
    try:
        engine.prepare()
    except engine.Unavailable as why:
        pytest.skip(str(why))
    for target in engine.TARGETS:
        engine.build(target)
    engine.leave_network()
    yield
    engine.podman("image", "prune", "--force", "--filter", "until=24h", check=False)  # newer files are a cache


@pytest.fixture
def project(tmp_path):
    """project(NAME, OVERRIDES): a compose file's containers, which are removed afterwards."""
    made = []

    def start(name, **overrides):
        made.append(Project(name, tmp_path, overrides))
        return made[-1]
    yield start
    for each in made:
        each.down()


@pytest.fixture
def say(request, record_property):
    """Adds a line to the report."""
    def line(text):
        print(text)
        record_property("say", text)
    return line
