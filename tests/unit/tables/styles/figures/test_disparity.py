"""A metric by subgroup: what is drawn is what metrics.json holds."""

import csv

import pytest
from matplotlib.colors import to_hex

from dpstudy.core.errors import StudyError
from dpstudy.core.files import read_json, write_json
from dpstudy.report.page import Making, build_report
from dpstudy.tables.build import build_figure
from dpstudy.tables.palette import COLOURS
from dpstudy.tables.styles.figures.disparity import draw
from dpstudy.tables.subgroups import lay_disparities

SPEC = {
    "style": "disparity",
    "dataset": "mnist",
    "column": "age_band",
    "rows": [{"features": "pixels", "entry": "ls", "label": "LS"}, {"features": "pixels", "entry": "dp-sgd"}],
}


@pytest.fixture
def grouped(study):
    """The finished study with two groups, one of them with intervals."""
    for path in study.metrics.values():
        content = read_json(path)
        for row in content["seeds"]:
            top1 = row["top1"]
            row["groups"] = {
                "age_band=<40": {"n": 60, "top1": top1 + 2, "top1_low": top1 - 1, "top1_high": top1 + 5},
                "age_band=40+": {"n": 40, "top1": top1 - 2},
            }
        write_json(path, content)
    return study


def build(study, name="f", **changes):
    paths = [study.folder / f"{name}.{kind}" for kind in ("pdf", "png", "csv", "svg")]
    build_figure(name, SPEC | changes, study.results, *paths)
    with open(paths[2], newline="") as file:
        return [path.read_bytes() for path in paths], list(csv.DictReader(file))


def drawn(study, **changes):
    spec = SPEC | changes
    scores = lay_disparities("f", spec, study.results, "figure")
    figure = draw(spec, scores, study.axes, "top1")
    return figure, figure.axes


def test_the_numbers_are_those_of_the_table(grouped):
    _, rows = build(grouped, epsilons=["2", "inf"])
    assert [row["group"] for row in rows[:4]] == ["", "<40", "40+", "gap"] and len(rows) == 16
    assert float(rows[1]["mean"]) == pytest.approx(float(rows[0]["mean"]) + 2)
    assert rows[1]["column"] == "age_band" and rows[2]["low"] == "" and rows[1]["low"] != ""


def test_a_panel_a_row_with_a_series_an_epsilon(grouped):
    figure, panels = drawn(grouped)
    assert [panel.get_title(loc="left") for panel in panels] == ["LS", "dp-sgd, pixels"]
    assert panels[0].get_ylim() == panels[1].get_ylim()
    assert [text.get_text() for text in panels[0].get_xticklabels()] == ["<40", "40+"]
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels == ["ε = 0.5", "ε = 1.2", "ε = 2", "ε = ∞ (not private)"]
    series = {container.get_label(): container for container in panels[0].containers}
    assert "ε = 0.5" not in series and len(series) == 3  # the cell is missing
    points, _, (bars,) = series["ε = 2"]
    scores = {(s.place[3], s.group): s for s in lay_disparities("f", SPEC, grouped.results) if s.place[2] == "ls"}
    assert list(points.get_ydata()) == [scores["2", "<40"].mean, scores["2", "40+"].mean]
    (first, second) = bars.get_segments()
    assert list(first[:, 1]) == pytest.approx([scores["2", "<40"].low, scores["2", "<40"].high])
    assert not len(second), "no interval, no bar"


def test_an_epsilon_keeps_its_colour_and_what_is_not_private_is_hollow(grouped):
    for changes in ({}, {"epsilons": ["2", "inf"]}):
        _, panels = drawn(grouped, **changes)
        series = {container.get_label(): container[0] for container in panels[1].containers}
        assert to_hex(series["ε = 2"].get_color()) == COLOURS[2].lower()
        open_ = series["ε = ∞ (not private)"]
        assert (to_hex(open_.get_markerfacecolor()), to_hex(open_.get_markeredgecolor())) == ("#ffffff", "#000000")


def test_long_names_are_turned_and_many_groups_are_not_put_abreast(grouped):
    assert drawn(grouped)[1][0].get_xticklabels()[0].get_rotation() == 0
    for path in grouped.metrics.values():
        content = read_json(path)
        for row in content["seeds"]:
            row["groups"] = {f"age_band=a rather long name {i}": {"n": 9, "top1": row["top1"]} for i in range(12)}
        write_json(path, content)
    figure, panels = drawn(grouped)
    assert panels[0].get_xticklabels()[0].get_rotation() == 40
    assert panels[0].get_subplotspec().get_gridspec().get_geometry() == (2, 1)


def test_a_second_build_gives_the_same_bytes_and_the_page_has_it(grouped):
    assert build(grouped, "a")[0] == build(grouped, "b")[0]
    page = grouped.folder / "page.html"
    paths = {"a": grouped.folder / "a.png"}  # any picture
    build_report("s", grouped.results, {}, {"a": SPEC}, paths, page, making=Making("", "", {}))
    assert "a: top-1 accuracy (%) on the test split by age band; mean over seeds" in page.read_text(encoding="utf-8")


def test_what_cannot_be_drawn_is_named(grouped):
    with pytest.raises(StudyError, match="figure f: no cell has 'auc'; name it in evaluation.metrics"):
        build(grouped, metric="auc")
    with pytest.raises(StudyError, match="figure f: data set 'cifar' is not in the study"):
        build(grouped, dataset="cifar")


def test_groups_that_hardly_differ_look_so(study):
    for path in study.metrics.values():
        content = read_json(path)
        for row in content["seeds"]:
            row["groups"] = {"age_band=<40": {"n": 60, "top1": 50.0}, "age_band=40+": {"n": 40, "top1": 50.01}}
        write_json(path, content)
    for panel in drawn(study)[1]:
        low, high = panel.get_ylim()
        assert high - low >= 10 and low < 50 < high, "ten points of a hundred at least"
