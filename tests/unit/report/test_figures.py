import base64

import pytest

from dpstudy.core.errors import StudyError
from dpstudy.core.files import read_json, write_json
from dpstudy.report.figures import describe_figure, numbers_of

PUBLISHED = {"paper": "tramer2021", "table": "1", "dataset": "MNIST"}
GROUPS = [{"features": "scatternet", "label": "T&B", "published": {"model": "linear", "method": "DP-SGD"}}]


def of_line(study, label, **spec):
    return [row for row in numbers_of("f", {"dataset": "mnist"} | spec, study.results) if row[0] == label]


def test_a_point_says_its_number_and_its_privacy(study):
    first, *_, last = of_line(study, "ls, scatternet")
    assert first == ("ls, scatternet", "mnist", "1.2", "96.1 ± 0.4", "", "certified ε ≤ 1.199")
    assert last == ("ls, scatternet", "mnist", "∞", "98.1 ± 0.4", "", "no certified ε")


def test_a_line_goes_from_the_least_epsilon_to_the_largest(study):
    rows = of_line(study, "dp-sgd, pixels")
    assert [row[2] for row in rows] == ["0.5", "1.2", "2", "∞"]
    assert [row[3] for row in rows] == [f"{value:.1f} ± 0.4" for value in (91.1, 92.1, 93.1, 94.1)]


def test_intervals_are_told_where_cells_have_some(study):
    for path in study.metrics.values():
        content = read_json(path)
        for row in content["seeds"]:
            row |= {"top1_low": row["top1"] - 2, "top1_high": row["top1"] + 2}
        write_json(path, content)
    assert of_line(study, "dp-sgd, pixels")[0][4] == "88.9–93.3"  # 91.1 ± sqrt(2^2 + 0.8957^2)
    gains = of_line(study, "dp-sgd, scatternet", features=["scatternet"], gain_over="pixels")
    assert all(row[4] == "" for row in gains), "a difference has none"


def test_published_and_cited_values_have_no_privacy_of_ours(study):
    published = of_line(study, "published: T&B", groups=GROUPS, entries=["dp-sgd"], published=PUBLISHED)
    assert published and all(row[5] == "" for row in published)
    works = {"paper": "de2022", "table": "3", "model": "shallow VGG variant"}
    cited = [{"label": "VGG", "published": works}]
    (row,) = of_line(study, "VGG", epsilons=["1.2", "7.42", "inf"], cited=cited)
    assert row[2:4] == ("7.42", "70.1") and row[5] == ""


@pytest.mark.parametrize("style", ["epsilons", "curve"])
def test_a_figure_is_its_picture_and_its_numbers_where_the_page_has_them(study, style):
    path = study.folder / "f.svg"
    path.write_bytes(b"<svg/>")
    told = describe_figure("f", {"dataset": "mnist", "style": style}, study.results, {"f": path})
    assert base64.b64decode(told["svg"]) == b"<svg/>" and bool(told["numbers"]) == (style == "epsilons")
    where = "the numbers stand below" if style == "epsilons" else "the numbers stand in results/figures/f.csv"
    assert where in told["alt"]


def test_a_missing_picture_is_told(study):
    with pytest.raises(StudyError, match="figure f: its SVG is missing; run snakemake again"):
        describe_figure("f", {"dataset": "mnist"}, study.results, {})
