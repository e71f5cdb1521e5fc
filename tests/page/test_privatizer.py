# SPDX-License-Identifier: Apache-2.0
"""The privatizers in the browser have the laws of worker/privatizer: exactly, from all random bits they could draw."""
import json
import math
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
GRID = 1 << 20


@pytest.fixture(scope="module")
def ask(tmp_path_factory):
    if shutil.which("node") is None:
        pytest.skip("no node")
    module = tmp_path_factory.mktemp("law") / "privatizer.mjs"
    shutil.copy(ROOT / "form/privatizer.js", module)

    def run(question, *of, least=1e-5, draws=0):
        done = subprocess.run(["node", ROOT / "tests/page/law.mjs", module], capture_output=True, text=True,
                              input=json.dumps({"question": question, "of": of, "least": least, "draws": draws}))
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)
    return run


def check(law, expected, most_rest):
    """Each value's probability is between what was found and that with all draws that were not followed."""
    assert law["rest"] < most_rest, law["rest"]
    for value, probability in expected.items():
        found = law["found"].get(str(value), 0)
        assert found <= probability + 1e-12 and probability - 1e-12 <= found + law["rest"], (value, found, probability)
    assert sum(law["found"].values()) + law["rest"] == pytest.approx(1, abs=1e-9)


DRAWS = 20_000


def far(counts, expected, draws):
    """Chi-square over the values, with the rest as one."""
    rows = [(counts.get(str(value), 0), probability) for value, probability in expected.items()]
    rows.append((draws - sum(row[0] for row in rows), 1 - sum(row[1] for row in rows)))
    return sum((seen - draws * p) ** 2 / (draws * p) for seen, p in rows if p > 1e-12)


@pytest.mark.parametrize("bound", [1, 2, 3, 5, 7, 8])
def test_below_is_uniform(ask, bound):
    check(ask("below", bound), {value: 1 / bound for value in range(bound)}, 1e-2)


@pytest.mark.parametrize("num, den", [(0, 1), (1, 1), (1, 2), (3, 4), (2, 1), (5, 2)])
def test_exp_minus(ask, num, den):
    check(ask("expMinus", num, den, least=1e-6), {"true": math.exp(-num / den), "false": 1 - math.exp(-num / den)},
          .02)


@pytest.mark.parametrize("p, q", [(1, 1), (2, 1), (2, 3)])
def test_discrete_laplace(ask, p, q):
    """Many draws are not followed to their end, so they are counted, too."""
    # sizes are (u + p v)/q rounded down, geometric with r = e^(-q/p)
    r = math.exp(-q / p)
    expected = {x: (1 - r) / (1 + r) * r ** abs(x) for x in range(-4, 5)}
    check(ask("laplace", p, q, least=1e-5), expected, .4)
    assert far(ask("laplace", p, q, draws=DRAWS), expected, DRAWS) < 60, "ten kinds: one in a million is 46"


@pytest.mark.parametrize("law, keeps", [
    ({"bits": True, "epsilon": 1_000_000, "delta": 0, "printed": False}, lambda e, d: e / (1 + e)),
    ({"bits": True, "epsilon": 500_000, "delta": 200_000_000_000, "printed": False}, lambda e, d: (e + d) / (1 + e)),
    ({"bits": True, "epsilon": 500_000, "delta": 200_000_000_000, "printed": True}, lambda e, d: (e + d) / (1 + e + d)),
    ({"bits": True, "kept": [900_000, 600_000]}, None),
])
@pytest.mark.parametrize("score", [0, GRID // 4, GRID])
def test_randomized_response(ask, law, keeps, score):
    e, d = math.exp(law.get("epsilon", 0) / 1e6), law.get("delta", 0) / 1e12
    p00, p11 = [kept / 1e6 for kept in law["kept"]] if keeps is None else [keeps(e, d)] * 2
    one = score / GRID * p11 + (1 - score / GRID) * (1 - p00)
    assert far(ask("privatize", law, score, draws=DRAWS), {GRID: one, 0: 1 - one}, DRAWS) < 34, "one in 10^8"


@pytest.mark.parametrize("score", [0, GRID])
def test_laplace_at_the_ends_of_its_range(ask, score):
    """With a small range what lies beyond is at its ends, as in laplace.c; between, signs are even."""
    law = {"epsilon": 2_000_000, "low": -GRID // 4, "high": GRID + GRID // 4}
    counts = {int(value): n for value, n in ask("privatize", law, score, draws=DRAWS).items()}
    r = math.exp(-2 / GRID)
    beyond = r ** (GRID // 4) / (1 + r)
    near = law["low"] if score == 0 else law["high"]
    assert min(counts) >= law["low"] and max(counts) <= law["high"]
    assert far({"x": counts[near]}, {"x": beyond}, DRAWS) < 34
    above = sum(n for value, n in counts.items() if value > score)
    assert far({"x": above}, {"x": r / (1 + r)}, DRAWS) < 34


@pytest.mark.parametrize("steps", [1, 3, 10, 1000])
def test_scores_of_steps(ask, steps):
    for chosen in {0, 1, steps // 2, steps}:
        found, = ask("scoreOf", chosen, steps)["found"]
        assert int(found) == math.floor(chosen * GRID / steps + .5)
