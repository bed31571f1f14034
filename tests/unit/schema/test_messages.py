# ruff: noqa: E501  (a sentence a line reads better than one cut in pieces)
"""What a violation of a schema says: the key, what is wrong with it, and what is allowed."""

from datetime import date

import pytest
from jsonschema import Draft202012Validator

from dpstudy.core.errors import StudyError
from dpstudy.schema.messages import check_known, explain, within_shape
from dpstudy.schema.validating import validator

CASES = [
    ({"type": "integer"}, "3", "at: '3' must be an integer; leave out the quotes"),
    ({"type": "string"}, 3, "at: 3 must be a string; quote it"),
    ({"type": ["integer", "boolean"], "description": "How many."}, [], "at: [] must be an integer or true or false (How many)"),
    ({"exclusiveMinimum": 0}, 0, "at: 0 must be more than 0"),
    ({"maximum": 1}, 2, "at: 2 must be at most 1"),
    ({"enum": ["secure", "seeded"]}, "secre", "at: 'secre' is not one of 'secure', 'seeded' (did you mean 'secure'?)"),
    ({"pattern": "^a", "description": "an A"}, "b", "at: 'b' must be an A"),
    ({"minItems": 1}, [], "at: must not be empty"),
    ({"minItems": 2}, [1], "at: [1] must hold at least 2 values"),
    ({"uniqueItems": True}, [1, 1], "at: [1, 1] names something twice"),
    ({"required": ["b"], "properties": {"b": {"description": "A size."}}}, {}, "at: the key 'b' is missing (A size)"),
    ({"additionalProperties": False, "properties": {"size": {}}}, {"sise": 1}, "at.sise: unknown key (did you mean 'size'?); allowed here: size"),
    ({"additionalProperties": False, "properties": {"size": {}}}, {"b": 1, "sise": 1}, "at.b: unknown key, and so is at.sise; allowed here: size"),
    ({"anyOf": [{"const": "all"}, {"type": "integer", "minimum": 1}]}, "none", "at: 'none' is neither 'all' nor an integer of at least 1"),
    ({"oneOf": [{"required": ["a"]}, {"required": ["b"]}]}, {}, "at: give exactly one of 'a', 'b'"),
    ({"properties": {"list": {"items": {"minimum": 1}}}}, {"list": [1, 0]}, "at.list[1]: 0 must be at least 1"),
    ({"maximum": 1}, 10**300, f"at: {str(10**300)[:200]}... must be at most 1"),
]  # fmt: skip


@pytest.mark.parametrize(("rules", "content", "sentence"), CASES)
def test_a_violation_is_one_sentence(rules, content, sentence):
    (error,) = Draft202012Validator(rules).iter_errors(content)
    assert explain(error, "at").startswith(sentence)


def test_a_mapping_is_held_against_the_one_shape_that_is_a_mapping():
    rules = {"anyOf": [{"type": "string"}, {"type": "object", "properties": {"size": {"minimum": 1}}}]}
    (error,) = Draft202012Validator(rules).iter_errors({"size": 0})
    assert explain(within_shape(error)) == "size: 0 must be at least 1"
    (error,) = Draft202012Validator(rules).iter_errors(3)
    assert within_shape(error) is error


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        ([0, 1], "at[0]: 0 must be a string; quote it"),
        ([False, "yes"], "at[0]: False must be a string; quote it (YAML reads no, off, yes and on as false and true)"),
        (["no", None], "at[1]: None must be a string"),
        ([date(2020, 1, 2)], "at[0]: 2020-01-02 must be a string; quote it (YAML reads it as a date)"),
    ],
)
def test_names_that_yaml_read_as_something_else_are_to_be_quoted(names, sentence):
    rules = {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "integer"}]}
    (error,) = Draft202012Validator(rules).iter_errors(names)
    assert explain(within_shape(error), "at") == sentence


@pytest.mark.parametrize(
    ("rules", "given", "sentence"),
    [
        ({"anyOf": [{"type": "string"}, {"type": "array"}]}, 1, "at: 1 is neither a string nor a list"),
        (
            {"anyOf": [{"type": "string"}, {"type": "array"}]},
            False,
            "at: False is neither a string nor a list; quote it (YAML reads no, off, yes and on as false and true)",
        ),
        (
            {"anyOf": [{"type": "string"}, {"type": "array"}]},
            date(2020, 1, 2),
            "at: 2020-01-02 is neither a string nor a list; quote it (YAML reads it as a date)",
        ),
        ({"anyOf": [{"type": "integer"}, {"type": "array"}]}, True, "at: True is neither an integer nor a list"),
        (
            {"pattern": "^[a-z]*$", "description": "lower-case"},
            "False",
            "at: 'False' must be lower-case; quote it (YAML reads no, off, yes and on as false and true)",
        ),
        ({"pattern": "^[a-z]*$", "description": "lower-case"}, "A", "at: 'A' must be lower-case"),
        ({"type": "number"}, float("inf"), "at: inf is no finite number"),
        ({"type": ["number", "null"]}, float("nan"), "at: nan is no finite number"),
        ({"type": "integer"}, float("-inf"), "at: -inf is no finite number"),
    ],
)
def test_what_yaml_read_as_something_else_is_told_with_the_remedy(rules, given, sentence):
    (error,) = validator()(rules).iter_errors(given)
    assert explain(within_shape(error), "at") == sentence


def test_a_name_that_is_none_is_answered_with_those_that_there_are():
    check_known("tables.t", "digits", ["digits"], "data set")
    with pytest.raises(
        StudyError, match=r"^tables\.t: unknown data set 'digit' \(did you mean 'digits'\?\); there is digits$"
    ):
        check_known("tables.t", "digit", ["digits"], "data set")
    with pytest.raises(StudyError, match="there is none is defined"):
        check_known("tables.t", "digit", [], "data set")
