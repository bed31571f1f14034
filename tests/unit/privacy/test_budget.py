"""Budgets refuse what has no meaning."""

import math

import pytest

from dpstudy.core.errors import StudyError
from dpstudy.privacy.budget import Budget, parse_epsilon


@pytest.mark.parametrize(
    "text", ["0.01", "0.05", "0.1", "0.5", "1", "2", "2.93", "4", "8", "10", "100", "10.01", "inf"]
)
def test_one_spelling_is_accepted(text):
    assert parse_epsilon(text) == float(text)


@pytest.mark.parametrize(
    "text",
    ["0", "0.0", "0.50", "1.0", "01", "+1", "-1", "1e-2", ".5", "1.", "nan", "Inf", "infinity", "", " 1", "1\n", "abc"],
)
def test_every_other_spelling_is_refused(text):
    with pytest.raises(StudyError, match="epsilon .*shortest form") as caught:
        parse_epsilon(text)
    assert repr(text) in str(caught.value)


@pytest.mark.parametrize("delta", [0, 1, -1e-5, 2, math.nan])
def test_delta_lies_between_0_and_1(delta):
    with pytest.raises(StudyError, match="delta"):
        Budget("1", delta)


def test_budget_knows_whether_it_is_private():
    assert Budget("2.93", 1e-5).private and Budget("2.93", 1e-5).target == 2.93
    assert not Budget("inf", 1e-5).private
