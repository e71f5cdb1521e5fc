# SPDX-License-Identifier: Apache-2.0
"""The laboratory's commands: numbers on standard output, figures in a folder, correct exit statuses."""
import math
import re
from xml.etree import ElementTree

import pytest

from harness.lab import lab, rows_of


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lab")
    return folder, rows_of(lab("run", "mechanisms", "--replicates", 400, "--json", "--out", folder / "figure",
                               cwd=folder))


def test_measured_noise_is_the_declared_noise(compared):
    rows = compared[1]
    assert all(set(row) == {"preset", "series", "x", "metric", "mean", "se", "n"} for row in rows)
    theory = {(row["series"].removesuffix(", theory"), row["x"]): row["mean"] for row in rows if row["n"] == 0}
    measured = [row for row in rows if row["n"] == 400]
    assert len(theory) == len(measured) >= 9 * 30 and {row["preset"] for row in rows} == {"mechanisms"}
    for row in measured:
        # 5 standard errors, and 3 % because a heavy tail makes the standard error of 400 runs inaccurate
        expected = theory[row["series"], row["x"]]
        assert abs(row["mean"] - expected) < 5 * row["se"] + .03 * expected, row


def test_some_of_the_declared_noise_is_known_by_hand(compared):
    theory = {(row["series"], row["x"]): row["mean"] for row in compared[1]}
    assert math.isclose(theory["hybrid, theory", 1], math.sqrt(8))
    assert math.isclose(theory["hybrid, theory", 1024] * 1024, math.sqrt(8 * 11))
    assert math.isclose(theory["segments, theory", 64] * 64, math.sqrt(2 * 64))
    assert math.isclose(theory["batch, theory", 64], math.sqrt(2))


def test_the_figure_is_drawn(compared):
    folder = compared[0] / "figure"
    assert (folder / "mechanisms.png").read_bytes().startswith(b"\x89PNG")
    assert "</svg>" in (folder / "mechanisms.svg").read_text()
    assert "hybrid" in (folder / "mechanisms.dat").read_text()
    for name in "mechanisms", "mechanisms-distribution":
        assert ElementTree.parse(folder / f"{name}.svg").getroot().tag == "{http://www.w3.org/2000/svg}svg"
        head = (folder / f"{name}.png").read_bytes()[:24]
        assert head[:4] == b"\x89PNG" and int.from_bytes(head[16:20], "big") == 1800


def test_the_result_is_the_same_for_any_number_of_jobs(tmp_path):
    one, four = (lab("run", "mechanisms", "--replicates", 20, "--json", "--jobs", jobs, cwd=tmp_path).stdout
                 for jobs in (1, 4))
    assert one == four and one.count("\n") > 100
    assert one != lab("run", "mechanisms", "--replicates", 20, "--json", "--seed", 2, cwd=tmp_path).stdout


def test_a_table_for_a_person(tmp_path):
    done = lab("run", "mechanisms", "--replicates", 400, cwd=tmp_path)
    assert done.returncode == 0 and done.stdout.splitlines()[0] == "noise"
    assert "hybrid, theory" in done.stdout.splitlines()[1]
    assert ("holds: at a power of two kary has more noise than hybrid\n"
            "    at releases of the arm = 1024 kary has ") in done.stdout


def test_a_long_table_is_cut_on_the_screen_only(tmp_path):
    cut = lab("run", "corrupt-fig1a", "--replicates", 2, cwd=tmp_path).stdout.splitlines()
    full = lab("run", "corrupt-fig1a", "--replicates", 2, "--all", cwd=tmp_path).stdout.splitlines()
    rows = [line for line in full if re.match(r" *\d+  ", line)]
    assert len(rows) == 100 and not any("left out" in line for line in full)
    assert [line for line in cut if re.match(r" *\d+  ", line)] == rows[9::10]
    assert "90 rows are left out, nine of ten; --all prints them" in cut
    json = rows_of(lab("run", "corrupt-fig1a", "--replicates", 2, "--json", cwd=tmp_path))
    assert len({row["x"] for row in json}) == 100 and {row["series"] for row in json} >= {"lower bound", "klucb-cf"}
    assert "lower bound (asymptotic)" in cut[1]
    # columns stay below their heads though a sign is two bytes
    assert "±" in rows[-1] and len(rows[-1]) == len(cut[1])


def test_a_name_with_a_slip_is_answered_with_the_nearest(tmp_path):
    done = lab("run", "mechansims", cwd=tmp_path)
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr == 'crowdveil-lab run: unknown experiment "mechansims"; did you mean "mechanisms"?\n'
    assert lab("list", cwd=tmp_path).stdout.startswith("mechanisms ")


@pytest.mark.parametrize("args, status", [
    (["audit", "--only", "nothing"], 2), (["audit", "--runs", "10"], 2), (["audit", "word"], 2), (["run"], 2),
    (["run", "mechanisms", "--replicates", "-1"], 2), (["nonsense"], 2), ([], 2), (["audit", "--help"], 0)])
def test_usage(tmp_path, args, status):
    done = lab(*args, cwd=tmp_path)
    assert done.returncode == status
    assert status == 0 or (done.stdout == "" and (not args or done.stderr.count("\n") == 1))


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path):
    done = lab("run", "mechanisms", "--replicates", 2, "--json", "--out", tmp_path / "no/such", cwd=tmp_path)
    assert done.returncode == 1 and done.stderr.count("\n") == 1 and "no/such" in done.stderr


def test_an_audit_says_what_it_certifies(tmp_path):
    rows = rows_of(lab("audit", "--only", "segments", "--runs", 20000, "--json", cwd=tmp_path))
    assert rows and all(row["part"] == "segments" and row["sound"] and not row["exceeds"] for row in rows)
    assert all(row["certified"] <= row["claimed"] for row in rows)
    assert max(row["certified"] for row in rows) > .6, "an audit with so little power would let anything pass"


def test_an_audit_catches_the_printed_hybrid_and_the_least_bits_of_doubles(tmp_path):
    printed = rows_of(lab("audit", "--only", "hybrid-printed", "--runs", 40000, "--json", cwd=tmp_path))
    assert any(row["exceeds"] and not row["sound"] for row in printed)
    (doubles,) = rows_of(lab("audit", "--only", "laplace in doubles", "--runs", 20000, "--json", cwd=tmp_path))
    (grid,) = rows_of(lab("audit", "--only", "laplace on the grid", "--runs", 20000, "--json", cwd=tmp_path))
    assert doubles["exceeds"] and not grid["exceeds"]
