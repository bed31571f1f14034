"""The worked examples of docs/add-a-table.md, written into a copy of the repository and run as they stand."""

import csv
import shutil

import pytest

from dpstudy.core.files import read_json
from tests.workflow.conftest import ROOT, copy_code, make_folder
from tests.workflow.test_worked_examples import blocks, python

CELLS = [f"digits/pixels/ls/eps={epsilon}" for epsilon in ("1", "8")]
FOUND_BY_NAME = ("evaluation/metrics/test_metrics", "provenance/test_code", "tables/styles/tables/test_spread")


@pytest.fixture(scope="module")
def extended(tmp_path_factory):
    """A copy of the repository with what the page adds: files, and not a line in another."""
    folder = make_folder(tmp_path_factory.mktemp("examples") / "dpstudy")
    copy_code(ROOT / "tests", folder.path / "tests")
    shutil.copy(ROOT / "pyproject.toml", folder.path)
    found = blocks("add-a-table")
    assert [name.rpartition("/")[2] for name, *_ in found] == [
        "spread.py", "seeds.py", "worst_class.py", "test_spread.py", "seeds.yaml",
    ]  # fmt: skip
    for name, language, content in found:
        assert language != "diff" and not (folder.path / name).exists(), name
        (folder.path / name).parent.mkdir(exist_ok=True)
        (folder.path / name).write_text(content, encoding="utf-8")
    return folder


def rows(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_a_study_prints_the_new_table_draws_the_new_figure_and_shows_both(extended):
    results = extended.path / "results"
    done = extended.snakemake("--configfile", "studies/seeds.yaml")
    assert done.returncode == 0, done.stdout + done.stderr
    by_cell = {cell: read_json(results / "cells" / cell / "metrics.json")["seeds"] for cell in CELLS}
    seeds = {cell: [seed["worst_class"] for seed in found] for cell, found in by_cell.items()}
    assert all(seed["worst_class_low"] <= seed["worst_class"] < seed["top1"] for seed in by_cell[CELLS[1]])
    assert [
        (row["cell"], float(row["least"]), float(row["greatest"])) for row in rows(results / "tables/worst.csv")
    ] == [(cell, min(values), max(values)) for cell, values in seeds.items()]
    drawn = rows(results / "figures/worst.csv")
    assert [(row["cell"], float(row["worst_class"])) for row in drawn] == [
        (cell, value) for cell, values in seeds.items() for value in values
    ]
    page = (results / "report/index.html").read_text(encoding="utf-8")
    assert "The worst class." in page and "accuracy on the worst class (%) cell by cell; a point is a seed." in page


def test_an_edit_of_each_makes_anew_what_is_made_of_it(extended):
    """After the test above, in its folder."""
    study = ["--configfile", "studies/seeds.yaml"]
    assert extended.planned(*study) == []
    planned = {}
    for name in ("tables/styles/tables/spread", "tables/styles/figures/seeds", "evaluation/metrics/worst_class"):
        path = extended.path / "workflow/dpstudy" / f"{name}.py"
        text = path.read_text(encoding="utf-8")
        path.write_text(text + "\n# edited\n", encoding="utf-8")
        planned[name.rpartition("/")[2]] = sorted({rule for rule, _ in extended.planned(*study)})
        path.write_text(text, encoding="utf-8")
    assert planned["spread"] == ["build_report", "build_table"]
    assert planned["seeds"] == ["build_report", "draw_figure"]
    assert planned["worst_class"] == ["build_report", "build_table", "draw_figure", "score_cell", "summarise_cells"]


def test_the_tests_that_find_them_by_name_pass(extended):
    found = [f"tests/unit/{name}.py" for name in FOUND_BY_NAME]
    chosen = "worst_class or the_order or style or a_metric or least"
    said = python(extended, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "0", *found, "-k", chosen, "-rA")
    for test in (
        "test_weights_of_one_give_the_point[worst_class-ten]",
        "test_the_least_and_the_greatest_seed_are_told",
    ):
        assert f"::{test}" in said
