# SPDX-License-Identifier: Apache-2.0
"""A broker or a co-broker of a campaign with two brokers comes back from an older copy: recovered with what the other
one says of it."""
import re
import shutil
import subprocess

import pytest

from client.requester import end_name, spec
from harness.campaign import CLASSES, FINISHER, MEANS, Run
from harness.commands import crowdveil
from harness.daemon import PROGRAMS

FILES = {"broker": ("broker-state", "broker.db", "anchor"), "cobroker": ("cobroker-state", "cobroker.db",
                                                                         "cobroker-anchor")}


class Stage:
    """A running campaign with two brokers, of which the test loses one."""

    def __init__(self, deployment, victim):
        self.deployment, self.victim = deployment, victim
        deployment.clock.rate = 5
        self.other = "cobroker" if victim == "broker" else "broker"
        # with true noise: seeded noise is a problem that --examine reports
        own = {"unsafe_noise_seeded": False, "limits": {"worker_epsilon": 2}}
        self.run = Run(deployment, broker=own, cobroker=own, tokens_per_worker=1)
        self.run.start_workers(arrival_rate=2000, exit_when_done=False)
        folder, database, anchor = FILES[victim]
        self.database, self.anchor = deployment.folder / folder / database, deployment.folder / anchor

    def config(self, program):
        return self.deployment.folder / f"{program}.yaml"

    def copy(self, to):
        shutil.copy(self.anchor, f"{to}.anchor")  # first: a database may be ahead of its anchor
        done = crowdveil("backup", self.config(self.victim), "--to", to)
        assert done.returncode == 0, done.stderr

    def put_back(self, copy, anchor=False):
        for path in self.database.parent.glob("*.db*"):
            path.unlink()
        shutil.copy(copy, self.database)
        if anchor:
            shutil.copy(f"{copy}.anchor", self.anchor)

    def stop(self, *programs):
        for program in programs:
            assert getattr(self.deployment, program).stop() == 0, program

    def examine(self, program):
        return subprocess.run([PROGRAMS[program], "--config", self.config(program), "--examine"], capture_output=True,
                              text=True, timeout=60)

    def recover(self, *options):
        return crowdveil("recover", self.config(self.victim), *options)

    def recover_with(self, other=None):
        return self.recover(f"--{self.other}", other or self.config(self.other))

    def start_both(self):
        for program in ("cobroker", "broker"):
            self.run.start(program).address

    def shares(self, program):
        """{campaign: fields} of what the program says of the other one."""
        lines = [line.split("\t") for line in self.examine(program).stdout.splitlines()]
        return {int(line[2]): line[3:] for line in lines if line[:2] == ["fact", "share"]}

    def end(self, campaign):
        with self.deployment.requester() as requester:
            return end_name(requester.watch(campaign).progress.end)

    def another(self):
        """A campaign that begins after the recovery, and ends."""
        with self.deployment.requester() as requester:
            number = requester.submit(spec(len(MEANS), two=True, epsilon=.5, tokens=200_000, policy_params={
                "alpha": .2, "delta": .1, "tokens_per_round": 2000})).campaign
            self.run.start_worker(FINISHER, arrival_rate=0)
            finished = requester.watch(number)
        assert end_name(finished.progress.end) == "complete"
        assert [row.rank_class for row in sorted(finished.standings, key=lambda row: row.arm)] == CLASSES
        return number


@pytest.fixture(params=["broker", "cobroker"])
def stage(request, deployment):
    return Stage(deployment, request.param)


def lose_some(stage, tmp_path):
    """A copy, more plans that it does not have, and the end of the one that was copied."""
    stage.run.when(4000)
    stage.copy(tmp_path / "old.db")
    stage.run.when(16_000)
    stage.run.kill(stage.victim)


def test_an_older_copy_is_recovered(stage, tmp_path):
    lose_some(stage, tmp_path)
    stage.put_back(tmp_path / "old.db")
    refused = stage.run.start(stage.victim)
    assert refused.wait() == 1 and "not to be older than its anchor" in refused.text()
    stage.stop(stage.other)
    done = stage.recover_with()
    assert done.returncode == 0, done.stdout + done.stderr
    # a worker gives one token at 0.5; those whose token the copy counts are charged no second one
    assert "every worker is charged epsilon 0.5 of its" in done.stdout and "1 open campaigns have ended" in done.stdout
    assert "nothing to recover" in stage.recover_with().stdout, "a repetition charges nothing more"
    assert stage.examine(stage.victim).returncode == 0, stage.examine(stage.victim).stdout
    stage.start_both()
    assert stage.end(stage.run.campaign) in ("recovered", "frozen")
    stage.another()
    stage.stop("broker", "cobroker")
    for program in ("broker", "cobroker"):  # both ledgers cover all that left
        examined = stage.examine(program)
        assert examined.returncode == 0 and "ok\tledger: covers all" in examined.stdout, examined.stdout
    assert "1 recoveries have charged epsilon 0.5" in stage.examine(stage.victim).stdout
    # the copy from before is behind again
    stage.put_back(tmp_path / "old.db")
    assert stage.run.start(stage.victim).wait() == 1


