# SPDX-License-Identifier: Apache-2.0
"""The laws of privatizers: exact draws, refused parameters."""
import math
import random

import pytest
from crowdveil import Choice, Error
from crowdveil.privatizer import PICO, discrete_laplace, exp_minus, happens, law_of
from crowdveil.wire import GRID, MICRO
from hypothesis import given, settings
from hypothesis import strategies as st

DRAWS = 20000


def below(seed=1):
    return random.Random(seed).randrange


def is_near(count, draws, probability):
    """Within five standard deviations; the draws are seeded, so a test that passes always passes."""
    return abs(count - draws * probability) <= 5 * math.sqrt(draws * probability * (1 - probability)) + 1e-9


@pytest.mark.parametrize("num, den", [(1, 7), (0, 1), (3, 3), (999_999, MICRO)])
def test_a_draw_has_its_probability(num, den):
    draw = below()
    assert is_near(sum(happens(num, den, draw) for _ in range(DRAWS)), DRAWS, num / den)


@pytest.mark.parametrize("num, den", [(0, 1), (1, 2), (1, 1), (5, 2), (4 * MICRO + 1, MICRO)])
def test_a_draw_of_an_exponential_has_its_probability(num, den):
    draw = below()
    assert is_near(sum(exp_minus(num, den, draw) for _ in range(DRAWS)), DRAWS, math.exp(-num / den))


@pytest.mark.parametrize("p, q", [(1, 1), (3, 1), (1, 2), (7, 3)])
def test_laplace_noise_has_its_law(p, q):
    draw, ratio = below(), math.exp(-q / p)
    noise = [discrete_laplace(p, q, draw) for _ in range(DRAWS)]
    for x in range(-3, 4):
        assert is_near(noise.count(x), DRAWS, (1 - ratio) / (1 + ratio) * ratio ** abs(x)), x


RESPONSES = [({"epsilon": 1}, 1, None), ({"epsilon": .5, "delta": .1}, .5, .1),
             ({"epsilon": 1, "delta": .2, "rule": "printed"}, 1, .2), ({"p00": .8, "p11": .6}, None, None),
             ({"p00.1": .9, "p11.1": .9, "p00.2": .7, "p11.2": .8}, None, None)]


@pytest.mark.parametrize("params, epsilon, delta", RESPONSES)
@pytest.mark.parametrize("arm, score", [(0, 0), (1, GRID), (1, GRID // 4)])
def test_randomized_response_has_the_mean_of_its_law(params, epsilon, delta, arm, score):
    law, draw = law_of(Choice("randomized-response", params), 2), below()
    offset, slope = law.feedback(arm)
    tokens = [law.apply(arm, score, draw) for _ in range(DRAWS)]
    assert set(tokens) <= {0, GRID} and all(map(law.sends, tokens))
    assert is_near(tokens.count(GRID), DRAWS, offset + slope * score / GRID)
    assert epsilon is None or law.epsilon_micro == epsilon * MICRO
    assert delta is None or law.delta_pico == delta * PICO


@settings(max_examples=40)
@given(st.integers(1, 4000 * MICRO), st.integers(0, GRID), st.integers(0, 2 ** 32))
def test_laplace_tokens_stay_in_the_range_that_the_broker_accepts(epsilon_micro, score, seed):
    law, draw = law_of(Choice("laplace", {"epsilon": epsilon_micro / MICRO}), 1), below(seed)
    bound = math.ceil(40 * GRID * MICRO / law.epsilon_micro)
    assert law.epsilon_micro == epsilon_micro
    assert all(-bound <= law.apply(0, score, draw) <= GRID + bound for _ in range(20))


@given(st.floats(.001, 20), st.integers(0, 10 ** 6))
def test_the_epsilon_of_a_matrix_bounds_its_worst_ratio(epsilon, share):
    keep = round(max(1, min(MICRO - 1, MICRO / (1 + math.exp(-epsilon))))) / MICRO
    if keep == .5:
        return
    law = law_of(Choice("randomized-response", {"p00": keep, "p11": keep}), 1)
    assert math.exp(law.epsilon_micro / MICRO) >= max(keep / (1 - keep), (1 - keep) / keep) * (1 - 1e-12)


@pytest.mark.parametrize("name, params, why", [
    ("none", {"epsilon": 1}, "unknown parameter epsilon"), ("laplace", {}, "epsilon is missing"),
    ("laplace", {"epsilon": 0}, "epsilon is 0"), ("laplace", {"epsilon": 1e-7}, "epsilon is 1e-07"),
    ("laplace", {"epsilon": 1.23456789}, "at most 6 decimals"), ("laplace", {"epsilon": "1"}, "epsilon is 1;"),
    ("laplace", {"epsilon": math.nan}, "epsilon is nan"), ("randomized-response", {}, "expected either epsilon"),
    ("randomized-response", {"epsilon": 1, "p00": .6, "p11": .6}, "expected either epsilon"),
    ("randomized-response", {"p00": .4, "p11": .6}, "p00 \\+ p11 is 1"),
    ("randomized-response", {"p00": .4}, "p11 is missing"),
    ("randomized-response", {"p00.3": .4}, "p00.3: expected an arm"),
    ("randomized-response", {"epsilon": 1, "delta": 1}, "delta 1"),
    ("randomized-response", {"epsilon": 1, "rule": "other"}, "rule other"), ("gauss", {}, "unknown privatizer gauss")])
def test_wrong_parameters_are_refused_with_the_reason(name, params, why):
    with pytest.raises(Error, match=why) as raised:
        law_of(Choice(name, params), 2)
    assert name in str(raised.value)


@given(st.dictionaries(st.sampled_from(["epsilon", "delta", "rule", "p00", "p11", "p00.1", "p11.1", "p00.x", "q"]),
                       st.one_of(st.floats(), st.text(max_size=5))), st.integers(1, 20))
def test_any_parameters_make_a_law_or_the_documented_error(params, arms):
    for name in ("none", "laplace", "randomized-response"):
        try:
            law = law_of(Choice(name, params), arms)
        except Error:
            continue
        assert law.sends(law.apply(0, GRID // 2, below()))
