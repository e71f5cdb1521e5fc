# SPDX-License-Identifier: Apache-2.0
"""The restore drill of docs/backup.md, followed literally."""
from contextlib import closing

from harness.drill import Shell, stated


def test_the_drill_restores_a_lost_broker(tmp_path):
    with closing(Shell(tmp_path)) as shell:
        shell.follow("docs/backup.md", ("17401", "17402"))
    copied, _ = stated(shell.folder, "at-backup.json")
    before, _ = stated(shell.folder, "before.json")
    after, floor = stated(shell.folder, "after.json")
    assert len(after) == 2 and sum(account["releases"] for account in before.values()) > \
        sum(account["releases"] for account in copied.values()), "nothing was lost: the drill showed nothing"
    for arm, account in before.items():
        assert after[arm]["spent_micro"] >= account["spent_micro"] > 0
        assert after[arm]["lost_micro"] > 0 and after[arm]["left_micro"] == 0
    assert floor == 1_000_000, "what one token of the campaign costs a worker"
