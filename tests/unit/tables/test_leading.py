"""A value is marked as the best only where its lead exceeds its error: against textbook numbers."""

import math

import pytest

from dpstudy.evaluation.metric import Metric
from dpstudy.tables.layout import Cell, Column, Row, Table
from dpstudy.tables.leading import leader, standard_error
from dpstudy.tables.numbers import decimals, usual_decimals


def cell(ours, std=0.3, seeds=4, half=None):
    interval = None if half is None else (ours - half, ours + half)
    return Cell("d", "f", "e", "1", 1.0, "proved", ours, std, seeds, None, over_records=interval)


def test_the_error_joins_seeds_and_test_records():
    assert standard_error(cell(90)) == pytest.approx(0.15)
    assert standard_error(cell(90, half=1.96)) == pytest.approx(math.hypot(0.15, 1), rel=1e-4)
    assert standard_error(cell(90, std=0.0, half=1.96)) == pytest.approx(1, rel=1e-4)
    assert standard_error(cell(90), "median") == pytest.approx(0.15 * 1.2533, rel=1e-4)


def test_it_leads_by_more_than_two_standard_errors_of_the_difference():
    lead = 2 * math.sqrt(2) * 0.15
    low, near, far = cell(80), cell(90 - 0.99 * lead), cell(90 - 1.01 * lead)
    best = cell(90)
    assert leader([low, far, best]) is best
    assert leader([low, best, near]) is None and leader([best, cell(90)]) is None
    assert leader([far, best], "median") is None
    wide, other = cell(90, half=1.0), cell(89, half=1.0)
    assert leader([cell(90), cell(89)]) and leader([wide, other]) is None, "the test split is too small to tell"


def test_where_less_is_better_the_least_leads():
    least, near, far = cell(80), cell(80.1), cell(90)
    merit = Metric(order=0, label="error (%)", percent=True, lower_is_better=True).merit
    assert leader([far, least], merit=merit) is least and leader([far, least]) is far
    assert leader([near, least], merit=merit) is None


def test_without_a_rival_or_an_error_nothing_leads():
    assert leader([]) is None and leader([cell(90)]) is None
    assert leader([cell(90), cell(50, std=0.0, seeds=1)]) is None, "a single seed"
    assert leader([cell(90), cell(50, std=0.0)]) is None, "every seed the same, no interval"
    assert leader([cell(90), cell(50, std=0.0, half=1.0)]) is not None


def test_digits_follow_the_standard_deviation():
    assert [decimals(std, "top1") for std in (12.0, 9.0, 0.5, 0.04, 0.001)] == [0, 1, 1, 2, 2]
    assert [decimals(std, "auc") for std in (0.2, 0.09, 0.004, 0.0004)] == [2, 3, 3, 4]
    assert usual_decimals([0.0, 0.0, None, 0.04], "top1") == 2, "zeros say nothing"
    assert usual_decimals([0.0, None], "top1") == 1


def test_no_deviation_is_printed_as_zero_that_is_not():
    cells = (cell(90, 0.5), cell(91, 0.3), cell(97.123, 0.04), cell(98, 0.0))
    table = Table("t", "", "top1", "mean", (Column("1", 1.0, "proved"),), (Row("d", "f", "e", "e", cells),))
    assert [table.digits_of(each) for each in cells] == [1, 1, 2, 1]
