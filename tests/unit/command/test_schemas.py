"""What `make schemas` writes is what the modules of methods and readers say."""

import shutil

import pytest

from dpstudy.command import main, schemas
from dpstudy.core.errors import StudyError
from dpstudy.provenance.code import WORKFLOW
from dpstudy.schema.methods import method_names

ROOT = WORKFLOW.parent
MADE = schemas.made((ROOT / schemas.PAGE).read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", MADE, ids=lambda path: path.name)
def test_what_is_committed_is_what_would_be_written(path):
    assert (ROOT / path).read_text(encoding="utf-8") == MADE[path], "run make schemas"


def test_every_method_here_has_its_schema():
    assert {path.name.removesuffix(".schema.yaml") for path in MADE if path.parent.name == "methods"} == set(
        method_names()
    )


def test_what_has_changed_is_written_and_named(tmp_path, monkeypatch):
    shutil.copytree(schemas.FOLDER, tmp_path / "schemas")
    (tmp_path / "docs").mkdir()
    page = tmp_path / schemas.PAGE
    page.write_text("before\n<!-- hyper-parameters -->\nold\n<!-- end -->\nbehind\n", encoding="utf-8")
    monkeypatch.setattr(schemas, "FOLDER", tmp_path / "schemas")
    one = tmp_path / "schemas/methods/newton.schema.yaml"
    right = one.read_text(encoding="utf-8")
    one.write_text(right.replace("0.3", "0.4"), encoding="utf-8")
    config = tmp_path / "schemas/config.schema.yaml"
    known = config.read_text(encoding="utf-8")
    config.write_text(known.replace("x-drawn: [cutouts, ", "x-drawn: ["), encoding="utf-8")
    assert config.read_text(encoding="utf-8") != known
    assert schemas.write(tmp_path) == ["newton.schema.yaml", "config.schema.yaml", "methods.md"]
    assert config.read_text(encoding="utf-8") == known
    assert one.read_text(encoding="utf-8") == right
    assert page.read_text(encoding="utf-8").startswith("before\n<!-- hyper-parameters -->\n| method |")
    assert page.read_text(encoding="utf-8").endswith("|\n<!-- end -->\nbehind\n")
    assert schemas.write(tmp_path) == []


def test_another_clone_s_schemas_are_not_written(tmp_path, monkeypatch):
    """Clones may share an environment, whose command is of the one that made it."""
    (tmp_path / "workflow" / "dpstudy").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(schemas, "write", lambda root: pytest.fail("written"))
    with pytest.raises(StudyError, match="you stand in another clone: PYTHONPATH=workflow python -m dpstudy schemas"):
        main._schemas(None, [])
