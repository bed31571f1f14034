import csv
import statistics

import matplotlib
import matplotlib.style
import pytest

from dpstudy.core.errors import StudyError
from dpstudy.core.files import read_json, write_json
from dpstudy.evaluation.summary import read_summary, write_summary
from dpstudy.tables.bars import factors
from dpstudy.tables.build import build_figure
from dpstudy.tables.drawing import RC
from dpstudy.tables.intervals import joined
from dpstudy.tables.palette import COLOURS
from dpstudy.tables.series import Series, intervals_of
from dpstudy.tables.styles.figures.epsilons import collect, draw, draw_epsilons

SPEC = {
    "dataset": "mnist",
    "title": "MNIST",
    "groups": [
        {"features": "pixels"},
        {"features": "scatternet", "label": "T&B", "published": {"model": "linear", "method": "DP-SGD"}},
    ],
    "published": {"paper": "tramer2021", "table": "1", "dataset": "MNIST"},
}


def build(study, name, spec=SPEC):
    paths = [study.folder / f"{name}.{kind}" for kind in ("pdf", "png", "csv", "svg")]
    build_figure("f", spec, study.results, *paths)
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
    ours = [row for row in rows if (row["series"], row["epsilon"]) == ("dp-sgd, T&B", "1.2")]
    assert len(ours) == 1 and float(ours[0]["mean"]) == pytest.approx(97.1) and ours[0]["seeds"] == "3"
    published = [(row["epsilon"], row["mean"]) for row in rows if row["series"] == "published: T&B"]
    assert published == [("1.2", "98.1"), ("2", "98.5")]
    assert len(rows) == 14 + 2


def test_bars_are_the_intervals_that_tables_print_and_with_none_the_spread_of_seeds(study):
    cell = "mnist/pixels/dp-sgd/eps=1.2"
    content = read_json(study.metrics[cell])
    for row in content["seeds"]:
        row |= {"top1_low": row["top1"] - 3, "top1_high": row["top1"] + 1}
    write_json(study.metrics[cell], content)
    results = study.results
    values = [row["top1"] for row in content["seeds"]]
    low, high = joined(values, results.interval(cell, "top1"), "top1")
    mean = sum(values) / 3
    assert mean - low > 3 > 1 < high - mean
    build(study, "a", {"dataset": "mnist", "features": ["pixels"], "entries": ["dp-sgd"]})
    with open(study.folder / "a.csv", newline="") as file:
        ends = {row["epsilon"]: (row["low"], row["high"]) for row in csv.DictReader(file)}
    assert {epsilon for epsilon, both in ends.items() if both != ("", "")} == {"1.2"}
    assert [float(end) for end in ends["1.2"]] == pytest.approx([low, high])
    series = collect("f", {"features": ["pixels"], "entries": ["dp-sgd"]}, study.axes, read_summary(study.summary))
    (panel,) = draw(series, study.axes, "top1", "", intervals_of(series, results, "top1")).axes
    bars = [segment for one in panel.containers for segment in one.lines[2][0].get_segments()]
    drawn = {round(float(bar[0][0]), 6): (bar[0][1], bar[1][1]) for bar in bars}
    assert drawn[1.2] == pytest.approx((low, high))
    std = statistics.stdev((-0.2, 0.0, 0.5))
    assert drawn[2.0][1] - drawn[2.0][0] == pytest.approx(2 * std)


def single_seed(study, *ends):
    """The study with one seed a cell, and intervals over test records from so far below to so far above it."""
    cells = []
    for name, path in study.metrics.items():
        content = read_json(path)
        (row,) = content["seeds"] = content["seeds"][:1]
        row |= dict(zip(("top1_low", "top1_high"), (row["top1"] + end for end in ends), strict=False))
        write_json(path, content)
        cells.append(dict(zip(("dataset", "features", "entry", "epsilon"), name.split("/"), strict=True)))
        cells[-1] |= {"epsilon": name.rpartition("=")[2], "metrics": path}
    write_summary(cells, study.folder / "summary.csv", study.summary)


@pytest.mark.parametrize("ends", [(-3, 1), ()])
def test_of_a_single_seed_bars_are_the_interval_of_the_test_records_and_without_one_there_is_none(study, ends):
    single_seed(study, *ends)
    figure = draw_epsilons("f", {"dataset": "mnist"}, study.results).figure
    (panel,) = figure.axes
    for one in panel.containers:
        (drawn,) = one.lines[2] if one.has_yerr else [None]
        assert (drawn is not None) == bool(ends)
        for segment, mean in zip(drawn.get_segments() if ends else [], one.lines[0].get_ydata(), strict=False):
            assert list(segment[:, 1]) == pytest.approx([mean - 3, mean + 1])


