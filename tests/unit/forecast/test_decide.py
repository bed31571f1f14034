"""Verdicts: worth it where all of the interval is enough, not where none is, and what would do."""

import math

import pytest

from dpstudy.forecast.curves import ONE
from dpstudy.forecast.decide import NOT, OPEN, WORTH, Plan, Useful, verdict, what_would_do
from dpstudy.forecast.model import Question


class Fixed:
    """A forecast that is the signal over 1,000, more or less a tenth."""

    def share(self, question):
        middle = min(1.0, question.signal / 1000)
        return max(0.0, middle - 0.1), middle, min(1.0, middle + 0.1)


def question(signal):
    return Question("m", ONE, 2, 0.5, 100, signal)


@pytest.mark.parametrize(("signal", "expected"), [(100, NOT), (390, NOT), (550, OPEN), (700, WORTH), (5000, WORTH)])
def test_the_interval_decides(signal, expected):
    useful = Useful("auc", 0.7, 0.5, 1.0, without_privacy=0.9)  # half of the gain must survive
    found = verdict(Fixed(), question(signal), useful)
    assert found.verdict == expected and found.value[0] <= found.value[1] <= found.value[2]
    assert found.value[1] == pytest.approx(0.5 + 0.4 * min(1, signal / 1000))


def test_where_the_gain_is_unknown_only_the_impossible_is_told():
    useful = Useful("auc", 0.7, 0.5, 1.0)
    assert verdict(Fixed(), question(200), useful).verdict == NOT  # 0.3 survives at most, of 0.5 at most
    assert verdict(Fixed(), question(900), useful).verdict == OPEN
    assert useful.needed(0.5) == pytest.approx(0.9) and useful.needed(0.0) == math.inf


def test_what_would_do_is_the_fewest_units_and_then_the_smallest_epsilon():
    useful, plan = Useful("auc", 0.7, 0.5, 1.0, 0.9), Plan(200, (1.0,), 1e-5)
    method, units, epsilon = what_would_do({"m": Fixed()}, question(0), useful, plan)
    assert method == "m" and epsilon == 8.0 and 200 < units < 1000
    richer = Plan(200, (1.0,), 1e-5, scale=0.5)
    assert what_would_do({"m": Fixed()}, question(0), useful, richer)[1] > 1.5 * units
    assert what_would_do({"m": Fixed()}, question(0), Useful("auc", 0.95, 0.5, 1.0, 0.9), plan) is None
    assert what_would_do({"m": Fixed()}, question(0), useful, Plan(100_000, (1.0,), 1e-5))[1:] == (100_000, 0.5)
