"""Schemas: read from their files, and their defaults filled in."""

import pytest

from dpstudy.core.errors import StudyError
from dpstudy.schema import reading
from dpstudy.schema.reading import check, fill_defaults, schema

ROOT = {
    "properties": {
        "size": {"default": 3},
        "list": {"items": {"properties": {"kind": {"default": "plain"}}}},
        "part": {"$ref": "#/$defs/part"},
    },
    "additionalProperties": {"properties": {"more": {"default": []}}},
    "$defs": {"part": {"default": {"a": 1}, "properties": {"b": {"default": 2}}}},
}


def test_defaults_are_filled_in_at_every_depth_and_nothing_that_is_there_is_changed():
    content = {"list": [{}, {"kind": "own"}], "else": {}}
    fill_defaults(content, ROOT, ROOT)
    assert content == {
        "list": [{"kind": "plain"}, {"kind": "own"}],
        "else": {"more": []},
        "size": 3,
        "part": {"a": 1, "b": 2},
    }
    content = {"size": 0, "part": {"b": None}}
    fill_defaults(content, ROOT, ROOT)
    assert content == {"size": 0, "part": {"b": None}}


def test_what_was_filled_in_is_not_shared():
    first, second = {"else": {}}, {"else": {}}
    for content in (first, second):
        fill_defaults(content, ROOT, ROOT)
    first["else"]["more"].append(1)
    first["part"]["a"] = 0
    assert second == {"else": {"more": []}, "size": 3, "part": {"a": 1, "b": 2}}


def test_readers_and_extractors_are_those_whose_keys_the_schema_lists():
    for node, key in (("source", "reader"), ("features", "extractor")):
        found = schema("config")["$defs"][node]
        assert found["properties"][key]["enum"] == list(found[f"x-{key}s"]) != []


def test_a_document_that_does_not_fit_names_the_place():
    with pytest.raises(StudyError, match=r"^ledger\.json: the document: .*is a required property"):
        check({}, "ledger", "ledger.json")


def test_a_file_that_is_no_yaml_names_the_line(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "FOLDER", tmp_path)
    (tmp_path / "broken.schema.yaml").write_text("type: object\nproperties: [\n")
    with pytest.raises(StudyError, match=r"broken\.schema\.yaml: line 3: not YAML: "):
        schema("broken")
