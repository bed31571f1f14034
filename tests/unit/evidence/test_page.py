"""The page of labels: what is measured stands in it as it is, and nothing is left out."""

import csv
from dataclasses import replace

from dpstudy.evidence import page
from dpstudy.evidence.labels import label
from dpstudy.tables.published import all_lines
from tests.unit.evidence.test_measured import ROW


def test_the_page_counts_every_label_and_shows_what_differs():
    lines = {n: row for n, row in all_lines().items() if row["paper"] == "tramer2021" and row["table"] == "1"}
    linear = next(
        n for n, row in lines.items() if (row["model"], row["epsilon"], row["source"]) == ("linear", "2.93", "")
    )
    ours = replace(ROW, mean=98.72, low=98.5, high=98.9, std=0.03)

    def told(row):
        return page.text(lines, {n: label(line, [row] if n == linear else []) for n, line in lines.items()})

    text = told(ours)
    assert "| tramer2021 | 1 |  |  |  | 15 | 13 | 29 |\n| all | 1 |  |  |  | 15 | 13 | 29 |\n" in text
    assert "## What differs\n\nNothing." in text
    assert "leaves out 0" not in text
    text = told(replace(ours, mean=99.6, low=99.4, high=99.8))  # 0.9 more, by 0.2 perhaps more than one point
    assert (
        "## What differs\n\nNothing.\n\nConsistent, though the interval leaves out 0: tramer2021 Table 1 +0.9 ± 0.2"
        in text
    )
    text = told(replace(ours, mean=90.0, low=89.8, high=90.2))
    assert "| all |  |  | 1 |  | 15 | 13 | 29 |\n" in text
    assert (
        "| tramer2021 | 1 | MNIST, scatternet, linear, DP-SGD | 2.93 | 98.7 | 90.0 ± 0.0 | differs, -8.7 ± 0.2" in text
    )


def test_the_file_beside_it_has_each_number(tmp_path, monkeypatch):
    monkeypatch.setattr(page, "shipped_studies", list)
    counts, verdicts = page.write([], [], tmp_path / "evidence.md")
    text = (tmp_path / "evidence.md").read_text(encoding="utf-8")
    assert verdicts.total() == 150 and "## The claims" in text
    by_kind = [line.split(" | ")[1:] for line in text.splitlines() if line.startswith(("| full", "| the printed numb"))]
    with open(tmp_path / "claims.csv", encoding="utf-8", newline="") as file:
        printed = [row["verdict"] for row in csv.DictReader(file) if row["kind"] == "the printed numbers"]
    counts_by_verdict = [str(printed.count(verdict)) for verdict in ("holds", "does not hold")]
    assert by_kind == [["", " |"], [counts_by_verdict[0], f"{counts_by_verdict[1]} |"]]
    with open(tmp_path / "evidence.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 873 == counts.total() and all(row["label"] for row in rows)
    printed = all_lines()
    assert all(printed[int(row["line"])]["value"] == row["printed"] for row in rows)
