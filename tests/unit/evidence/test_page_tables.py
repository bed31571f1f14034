"""Tables of pages: the committed ones are those of the committed numbers, and each number stands where it belongs."""

from dataclasses import replace
from pathlib import Path

import pytest

from dpstudy.core.errors import StudyError
from dpstudy.evidence.measured import MEASURED, read
from dpstudy.evidence.page_tables import markdown, renew, renewed
from dpstudy.evidence.record import shipped_studies
from tests.unit.evidence.test_measured import ROW

DOCS = MEASURED.parents[2] / "docs"
LINEAR = {"paper": "tramer2021", "table": "1", "dataset": "MNIST", "model": "linear", "method": "DP-SGD"}
SPEC = {
    "dataset": "mnist",
    "metric": "top1",
    "epsilons": ["0.1", "2", "2.93", "inf"],
    "rows": [
        {"features": "pixels", "entry": "ls", "label": "LS", "published": LINEAR | {"statistic": "mean"}},
        {"features": "pixels", "entry": "sgd"},
    ],
}
STUDY = {"study": "s", "epsilons": [], "tables": {"t": SPEC}}


def test_the_pages_have_what_was_recorded(tmp_path):
    for page in DOCS.glob("*.md"):
        (tmp_path / page.name).write_bytes(page.read_bytes())
    pages = renew(tmp_path, {study["study"]: study for study in shipped_studies()}, read())
    assert "tramer2021.md" in pages
    for name in pages:
        assert (tmp_path / name).read_text() == Path(DOCS, name).read_text(), f"{name}: run `make evidence`"


def test_each_number_stands_at_its_epsilon_with_its_spread_and_what_is_printed():
    rows = [
        replace(ROW, epsilon="2.93", mean=98.72, std=0.08, certified="2.93"),
        replace(ROW, epsilon="inf", mean=99.2, std=0.0, seeds=1, certified="", guarantee="none"),
        replace(ROW, entry="sgd", epsilon="2.93", mean=97.9, std=0.11, certified="3.5"),
        replace(ROW, entry="sgd", epsilon="2", mean=97.0, std=0.08, certified="", guarantee="claimed"),
        replace(ROW, entry="other", epsilon="0.1"),
    ]
    lines = "".join(markdown([(STUDY, SPEC)], {row.key: row for row in rows}))
    assert lines.splitlines(keepends=True) == [
        "| ε | 2 | 2.93 | ∞ |\n",
        "|---|---|---|---|\n",
        "| LS | (98.5) | 98.72 ± 0.08 (98.7) | 99.20 |\n",
        "| sgd, pixels | 97.00 ± 0.08, no proved ε | 97.90 ± 0.11, ε = 3.5 |  |\n",
    ]
    audited = [replace(row, attacked=row.certified and "0.07") for row in rows[:2]]
    lines = "".join(markdown([(STUDY, SPEC)], {row.key: row for row in audited})).splitlines()
    assert lines[3:] == ["| attacks show ε ≥ | 0.07 |  |"]
    reduced = [replace(row, kind="stand-in", what="ViT-B/16") for row in rows]
    assert list(markdown([(STUDY, SPEC)], {row.key: row for row in reduced}))[-1] == "\n(Stand-in: ViT-B/16.)\n"


def test_several_tables_stand_side_by_side():
    rows = [
        replace(ROW, epsilon="2.93", mean=98.72, std=0.08, certified="2.93"),
        replace(ROW, epsilon="inf", mean=99.2, std=0.0, seeds=1, certified="", guarantee="none"),
        replace(ROW, dataset="fashion", epsilon="2.93", mean=91.26, std=0.4, certified="3.1"),
        replace(ROW, dataset="fashion", entry="sgd", epsilon="2", mean=90.01, std=0.4, certified="2"),
    ]
    known = {row.key: row for row in rows}
    tables = [(STUDY, SPEC), (STUDY, {**SPEC, "dataset": "fashion", "rows": [{**row} for row in SPEC["rows"]]})]
    tables[1][1]["rows"][0].pop("published")
    assert "".join(markdown(tables, known)).splitlines() == [
        "| ε = 2, 2.93, ∞ | MNIST | fashion |",
        "|---|---|---|",
        "| LS | (98.5), 98.72 (98.7), 99.20 | –, 91.3, ε = 3.1, – |",
        "| sgd, pixels |  | 90.0, –, – |",
    ]
    assert "".join(markdown(tables, known, ["2.93"])).splitlines() == [
        "| ε = 2.93 | MNIST | fashion |",
        "|---|---|---|",
        "| LS | 98.72 ± 0.08 (98.7) | 91.3 ± 0.4, ε = 3.1 |",
    ]
    twice = STUDY, {**SPEC, "rows": [SPEC["rows"][0]] * 2}
    with pytest.raises(StudyError, match="two lines with the same label"):
        list(markdown([twice, tables[1]], known))
    text = "<!-- measured: s t, s u at 2.93 inf -->\nold\n<!-- end -->"
    study = STUDY | {"tables": {"t": SPEC, "u": tables[1][1]}}
    assert "| LS | 98.72 (98.7), 99.20 | 91.3, ε = 3.1, – |" in renewed(text, "p.md", {"s": study}, known)


def test_what_is_between_the_marks_is_renewed_and_nothing_else():
    text = "before\n<!-- measured: s t -->\nold\n<!-- end -->\nafter <!-- end -->"
    found = renewed(text, "p.md", {"s": STUDY}, {ROW.key: ROW})
    assert found.startswith("before\n<!-- measured: s t -->\n| ε | 0.1 |\n") and found.endswith(
        "<!-- end -->\nafter <!-- end -->"
    )
    assert "old" not in found and "| LS | 81.2 ± 0.5 |" in found
    with pytest.raises(StudyError, match="p.md: no study 's' in studies/ has a table 'u'"):
        renewed(text.replace("s t", "s u"), "p.md", {"s": STUDY}, {})
