"""A family of curves predicts the throughput of levels that were not tried."""

import math
from collections.abc import Mapping
from itertools import pairwise

import pytest

from callboard.scheduling.elasticity.level_bounds import stepped
from callboard.scheduling.elasticity.level_search import Curves, curves_up_to

LEVELS = stepped(1, 64, 0.08)


def best(measured: Mapping[int, float]) -> int:
    return max(curves_up_to(64).predict(measured, LEVELS), key=lambda each: each.mean).level


@pytest.mark.parametrize(
    ("measured", "level"),
    [
        ({1: 100.0, 64: 6400.0}, 64),
        ({1: 100.0, 2: 80.0, 16: 30.0}, 1),
        ({4: 400.0, 8: 800.0, 9: 711.0, 16: 400.0}, 8),
    ],
)
def test_few_measurements_show_the_best_level(measured: Mapping[int, float], level: int) -> None:
    assert best(measured) == level


def test_a_curve_has_no_unit() -> None:
    measured = {1: 1.0, 20: 9.0, 64: 5.0}
    one = curves_up_to(64).predict(measured, LEVELS)
    other = curves_up_to(64).predict({at: 1e6 * it for at, it in measured.items()}, LEVELS)
    for here, there in zip(one, other, strict=True):
        assert there.mean - here.mean == pytest.approx(math.log(1e6))
        assert there.gain == pytest.approx(here.gain)


def test_measured_levels_are_predicted() -> None:
    """USL with a = 0.05 and b = 0.001."""
    measured = {n: 1000 * n / (1 + 0.05 * (n - 1) + 0.001 * n * (n - 1)) for n in (1, 8, 31, 64)}
    for each in curves_up_to(64).predict(measured, measured):
        assert math.exp(each.mean) == pytest.approx(measured[each.level], rel=0.05)


def test_each_octave_is_as_likely_to_have_the_knee() -> None:
    curves = Curves(64)
    assert sum(curves._priors) == pytest.approx(3)
    assert min(curves._priors) > 0


def test_levels_are_close_where_they_are_small() -> None:
    assert stepped(1, 16, 0.5) == (1, 2, 3, 4, 6, 9, 13, 16)
    assert LEVELS[:20] == tuple(range(1, 21))
    assert stepped(5, 5, 0.5) == (5,)
    assert all(b <= 1.08 * a or b == a + 1 for a, b in pairwise(LEVELS))
