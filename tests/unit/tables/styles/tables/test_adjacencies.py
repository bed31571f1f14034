import csv

import pytest

from dpstudy.core.errors import StudyError
from dpstudy.core.files import write_json
from dpstudy.privacy.accounting import certify
from dpstudy.privacy.adjacency import ADJACENCIES
from dpstudy.privacy.events import Event
from dpstudy.tables.build import build_table
from dpstudy.tables.styles.tables.adjacencies import lay_adjacencies

EVENT = Event("sum", "gaussian", 4.0, 1.0)


@pytest.fixture
def certified(study):
    """A study whose least squares were one Gaussian release, and whose DP-SGD claims what nobody proved."""
    epsilon = certify([EVENT], 1e-5).epsilon
    for cell, path in study.ledgers.items():
        more = {"events": [EVENT.to_json()], "epsilon": epsilon} if "/ls/" in cell else {"guarantee": "claimed"}
        write_json(path, study.ledger(cell.rpartition("=")[2], epsilon) | more)
    return study


def test_a_line_a_cell_with_three_bounds(certified, compiles):
    tex, path = certified.folder / "t.tex", certified.folder / "t.csv"
    build_table("t", {"style": "adjacencies", "caption": "Neighbours."}, certified.results, tex, path)
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0])[4:] == ["delta", *ADJACENCIES] and len(rows) == 10, (
        "five cells of each kind of features at a finite epsilon"
    )
    first = next(row for row in rows if row["entry"] == "ls")
    # 1/4- and 1/2-Gaussian DP at delta 1e-5, computed with 50 digits elsewhere.
    assert float(first["add-remove-one"]) == float(first["zero-out"]) == pytest.approx(0.926341504, rel=1e-6)
    assert float(first["replace-one"]) == pytest.approx(1.993091404, rel=1e-6)
    assert {row["replace-one"] for row in rows if row["entry"] == "dp-sgd"} == {""}
    assert "replace-one" in tex.read_text() and "--" in tex.read_text().replace("–", "--")
    compiles(certified.folder, "t")


def test_rows_and_epsilons_are_chosen(certified):
    spec = {"rows": [{"features": "pixels", "entry": "ls"}], "epsilons": ["2"]}
    assert [line.place for line in lay_adjacencies("t", spec, certified.results)] == [("mnist", "pixels", "ls", "2")]
    with pytest.raises(StudyError, match="table t: the study has no cell of its rows and epsilons"):
        lay_adjacencies("t", spec | {"epsilons": ["0.5"]}, certified.results)
