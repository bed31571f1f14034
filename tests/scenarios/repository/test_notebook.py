"""The notebook of docs/ runs from the first cell to the last, and its links lead somewhere."""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
NOTEBOOK = ROOT / "docs" / "tour.ipynb"


def cells(kind):
    found = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in found if cell["cell_type"] == kind]


@pytest.mark.slow
def test_every_cell_runs(monkeypatch, capsys):
    import matplotlib

    matplotlib.use("Agg")
    monkeypatch.chdir(NOTEBOOK.parent)
    names = {}
    for source in cells("code"):
        exec(compile(source, "tour.ipynb", "exec"), names)
    accuracy, printed = names["accuracy"], capsys.readouterr().out
    assert len(accuracy) == 12 and all(value > 60 for value in accuracy.values())
    assert accuracy["feature_covariance", 8.0] > accuracy["feature_covariance", 0.5]
    assert "guarantee: proved" in printed and "by exact Gaussian DP" in printed


def test_its_links_lead_somewhere_and_it_has_no_output():
    targets = re.findall(r"\]\(([^)]+)\)", "".join(cells("markdown")))
    assert len(targets) >= 3 and all((NOTEBOOK.parent / target).is_file() for target in targets)
    found = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    assert not any(cell.get("outputs") for cell in found)
