"""A hyper-parameter said once: the dataclass and the schema that is made of it accept and refuse the same values."""

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import pytest

from dpstudy.core.errors import StudyError
from dpstudy.schema.hyperparameters import Hyperparameters, schema_of, setting, told
from dpstudy.schema.validating import validator


@dataclass(frozen=True)
class Group(Hyperparameters):
    height: int = setting(about="Pixels.", least=1)
    width: int = setting(8, least=1, filled=False)

    METHOD: ClassVar[str] = "group"


@dataclass(frozen=True)
class Parameters(Hyperparameters):
    rate: float = setting(about="What averaged gradients are multiplied by.", above=0, search={"low": 0.1, "high": 1})
    share: float = setting(0.5, above=0, below=1)
    decay: float = setting(0.0, least=0, below=1)
    part: float = setting(1.0, above=0, most=1)
    steps: int | Literal["auto"] = setting("auto", least=0)
    ridge: Literal["learned"] | float = setting("learned")
    kind: Literal["one", "two"] = setting("one", "Which.")
    rule: str = setting("a", choices=("a", "b"))
    floor: bool = setting(True, keyed=False)
    radius: float | None = setting(None, above=0)
    group: Group | None = setting(None)
    whole: Group | None = setting(None, without=("width",))
    name: str = setting("any")

    METHOD: ClassVar[str] = "mine"


RULES = {"x-reads": "features", "x-curve": False}
SCHEMA = schema_of("mine", Parameters, RULES)
VALUES = [-1, 0, 0.0, 1e-9, 0.5, 1, 1.0, 2, 10**9, True, False, "auto", "learned", "one", "two", "a", "b", "c", "", []]
VALUES += [{}, {"height": 1}, {"height": 0}, {"height": 2, "width": 3}, math.inf, math.nan]


def refused(key, value) -> str:
    """What is said of a value; empty: it is taken."""
    try:
        Parameters(**{"rate": 1.0, key: value})
    except StudyError as error:
        return str(error)
    except TypeError as error:  # a group's key
        return str(error)
    return ""


@pytest.mark.parametrize("key", sorted(SCHEMA["properties"].keys() - {"method", "whole"}))
@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_schema_and_dataclass_take_the_same_values(key, value):
    valid = validator()(SCHEMA).is_valid({"method": "mine", "rate": 1.0, key: value})
    assert valid == (not refused(key, value)), refused(key, value)


@pytest.mark.parametrize(
    ("key", "value", "sentence"),
    [
        ("rate", 0, "mine: rate 0: must be a number above 0"),
        ("rate", math.nan, "mine: rate nan: must be a number above 0"),
        ("rate", math.inf, "mine: rate inf: must be a number above 0"),
        ("rate", True, "mine: rate True: must be a number above 0"),
        ("share", 1, "mine: share 1: must lie between 0 and 1"),
        ("decay", 1.0, r"mine: decay 1.0: must be in [0, 1)"),
        ("part", 1.1, "mine: part 1.1: must be above 0 and at most 1"),
        ("steps", 2.5, "mine: steps 2.5: must be an integer of at least 0, or 'auto'"),
        ("ridge", "all", "mine: ridge 'all': must be a number, or 'learned'"),
        ("kind", "three", "mine: kind 'three': one of 'one', 'two'"),
        ("rule", "c", "mine: rule 'c': one of 'a', 'b'"),
        ("floor", "yes", "mine: floor 'yes': must be a boolean"),
        ("name", 3, "mine: name 3: must be a string"),
        ("group", 3, "mine: group 3: must be a mapping of height, width"),
        ("whole", 3, "mine: whole 3: must be a mapping of height"),
        ("group", {"height": 0}, "group: height 0: must be an integer of at least 1"),
    ],
)
def test_what_a_value_must_be_is_said(key, value, sentence):
    assert refused(key, value) == sentence


def test_the_schema_has_what_rules_and_configs_need():
    assert SCHEMA["title"] == "mine" and SCHEMA["required"] == ["rate"] and SCHEMA["additionalProperties"] is False
    assert SCHEMA["x-reads"] == "features" and SCHEMA["properties"]["method"] == {"const": "mine"}
    own = SCHEMA["properties"]
    assert own["rate"] == {
        "description": "What averaged gradients are multiplied by.",
        "x-search": {"low": 0.1, "high": 1},
        "type": "number",
        "exclusiveMinimum": 0,
    }
    assert own["steps"] == {"default": "auto", "anyOf": [{"type": "integer", "minimum": 0}, {"const": "auto"}]}
    assert own["ridge"]["anyOf"] == [{"const": "learned"}, {"type": "number"}]
    assert (own["kind"]["enum"], own["rule"]["enum"]) == (["one", "two"], ["a", "b"])
    assert repr([own[key]["default"] for key in ("decay", "part", "floor")]) == "[0, 1.0, True]"  # as configs had them
    assert "default" not in own["radius"] and own["group"]["required"] == ["height"]
    assert "default" not in own["group"]["properties"]["width"] and "width" not in own["whole"]["properties"]


def test_groups_are_made_of_mappings_and_what_changes_nothing_keys_no_noise():
    made = Parameters(rate=1.0, group={"height": 3})
    assert made.group == Group(3) and "floor" not in repr(made) and "share=0.5" in repr(made)


def test_a_table_says_default_and_range():
    assert told(Parameters)[:5] == [
        "`rate` (>0)", "`share` 0.5 (>0,<1)", "`decay` 0 (≥0,<1)", "`part` 1 (>0,≤1)",
        "`steps` auto (≥0)",
    ]  # fmt: skip
    assert told(Parameters)[6:9] == ["`kind` one (two)", "`rule` a (b)", "`floor` true"]
