"""Bars and how far lines stand aside: what is known of a point, and no overlap with the next place of the axis."""

import math

import pytest

from dpstudy.tables.bars import asides, bar, factors, lengths


def test_a_bar_is_the_interval_else_the_deviation_and_a_single_seed_has_none():
    assert bar(90.0, 0.5, (88.0, 91.0)) == (2.0, 1.0) and bar(90.0, 0.5, None) == (0.5, 0.5)
    assert bar(90.0, 0.0, None) is None is bar(90.0, None, None)
    assert bar(90.0, 0.5, (90.0 + 1e-9, 91.0))[0] == 0.0, "an end on the wrong side by a rounding is at the value"


def test_a_point_without_a_bar_has_none_beside_others_that_have():
    assert lengths([None, None]) is None
    low, high = lengths([(2.0, 1.0), None])
    assert (low[0], high[0]) == (2.0, 1.0) and math.isnan(low[1]) and math.isnan(high[1])


@pytest.mark.parametrize("count", [1, 2, 7, 30])
def test_lines_lie_around_their_place_and_never_as_far_as_halfway_to_the_next(count):
    found = asides(count, 6.0, 10.0)
    assert len(found) == count and sum(found) == pytest.approx(0)
    assert max(found) < 2.5 + 1e-9 and found == sorted(found)
    wide = asides(count, 6.0, 1000.0)
    assert max(wide) - min(wide) < 18


def test_on_a_logarithmic_axis_they_are_factors():
    assert factors(1, [0.5, 2.0]) == [1.0] and factors(2, [3.0])[1] == pytest.approx(math.exp(0.006))
    below, above = factors(2, [0.5, 2.0])
    assert below * above == pytest.approx(1) and math.log(above / below) == pytest.approx(0.012 * math.log(4))
    near = factors(9, [1.0, 1.01, 100.0])
    assert max(near) < 1.0025, "within a quarter of the way to a neighbour"