def test_an_older_anchor_is_found_out_by_the_other_broker(stage, tmp_path):
    """Copy and anchor agree, both are old: the victim starts, the campaign is frozen, and only the other one's facts
    tell what to charge."""
    lose_some(stage, tmp_path)
    stage.put_back(tmp_path / "old.db", anchor=True)
    stage.run.start(stage.victim).address
    assert stage.end(stage.run.campaign) == "frozen"
    stage.stop("broker", "cobroker")
    assert "nothing to recover" in stage.recover().stdout, "the anchor knows of nothing"
    done = stage.recover_with()
    assert done.returncode == 0 and "every worker is charged epsilon 0.5 of its" in done.stdout, done.stdout
    assert "nothing to recover" in stage.recover_with().stdout
    stage.start_both()
    stage.another()


def test_campaigns_that_the_copy_does_not_know_are_charged(stage, tmp_path):
    """The copy and its anchor are of before the campaign: its number is not used again, and it is charged in full."""
    with stage.deployment.requester() as requester:
        requester.cancel(stage.run.campaign)
        requester.watch(stage.run.campaign)
        stage.copy(tmp_path / "old.db")
        stage.run.campaign = requester.submit(spec(len(MEANS), two=True, epsilon=.5, tokens=200_000, policy_params={
            "alpha": .2, "delta": .1, "tokens_per_round": 2000})).campaign
    stage.run.when(4000)
    stage.run.kill(stage.victim)
    stage.put_back(tmp_path / "old.db", anchor=True)
    stage.stop(stage.other)
    done = stage.recover_with()
    assert done.returncode == 0 and "1 are forgotten" in done.stdout, done.stdout + done.stderr
    assert "every worker is charged epsilon 0.5 of its" in done.stdout
    stage.start_both()
    assert stage.another() == 3


def test_a_database_that_lost_nothing_is_left_alone(stage):
    """Whatever was on its way when the two stopped."""
    stage.run.when(6000)
    for program in ("broker", "cobroker"):
        stage.run.kill(program)
    before = stage.database.read_bytes()
    done = stage.recover_with()
    assert done.returncode == 0 and "nothing to recover" in done.stdout, done.stdout + done.stderr
    shares = stage.shares(stage.other)
    assert list(shares) == [1] and int(shares[1][5]) > 0, "it does say something"
    assert stage.examine(stage.victim).returncode == 0 and len(before) <= len(stage.database.read_bytes())
    stage.start_both()
    assert stage.run.finish()[0].progress.tokens > 6000


def records(share, whole=True):
    return f"fact\tother\t{{key}}\nfact\tshare\t{share}\n" + ("fact\tread\n" if whole else "")


WRONG = {
    "none": (None, r"missing\.txt: No such file"),
    "empty": ("", "not about this party"),
    "of another": ("fact\tother\t" + "ab" * 32 + "\nfact\tread\n", "not about this party"),
    "no numbers": (records("1\topen\tx\t1\t1\t1\t1\t1"), ":2: expected the number"),
    "too few": (records("1\topen\t1"), ":2: expected the number"),
    "campaign 0": (records("0\topen\t1\t1\t1\t1\t1\t1"), ":2: expected the number"),
    "no end": (records("1\topen\t1\t1\t1\t1\t1\t1", whole=False), "incomplete"),
}


def test_wrong_records_are_told_in_one_line(stage, tmp_path):
    """And nothing is half done: the database stays as it was."""
    stage.run.when(1000)
    stage.copy(tmp_path / "old.db")
    stage.run.when(3000)
    stage.run.kill(stage.victim)
    stage.put_back(tmp_path / "old.db")
    running = stage.recover_with()
    assert running.returncode == 1 and "incomplete" in running.stderr and running.stderr.count("\n") == 1, \
        running.stderr
    stage.stop(stage.other)
    key = stage.deployment.key_of({"broker": "broker/main", "cobroker": "cobroker/second"}[stage.victim])
    before = (tmp_path / "old.db").read_bytes()
    for name, (text, says) in WRONG.items():
        path = tmp_path / "missing.txt"
        if text is not None:
            path = tmp_path / "records.txt"
            path.write_text(text.replace("{key}", key))
        option = f"--recover-{stage.other}"
        done = subprocess.run([PROGRAMS[stage.victim], "--config", stage.config(stage.victim), "--recover", option,
                               path], capture_output=True, text=True, timeout=60)
        findings = [line for line in done.stdout.splitlines() if line.startswith("wrong\t")]
        assert done.returncode == 1 and len(findings) == 1 and re.search(says, findings[0]), (name, done.stdout)
        assert stage.database.read_bytes() == before, name
    # the right ones, as a file from another machine
    examined = stage.examine(stage.other)
    (tmp_path / "records.txt").write_text(examined.stdout)
    done = stage.recover_with(tmp_path / "records.txt")
    assert done.returncode == 0 and "every worker is charged" in done.stdout, done.stdout + done.stderr


def test_an_option_of_the_other_party_is_refused(stage):
    stage.stop("broker", "cobroker")
    done = stage.recover(f"--{stage.victim}", stage.config(stage.victim))
    assert done.returncode != 0 and done.stderr.count("\n") == 1, done.stderr
