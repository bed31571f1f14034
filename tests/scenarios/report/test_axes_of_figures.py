"""Every panel says what its axes measure, but one that shares a vertical axis with its neighbour."""

import pytest

from dpstudy.tables.styles.figures import curve, disparity, epsilons, search, settings, size
from dpstudy.tables.subgroups import Score


def panels(figure):
    return [panel for panel in figure.axes if panel.axison]


def test_each_panel_over_epsilon_has_its_measure(paper_study):
    spec = {"datasets": ["cifar10", "own"], "entries": ["dp-ls"], "features": ["in1k"]}
    drawn = panels(epsilons.draw_epsilons("f", spec, paper_study.results).figure)
    assert [panel.get_ylabel() for panel in drawn] == ["top-1 accuracy (%)"] * 2


@pytest.mark.parametrize(("share", "labels"), [(False, 2), (True, 1)])
def test_panels_of_curves_and_searches_have_it_where_they_have_an_axis_of_their_own(share, labels):
    cell = {"dataset": "mnist", "features": "pixels", "entry": "ls", "epsilon": "1"}
    axes = {"features": ["pixels"], "entries": ["ls"]}
    lines = [curve.Curve(title, "ls", cell, ((1, 1.0, 50.0, 1.0, 2),)) for title in "ab"]
    spec = {"panels": [{"title": title} for title in "ab"], "share_y": share}
    drawn = [curve.draw(lines, spec, axes)]
    searched = {"label": "s", "dataset": "mnist", "epsilon": "1", "cells": [cell]}
    views = [search.View(number, searched, (search.Point("1", (50.0,), 0),)) for number in (0, 1)]
    drawn.append(
        search.draw({"panels": [{"by": "a"}, {"by": "b"}], "searches": [searched], "share_y": share}, views, axes)
    )
    for figure in drawn:
        told = [panel.get_ylabel().split("\n")[0] for panel in panels(figure)]
        assert told == ["top-1 accuracy (%)"] * labels + [""] * (2 - labels)
        assert all(panel.get_xlabel() or panel.get_title(loc="left") for panel in panels(figure))


def drawn_with(style, chance):
    """The panels of a figure whose values lie about 50, at a level of chance."""
    cell = {"dataset": "mnist", "features": "pixels", "entry": "ls", "epsilon": "1"}
    axes = {"features": ["pixels"], "entries": ["ls"], "epsilons": ["1"]}
    if style == "curve":
        points = ((1, 1.0, 45.0, 1.0, 2), (2, 2.0, 55.0, 1.0, 2))
        return panels(curve.draw([curve.Curve("", "ls", cell, points)], {"panels": [{}]}, axes, [chance]))
    if style == "search":
        searched = {"label": "s", "cells": [cell]}
        view = search.View(0, searched, (search.Point("1", (45.0,), 0), search.Point("2", (55.0,), 0)))
        return panels(search.draw({"panels": [{"by": "a"}], "searches": [searched]}, [view], axes, chance))
    if style == "size":
        points = [size.Point("mnist", n, 1e-5, 1.0, n / 2, 1.0, 2, None) for n in (90, 110)]
        return panels(size.draw({"lines": [cell]}, [points], axes, chance))
    if style == "settings":
        points = [settings.Point("pixels", "ls", x, 40 + x, 1.0, 2, None) for x in (5.0, 15.0)]
        spec = {"panels": [{"x": "steps", "y": "top1"}], "series": [{"label": "s"}]}
        return panels(settings.draw(spec, [[points]], [chance]))
    scores = [Score(tuple(cell.values()), group, 9, mean, 1.0, None, None, 2) for group, mean in (("F", 45), ("M", 55))]
    spec = {"rows": [{"features": "pixels", "entry": "ls"}], "column": "sex"}
    return panels(disparity.draw(spec, scores, axes, "top1", chance))


@pytest.mark.parametrize("style", ["curve", "search", "size", "settings", "disparity"])
@pytest.mark.parametrize(("chance", "seen"), [(43.0, True), (10.0, False), (None, False)])
def test_each_style_has_chance_where_it_is_near(style, chance, seen):
    (panel,) = drawn_with(style, chance)
    levels = [line.get_ydata()[0] for line in panel.get_lines() if line.get_linestyle() == ":"]
    assert levels == [43.0] * seen and [text.get_text() for text in panel.texts] == ["chance"] * seen
