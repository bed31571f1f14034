"""A key that stands twice is told with both lines, and 1e-3 is a number wherever a number is wanted."""

import pytest

from dpstudy.core.errors import StudyError
from dpstudy.schema.spelling import as_numbers, check_keys

RULES = {
    "$defs": {"rate": {"type": "number", "exclusiveMinimum": 0}},
    "properties": {
        "rate": {"$ref": "#/$defs/rate"},
        "size": {"type": "integer"},
        "on": {"type": "boolean"},
        "name": {"type": "string"},
        "names": {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "integer"}]},
        "steps": {"anyOf": [{"const": "auto"}, {"type": "integer", "minimum": 1}]},
        "rates": {"anyOf": [{"$ref": "#/$defs/rate"}, {"type": "array", "items": {"$ref": "#/$defs/rate"}}]},
        "free": {"type": ["string", "number"]},
        "axes": {"additionalProperties": {"properties": {"low": {"type": "number"}}}},
    },
}


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ({"rate": "1e-3"}, {"rate": 0.001}),
        ({"rate": "-1E5"}, {"rate": -1e5}),  # what is out of bounds is a number all the same, for the check to refuse
        ({"size": "1e4"}, {"size": 10000}),
        ({"size": "7"}, {"size": 7}),
        ({"size": "7.0"}, {"size": "7.0"}),
        ({"size": "1e-1"}, {"size": "1e-1"}),
        ({"on": "true"}, {"on": True}),
        ({"name": "1e2"}, {"name": "1e2"}),
        ({"names": ["1e2", "3"]}, {"names": ["1e2", "3"]}),
        ({"names": "3"}, {"names": 3}),
        ({"steps": "auto"}, {"steps": "auto"}),
        ({"steps": "12"}, {"steps": 12}),
        ({"rates": ["1e-3", 2.0, "1e+1"]}, {"rates": [0.001, 2.0, 10.0]}),
        ({"rates": ["1e-3", "fast"]}, {"rates": ["1e-3", "fast"]}),
        ({"free": "1e2"}, {"free": "1e2"}),
        ({"axes": {"lr": {"low": "1e-8"}}}, {"axes": {"lr": {"low": 1e-8}}}),
        ({"rate": "nan"}, {"rate": "nan"}),
        ({"rate": "1e999"}, {"rate": "1e999"}),
        ({"rate": "1e-3 "}, {"rate": "1e-3 "}),
    ],
)
def test_text_becomes_a_number_where_one_is_wanted_and_nowhere_else(given, read):
    before = repr(given)
    found = as_numbers(given, RULES)
    assert repr(found) == repr(read) and repr(given) == before


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a: 1\nb: 2\na: 3\n", "a: stands twice, in lines 1 and 3"),
        ("m:\n  ls: {x: 1}\n  ls: {x: 2}\n", "m.ls: stands twice, in lines 2 and 3"),
        ("m: [{x: 1},\n  {x: 1, x: 2}]\n", "m[1].x: stands twice, in lines 2 and 2"),
        ('"10": 1\n10: 2\n', "10: stands twice, in lines 1 and 2"),
        ("no: 1\noff: 2\n", "False: stands twice, in lines 1 and 2"),
        ('{"a": {"b": 1,\n"b": 2}}', "a.b: stands twice, in lines 1 and 2"),
    ],
)
def test_a_key_that_stands_twice_is_told_with_both_lines(tmp_path, text, sentence):
    file = tmp_path / "study.yaml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(StudyError, match=r"and only the last would count; keep one$") as caught:
        check_keys(file)
    assert str(caught.value).startswith(sentence)


@pytest.mark.parametrize(
    ("text", "place", "read"),
    [
        ("a: 1\nsteps: 010\n", "steps: line 2: ", "010 as 8"),
        ("classes: [01, 02]\n", "classes[0]: line 1: ", "01 as 1"),
        ("names: [7:30, x]\n", "names[0]: line 1: ", "7:30 as 450"),
        ("a: {b: -0_7}\n", "a.b: line 1: ", "-0_7 as -7"),
        ("rate: 1:30.5\n", "rate: line 1: ", "1:30.5 as 90.5"),
    ],
)
def test_a_number_that_yaml_reads_otherwise_than_it_looks_is_told_with_its_line(tmp_path, text, place, read):
    file = tmp_path / "study.yaml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(StudyError) as caught:
        check_keys(file)
    said = f"{place}YAML reads {read}; quote it where it is a text, and write the number as usual where it is one"
    assert str(caught.value) == said


@pytest.mark.parametrize(
    "text",
    [
        "a: [0, -0, 0.5, 00.5, 0x10, 1_000, 08, '010', \"7:30\", 2020-01-01, 10:99, 1e-3]\n",
        "base: &b {x: 1, y: 2}\none: {<<: *b, x: 3}\ntwo: {<<: [*b, *b], y: 4}\n",
        "a: &a [1, *a]\n",
        "a: {x: 1}\nb: {x: 1}\n",
        "? [1, 2]\n: 1\n? [1, 2]\n: 2\n",
        "a: [\n",
        "",
    ],
)
def test_merged_keys_may_be_overridden_and_what_is_no_yaml_is_left_to_its_reader(tmp_path, text):
    file = tmp_path / "study.yaml"
    file.write_text(text, encoding="utf-8")
    check_keys(file)
    check_keys(tmp_path / "missing.yaml")
