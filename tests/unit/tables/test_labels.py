"""Figures and the page call a method what the tables call it."""

import pytest

from dpstudy.config.loading import load
from dpstudy.evaluation.summary import read_summary
from dpstudy.report.figures import numbers_of
from dpstudy.report.groups import describe_groups
from dpstudy.tables.labels import fill_labels, labels_of
from dpstudy.tables.styles.figures.epsilons import collect
from tests.unit.config.selecting import config, refused

ROW = {"features": "pixels", "entry": "ls"}
TABLES = {
    "first": {"rows": [ROW | {"label": "Least squares"}, ROW | {"entry": "dp-sgd"}]},
    "second": {"rows": [ROW | {"label": "LS"}]},
    "grouped": {
        "style": "grouped",
        "groups": [{"features": "scatternet"}],
        "rows": [{"entry": "dp-sgd", "label": "DP-SGD", "epochs": 5}],
    },
    "attacked": {"style": "membership", "rows": [ROW | {"entry": "dp-sgd", "label": "4,000"}]},
}


def test_the_first_table_with_a_label_names_an_entry_and_only_labels_of_methods_count():
    assert labels_of(TABLES) == {"pixels/ls": "Least squares", "dp-sgd": "DP-SGD, epochs: 5"}


def test_a_label_that_two_have_tells_neither():
    again = {"other": {"rows": [ROW | {"features": "scatternet", "label": "Least squares"}]}}
    assert "pixels/ls" not in labels_of(TABLES | again) and "scatternet/ls" not in labels_of(TABLES | again)
    both = {
        "one": {"rows": [ROW | {"label": "LS"}]},
        "two": TABLES["grouped"] | {"rows": [{"entry": "ls", "label": "LS"}]},
    }
    assert labels_of(both) == {"pixels/ls": "LS", "ls": "LS"}, "the same entry by itself and on a feature set"


def filled(figure):
    whole = {"tables": TABLES, "figures": {"f": figure}, "methods": {"ls": {}, "dp-sgd": {}}}
    fill_labels(whole)
    return whole["figures"]["f"]


@pytest.mark.parametrize("spec", [{}, {"style": "epsilons", "features": ["pixels", "scatternet"]}])
def test_lines_over_epsilon_have_them_in_the_pdf_and_on_the_page(study, spec):
    spec = filled({"dataset": "mnist"} | spec)
    names = ["Least squares", "DP-SGD, epochs: 5, pixels", "ls, scatternet", "DP-SGD, epochs: 5, scatternet"]
    assert [line.label for line in collect("f", spec, study.axes, read_summary(study.summary))] == names
    assert [*dict.fromkeys(row[0] for row in numbers_of("f", spec, study.results))] == names


def test_a_figure_may_have_labels_of_its_own_and_groups_have_those_of_their_features(study):
    spec = filled({"dataset": "mnist", "labels": {"pixels/ls": "mine"}})
    assert collect("f", spec, study.axes, read_summary(study.summary))[0].label == "mine"
    spec = filled({"dataset": "mnist", "groups": [{"features": "pixels", "label": "Raw"}]})
    labels = [line.label for line in collect("f", spec, study.axes, read_summary(study.summary))]
    assert labels == ["ls, Raw", "DP-SGD, epochs: 5, Raw"]


@pytest.mark.parametrize(
    ("figure", "place"),
    [
        ({"style": "size", "lines": [dict(ROW), ROW | {"label": "own"}]}, ("lines",)),
        ({"style": "curve", "panels": [{"lines": [dict(ROW), ROW | {"label": "own"}]}]}, ("panels", 0, "lines")),
        ({"style": "disparity", "rows": [dict(ROW), ROW | {"label": "own"}]}, ("rows",)),
    ],
)
def test_lines_that_are_named_have_them_where_they_have_none(figure, place):
    found = filled(figure)
    for step in place:
        found = found[step]
    assert [line["label"] for line in found] == ["Least squares", "own"] and "labels" not in filled(figure)


def test_a_part_of_a_study_has_the_labels_of_the_whole():
    row = {"features": "pixels", "entry": "ls", "label": "Least squares"}
    study = config(tables={"t": {"rows": [row]}}, figures={"f": {"dataset": "digits"}})
    assert load(study)["figures"]["f"]["labels"] == {"pixels/ls": "Least squares"}
    part = load(study | {"only": "f"})
    assert part["tables"] == {} and part["figures"]["f"]["labels"] == {"pixels/ls": "Least squares"}
    refused(
        config(figures={"f": {"dataset": "digits", "labels": {"pixels/l": "x"}}}), "figures.f.labels: unknown method*"
    )


def test_the_page_names_them_beside_subgroups(study):
    from tests.unit.report.test_groups import grouped

    results = grouped(study, **{"sex=F": 1.0, "sex=M": -2.0}).results
    (table,) = describe_groups(results, {"pixels/ls": "Least squares"})
    assert [row["label"] for row in table["rows"]][:2] == ["Least squares", "dp-sgd, pixels"]
