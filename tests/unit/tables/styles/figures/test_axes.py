"""Every panel says what its axes measure, but one that shares a vertical axis with its neighbour."""

import pytest

from dpstudy.tables.styles.figures import curve, epsilons, search


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
