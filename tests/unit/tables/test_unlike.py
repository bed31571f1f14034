"""Rows of one table on different test records are told apart; rows on the same ones are not."""

import pytest

from dpstudy.core.files import read_json, write_json
from dpstudy.report.tables import describe_table
from dpstudy.tables.accuracies import notes
from dpstudy.tables.layout import lay_out
from dpstudy.tables.remarks import remarks
from dpstudy.tables.styles.tables.grouped import notes as grouped_notes
from dpstudy.tables.styles.tables.plain import to_latex
from dpstudy.tables.styles.tables.side_by_side import lay_side_by_side
from dpstudy.tables.unlike import unlike_rows

SPEC = {"dataset": "mnist", "epsilons": ["1.2", "inf"]}
SAID = (
    "Not all rows are scored on the same test records of mnist: ls, scatternet; dp-sgd, scatternet on {}; the others "
    "on 10,000{}."
)


def score_on(study, records, names, features=""):
    for cell, path in study.metrics.items():
        if features in cell:
            metrics, tested = read_json(path), {"records": records, "names": names}
            write_json(path, metrics | {"seeds": [row | {"tested": tested} for row in metrics["seeds"]]})


def test_rows_on_the_same_records_are_not_marked(study):
    assert remarks(lay_out("t", SPEC, study.results)) == [], "nothing is known of cells of earlier versions"
    score_on(study, 10_000, "all")
    table = lay_out("t", SPEC, study.results)
    assert remarks(table) == [] and "; 10,000 test records; " in table.facts[0]


@pytest.mark.parametrize(
    ("records", "told", "count"),
    [(9998, SAID, "9,998 to 10,000"), (10_000, SAID.replace("on 10", "on another 10"), "10,000")],
)
def test_rows_on_other_records_are_marked_wherever_the_table_stands(study, records, told, count):
    score_on(study, 10_000, "all")
    score_on(study, records, "some", "scatternet")
    table, said = lay_out("t", SPEC, study.results), told.format(f"{records:,}", "")
    assert remarks(table) == [said]
    assert said in notes(table) and said in grouped_notes(table) and said in to_latex(table)
    assert said in describe_table("t", SPEC, study.results)["notes"], "in the report"
    assert f"; {count} test records; " in table.facts[0]


def test_counts_of_private_records_are_said_to_be_that(study):
    score_on(study, 10_000, "all")
    score_on(study, 9998, "some", "scatternet")
    study.axes = study.axes | {"private_tests": ["mnist"]}
    counted = "; these are counts of private records, which no ledger accounts for"
    assert SAID.format("9,998", counted) in remarks(lay_out("t", SPEC, study.results))


def test_columns_of_feature_sets_are_named(study):
    score_on(study, 10_000, "all")
    score_on(study, 9998, "some", "mnist/scatternet/ls")
    rows = [{"entry": "ls", "epsilon": "1.2"}, {"entry": "dp-sgd", "epsilon": "2"}]
    spec = {"dataset": "mnist", "rows": rows, "columns": [{"features": "pixels"}, {"features": "scatternet"}]}
    (said,) = remarks(lay_side_by_side("t", spec, study.results))
    assert said.endswith(": ls, ε = 1.2, scatternet on 9,998; the others on 10,000.")


def test_other_data_sets_have_other_records_and_several_sets_are_all_named():
    a, b, c = ({"records": n, "names": name} for n, name in ((5, "a"), (5, "b"), (6, "c")))
    assert unlike_rows([("x", "one", a), ("y", "one", b), ("y", "two", None)], []) == []
    rows = [("x", "one", a), ("x", "two", b), ("x", "three", c), ("x", "four", c)]
    assert unlike_rows(rows, ["y"]) == [
        "Not all rows are scored on the same test records of x: two on 5; one on another 5; the others on 6."
    ]
