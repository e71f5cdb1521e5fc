# SPDX-License-Identifier: Apache-2.0
"""Results of the laboratory and of campaigns as arrays."""
import json
import sqlite3
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from crowdveil import (Damaged, End, Error, Export, NoiseGroup, Plan, Progress, Release, Spec, Want, bandit_feedback,
                       columns, curve, read_export, read_lab, save_bandit_feedback)
from crowdveil.results import LAB_ID
from crowdveil.wire import GRID

TRIALS = "series,x,metric,replicate,value\na,1,regret,0,2\na,1,regret,1,4\na,.5,regret,0,1\nb,,regret,0,7\n"


def test_a_table_of_trials_becomes_arrays_and_a_curve(tmp_path):
    (tmp_path / "trials.csv").write_text(TRIALS)
    table = read_lab(tmp_path / "trials.csv")
    assert table["value"].tolist() == [2, 4, 1, 7] and np.isnan(table["x"][3]) and table["replicate"].dtype == np.int64
    x, mean, se = curve(table, "a", "regret")
    assert x.tolist() == [.5, 1] and mean.tolist() == [1, 3] and se[1] == 1 and np.isnan(se[0])
    with pytest.raises(Error, match="no metric x of series a; expected one of regret of a, regret of b"):
        curve(table, "a", "x")


def test_a_summary_is_read_as_it_is(tmp_path):
    (tmp_path / "summary.csv").write_text("preset,series,x,metric,mean,se,n\np,a,2,regret,3,.5,9\np,a,1,regret,2,,1\n")
    x, mean, se = curve(read_lab(tmp_path / "summary.csv"), "a", "regret")
    assert x.tolist() == [1, 2] and mean.tolist() == [2, 3] and np.isnan(se[0])


@pytest.mark.parametrize("text", ["", "a,b\n1,2\n", TRIALS + "a,1,regret,0\n", TRIALS + "a,1,regret,0,many\n", "\0\n"])
def test_another_file_is_refused(tmp_path, text):
    (tmp_path / "x.csv").write_text(text)
    with pytest.raises(Damaged, match="x.csv"):
        read_lab(tmp_path / "x.csv")


def test_a_file_that_is_not_there_is_said_in_one_line():
    for read in (read_lab, read_export):
        with pytest.raises(Error, match="/nonexistent: No such file or directory; expected a file of results"):
            read("/nonexistent")


def test_another_programs_database_is_refused(tmp_path):
    for number, application in ((1, 7), (2, LAB_ID)):
        path = tmp_path / f"{number}.db"
        with sqlite3.connect(path) as db:
            db.execute(f"PRAGMA application_id = {application}")
            db.execute("CREATE TABLE other (x)")
        with pytest.raises(Damaged, match=path.name):
            read_lab(path)


def release(number, plan, arm, tokens, score):
    return Release(number, plan, arm, tokens, round(score * tokens * GRID), (NoiseGroup(2, 1),))


def an_export(mechanism="hybrid", **changes):
    spec = Spec("test", 2, "exp3", mechanism=mechanism, epsilon=2.0, names=("a", "b"), **changes)
    progress = Progress(3, "test", 40, 100, 3, 2, 5, 2, 0, 0, 0, 0, End.TOKENS, False)
    return Export(3, spec, bytes([7, 0, 0, 0, 0, 0, 0, 128]), progress,
                  (Plan(1, (Want(0, 10), Want(1, 30))), Plan(2, (Want(0, 20),))),
                  (release(1, 1, 0, 10, .5), release(2, 1, 1, 30, .2), release(3, 2, 0, 30, .6)), ())


def test_feedback_has_a_row_for_each_arm_of_each_plan():
    feedback = bandit_feedback(an_export())
    assert feedback["n_rounds"] == 3 and feedback["n_actions"] == 2 and feedback["position"] is None
    assert feedback["action"].tolist() == [0, 1, 0] and feedback["plan"].tolist() == [1, 1, 2]
    assert feedback["n_tokens"].tolist() == [10, 30, 20]
    assert feedback["pscore"].tolist() == [.25, .75, 1]
    # .6 of 30 tokens without .5 of the first 10
    assert feedback["reward"] == pytest.approx([.5, .2, .65], abs=1e-6)
    # Lap(2/epsilon) has the standard deviation sqrt(2) here; the third row has the noise of two releases
    assert feedback["reward_sd"] == pytest.approx([2 ** .5 / 10, 2 ** .5 / 30, 2 * 2 ** .5 / 20])
    assert feedback["context"].shape == (3, 1) and (feedback["action_context"] == np.eye(2)).all()


def test_feedback_of_single_plans_and_behind_a_privatizer():
    alone = bandit_feedback(an_export("batch"))
    assert alone["n_tokens"].tolist() == [10, 30, 30] and alone["reward"] == pytest.approx([.5, .2, .6], abs=1e-6)
    flipped = bandit_feedback(an_export(privatizer=("randomized-response", {"p00": .75, "p11": .75})))
    assert flipped["reward"] == pytest.approx([.5, (.2 - .25) / .5, (.65 - .25) / .5], abs=1e-5)


def test_what_has_no_average_of_a_plan_is_refused():
    with pytest.raises(Error, match="repeats releases"):
        bandit_feedback(an_export("doubling"))
    with pytest.raises(Error, match="feedback graph"):
        bandit_feedback(an_export(edges=((0, 1),)))


def test_feedback_is_saved_for_numpy(tmp_path):
    save_bandit_feedback(an_export(), tmp_path / "feedback.npz")
    with np.load(tmp_path / "feedback.npz") as file:
        assert set(file) >= {"action", "reward", "pscore", "n_rounds", "n_actions"} and file["reward"].shape == (3,)
    empty = bandit_feedback(replace(an_export(), releases=()))
    assert empty["n_rounds"] == 0 and empty["reward"].shape == (0,)


def test_rows_become_columns():
    table = columns(an_export().releases)
    assert table["tokens"].tolist() == [10, 30, 30] and "noise" not in table and columns(()) == {}


def test_an_exports_file_is_read_back_and_another_is_refused(tmp_path):
    path, export = tmp_path / "export.json", an_export()
    path.write_text(json.dumps({"format": "crowdveil-export/1"}))
    with pytest.raises(Damaged, match="format crowdveil-export/1; expected JSON of crowdveil export"):
        read_export(path)
    path.write_text("[")
    with pytest.raises(Damaged, match="export.json"):
        read_export(path)
    assert export.seed == int("9223372036854775815").to_bytes(8, "little")


def test_the_package_is_imported_without_numpy(tmp_path):
    (tmp_path / "trials.csv").write_text(TRIALS)
    code = ("import sys; sys.modules['numpy'] = None; import crowdveil\n"
            "try: crowdveil.read_lab(sys.argv[1])\n"
            "except crowdveil.Error as error: print(error)")
    done = subprocess.run([sys.executable, "-c", code, tmp_path / "trials.csv"], text=True, capture_output=True,
                          env={"PYTHONPATH": ":".join(sys.path)}, check=False)
    assert done.stdout.startswith("numpy is not installed"), done.stdout + done.stderr
