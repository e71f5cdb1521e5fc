# SPDX-License-Identifier: Apache-2.0
"""Drivers from a file of taxi trips, hired under a budget by daemons of their own."""
import csv
import json
import os
import random
import subprocess
from collections import defaultdict

import pytest

from harness import machine
from harness.commands import crowdveil
from harness.daemon import PROGRAMS, ROOT
from harness.machine import needs

REAL = "taxi/chicago_taxi_2022-03-01_2022-04-01.csv"


def invented(folder):
    """Rows with the City's columns and its gaps: no area, no miles, meters that did not run, no id."""
    dice = random.Random(8)
    path = folder / "trips.csv"
    with path.open("w") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["taxi_id", "trip_start_timestamp", "trip_miles", "pickup_community_area", "fare"])
        for _ in range(1500):
            cab = int(dice.triangular(1, 40, 1))
            miles = round(dice.uniform(.5, 1.5) * (1 + cab % 5), 2)
            rows.writerow([f"cab{cab}" if dice.random() > .01 else "", "2022-03-01T00:00:00",
                           dice.choice([0, ""]) if dice.random() < .1 else miles, dice.choice([8, 8, 8, 32, ""]), 9])
    return path


def drivers(path, area):
    """Usable trips of the area by taxi: [(taxi, how many, mean miles)], the busiest first; computed from the file
    alone."""
    miles = defaultdict(list)
    with path.open() as file:
        for row in csv.DictReader(file):
            if row["taxi_id"] and row["pickup_community_area"] == str(area) and float(row["trip_miles"] or 0) > 0:
                miles[row["taxi_id"]].append(float(row["trip_miles"]))
    return [(taxi, len(trips), sum(trips) / len(trips))
            for taxi, trips in sorted(miles.items(), key=lambda item: (-len(item[1]), item[0]))]


def campaign_file(folder, trips, budget, policy="{name: dpf, epsilon: 0.1}", mechanism="batch", source=""):
    path = folder / "taxi.yaml"
    path.write_text(f"campaign: taxis\nworkers: {{source: taxi, path: {trips}, area: 8{source}}}\nbudget: {budget}\n"
                    f"policy: {policy}\nprivacy: {{mechanism: {mechanism}, epsilon: 1}}\n")
    return path


@pytest.fixture(params=["real", "invented"])
def trips(request, tmp_path, data):
    return data(REAL) if request.param == "real" else invented(tmp_path)


def hired(folder, path, *options):
    done = crowdveil("up", path, "--json", "--seed", "3", *options, cwd=folder)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr


def test_the_busiest_drivers_of_an_area_are_hired_by_the_miles(tmp_path, trips):
    path = campaign_file(tmp_path, trips, 600, source=", top: 25, cost_per_mile: 0.5")
    result, told = hired(tmp_path, path, "--state", tmp_path / "state")
    expected = drivers(trips, 8)[:25]
    assert {arm["name"]: arm["cost"] for arm in result["arms"]} == \
        {taxi: pytest.approx(.5 * miles, abs=1e-6) for taxi, _, miles in expected}
    assert "25 workers, policy dpf" in told
    assert all(0 < arm["truth"] < 1 for arm in result["arms"])
    assert result["spent"] == pytest.approx(sum(arm["pulls"] * arm["cost"] for arm in result["arms"]), abs=1e-6)
    requests = sum(count for _, count, _ in expected)
    cheapest = min(arm["cost"] for arm in result["arms"])
    assert result["budget"] - result["spent"] < cheapest or result["tokens"] == requests, "neither money nor work left"
    assert result["tokens"] == sum(arm["pulls"] for arm in result["arms"]) <= requests
    replayed = crowdveil("replay", tmp_path / "state/thirdparty/thirdparty.db", cwd=tmp_path)
    assert replayed.returncode == 0, replayed.stdout + replayed.stderr


