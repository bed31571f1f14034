"""The real workflow on a tiny study: what it makes, and that there is nothing to do after it."""

import csv
import io
import json

import numpy as np
import pytest

from dpstudy.config.loading import load
from dpstudy.core.errors import StudyError
from dpstudy.evidence.record import record
from tests.workflow.conftest import TINY

CELLS = [f"digits/{f}/{m}/eps={e}" for f in TINY["features"] for m in TINY["methods"] for e in TINY["epsilons"]]


def read_json(study, name):
    return json.loads(study.read(name))


def test_every_cell_is_within_its_budget_and_better_than_guessing(finished):
    certified = json.dumps(read_json(finished, "privacy/certificates/digits.json"))
    for cell in CELLS:
        ledger, metrics = (read_json(finished, f"cells/{cell}/{name}.json") for name in ("ledger", "metrics"))
        if cell.endswith("=1"):
            assert ledger["guarantee"] == "proved" and 0.99 < ledger["epsilon"] <= 1 and cell in certified
        else:
            assert ledger["guarantee"] == "none" and ledger["epsilon"] is None
        assert [row["seed"] for row in metrics["seeds"]] == TINY["seeds"]
        assert metrics["mean"]["top1"] > 20, "guessing has 10"
    total = read_json(finished, "privacy/total.json")["datasets"]["digits"]
    assert total["epsilon_of_proved"] > 1, "what all cells spent together"


def test_tables_and_figures_have_the_numbers_of_the_cells(finished):
    rows = list(csv.DictReader(io.StringIO(finished.read("tables/tiny.csv").decode())))
    assert len(rows) == len(CELLS)
    for row in rows:
        cell = f"digits/{row['features']}/{row['entry']}/eps={row['epsilon']}"
        assert float(row["ours"]) == read_json(finished, f"cells/{cell}/metrics.json")["mean"]["top1"]
    assert finished.read("tables/tiny.tex").startswith(b"\\begin{table}") and finished.read(
        "figures/tiny.pdf"
    ).startswith(b"%PDF")
    summary = list(csv.DictReader(io.StringIO(finished.read("summary.csv").decode())))
    assert {f"{row['dataset']}/{row['features']}/{row['entry']}/eps={row['epsilon']}" for row in summary} == {*CELLS}


def test_cells_are_recorded_as_they_are_and_damaged_ones_not(study):
    rows = record(load(TINY), study.path / "results", "reduced", "two seeds", "a machine")
    assert len(rows) == len(CELLS) and {row.study for row in rows} == {"tiny"}
    for row, cell in zip(rows, CELLS, strict=True):
        metrics, ledger = (read_json(study, f"cells/{cell}/{name}.json") for name in ("metrics", "ledger"))
        assert f"{row.dataset}/{row.features}/{row.entry}/eps={row.epsilon}" == cell
        values = [seed["top1"] for seed in metrics["seeds"]]
        assert (row.mean, row.std, row.seeds) == (np.mean(values), np.std(values, ddof=1), 2)
        assert row.low < row.mean < row.high and row.n == ledger["n"] and row.what == "two seeds"
        assert row.library == metrics["made_by"]["library"]
        assert row.certified == ("1" if row.epsilon == "1" else "")
    cell = study.path / "results/cells" / CELLS[0]
    ledger = (cell / "ledger.json").read_text()
    (cell / "ledger.json").write_text(ledger.replace('"target_epsilon": "1"', '"target_epsilon": "2"'))
    with pytest.raises(StudyError, match="nothing was recorded: .*ledger.json"):
        record(load(TINY), study.path / "results", "full")
    (cell / "ledger.json").write_text(ledger)
    with pytest.raises(StudyError, match=r"was trained for the seeds \[0, 1\], and the study has \[0\]"):
        record(load(TINY | {"seeds": [0]}), study.path / "results", "full")


def test_the_page_has_the_graph_of_the_run(finished):
    edges = read_json(finished, "benchmarks/graph.json")["edges"]
    between = {(source, rule): count for source, rule, count in edges}
    assert between["summarise_cells", "draw_figure"] == 1 and between["train_stepped", "certify_cells"] == 4
    assert between["prepare_shard", "prepare_manifest"] >= 4 and not any("all" in edge for edge in edges)
    assert "<h3>Rules</h3>" in finished.read("report/index.html").decode()


def test_planted_copies_are_found(finished):
    report = read_json(finished, "dedup/glyphs/report.json")
    planted = {(s["dataset"], s["split"]): s["exact"] + s["near"] for s in report["sets"]}
    assert planted["digits", "test"] >= TINY["public"]["glyphs"]["plant"]["count"]
    assert report["drop"] == "private"


def test_nothing_to_do_after_a_run(study):
    assert study.planned() == []