def test_lines_stand_aside_by_as_much_at_every_epsilon_of_the_logarithmic_axis(study):
    (panel,) = draw_epsilons("f", {"dataset": "mnist"}, study.results).figure.axes
    found = {one.get_label(): list(one.lines[0].get_xdata()) for one in panel.containers if "," in one.get_label()}
    first, last = found["dp-sgd, pixels"], found["dp-sgd, scatternet"]
    ratios = [one / other for one, other in zip(last, first, strict=True)]
    assert ratios == pytest.approx([ratios[0]] * 3) and 1.01 < ratios[0] < 1.1
    middle = [one * other for one, other in zip(found["ls, pixels"], last[1:], strict=True)]
    assert middle == pytest.approx([1.2**2, 2**2]) and panel.get_xticks()[:3] == pytest.approx([0.5, 1.2, 2])


def test_lines_come_in_config_order(study):
    series = collect("f", {"features": ["scatternet", "pixels"]}, study.axes, read_summary(study.summary))
    labels = ["ls, scatternet", "dp-sgd, scatternet", "ls, pixels", "dp-sgd, pixels"]
    assert [line.label for line in series] == labels


def test_a_gain_is_seed_by_seed_over_another_feature_set(study):
    values = {
        (row["features"], row["entry"], row["epsilon"], row["seed"]): row["value"]
        for row in read_summary(study.summary)
        if row["dataset"] == "mnist" and row["metric"] == "top1"
    }
    build(study, "a", {"dataset": "mnist", "gain_over": "pixels"})
    with open(study.folder / "a.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert rows and {row["features"] for row in rows} == {"scatternet"}
    for row in rows:
        seeds = sorted({key[3] for key in values})
        gains = [values["scatternet", row["entry"], row["epsilon"], seed] for seed in seeds]
        gains = [
            gain - values["pixels", row["entry"], row["epsilon"], seed] for gain, seed in zip(gains, seeds, strict=True)
        ]
        assert float(row["mean"]) == pytest.approx(sum(gains) / len(gains))
        assert float(row["std"]) == pytest.approx(statistics.stdev(gains))
    series = collect("f", {"gain_over": "scatternet", "features": ["pixels"]}, study.axes, read_summary(study.summary))
    assert {line.label for line in series} == {"ls, pixels", "dp-sgd, pixels"}


@pytest.mark.parametrize("epsilons", [["inf"], ["2"], ["2", "inf"]])
def test_few_epsilons_can_be_drawn(study, epsilons):
    build(study, "few", {"epsilons": epsilons})


def test_nothing_to_draw_leaves_no_file(study):
    with pytest.raises(StudyError, match="figure f: no cell"):
        build(study, "c", {"entries": ["ls"], "epsilons": ["0.5"]})
    assert not list(study.folder.glob("c.*"))


FIGURE_1 = {
    "datasets": ["cifar10", "own"],
    "entries": ["dp-ls"],
    "published": {"paper": "mehta2023", "method": "DP-LS", "epochs": "1"},
    "counterparts": {"cifar10": {"table": "3"}},
}


def panels(study, spec):
    series = collect("f", spec, study.axes, read_summary(study.summary))
    return series, draw(series, study.axes, "top1", "").axes


def test_a_panel_per_data_set_and_a_line_per_group(paper_study):
    series, drawn = panels(paper_study, FIGURE_1 | {"groups": paper_study.GROUPS})
    ours = [(line.label, line.dataset, line.features) for line in series if not line.published]
    assert ours == [
        *(("ImageNet-1k", "cifar10", "in1k"), ("ImageNet-21k", "cifar10", "in21k")),
        ("ImageNet-1k", "own", "in1k"),
    ]
    assert [panel.get_title(loc="left") for panel in drawn] == ["cifar10", "own"]
    labels = [text.get_text() for text in drawn[0].get_xticklabels()]
    assert labels == ["0.01", "1", "∞"]
    ticks = drawn[0].get_xticks()
    assert drawn[0].get_xscale() == "log" and ticks[:2] == pytest.approx([0.01, 1]) and ticks[2] > 1.7
    for container in drawn[0].containers[:1]:  # error bars: the standard deviation over seeds
        [bars] = container.lines[2]
        low, high = bars.get_segments()[0][:, 1]
        assert (low, high) == pytest.approx((81.7, 82.3))


def test_published_values_are_hollow_markers_in_their_lines_colour(paper_study):
    series, drawn = panels(paper_study, FIGURE_1 | {"groups": paper_study.GROUPS})
    printed = {line.kind: line for line in series if line.published}
    assert {line.dataset for line in printed.values()} == {"cifar10"}
    assert [point[:2] for point in printed["ImageNet-21k"].points] == [("0.01", 94.5), ("1", 96.0), ("inf", 96.5)]
    hollow = [line for line in drawn[0].lines if line.get_markerfacecolor() == "none"]
    assert len(hollow) == 4 and all(line.get_linestyle() == "None" for line in hollow)  # finite and inf, two groups
    colours = {c.get_label(): c.lines[0].get_color() for c in drawn[0].containers if c.get_label() in printed}
    assert len(set(colours.values())) == 2 and {line.get_color() for line in hollow} == set(colours.values())
    assert not [line for line in drawn[1].lines if line.get_markerfacecolor() == "none"]


def test_cited_numbers_are_grey_lines_of_their_own_and_stand_between_the_ticks(paper_study):
    works = {"paper": "de2022", "table": "3", "dataset": "CIFAR-10"}
    spec = {"dataset": "cifar10", "entries": ["dp-ls"], "epsilons": ["0.01", "1", "1.93", "4.21"]}
    cited = [
        {"label": "VGG", "published": works | {"model": "shallow VGG variant"}},
        {"label": "ScatterNet", "published": works | {"model": "ScatterNet model"}},
    ]
    series, [drawn] = panels(paper_study, spec | {"cited": cited})
    found = {line.label: [point[:2] for point in line.points] for line in series if line.cited}
    assert found == {"VGG": [("1.93", 58.6), ("4.21", 66.2)], "ScatterNet": [("1", 60.3)]}
    handles = dict(zip(*reversed(drawn.get_legend_handles_labels()), strict=True))
    looks = [handles[label].lines[0] for label in found]
    assert {line.get_color() for line in looks} == {COLOURS[-1]} and len({line.get_marker() for line in looks}) == 2
    aside = factors(4, [0.01, 1.0])[2]  # two lines of ours stand before it
    assert list(looks[0].get_xdata()) == pytest.approx([1.93 * aside, 4.21 * aside]) and 1 < aside < 1.05
    assert list(looks[0].get_ydata()) == [58.6, 66.2]
    assert [text.get_text() for text in drawn.get_xticklabels()] == ["0.01", "1"]  # where cells are


def test_infinity_keeps_its_break_and_its_tick_where_only_a_cited_number_stands_there(paper_study):
    cited = [{"label": "NFNet", "published": {"paper": "de2022", "table": "6", "metric": "top1"}}]
    spec = {"dataset": "cifar10", "entries": ["dp-ls"], "epsilons": ["0.01", "1", "8", "inf"], "cited": cited}
    _, [drawn] = panels(paper_study, spec)
    assert [text.get_text() for text in drawn.get_xticklabels()] == ["0.01", "1", "∞"]
    breaks = [line.get_xdata()[0] for line in drawn.get_lines() if line.get_color() == "0.75"]
    assert len(breaks) == 1 and 8 < breaks[0] < drawn.get_xticks()[-1]


def test_a_bound_is_not_drawn(paper_study):
    adam = {"published": {"paper": "mehta2023", "method": "DP-Adam", "epochs": "1"}}
    spec = FIGURE_1 | adam | {"groups": paper_study.GROUPS[:1], "counterparts": {"cifar10": {"table": "4"}}}
    series, _ = panels(paper_study, spec)
    [printed] = [line for line in series if line.published]
    assert [point[:2] for point in printed.points] == [("1", 51.2), ("inf", 52.1)]


def test_a_group_of_another_data_set_has_no_line(paper_study):
    groups = [paper_study.GROUPS[0], paper_study.GROUPS[1] | {"dataset": "own"}]
    series, _ = panels(paper_study, FIGURE_1 | {"groups": groups})
    assert [(line.label, line.dataset) for line in series if line.dataset == "cifar10"] == [
        *(("ImageNet-1k", "cifar10"), ("published: ImageNet-1k", "cifar10")),
    ]


@pytest.mark.parametrize("length", [3, 30, 60])
def test_a_legend_stays_within_the_figure(length):
    lines = [
        Series(f"{number} ".ljust(length, "x"), "k", dataset, "f", f"e{number}", (("1", 50.0, 1.0, 3),))
        for dataset in ("a", "b")
        for number in range(7)
    ]
    axes = {"features": ["f"], "entries": [f"e{number}" for number in range(7)], "epsilons": ["1"], "datasets": []}
    with matplotlib.style.context(["default", RC]):
        figure = draw(lines, axes, "top1", "")
        figure.canvas.draw()
    (legend,) = figure.legends
    box, whole = legend.get_window_extent(), figure.bbox
    assert box.x0 >= whole.x0 - 1 and box.x1 <= whole.x1 + 1
