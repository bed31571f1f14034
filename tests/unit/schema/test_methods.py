"""What methods' schemas say of options, whoever wrote the method."""

import re

import pytest

from dpstudy.core import entry_points
from dpstudy.core.errors import StudyError
from dpstudy.schema import methods
from dpstudy.schema.methods import hyperparameters, is_beyond_target, method_names, method_schema
from dpstudy.schema.reading import schema


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


def test_a_name_that_two_packages_have_is_refused(brought):
    brought(f"SCHEMA = {SCHEMA!r}")
    entry_points.name_module("brought", "json")
    with pytest.raises(StudyError, match="'brought': several packages have it, brought_here, json"):
        method_schema("brought")


def test_hyperparameters_are_what_a_method_is_given():
    options = {"method": "brought", "sampling": "poisson", "sanitise": "full", "tuning": {}, "accounting": "certified"}
    assert hyperparameters(options) == {"sampling": "poisson"}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"x-curve": None}, "`x-curve` is None; must be true or false"),
        ({"x-curve": "yes"}, "`x-curve` is 'yes'"),
        ({"x-chosen-on": ["MNIST", "CheXpert"]}, "`x-chosen-on` has 'CheXpert'; must be of CIFAR-10, CIFAR-100, MNIST"),
        ({"x-reads": "feature"}, "`x-reads` is 'feature'; must be features or statistics"),
        ({"x-reads": "statistics"}, "`x-reads: statistics` needs `x-per-class`"),
        ({"properties": {"method": {"const": "newtonn"}}}, "`method: {const: newton}`"),
        ({"additionalProperties": True}, "`additionalProperties: false`"),
    ],
)
def test_what_rules_ask_of_a_methods_schema_is_said(change, words, monkeypatch):
    rules = schema("methods/newton") | change
    monkeypatch.setattr(methods, "schema", lambda name: rules)
    with pytest.raises(StudyError, match=f"schema of method 'newton': .*{re.escape(words)}"):
        method_schema.__wrapped__("newton")
