"""Below a table stands what its numbers are worth nothing without."""

from dataclasses import replace

from dpstudy.core.files import write_json
from dpstudy.tables.accuracies import notes
from dpstudy.tables.facts import facts
from dpstudy.tables.layout import lay_out
from dpstudy.tables.markup import escape
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
