"""The usual ranges of a search: which hyper-parameters they are of, and what they are within."""

import pytest

from dpstudy.config.loading import load
from dpstudy.config.space import combinations, corners
from dpstudy.core.errors import StudyError
from dpstudy.schema.methods import method_names, method_schema
from dpstudy.schema.validating import validate


def entry_of(**options):
    study = {
        "study": "s",
        "datasets": {"own": {"reader": "cifar", "location": "cifar", "delta": "1e-5", "splits": {"validation": 0.1}}},
        "features": {"pixels": {"extractor": "pixels"}},
        "methods": {"entry": options | {"tuning": {"trials": 2, "space": "default"}}},
        "epsilons": ["1"],
        "seeds": [0],
    }
    return load(study)["methods"]["entry"]["tuning"]["space"]


def test_the_usual_ranges_are_searched_but_for_what_the_entry_gives():
    steps = {"method": "first_order", "clipping_norm": 1.0, "steps": 10}
    usual = {"low": 1e-3, "high": 100.0, "log": True, "integer": False}
    assert entry_of(**steps) == {"learning_rate": usual}
    assert entry_of(method="least_squares").keys() == {"ridge"}
    assert entry_of(method="least_squares", variant="published").keys() == {"alpha", "ridge"}
    assert entry_of(method="feature_covariance", ridge=1e-6).keys() == {"learning_rate"}
    with pytest.raises(StudyError, match="methods.entry.tuning.space: the entry gives all"):
        entry_of(**steps, learning_rate=1.0)


@pytest.mark.parametrize("name", method_names())
def test_usual_ranges_are_of_hyper_parameters_and_within_their_bounds(name):
    for key, rules in method_schema(name)["properties"].items():
        if "x-search" in rules:
            for end in ("low", "high"):
                validate({key: rules["x-search"][end]}, {"properties": {key: rules}})


def test_every_combination_of_choices_that_are_no_numbers_is_among_the_kinds_of_setting():
    rate = {"low": 1, "high": 9, "log": True, "integer": False}
    space = {"loss": {"choices": ["a", "b"]}, "alone": {"choices": [True, False]}, "rate": rate}
    kinds = combinations(space)
    assert kinds[:2] == corners(space) and {(one["loss"], one["alone"]) for one in kinds} == {
        (loss, alone) for loss in "ab" for alone in (True, False)
    }
    assert len(kinds) == 4 and combinations({"rate": rate}) == [{"rate": 1.0}, {"rate": 9.0}]
