"""What the author of a method gets wrong in its schema or its files is one sentence, before anything runs."""

import re

import pytest

from dpstudy.config.loading import load
from dpstudy.config.new_methods import check_method
from dpstudy.core.errors import StudyError
from dpstudy.provenance.code import PACKAGE, closure
from dpstudy.schema import reading as schemas
from dpstudy.schema.methods import method_names, method_schema
from dpstudy.schema.reading import schema

NEWTON = (PACKAGE / "schemas/methods/newton.schema.yaml").read_text(encoding="utf-8")
STUDY = {
    "study": "new",
    "datasets": {"digits": {"reader": "digits", "delta": "1e-4"}},
    "features": {"pixels": {"extractor": "pixels"}},
    "methods": {"newton": {"method": "newton"}},
    "epsilons": ["1"],
    "seeds": [0],
}


@pytest.mark.parametrize("name", method_names())
def test_the_methods_that_are_here_pass(name):
    check_method(name)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of schemas with that of newton alone; other schemas are as they are."""
    (tmp_path / "methods").mkdir()
    for name in ("config", "tuning"):
        (tmp_path / f"{name}.schema.yaml").symlink_to(PACKAGE / f"schemas/{name}.schema.yaml")
    (tmp_path / "methods/newton.schema.yaml").write_text(NEWTON)
    monkeypatch.setattr(schemas, "FOLDER", tmp_path)
    monkeypatch.setattr("dpstudy.schema.methods.FOLDER", tmp_path)
    monkeypatch.setattr("dpstudy.config.new_methods.FOLDER", tmp_path)
    for cached in (schema, method_schema):
        cached.cache_clear()
    yield tmp_path
    for cached in (schema, method_schema):
        cached.cache_clear()


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (NEWTON, "", "schema of method 'newton': must be a mapping of keywords"),
        (NEWTON, "- a\n", "schema of method 'newton': must be a mapping of keywords"),
        ("properties:\n", "properties: [\n", "methods/newton.schema.yaml: line *: not YAML: "),
        ("type: integer", "type: nmber", "schema of method 'newton': properties.*.type: 'nmber' is not valid"),
        ("exclusiveMinimum", "exclusiveMinimm", "unknown keyword 'exclusiveMinimm' (did you mean 'exclusiveMinimum'?)"),
        ("x-reads: features", "x-reads: statistics", "`x-reads: statistics` needs `x-per-class`"),
    ],
)
def test_a_schema_that_is_none_is_told(folder, old, new, words):
    assert old in NEWTON
    (folder / "methods/newton.schema.yaml").write_text(NEWTON.replace(old, new, 1))
    pattern = ".*".join(map(re.escape, words.split("*")))
    with pytest.raises(StudyError, match=pattern) as caught:
        load(STUDY)
    assert "\n" not in str(caught.value)


def test_a_schema_without_a_module_is_told(folder):
    (folder / "methods/absent.schema.yaml").write_text(NEWTON.replace("const: newton", "const: absent"))
    absent = {"methods": {"newton": {"method": "absent"}}}
    with pytest.raises(
        StudyError, match="'absent': there is none of that name: no file workflow/dpstudy/methods/absent"
    ):
        load(STUDY | absent)


def test_files_that_are_missing_or_no_python_are_told(tmp_path):
    (tmp_path / "bad.py").write_text("import os\ndef f(:\n")
    with pytest.raises(StudyError, match=r"bad\.py: line 2: no Python \("):
        closure(str(tmp_path / "bad.py"))
    with pytest.raises(
        StudyError, match=r"dpstudy\.features\.none: there is no file workflow/dpstudy/features/none\.py"
    ):
        closure("dpstudy.features.none")
    for module in ("elsewhere_that_is_not", "elsewhere_that_is_not.within"):
        with pytest.raises(StudyError, match=f"{module}: no file of this module is installed"):
            closure(module)


@pytest.mark.parametrize(
    ("brought", "entries", "words"),
    [
        (
            "",
            "brought = brought_methods",
            "'brought': brought_methods must be a module with Parameters and ENTRIES; AttributeError: ",
        ),
        (
            "import nothing_of_that_name\n",
            "brought = brought_methods",
            "must be a module with Parameters and ENTRIES; ModuleNotFound",
        ),
        ("1 +\n", "brought = brought_methods", "must be a module with Parameters and ENTRIES; SyntaxError: "),
        (
            "",
            "brought = no_such_module",
            "no_such_module must be a module with Parameters and ENTRIES; ModuleNotFoundError",
        ),
        ("", "newton = brought_methods", "'newton': dpstudy has one of this name, and so has brought_methods: rename"),
    ],
)
def test_what_a_package_brings_wrongly_is_told(tmp_path, monkeypatch, brought, entries, words):
    (tmp_path / "brought-1.dist-info").mkdir()
    (tmp_path / "brought-1.dist-info/METADATA").write_text("Metadata-Version: 2.1\nName: brought\nVersion: 1\n")
    (tmp_path / "brought-1.dist-info/entry_points.txt").write_text(f"[dpstudy.methods]\n{entries}\n")
    (tmp_path / "brought_methods.py").write_text(brought)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(__import__("sys").modules, "brought_methods", raising=False)
    name = entries.split(" ")[0]
    with pytest.raises(StudyError, match=re.escape(words).replace(r"\ ", " ")):
        load(STUDY | {"methods": {"mine": {"method": name}}})
