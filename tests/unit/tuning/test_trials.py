"""Spaces: what is refused, what is held against a method's schema, and how values stand in the table of trials."""

import numpy as np
import pytest

from dpstudy.config.space import as_cell, corners, from_cell
from dpstudy.core.errors import StudyError
from dpstudy.core.files import read_table
from dpstudy.tuning.history import History
from dpstudy.tuning.trials import Choice, Trial, best_trial, write_trials

AXIS = {"log": True, "integer": False}
SPACE = {
    "rate": AXIS | {"low": 1e-8, "high": 1e8},
    "steps": AXIS | {"low": 1, "high": 40, "integer": True},
    "share": AXIS | {"low": 0, "high": 1, "log": False},
    "bias": AXIS | {"choices": ["learned", -10.0, True]},
}


def test_corners_show_every_bound_and_every_choice():
    found = corners(SPACE)
    assert {corner["rate"] for corner in found} == {1e-8, 1e8}
    assert {corner["steps"] for corner in found} == {1, 40}
    assert all(isinstance(corner["steps"], int) for corner in found)
    assert [corner["bias"] for corner in found] == ["learned", -10.0, True]


def test_suggestions_lie_inside_and_cover_decades_evenly(tmp_path):
    history = History(tmp_path / "journal.log", SPACE, seed=3)
    for _ in range(40):
        tried = history.suggest()
        history.add(Trial(tried, 0.0, 0.0))
    values = {name: [trial.hyperparameters[name] for trial in history.trials] for name in SPACE}
    assert all(1e-8 <= value <= 1e8 for value in values["rate"])
    assert -8 < np.mean(np.log10(values["rate"][:10])) < 8 and np.std(np.log10(values["rate"])) > 2
    assert all(isinstance(value, int) and 1 <= value <= 40 for value in values["steps"])
    assert all(0 <= value <= 1 for value in values["share"]) and np.mean(values["share"]) > 0.2
    assert set(values["bias"]) == {"learned", -10.0, True}


def test_choices_of_several_types_survive_the_table(tmp_path):
    for value in SPACE["bias"]["choices"]:
        again = from_cell(SPACE["bias"], as_cell(SPACE["bias"], value))
        assert again == value and type(again) is type(value)
    trials = [Trial({"rate": 0.5, "steps": 3, "share": 0.25, "bias": -10.0}, 70.0, 0.1)]
    write_trials(tmp_path / "trials.parquet", trials, SPACE)
    assert best_trial(tmp_path / "trials.parquet", SPACE) == Choice(trials[0].hyperparameters, 70.0, 1, 0)
    table = read_table(tmp_path / "trials.parquet")
    assert table.column_names == ["trial", "rate", "steps", "share", "bias", "value", "seconds", "state"]
    assert (tmp_path / "trials.parquet").stat().st_mode & 0o777 == 0o600


def test_the_best_is_the_first_of_equals_and_never_one_that_failed(tmp_path):
    space = {"rate": SPACE["rate"]}
    outcomes = [(10.0, None), (30.0, None), (90.0, "diverged"), (30.0, None), (0.0, "diverged")]
    trials = [Trial({"rate": 10.0**i}, value, 0.0, failure) for i, (value, failure) in enumerate(outcomes)]
    write_trials(tmp_path / "t.parquet", trials, space)
    assert best_trial(tmp_path / "t.parquet", space) == Choice({"rate": 10.0}, 30.0, 5, 2)


def test_a_best_value_at_an_end_of_its_space_is_told(tmp_path):
    space = {"steps": AXIS | {"choices": [50, 150, 450]}, "bias": SPACE["bias"], "rate": SPACE["rate"]}
    for steps, rate, told in ((450, 1.0, ("steps",)), (150, 1.0, ()), (50, 5e7, ("steps", "rate"))):
        trials = [Trial({"steps": steps, "bias": "learned", "rate": rate}, 40.0, 0.0)]
        write_trials(tmp_path / "t.parquet", trials, space)
        choice = best_trial(tmp_path / "t.parquet", space)
        assert choice.at_end == told
        assert choice.summary.get("at_end", []) == list(told)


def test_trials_of_another_search_are_refused(tmp_path):
    write_trials(tmp_path / "t.parquet", [Trial({"rate": 1.0}, 1.0, 0.0)], {"rate": SPACE["rate"]})
    with pytest.raises(StudyError, match="t.parquet: not the trials of this search"):
        best_trial(tmp_path / "t.parquet", {"steps": SPACE["steps"]})
    with pytest.raises(StudyError, match="no such file"):
        best_trial(tmp_path / "none.parquet", SPACE)
