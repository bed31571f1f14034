"""Titles and legends stay within their figure, and leave panels room."""

import matplotlib.style
import pytest
from matplotlib.figure import Figure

from dpstudy.tables.drawing import RC
from dpstudy.tables.lettering import keep_inside, legend_place
from dpstudy.tables.series import Series
from dpstudy.tables.styles.figures.epsilons import draw

LONG = (
    "CIFAR-10, ten thousand training images: linear classifiers on ScatterNet features, each the best of sixty settings"
)


@pytest.fixture(autouse=True)
def style():
    with matplotlib.style.context(["default", RC]):
        yield


def titled(panels, title, suptitle=""):
    figure = Figure(figsize=(6.3, 3.1), layout="constrained")
    axes = figure.subplots(1, panels, squeeze=False).flatten()
    for panel in axes:
        panel.plot([0, 1], [0, 1], label="a line")
        panel.set_title(title, loc="left")
    if suptitle:
        figure.suptitle(suptitle)
    return figure, axes


def test_a_figures_title_is_as_large_as_its_panels():
    figure, axes = titled(1, "a panel", "the figure")
    assert figure._suptitle.get_fontsize() == axes[0]._left_title.get_fontsize()


def box(figure, text):
    return next(t for t in figure.findobj(matplotlib.text.Text) if t.get_text() == text).get_window_extent()


@pytest.mark.parametrize("panels", [1, 2, 3])
def test_long_titles_are_broken_and_stay_within_their_panel(panels):
    figure, axes = titled(panels, LONG, 2 * f"{LONG} ")
    keep_inside(figure)
    figure.draw_without_rendering()
    assert " ".join(figure.get_suptitle().split()) == (2 * f"{LONG} ").strip()
    whole = box(figure, figure.get_suptitle())
    assert whole.x0 >= 0 and whole.x1 <= figure.bbox.x1 and whole.y1 <= figure.bbox.y1
    ends = [*[panel.bbox.x0 for panel in axes[1:]], figure.bbox.x1]
    for panel, end in zip(axes, ends, strict=True):
        title = panel.get_title(loc="left")
        assert "\n" in title and " ".join(title.split()) == LONG
        text = next(t for t in panel.get_children() if getattr(t, "get_text", str)() == title).get_window_extent()
        assert text.x1 <= end and text.y1 <= whole.y0


def test_a_title_ends_before_a_legend_beside_its_panel():
    figure, _ = titled(1, LONG)
    legend = figure.legend(loc="outside right upper")
    keep_inside(figure)
    figure.draw_without_rendering()
    assert box(figure, figure.axes[0].get_title(loc="left")).x1 <= legend.get_window_extent().x0


def test_what_fits_is_left_as_it_is():
    figure, axes = titled(2, "MNIST", "Two data sets\nin two lines")
    keep_inside(figure)
    assert figure.get_suptitle() == "Two data sets\nin two lines" and axes[0].get_title(loc="left") == "MNIST"


@pytest.mark.parametrize(
    "title",
    [
        "MWMWMWM " * 4 + "WMW",
        "$\\varepsilon = 3$ and $a + b + c$ with a long trailer of words",
        "a line\nand another one that is too long for a panel",
    ],
)
def test_wide_letters_formulas_and_lines_of_their_own(title):
    figure, axes = titled(3, title)
    keep_inside(figure)
    figure.draw_without_rendering()
    broken = axes[0].get_title(loc="left")
    assert broken.split() == title.split()  # no word is cut
    assert set(title.split("\n")[:-1]) <= set(broken.split("\n"))  # lines of their own stay
    assert all(line.count("$") % 2 == 0 for line in broken.split("\n"))  # nor a formula
    for panel, following in zip(axes, axes[1:], strict=False):
        text = next(t for t in panel.get_children() if getattr(t, "get_text", str)() == broken).get_window_extent()
        assert text.x1 < following.bbox.x0 - 4


def test_a_figure_grows_with_the_rows_of_its_legend():
    lines = [Series("x" * 60 + str(k), "k", "a", "f", f"e{k}", (("1", 50.0, 1.0, 3),)) for k in range(12)]
    axes = {"features": ["f"], "entries": [f"e{k}" for k in range(12)], "epsilons": ["1"], "datasets": ["a"]}
    figure = draw(lines, axes, "top-1 accuracy (%)", "")
    figure.draw_without_rendering()
    assert figure.axes[0].bbox.height > 1.2 * figure.dpi


@pytest.mark.parametrize(("length", "beside"), [(8, True), (30, True), (60, False)])
def test_a_legend_leaves_its_panel_most_of_the_width(length, beside):
    lines = [Series("x" * length + str(k), "k", "a", "f", f"e{k}", (("1", 50.0, 1.0, 3),)) for k in range(3)]
    axes = {"features": ["f"], "entries": ["e0", "e1", "e2"], "epsilons": ["1"], "datasets": ["a"]}
    figure = draw(lines, axes, "top-1 accuracy (%)", LONG)
    keep_inside(figure)
    figure.draw_without_rendering()
    (panel,), (legend,) = figure.axes, figure.legends
    assert panel.bbox.width > 0.45 * figure.bbox.width
    assert legend.get_window_extent().x1 <= figure.bbox.x1
    assert (legend.get_window_extent().x0 >= panel.bbox.x1) == beside
    assert legend_place(["x" * length], 6.3)["loc"] == ("outside right upper" if beside else "outside lower center")
