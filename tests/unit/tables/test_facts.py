"""Below a table stands what its numbers are worth nothing without."""

from dataclasses import replace

import pytest

from dpstudy.core.files import read_json, write_json
from dpstudy.tables.accuracies import notes
from dpstudy.tables.facts import facts, facts_of
from dpstudy.tables.layout import lay_out
from dpstudy.tables.markup import escape
from dpstudy.tables.styles import table_style
from dpstudy.tables.styles.tables.best import STYLE as BEST
from dpstudy.tables.styles.tables.grouped import notes as grouped_notes

SPEC = {"dataset": "mnist", "epsilons": ["1.2", "inf"]}
FACTS = (
    "mnist: n = 60,000 records to learn from; ε at δ = 1e-5 is about adding or removing one record (accountant: pld); "
)


def test_each_data_set_is_told_once_with_the_numbers_of_its_cells(study, tmp_path):
    assert lay_out("t", SPEC, study.results).facts == (f"{FACTS}3 seeds.",)
    write_json(tmp_path / "test.json", {"rows": 10_000, "subjects": None})
    results = replace(study.results, splits={"mnist": {"test": tmp_path / "test.json"}})
    table = lay_out("t", SPEC, results)
    assert table.facts == (f"{FACTS}10,000 test records; 3 seeds.",)
    assert table.facts[0] in notes(table) and escape(table.facts[0]) in grouped_notes(table)
    assert BEST.documents is not None


def test_persons_other_adjacencies_and_several_numbers_are_named(study, tmp_path):
    cells = ["mnist/pixels/ls/eps=1.2", "mnist/pixels/dp-sgd/eps=1.2", "mnist/pixels/ls/eps=inf"]
    for cell, n, adjacency in zip(cells, (87, 90, 90), ("add-remove-one", "zero-out", "replace-one"), strict=True):
        certified = None if cell.endswith("inf") else 1.1
        ledger = study.ledger("1.2", certified) | {"n": n, "adjacency": adjacency, "unit": "subject", "delta": 1e-3}
        write_json(study.ledgers[cell], ledger)
    write_json(tmp_path / "test.json", {"rows": 120, "subjects": 40})
    results = replace(study.results, splits={"mnist": {"test": tmp_path / "test.json"}})
    assert facts(
        [("mnist", cell, seeds) for cell, seeds in zip(cells, (1, 3, 3), strict=True)], results, ["mnist"]
    ) == (
        "mnist: n = 87 to 90 persons to learn from; ε at δ = 0.001 is about adding or removing one person, leaving the "
        "place of one person empty (accountant: pld); 120 test records of 40 persons "
        "(a count of private records, which no ledger accounts for); 1 to 3 seeds.",
    )
    alone = facts([("mnist", cells[2], 1)], replace(study.results, splits={}), [])
    assert alone == ("mnist: n = 90 persons to learn from; no ε is claimed; 1 seed.",)


def test_cells_by_name_have_the_seeds_of_the_summary_and_those_that_are_not_there_say_nothing(study):
    cells = ["mnist/pixels/ls/eps=1.2", "mnist/pixels/ls/eps=0.5", "mnist/pixels/dp-sgd/eps=inf"]
    assert facts_of(cells, study.results) == (f"{FACTS}3 seeds.",)
    assert facts_of(cells[1:2], study.results) == ()


ROWS = [{"features": "pixels", "entry": "dp-sgd", "epsilon": "2"}]


@pytest.mark.parametrize(
    "spec",
    [
        {"style": "disparity", "column": "sex", "rows": ROWS},
        {"style": "side_by_side", "dataset": "mnist", "columns": [{"features": "pixels"}], "rows": ROWS},
        {
            "style": "ceiling",
            "paper": "mehta2023",
            "controls": [{"features": "pixels", "entry": "dp-sgd", "independent": "ls"}],
        },
    ],
)
def test_tables_of_text_tell_them_of_their_scores_too(study, spec):
    for path in study.metrics.values():
        content = read_json(path)
        for row in content["seeds"]:
            row["groups"] = {"sex=F": {"n": 60, "top1": 50.0}}
        write_json(path, content)
    *_, last = table_style(spec).table("t", spec, study.results).sheets
    assert f"{FACTS}3 seeds." in last.notes


def test_a_table_by_group_tells_what_nobody_paid_for(study):
    study.axes = study.axes | {"searched": ["dp-sgd", "ls"], "private_tests": ["mnist"]}
    for path in study.metrics.values():
        content = read_json(path)
        for row in content["seeds"]:
            row["groups"] = {"sex=F": {"n": 60, "top1": 50.0}}
        write_json(path, content)
    spec = {"style": "disparity", "column": "sex", "rows": ROWS}
    notes = table_style(spec).table("t", spec, study.results).sheets[0].notes
    assert "The hyper-parameters of dp-sgd were searched on validation records" in notes[-2]
    assert notes[-1] == "Scores on mnist are statistics of private test records, which no ledger accounts for."
