import pytest

from dpstudy.core.files import read_json, write_json
from dpstudy.report import charts
from dpstudy.report.charts import HEIGHT, WIDTH, describe_chart
from dpstudy.tables import palette

PUBLISHED = {"paper": "tramer2021", "table": "1", "dataset": "MNIST"}
GROUPS = [{"features": "scatternet", "label": "T&B", "published": {"model": "linear", "method": "DP-SGD"}}]


def only(chart, label):
    (line,) = (line for panel in chart["panels"] for line in panel.lines if line.label == label)
    return line


def test_points_stand_where_their_numbers_say(study):
    chart = describe_chart("f", {"dataset": "mnist"}, study.results)
    (panel,) = chart["panels"]
    line = only(chart, "dp-sgd, pixels")
    ticks = {text: y for y, text in panel.y_ticks}
    low, high = float(panel.y_ticks[0][1]), float(panel.y_ticks[-1][1])
    scale = (ticks[panel.y_ticks[-1][1]] - ticks[panel.y_ticks[0][1]]) / (high - low)
    for point, value in zip(line.points, (91.1, 92.1, 93.1, 94.1), strict=True):
        assert point.y == pytest.approx(ticks[panel.y_ticks[0][1]] + scale * (value - low))
        assert point.bar[0] - point.y == pytest.approx(-scale * 0.36055513)  # one standard deviation
        assert point.numbers[1] == f"{value:.1f} ± 0.4"
    marks = [(x, text) for x, text in panel.x_ticks]
    assert [text for _, text in marks] == ["0.5", "1.2", "2", "∞"]
    gaps = [second[0] - first[0] for first, second in zip(marks, marks[1:3], strict=False)]
    assert gaps[0] / gaps[1] == pytest.approx(0.875469 / 0.510826, rel=1e-4)  # ln(1.2/0.5), ln(2/1.2)
    assert marks[2][0] < panel.gap < marks[3][0] < WIDTH and 0 < point.y < HEIGHT


def test_a_point_says_its_numbers_and_its_privacy(study):
    point = only(describe_chart("f", {"dataset": "mnist"}, study.results), "ls, scatternet").points[0]
    assert point.told == "ls, scatternet\nε = 1.2: 96.1 ± 0.4\ncertified ε ≤ 1.199"
    assert point.numbers == ("1.2", "96.1 ± 0.4", "", "certified ε ≤ 1.199")
    last = only(describe_chart("f", {"dataset": "mnist"}, study.results), "ls, scatternet").points[-1]
    assert last.told == "ls, scatternet\nε = ∞: 98.1 ± 0.4" and last.numbers[3] == "no certified ε"


def test_bars_are_intervals_where_cells_have_some(study):
    for path in study.metrics.values():
        content = read_json(path)
        for row in content["seeds"]:
            row |= {"top1_low": row["top1"] - 2, "top1_high": row["top1"] + 2}
        write_json(path, content)
    chart = describe_chart("f", {"dataset": "mnist"}, study.results)
    point = only(chart, "dp-sgd, pixels").points[0]
    assert point.numbers[2] == "88.9–93.3" and "95 %: 88.9–93.3" in point.told  # 91.1 ± sqrt(2^2 + 0.8957^2)


def test_published_values_are_hollow_and_entries_keep_their_colour(study):
    spec = {"dataset": "mnist", "groups": GROUPS, "entries": ["dp-sgd"], "published": PUBLISHED}
    chart = describe_chart("f", spec, study.results)
    published = only(chart, "published: T&B")
    assert published.hollow and published.path == "" and published.points[0].numbers[3] == ""
    assert not only(chart, "T&B").hollow
    for entries in (["dp-sgd"], ["ls", "dp-sgd"]):
        chart = describe_chart("f", {"dataset": "mnist", "entries": entries, "features": ["pixels"]}, study.results)
        assert only(chart, "dp-sgd, pixels").colour == 1, "by its place in the study"
    both = describe_chart("f", {"dataset": "mnist"}, study.results)
    assert len({line.shape for line in both["legend"]}) == 2 == len({line.dash for line in both["legend"]})


def test_cited_numbers_have_a_line_of_their_own_between_the_ticks(study):
    models = {"VGG": "shallow VGG variant", "ResNet-9": "shallow 9-layer residual network"}
    works = {"paper": "de2022", "table": "3"}
    cited = [{"label": label, "published": works | {"model": model}} for label, model in models.items()]
    spec = {"dataset": "mnist", "epsilons": ["1.2", "7.42", "7.5", "inf"], "cited": cited}
    chart = describe_chart("f", spec, study.results)
    vgg, residual = only(chart, "VGG"), only(chart, "ResNet-9")
    assert vgg.hollow and [point.numbers[:2] for point in vgg.points] == [("7.42", "70.1")]
    assert residual.shape != vgg.shape and {vgg, residual} <= {*chart["legend"]}
    assert [text for _, text in chart["panels"][0].x_ticks] == ["1.2", "∞"]


def test_every_marker_and_dash_of_the_palette_can_be_drawn():
    assert set(palette.MARKERS) == set(charts._SHAPES) and set(palette.LINES) == set(charts._DASHES)


def test_lines_at_one_epsilon_do_not_hide_each_other(study):
    (panel,) = describe_chart("f", {"dataset": "mnist"}, study.results)["panels"]
    at = [line.points[-1].x for line in panel.lines]
    assert len(set(at)) == len(at) and max(at) - min(at) < 30
    one = describe_chart("f", {"dataset": "mnist", "features": ["pixels"], "entries": ["ls"]}, study.results)["panels"][
        0
    ]
    assert [point.x for point in one.lines[0].points] == [x for x, _ in one.x_ticks], "a single line has no need to"


def test_a_single_epsilon_and_a_single_value_can_be_drawn(study):
    (panel,) = describe_chart("f", {"dataset": "mnist", "epsilons": ["inf"]}, study.results)["panels"]
    assert panel.gap is None and len(panel.x_ticks) == 1
    (panel,) = describe_chart("f", {"dataset": "mnist", "epsilons": ["2"]}, study.results)["panels"]
    assert len(panel.x_ticks) == 1 and all(0 < x < WIDTH for x, _ in panel.x_ticks)
