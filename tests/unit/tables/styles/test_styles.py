"""What every style of tables and figures says of itself is so."""

import pytest
from jsonschema import Draft202012Validator

from dpstudy.core.errors import StudyError
from dpstudy.tables.keys import COMMON, rules
from dpstudy.tables.specs import KINDS
from dpstudy.tables.style import FigureStyle, TableStyle
from dpstudy.tables.styles import USUAL, names, style_of

EVERY = [(kind, name) for kind in KINDS for name in names(kind)]


@pytest.mark.parametrize(("kind", "name"), EVERY)
def test_a_style_is_one_object_whose_keys_are_a_schema(kind, name):
    style = style_of(kind, {"style": name})
    assert isinstance(style, TableStyle if kind == "tables" else FigureStyle)
    Draft202012Validator.check_schema(rules(kind, style.keys))
    assert set(style.needs) <= {*style.keys, *COMMON[kind]}, "what must be there is a key"
    assert not set(style.keys) & set(COMMON[kind]), "a key that all have is said once"


def test_a_spec_without_a_style_has_the_usual_one():
    for kind, name in USUAL.items():
        assert style_of(kind, {}) is style_of(kind, {"style": name})


@pytest.mark.parametrize("name", ["Plain", "../plain", "plain\n", "", "__init__"])
def test_only_files_of_styles_are_imported(name):
    with pytest.raises(StudyError, match="tables.t.style: unknown style of tables"):
        style_of("tables", {"style": name}, "tables.t")
