import pytest

from dpstudy.core.errors import StudyError
from dpstudy.tables.published import lookup

MNIST = {"paper": "tramer2021", "table": "1", "dataset": "MNIST", "model": "linear", "method": "DP-SGD"}


@pytest.mark.parametrize(("epsilon", "value", "std"), [("1.2", 98.1, 0.1), ("2", 98.5, 0.0), ("2.93", 98.7, 0.0)])
def test_the_printed_numbers_of_tramer2021_table_1(epsilon, value, std):
    found = lookup(MNIST | {"statistic": "mean"}, epsilon)
    assert (found.value, found.std, found.statistic, found.table) == (value, std, "mean", "1")
    assert found.text == str(value)
    assert "5 runs" in found.note and found.source == "" and found.at_most is None


def test_no_number_at_an_epsilon_is_none():
    assert lookup(MNIST, "0.5") is None
    assert lookup({"paper": "mehta2023", "table": "3"}, "17") is None


def test_epsilon_is_compared_as_a_number_and_keys_as_text():
    assert lookup(MNIST | {"table": 1}, "2.0").value == 98.5
    found = lookup(
        {"paper": "tramer2021", "table": "2", "dataset": "MNIST", "method": "non-private (data normalization)"}, "inf"
    )
    assert found.value == 99.1


def test_a_cell_printed_as_a_bound():
    where = {"paper": "mehta2023", "table": "2", "pretraining": "ImageNet-21k", "method": "DP-Adam", "epochs": "1"}
    found = lookup(where, "0.01")
    assert (found.value, found.at_most) == (None, 20.0)


def test_ambiguity_names_the_lines_and_what_differs():
    with pytest.raises(StudyError, match=r"lines \d+, \d+.*tell them apart by .*method"):
        lookup({"paper": "tramer2021", "table": "1", "dataset": "MNIST"}, "2")


def test_what_no_row_has_is_named():
    with pytest.raises(StudyError, match="no row .* has dataset = 'MNIS'.*'MNIST'"):
        lookup(MNIST | {"dataset": "MNIS"}, "2")
    with pytest.raises(StudyError, match="unknown key 'datset'"):
        lookup({"datset": "MNIST"}, "2")
