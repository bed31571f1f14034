"""A metric that the test records give no value: tables, figures and the report show that there is none, and go on.

Everything is trained and paid for by then, and which labels a test record bears must decide about no release.
"""

import csv

import pytest

from dpstudy.core.files import read_json, write_json
from dpstudy.evaluation.summary import write_summary
from dpstudy.report.page import Making, build_report
from dpstudy.report.usefulness import describe_usefulness
from dpstudy.tables.accuracies import UNDEFINED
from dpstudy.tables.build import build_figure, build_table

ROW = {"features": "pixels", "entry": "dp-sgd"}
CELLS = [ROW | {"epsilon": "2"}, ROW | {"epsilon": "inf"}]
TABLES = {
    "plain": {},
    "plain-rows": {"rows": [ROW]},
    "grouped": {"style": "grouped", "groups": [{"features": "pixels", "label": "Pixels"}], "rows": [{"entry": "ls"}]},
    "best": {"style": "best", "rows": [ROW]},
    "side": {"style": "side_by_side", "columns": [{"features": "pixels"}], "rows": [{"entry": "ls", "epsilon": "2"}]},
    "sex": {"style": "disparity", "column": "sex", "rows": [ROW], "epsilons": ["2"]},
    "label": {"style": "disparity", "column": "label", "rows": [ROW], "epsilons": ["2"]},
    "draws": {"style": "draws", "datasets": ["mnist"], "rows": [ROW]},
}
FIGURES = {
    "epsilons": {"dataset": "mnist"},
    "gain": {"dataset": "mnist", "gain_over": "pixels"},
    "sex": {"style": "disparity", "dataset": "mnist", "column": "sex", "rows": [ROW]},
    "size": {"style": "size", "datasets": ["mnist"], "lines": [CELLS[0] | {"label": "SGD"}]},
    "settings": {
        "style": "settings",
        "panels": [{"x": "batch_size", "y": "auc"}, {"x": "batch_size", "y": "top1"}],
        "series": [{"label": "s", "dataset": "mnist", "features": "pixels", "epsilon": "2", "entries": ["dp-sgd"]}],
    },
}


@pytest.fixture
def without(study):
    """The finished study, of whose cells an AUC was asked for that the test records do not define."""
    cells = []
    for path in study.metrics.values():
        content = read_json(path) | {"undefined": ["auc"], "hyperparameters": {"batch_size": 256}}
        for row in content["seeds"]:
            row["groups"] = {"sex=F": {"n": 60, "top1": 90.0}, "sex=M": {"n": 40, "top1": 91.0}, "label=1": {"n": 50}}
        write_json(path, content)
        cells.append({key: content[key] for key in ("dataset", "features", "entry", "epsilon")} | {"metrics": path})
    write_summary(cells, study.folder / "summary.csv", study.summary)
    return study


def rows_of(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def test_the_summary_says_that_it_was_asked_for(without):
    rows = [row for row in rows_of(without.folder / "summary.csv") if row["metric"] == "auc"]
    assert len(rows) == 3 * len(without.metrics) and {(row["group"], row["value"]) for row in rows} == {("", "")}


@pytest.mark.parametrize("name", TABLES)
def test_tables_have_a_dash_and_a_sentence(without, name):
    paths = [without.folder / f"t.{kind}" for kind in ("tex", "csv")]
    spec = {"dataset": "mnist", "metric": "auc", **TABLES[name]}
    build_table("t", {key: spec[key] for key in spec if name != "draws" or key != "dataset"}, without.results, *paths)
    rows = rows_of(paths[1])
    assert [row["ours"] for row in rows if "ours" in row] == [""] * len([row for row in rows if "ours" in row])
    assert {row["mean"] for row in rows if "mean" in row} <= {""}
    assert name in ("best", "draws") or rows
    assert name == "best" or "--" in paths[0].read_text()
    if name not in ("best", "sex", "label"):
        assert UNDEFINED in " ".join(paths[0].read_text().split())


@pytest.mark.parametrize("name", FIGURES)
def test_figures_have_no_points(without, name):
    paths = [without.folder / f"f.{kind}" for kind in ("pdf", "png", "csv", "svg")]
    build_figure("f", {"metric": "auc", **FIGURES[name]}, without.results, *paths)
    values = [row.get("mean", row.get("y_value")) for row in rows_of(paths[2]) if row.get("y") != "top1"]
    assert all(path.stat().st_size for path in paths) and not any(values)


def test_the_report_is_made(without):
    figures, paths = {name: {"metric": "auc", **FIGURES[name]} for name in ("epsilons", "sex")}, {}
    for name, spec in figures.items():
        files = [without.folder / f"{name}.{kind}" for kind in ("pdf", "png", "csv", "svg")]
        build_figure(name, spec, without.results, *files)
        paths[name] = files[3]
    tables = {name: {"dataset": "mnist", "metric": "auc", **spec} for name, spec in TABLES.items() if name != "draws"}
    page, useful = without.folder / "index.html", {"metric": "auc", "at_least": 0.75}
    build_report("s", without.results, tables, figures, paths, page, making=Making("0", "c", {}), useful=useful)
    assert UNDEFINED in page.read_text() and "no such cell" in page.read_text(), "of those that the study lacks"


def test_usefulness_is_not_told(without):
    told = describe_usefulness({"metric": "auc", "at_least": 0.75}, without.results)
    assert told and all(each.endswith(f"since {UNDEFINED}; 0.75 was asked for.") for each in told)
