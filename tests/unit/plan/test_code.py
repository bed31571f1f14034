"""Each job declares the files that it runs on."""

from pathlib import Path

import pytest

from dpstudy.config.cells import Cell
from dpstudy.core.errors import StudyError
from dpstudy.plan import code
from tests.unit.plan.conftest import study_with

LS, SGD, NET = (Cell("own", "pixels", entry, "1") for entry in ("ls", "sgd", "net"))


def names(files: list[str]) -> set[str]:
    return {"/".join(Path(path).parts[-2:]) for path in files}


def test_a_cells_code_is_its_methods(study):
    squares, steps = (names(code.method_code(study, cell.options(study))) for cell in (LS, SGD))
    assert "methods/least_squares.py" in squares and "methods/first_order.py" not in squares
    assert "methods/first_order.py" in steps and "methods/least_squares.py" not in steps
    assert "scripts/train_cell.py" in squares & steps
    assert not any(one.startswith(("tables/", "plan/")) for one in squares | steps), "another table makes no cell stale"


def test_code_that_is_chosen_by_name_is_declared(study):
    assert "jobs/rank.py" in names(code.method_code(study, NET.options(study))), "each seed is a job"
    space = {"ridge": {"low": 0.1, "high": 10.0}}
    tuning = {"trials": 2, "pay": "choice", "retrain": False, "sampler": "random", "space": space}
    paid = study_with(methods__ls={"method": "least_squares", "tuning": tuning})
    found = names(code.method_code(paid, LS.options(paid)))
    assert {"tuning/paid.py", "tuning/paid_choice.py"} <= found and "tuning/paid_repeats.py" not in found
    assert "readers/cifar.py" in names(code.reading_code(study, "own")) & names(code.describing_code(study, "own"))
    assert "features/backbone.py" in names(code.extraction_code(study, "cnn"))
    assert "features/pixels.py" in names(code.projection_code(study, "pca"))
    assert "models/linear.py" in names(code.bundle_code(study, "cnn"))


def test_a_hash_is_of_the_declared_files(study):
    from dpstudy.provenance.hashes import library_hash

    assert code.cell_hash(study, SGD) == library_hash(code.method_code(study, SGD.options(study)))
    assert code.script_hash("score_cell") == library_hash(code.script_code("score_cell"))
    assert len({code.cell_hash(study, SGD, script) for script in ("train_cell", "tune_entry", "audit_cell")}) == 3


def test_a_list_stands_for_the_files_of_many_cells(study, tmp_path, monkeypatch):
    root = Path(code.WORKFLOW).parent
    monkeypatch.chdir(root)
    files = code.method_code(study, SGD.options(study))
    monkeypatch.setattr(code.paths, "CODE_LIST", f"{tmp_path}/{{script}}/{{method}}.sha256")
    path = code.cell_code(study, SGD)
    assert path == f"{tmp_path}/train_cell/first_order.sha256"
    assert [line.split("  ")[1] for line in Path(path).read_text().splitlines()] == files
    assert code.searching_code(study, SGD) == f"{tmp_path}/tune_entry/first_order-top1.sha256", "its metric is code too"
    (tmp_path / "file").touch()
    monkeypatch.setattr(code.paths, "CODE_LIST", f"{tmp_path}/file/{{script}}{{method}}.sha256")
    assert code.cell_code(study, NET) == code.method_code(study, NET.options(study)), (
        "it cannot be written: said elsewhere"
    )


def test_a_reader_or_extractor_without_a_module_is_named(study):
    code.check_modules(study)
    with pytest.raises(StudyError, match="dpstudy.data.readers.nothing"):
        code.check_modules(study | {"public": {"web": {"reader": "nothing"}}})
