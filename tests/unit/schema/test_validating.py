"""The mistakes in a config are all told, the outermost first."""

import pytest

from dpstudy.core.errors import StudyError
from dpstudy.schema.validating import check_hyperparameters, validate

RULES = {"properties": {"seed": {"type": "integer"}, "part": {"properties": {"size": {"minimum": 1}}}}}


def test_what_fits_is_taken():
    validate({"seed": 1, "part": {"size": 1}}, RULES)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ({"seed": 1.0}, "at.seed: 1.0 must be an integer"),
        ({"seed": True}, "at.seed: True must be an integer"),
        (
            {"part": {"size": 0}, "seed": "x"},
            "2 mistakes:\n  at.seed: 'x' must be an integer\n  at.part.size: 0 must be at least 1",
        ),
        ({"part": {"size": 0}}, "at.part.size: 0 must be at least 1"),
    ],
)
def test_every_mistake_is_said_the_outermost_first(content, sentence):
    with pytest.raises(StudyError) as caught:
        validate(content, RULES, "at")
    assert str(caught.value) == sentence


def test_hyperparameters_are_held_against_their_methods_schema():
    check_hyperparameters("least_squares", {"clipping_norm": 1.0})
    with pytest.raises(StudyError, match=r"^least_squares\.clipping_norm: 0 must be more than 0$"):
        check_hyperparameters("least_squares", {"clipping_norm": 0})
    with pytest.raises(StudyError, match="method 'squares' has no schema, so no config could use it"):
        check_hyperparameters("squares", {})
