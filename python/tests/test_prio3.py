# SPDX-License-Identifier: Apache-2.0
"""A worker's half of Prio3 against the draft's vectors, our own ones, and the reference of the tests."""
import json
import sys
from pathlib import Path

import pytest
from crowdveil import Error
from crowdveil.prio3 import RAND_BYTES, Prio3, turboshake128
from crowdveil.split import BIT, SCORE, measure
from crowdveil.wire import GRID
from hypothesis import given
from hypothesis import strategies as st

VECTORS = Path(__file__).resolve().parents[2] / "tests/vectors"
sys.path.append(str(VECTORS))
import reference  # noqa: E402


@pytest.mark.parametrize("name", ["vdaf/Prio3Count_0", "vdaf/Prio3Count_2", "vdaf/Prio3Sum_0", "own/Prio3Sum_16384"])
def test_shares_are_those_of_the_vectors(name):
    vector = json.loads((VECTORS / f"{name}.json").read_text())
    prio, ctx = Prio3(vector.get("max_measurement")), bytes.fromhex(vector["ctx"])
    assert vector["reports"]
    for report in vector["reports"]:
        shares = prio.split(ctx, int(report["measurement"]), bytes.fromhex(report["rand"]))
        assert [share.hex() for share in shares] == report["input_shares"]
        assert len(shares[0]) == prio.leader_bytes


@given(st.sampled_from([None, 1, 2, 5, 2 ** 14]), st.integers(0, 2 ** 14), st.binary(max_size=200),
       st.binary(min_size=RAND_BYTES, max_size=RAND_BYTES))
def test_shares_are_those_of_the_reference(maximum, number, ctx, rand):
    other, number = reference.Prio3(maximum), number % ((maximum or 1) + 1)
    assert list(Prio3(maximum).split(ctx, number, rand)) == other.split(ctx, other.encode(number), rand)


@pytest.mark.parametrize("length", [0, 1, 166, 167, 168, 169, 336, 400])
def test_the_stream_is_that_of_the_reference(length):
    message = bytes(i % 251 for i in range(length))
    assert turboshake128(message, 1, 400) == reference.turboshake128(message, 1, 400)


@pytest.mark.parametrize("maximum, number", [(None, 2), (None, -1), (2 ** 14, 2 ** 14 + 1)])
def test_a_number_out_of_range_is_not_split(maximum, number):
    with pytest.raises(Error, match="expected 0 to"):
        Prio3(maximum).split(b"", number, bytes(RAND_BYTES))


@given(st.integers(0, GRID))
def test_rounding_keeps_a_score_within_one_step(value):
    assert measure(SCORE, value) - value // 64 in ((0,) if value % 64 == 0 else (0, 1))


def test_rounding_keeps_the_mean():
    drawn = [measure(SCORE, 64 * 100 + 16) for _ in range(4000)]
    assert abs(sum(drawn) / len(drawn) - 100.25) < .05  # 7 standard deviations


@pytest.mark.parametrize("bits, value", [(BIT, GRID // 2), (BIT, 2 * GRID), (SCORE, -1), (SCORE, GRID + 1)])
def test_what_has_no_share_is_an_error(bits, value):
    with pytest.raises(Error, match="expected 0 (or|to) 1"):
        measure(bits, value)
