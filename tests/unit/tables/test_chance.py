"""The level of chance: a line where it is near what is drawn, and none where it would spoil the view or mislead."""

import pytest

from dpstudy.core.files import read_json, write_json
from dpstudy.tables import series
from dpstudy.tables.chance import chance_level, draw_chance, in_view
from dpstudy.tables.styles.figures.epsilons import draw_epsilons

CELLS = ["mnist/pixels/ls/eps=2", "mnist/pixels/dp-sgd/eps=2"]
SPEC = {"dataset": "mnist", "features": ["pixels"], "entries": ["dp-sgd"]}


def classes(study, number, cells=None):
    for cell in cells or study.metrics:
        write_json(study.metrics[cell], read_json(study.metrics[cell]) | {"classes": number})


def test_cells_of_as_many_classes_have_one_level_and_others_none(study):
    assert chance_level("top1", CELLS, study.results) == 10.0
    assert chance_level("average_precision", CELLS, study.results) is None
    classes(study, 4, CELLS[:1])
    assert chance_level("top1", CELLS, study.results) is None
    assert chance_level("auc", CELLS, study.results) == 0.5, "which depends on no number of classes"


def test_a_line_is_drawn_up_to_a_quarter_of_the_span_outside():
    assert [in_view(level, 50.0, 90.0) for level in (39.9, 40.0, 70.0, 100.0, 100.1)] == [
        False,
        True,
        True,
        True,
        False,
    ]
    assert not in_view(None, 0.0, 1.0)


def lines(panel):
    return [line for line in panel.get_lines() if line.get_linestyle() == ":"]


def test_it_is_drawn_where_it_is_near_and_nowhere_else(study, monkeypatch):
    far = draw_epsilons("f", SPEC, study.results).figure.axes[0]
    assert not lines(far) and not far.texts, "chance is 10, the values above 90"
    monkeypatch.setattr(series, "chance_level", lambda *about: 90.5)
    near = draw_epsilons("f", SPEC, study.results).figure.axes[0]
    (line,) = lines(near)
    assert list(line.get_ydata()) == pytest.approx([90.5, 90.5]) and near.get_ylim()[0] < 90.5
    (text,) = near.texts
    assert text.get_text() == "chance" and text.get_position()[1] == pytest.approx(90.5)
    gain = SPEC | {"features": ["scatternet"], "gain_over": "pixels"}
    assert not lines(draw_epsilons("f", gain, study.results).figure.axes[0]), "a gain has no chance"


def test_panels_that_share_an_axis_are_looked_at_together():
    from matplotlib.figure import Figure

    figure = Figure()
    one, other = figure.subplots(1, 2, sharey=True)
    one.plot([0, 1], [10, 20])
    other.plot([0, 1], [60, 70])
    draw_chance({one: None, other: 15.0})
    assert not lines(one) and len(lines(other)) == 1
