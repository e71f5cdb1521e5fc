# SPDX-License-Identifier: Apache-2.0
"""The drill of docs/failover.md, followed literally: set-up, hand-over, switch of the primary, upgrade, restores."""
import shutil
import tempfile
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from harness.drill import Shell, stated
from harness.shared import postgres

PORTS = ("15432", "15433", "17411", "17412", "17413")


@pytest.mark.skipif(not postgres.is_installed(), reason="postgresql-15 is not installed")
def test_the_drill_loses_nothing_that_was_acknowledged():
    with ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="cv-drill-"))  # of a user who cannot read pytest's
        stack.callback(shutil.rmtree, folder)
        postgres.Server.own(folder)
        shell = stack.enter_context(closing(Shell(folder, postgres.as_user([]), postgres.HOMELESS, 300)))
        shell.follow("docs/failover.md", PORTS)
        before, _ = stated(shell.folder, "before")
        after, floor = stated(shell.folder, "after")
        assert len(after) == 2 and floor > 0
        assert all(after[arm]["spent_micro"] >= account["spent_micro"] > 0 for arm, account in before.items())
