"""What methods' schemas say of options, whoever wrote the method."""

import pytest

from dpstudy.core import entry_points
from dpstudy.core.errors import StudyError
from dpstudy.schema.methods import hyperparameters, is_beyond_target, method_names, method_schema


@pytest.fixture
def brought(tmp_path, monkeypatch):
    """brought(code): a module with this code is the method 'brought'."""
    monkeypatch.setattr(entry_points, "_named", [])
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(__import__("sys").modules, "brought_here", raising=False)

    def bring(code):
        (tmp_path / "brought_here.py").write_text(code)
        entry_points.name_module("brought", "brought_here")

    method_schema.cache_clear()
    yield bring
    method_schema.cache_clear()


SCHEMA = {
    "x-reads": "features",
    "x-curve": False,
    "x-beyond-target": {"sampling": "shuffle"},
    "additionalProperties": False,
    "properties": {"method": {"const": "brought"}, "sampling": {"default": "poisson"}},
}


def test_a_method_of_another_package_is_one_among_others(brought):
    brought(f"SCHEMA = {SCHEMA!r}")
    assert "brought" in method_names() and "least_squares" in method_names()
    properties = method_schema("brought")["properties"]
    assert properties["sampling"] == {"default": "poisson"} and properties["sanitise"]["default"] == "full"
    assert not is_beyond_target({"method": "brought"})
    assert is_beyond_target({"method": "brought", "sampling": "shuffle"})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"x-reads": "images"}, "`x-reads` is 'images'; must be features or statistics"),
        ({"x-curve": None}, "`x-curve` is None; must be true or false"),
        ({"x-reads": "statistics"}, "`x-reads: statistics` needs `x-per-class`"),
        ({"x-chosen-on": ["CIFAR"]}, "`x-chosen-on` has 'CIFAR'; must be of CIFAR-10, "),
        ({"additionalProperties": True}, "must have `additionalProperties: false`"),
        ({"properties": {}}, "`method: {const: brought}` among its properties"),
    ],
)
def test_what_rules_ask_of_a_schema_is_asked_for(brought, change, words):
    brought(f"SCHEMA = {SCHEMA | change!r}")
    with pytest.raises(StudyError) as caught:
        method_schema("brought")
    assert words in str(caught.value) and "schema of method 'brought'" in str(caught.value)


def test_a_name_that_two_packages_have_is_refused(brought):
    brought(f"SCHEMA = {SCHEMA!r}")
    entry_points.name_module("brought", "json")
    with pytest.raises(StudyError, match="'brought': several packages have it, brought_here, json"):
        method_schema("brought")


def test_hyperparameters_are_what_a_method_is_given():
    options = {"method": "brought", "sampling": "poisson", "sanitise": "full", "tuning": {}, "accounting": "certified"}
    assert hyperparameters(options) == {"sampling": "poisson"}
