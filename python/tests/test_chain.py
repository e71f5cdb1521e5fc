# SPDX-License-Identifier: Apache-2.0
"""The chained hashes, against the digests that tests/unit/codec/test_chain.c expects of the programs in C."""
import re
from pathlib import Path
from types import SimpleNamespace

from crowdveil import NoiseGroup
from crowdveil.chain import NONE, chain_plan, chain_release
from crowdveil.schema import schema

SOURCE = (Path(__file__).resolve().parents[2] / "tests/unit/codec/test_chain.c").read_text()
DIGESTS = re.findall(r'assert_hash\(&hash, "([0-9a-f]{64})"\)', SOURCE)
RELEASES = [(1, 1, 19, 6000, -123456789, [(2, 1)]), (2, 1, 0, 12000, (1 << 40) + 3, [(2, 3), (.5, 7)]),
            (3, 2, 7, 1, 0, []), (4, 2, 3, 0, 0, [])]
LAST = 4  # the number of an arm's last release


def test_releases_have_the_digests_of_the_programs_in_c():
    before = {dict: NONE, object: NONE}
    for values, expected in zip(RELEASES, DIGESTS):
        names = ("number", "plan", "arm", "tokens", "noisy_sum")
        *plain, noise = values
        message = schema("base").Release(**dict(zip(names, plain)), last=plain[0] == LAST)
        for scale, count in noise:
            message.noise.add(scale=scale, count=count)
        release = SimpleNamespace(**dict(zip(names, plain)), noise=[NoiseGroup(*group) for group in noise],
                                  last=plain[0] == LAST)
        before = {dict: chain_release(before[dict], message), object: chain_release(before[object], release)}
        assert {digest.hex() for digest in before.values()} == {expected}


def test_plans_have_the_digests_of_the_programs_in_c():
    hash_ = chain_plan(NONE, 1, [(0, 6000), (19, 6000)])
    assert hash_.hex() == DIGESTS[len(RELEASES)]
    assert chain_plan(hash_, 2, []).hex() == DIGESTS[len(RELEASES) + 1]


def test_opponents_count_where_there_are_any():
    assert chain_plan(NONE, 1, [(0, 6000, 0), (19, 6000, 5)]).hex() in DIGESTS[len(RELEASES) + 2:]
    assert chain_plan(NONE, 1, [(0, 6000, 0), (19, 6000, 0)]) == chain_plan(NONE, 1, [(0, 6000), (19, 6000)])
