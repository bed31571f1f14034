"""An entry has one colour in every figure of a study."""

from dpstudy.evaluation.summary import read_summary
from dpstudy.tables.palette import COLOURS, colours
from dpstudy.tables.series import Series
from dpstudy.tables.styles.figures import curve as curves
from dpstudy.tables.styles.figures import epsilons as figures
from dpstudy.tables.styles.figures import size as sizes

AXES = {"datasets": ["mnist"], "features": ["pixels", "scatternet"], "entries": ["ls", "dp-sgd"]}


def looks(figure):
    """Label in the legend -> (colour, dashes, marker)."""
    panel = figure.axes[0]
    handles, labels = panel.get_legend_handles_labels()
    lines = [getattr(handle, "lines", [handle])[0] for handle in handles]
    names = zip(labels, lines, strict=True)
    return {label: (line.get_color(), line.get_linestyle(), line.get_marker()) for label, line in names}


def curve(entry, label, epsilon="1"):
    cell = {"dataset": "mnist", "features": "pixels", "entry": entry, "epsilon": epsilon}
    return curves.Curve("", label, cell, ((1, 1.0, 50.0, 1.0, 2), (2, 2.0, 60.0, 1.0, 2)))


def test_an_entry_has_one_colour_in_every_style_of_figure(study):
    drawn = figures.draw(
        figures.collect("f", {"entries": ["dp-sgd", "ls"]}, study.axes, read_summary(study.summary)), AXES, "top1", ""
    )
    found = looks(drawn)
    assert {found[f"dp-sgd, {kind}"][0] for kind in ("pixels", "scatternet")} == {COLOURS[1]}
    assert found["ls, pixels"][0] == COLOURS[0] and found["ls, pixels"][2] == found["dp-sgd, pixels"][2]
    assert len(set(found.values())) == 4
    spec = {"entries": ["dp-sgd"], "features": ["pixels"]}
    alone = figures.collect("f", spec, study.axes, read_summary(study.summary))
    assert looks(figures.draw(alone, AXES, "top1", ""))["dp-sgd, pixels"][0] == COLOURS[1]

    spec = {"panels": [{}]}
    lines = [curve("dp-sgd", "a"), curve("ls", "b"), curve("dp-sgd", "c", "2")]
    found = looks(curves.draw(lines, spec, AXES))
    assert [found[label][0] for label in "abc"] == [COLOURS[1], COLOURS[0], COLOURS[1]]
    assert found["a"][1] != found["c"][1], "lines of one entry differ in dashes"

    spec = {"lines": [{"features": "scatternet", "entry": entry, "epsilon": "1"} for entry in ("dp-sgd", "ls")]}
    points = [[sizes.Point("mnist", n, 1e-5, 1.0, 90.0, 1.0, 2, None) for n in (100, 200)]] * 2
    found = looks(sizes.draw(spec, points, AXES))
    assert [look[0] for look in found.values()] == [COLOURS[1], COLOURS[0]]
    assert {look[2] for look in found.values()} == {"s"}, "the marker is that of the features"


def test_lines_that_one_colour_would_merge_are_told_apart():
    many = {"entries": [f"entry-{number}" for number in range(len(COLOURS) + 2)]}
    assert colours(["entry-1", "entry-1"], many) == list(COLOURS[:2]), "a single entry: by order"
    assert colours(["entry-1", f"entry-{len(COLOURS) + 1}"], many) == list(COLOURS[:2]), "of the same colour"
    assert colours(["entry-9", "entry-2"], many) == [COLOURS[1], COLOURS[2]]
    axes = many | {"features": ["pixels"]}
    points = (("1", 90.0, 1.0, 2),)
    series = [Series(entry, "pixels", "mnist", "pixels", entry, points) for entry in many["entries"]]
    assert len(set(looks(figures.draw(series, axes, "top1", "")).values())) == len(series)
