# ruff: noqa: E501  (a sentence a line reads better than one cut in pieces)
"""Numeric columns as bands, in every reader that takes group columns."""

from pathlib import Path

import numpy as np
import pytest

from dpstudy.core.errors import StudyError
from dpstudy.data.bands import band_names, band_of, check_entries, group_name
from dpstudy.data.group_columns import groups_of
from dpstudy.data.table import TextTable

AGE = {"column": "age", "bands": [40, 60]}


def table(**columns):
    columns = {name: np.array(values, dtype=object) for name, values in columns.items()}
    rows = len(next(iter(columns.values())))
    return TextTable(Path("people.csv"), columns, rows, [row + 2 for row in range(rows)])


@pytest.mark.parametrize(
    ("bounds", "names"),
    [
        ([40, 60], ["below 40", "40 to 59", "60 and above"]),
        ([40.0, 60.0], ["below 40", "40 to 59", "60 and above"]),
        ([18], ["below 18", "18 and above"]),
        ([1, 2, 3], ["below 1", "1", "2", "3 and above"]),
        ([18.5, 25], ["below 18.5", "18.5 to below 25", "25 and above"]),
        ([-1, 1], ["below -1", "-1 to 0", "1 and above"]),
    ],
)
def test_bands_are_named_by_what_they_hold(bounds, names):
    assert band_names(bounds) == names


@pytest.mark.parametrize(
    ("text", "band"),
    [
        ("39", "below 40"), ("39.9", "below 40"), ("40", "40 to 59"), ("59.5", "40 to 59"), ("60.0", "60 and above"),
        ("057Y", "40 to 59"), ("", "unknown"), ("-1", "below 40"), ("6e1", "60 and above"),
        ("old", None), ("nan", None), ("inf", None), ("Y", None), ("40-59", None), ("1,5", None),
    ],
)  # fmt: skip
def test_a_value_falls_into_its_band(text, band):
    assert band_of(text, [40, 60]) == band


def test_plain_and_banded_columns_side_by_side():
    people = table(sex=["F", "M", "F"], age=["12", "", "60"])
    found = groups_of(people, ["sex", AGE, AGE | {"name": "old", "bands": [60]}])
    assert {name: values.tolist() for name, values in found.items()} == {
        "sex": ["F", "M", "F"],
        "age": ["below 40", "unknown", "60 and above"],
        "old": ["below 60", "unknown", "60 and above"],
    }
    assert group_name(AGE) == "age" and group_name(AGE | {"name": "old"}) == "old" and group_name("sex") == "sex"


@pytest.mark.parametrize(
    ("people", "entry", "sentence"),
    [
        ({"age": ["12", "old"]}, AGE, "people.csv: row 1 (line 3): 'old' in the column 'age' is no number; `bands` need a number, or an empty field for unknown"),
        ({"Age": ["12"]}, AGE, "people.csv: no column 'age' (did you mean 'Age'?); there are Age"),
        ({"sex": ["F", ""]}, "sex", "people.csv: row 1 (line 3): no value in the column 'sex'; fill it in, or leave the row out"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_column_is_named(people, entry, sentence):
    with pytest.raises(StudyError) as caught:
        groups_of(table(**people), [entry])
    assert str(caught.value) == sentence


@pytest.mark.parametrize(
    ("entries", "sentence"),
    [
        ([AGE | {"bands": [60, 40]}], "groups[0].bands: [60, 40] must be numbers, each larger than the one before"),
        (["sex", AGE | {"bands": [40, 40]}], "groups[1].bands: [40, 40] must be numbers, each larger *"),
        ([AGE | {"bands": [40, float("inf")]}], "groups[0].bands: [40, inf] must be numbers, *"),
        ([AGE | {"bands": [float("nan")]}], "groups[0].bands: [nan] must be numbers, *"),
        (["age", AGE], "groups[1]: the groups are called 'age', as those of groups[0] are; give one of the two *"),
    ],
)
def test_what_is_wrong_with_an_entry_is_named(entries, sentence):
    with pytest.raises(StudyError) as caught:
        check_entries(entries, "groups")
    assert str(caught.value).startswith(sentence.rstrip("*"))
