import csv

import matplotlib
import pytest

from dpstudy.errors import StudyError
from dpstudy.evaluation.summary import read_summary
from dpstudy.tables.figures import build_figure, collect
from dpstudy.tables.palette import style

SPEC = {
    "dataset": "mnist",
    "title": "MNIST",
    "published": [
        {"paper": "tramer2021", "table": "1", "dataset": "MNIST", "model": "linear", "method": "DP-SGD", "label": "T&B"}
    ],
}


def build(study, name, spec=SPEC):
    paths = [study.folder / f"{name}.{kind}" for kind in ("pdf", "png", "csv")]
    build_figure("f", spec, study.axes, study.summary, *paths)
    return [path.read_bytes() for path in paths]


def test_a_second_build_gives_the_same_bytes(study, monkeypatch):
    first = build(study, "a")
    monkeypatch.setitem(matplotlib.rcParams, "lines.linewidth", 9)  # as a user's matplotlibrc would
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1")
    assert build(study, "b") == first
    assert first[0].startswith(b"%PDF") and first[1].startswith(b"\x89PNG") and b"CreationDate" not in first[0]


def test_csv_holds_what_is_drawn(study):
    build(study, "a")
    with open(study.folder / "a.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    ours = [row for row in rows if (row["series"], row["epsilon"]) == ("dp-sgd, scatternet", "1.2")]
    assert len(ours) == 1 and float(ours[0]["mean"]) == pytest.approx(97.1) and ours[0]["seeds"] == "3"
    published = [(row["epsilon"], row["mean"]) for row in rows if row["series"] == "published: T&B"]
    assert published == [("1.2", "98.1"), ("2", "98.5")]
    assert len(rows) == 14 + 2


def test_lines_come_in_config_order(study):
    series = collect("f", {"features": ["scatternet", "pixels"]}, study.axes, read_summary(study.summary))
    labels = ["ls, scatternet", "dp-sgd, scatternet", "ls, pixels", "dp-sgd, pixels"]
    assert [line.label for line in series] == labels


def test_an_entry_keeps_its_colour_and_features_their_marker(study):
    styles = {(f, e): style(f, e, study.axes) for f in study.axes["features"] for e in study.axes["entries"]}
    assert styles["pixels", "ls"]["color"] == styles["scatternet", "ls"]["color"]
    assert styles["pixels", "ls"]["marker"] == styles["pixels", "dp-sgd"]["marker"]
    assert len({(s["color"], s["marker"]) for s in styles.values()}) == 4


@pytest.mark.parametrize("epsilons", [["inf"], ["2"], ["2", "inf"]])
def test_few_epsilons_can_be_drawn(study, epsilons):
    build(study, "few", {"epsilons": epsilons})


def test_wrong_names_leave_no_file(study):
    with pytest.raises(StudyError, match="figure f: features 'pixls' is not in the study"):
        build(study, "c", {"features": ["pixls"]})
    with pytest.raises(StudyError, match="figure f: no cell"):
        build(study, "c", {"entries": ["ls"], "epsilons": ["0.5"]})
    assert not list(study.folder.glob("c.*"))