def best_for_the_money(result):
    """The reference of the regret: the best quality for the money as often as it fits, then the next that fits. Where
    the requests run out before the money does, the best quality at any price can earn more."""
    left, tokens, reward = round(result["budget"] * 1e6), result["tokens"], 0.
    for arm in sorted(result["arms"], key=lambda arm: -arm["truth"] / arm["cost"]):
        times = min(left // round(arm["cost"] * 1e6), tokens)
        left, tokens, reward = left - times * round(arm["cost"] * 1e6), tokens - times, reward + times * arm["truth"]
    return reward


@pytest.mark.parametrize("policy, mechanism", [
    ("{name: dpf, epsilon: 0.02}", "batch"),
    ("{name: dpu, pulls: 50}", "hybrid"),
])
def test_no_driver_is_hired_for_more_than_its_trips(tmp_path, policy, mechanism):
    """Money for more hires than there are: the campaign is complete when all requests are handled."""
    trips = invented(tmp_path)
    path = campaign_file(tmp_path, trips, 5000, policy, mechanism, source=", least_trips: 12")
    result, told = hired(tmp_path, path)
    expected = [driver for driver in drivers(trips, 8) if driver[1] >= 12]
    assert len(result["arms"]) == len(expected) < len(drivers(trips, 8))
    assert result["tokens"] == sum(count for _, count, _ in expected)
    assert result["tokens"] * max(arm["cost"] for arm in result["arms"]) < result["budget"], "money for more"
    assert result["spent"] == pytest.approx(sum(arm["pulls"] * arm["cost"] for arm in result["arms"]), abs=1e-6)
    assert "ended       complete" in told
    assert result["regret"] == pytest.approx(best_for_the_money(result) - result["reward"], abs=1e-3)


def test_the_example_with_trips_of_its_own(tmp_path):
    result, _ = hired(tmp_path, ROOT / "deploy/campaigns/taxi.yaml")
    assert len(result["arms"]) == 12 and 0 < result["spent"] <= result["budget"]


HEAD = "taxi_id,trip_miles,pickup_community_area\n"
BAD = {
    "a missing column": ("taxi_id,fare,pickup_community_area\na,1,8\n",
                         'trips.csv:1: no column "trip_miles"; the columns are taxi_id, fare, pickup_community_area'),
    "no trips of the area": (HEAD + "a,1,7\n", "trips.csv: no usable trip from area 8; expected rows with a taxi_id"),
    "meters that stood still": (HEAD + "a,0,8\n",
                                 "trips.csv: no usable trip from area 8; expected rows with a taxi_id"),
    "a cost of 0": (HEAD + "a,0.0000001,8\n", "trips.csv: taxi a costs 0: a mean trip of 1e-07 miles"),
    "a text for miles": (HEAD + "a,1,8\na,near,8\n", 'trips.csv:3: trip_miles is "near"; expected a number from 0'),
    "a text for an area": (HEAD + "a,1,Loop\n", 'trips.csv:2: pickup_community_area is "Loop"; expected a number'),
    "a short row": (HEAD + "a,1\n", "trips.csv:2: 2 fields; expected 3 as in the header"),
    "an empty file": ("", "trips.csv:1: the file is empty; expected a header line with columns taxi_id, trip_miles"),
    "no file": (None, "trips.csv: cannot be opened: No such file or directory"),
}


def assert_one_line(done, line):
    assert done.returncode == 2 and done.stdout == ""
    assert line in done.stderr and done.stderr.count("\n") == 1, done.stderr


@pytest.mark.parametrize("case", BAD)
def test_bad_trips_are_one_line(tmp_path, case):
    text, line = BAD[case]
    if text is not None:
        (tmp_path / "trips.csv").write_text(text)
    path = campaign_file(tmp_path, "trips.csv", 100)
    assert_one_line(crowdveil("up", path, "--state", tmp_path / "state", cwd=tmp_path), line)
    assert not (tmp_path / "state").exists()


@needs(machine.bounded_capabilities)
def test_trips_that_may_not_be_read_are_one_line(tmp_path):
    (tmp_path / "trips.csv").write_text(HEAD + "a,1,8\n")
    (tmp_path / "trips.csv").chmod(0)
    path = campaign_file(tmp_path, "trips.csv", 100)
    command = [PROGRAMS["crowdveil"], "up", path]
    if os.geteuid() == 0:  # root may read anything, unless it drops that right
        command = ["setpriv", "--bounding-set=-dac_override,-dac_read_search",
                   "--inh-caps=-dac_override,-dac_read_search", *command]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert_one_line(done, "trips.csv: cannot be opened: Permission denied")
