import csv
import re

import pytest

from dpstudy.core.errors import StudyError
from dpstudy.core.files import read_json, write_json
from dpstudy.evaluation.summary import cell_name
from dpstudy.report.page import Making, build_report
from dpstudy.tables.build import build_table
from dpstudy.tables.styles.tables.side_by_side import STYLE

PAPER = {"paper": "anon_smoothing", "table": "1"}
SPEC = {
    "style": "side_by_side",
    "dataset": "mnist",
    "caption": "Backbones",
    "columns": [
        {"features": "pixels", "label": "ResNet-18", "published": {"model": "ResNet18"}},
        {"features": "scatternet"},
    ],
    "rows": [
        {"entry": "ls", "epsilon": "inf", "published": PAPER | {"method": "non-private"}},
        {"entry": "dp-sgd", "epsilon": "0.5", "label": "DP-SGD, 0.5", "published": PAPER | {"method": "DP-SGD"}},
        {"entry": "ls", "epsilon": "0.5"},
        {"entry": "dp-sgd", "epsilon": "2"},
    ],
}


def claim(study, features, entry, epsilon, guarantee, certified=None):
    cell = cell_name("mnist", features, entry, epsilon)
    write_json(study.ledgers[cell], study.ledger(epsilon, certified) | {"guarantee": guarantee})


def test_a_row_per_entry_and_epsilon_a_column_per_feature_set(study):
    sheet = STYLE.table("t", SPEC, study.results).sheets[0]
    assert sheet.header == ("Method", "ResNet-18", "scatternet") and sheet.columns == "lcc"
    assert sheet.blocks == (
        (
            ("ls, ε = ∞", "93.1 ± 0.4 (93.2)", "98.1 ± 0.4"),  # published where row and column both name filters
            ("DP-SGD, 0.5", "91.1 ± 0.4", "96.1 ± 0.4"),  # the paper has no epsilon of 0.5
            ("ls, ε = 0.5", "–", "–"),
            ("dp-sgd, ε = 2", "93.1 ± 0.4", "98.1 ± 0.4"),
        ),
    )
    assert sheet.notes == (
        "Top-1 accuracy (%): mean ± standard deviation over 3 seeds.",
        "– marks a missing cell.",
        "Published: anon_smoothing, Table 1 (best), in brackets.",
        "mnist: n = 60,000 records to learn from; ε at δ = 1e-5 is about adding or removing one record (accountant: "
        "pld); 3 seeds.",
        "At a finite ε, cells without a mark are proved, and certified at no more than their row's ε.",
    )


def test_intervals_stand_in_a_row_of_their_own(study):
    name = cell_name("mnist", "pixels", "dp-sgd", "0.5")
    metrics = read_json(study.metrics[name])
    metrics["seeds"] = [seed | {"top1_low": 90.0, "top1_high": 92.25} for seed in metrics["seeds"]]
    write_json(study.metrics[name], metrics)
    sheet = STYLE.table("t", SPEC, study.results).sheets[0]
    assert sheet.blocks[0][1:3] == (("DP-SGD, 0.5", "91.1 ± 0.4", "96.1 ± 0.4"), ("interval", "89.7–92.6", ""))
    assert len(sheet.blocks[0]) == 5 and any(note.startswith("Intervals: 95 %") for note in sheet.notes)


def test_what_is_less_than_proved_is_marked_and_more_than_the_target_is_told(study):
    claim(study, "pixels", "dp-sgd", "2", "claimed")
    claim(study, "scatternet", "dp-sgd", "2", "none")
    claim(study, "scatternet", "dp-sgd", "0.5", "proved", 0.61237)
    sheet = STYLE.table("t", SPEC, study.results).sheets[0]
    assert sheet.blocks[0][3] == ("dp-sgd, ε = 2", "93.1 ± 0.4†", "98.1 ± 0.4‡")
    assert "no guarantee" not in sheet.blocks[0][0] and "‡" not in "".join(sheet.blocks[0][0])  # inf goes without
    assert sheet.notes[4:6] == ("† guarantee claimed by its authors, not proved.", "‡ no guarantee.")
    assert sheet.notes[6].endswith("; but for DP-SGD, 0.5, scatternet (ε ≤ 0.6124).")


def test_a_missing_cell_keeps_its_published_number(study):
    rows = [SPEC["rows"][0], {"entry": "ls", "epsilon": "3", "published": PAPER | {"method": "DP-SGD"}}]
    study.axes = study.axes | {"epsilons": ["3", *study.axes["epsilons"]]}
    assert STYLE.table("t", SPEC | {"rows": rows}, study.results).sheets[0].blocks[0][1][1:] == ("– (77.8)", "–")


def test_the_files(study):
    claim(study, "pixels", "dp-sgd", "2", "claimed")
    tex, path = study.folder / "t.tex", study.folder / "t.csv"
    build_table("t", SPEC, study.results, tex, path)
    text = tex.read_text()
    assert r"93.1 $\pm$ 0.4 (93.2)" in text and r"93.1 $\pm$ 0.4$^{\dagger}$" in text and "†" not in text
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["entry"], row["epsilon"], row["features"]) for row in rows[:3]] == [
        ("ls", "inf", "pixels"),
        ("ls", "inf", "scatternet"),
        ("dp-sgd", "0.5", "pixels"),
    ]
    assert len(rows) == 8
    assert (rows[0]["published"], rows[4]["ours"], rows[6]["guarantee"]) == ("93.2", "", "claimed")
    assert float(rows[0]["difference"]) == pytest.approx(-0.1)


def test_it_is_on_the_page(study):
    page = study.folder / "page.html"
    tables = {"t": SPEC | {"style": "side_by_side"}}
    build_report("s", study.results, tables, {}, {}, page, making=Making("", "", {}))
    words = " ".join(re.sub("<[^>]*>", " ", page.read_text(encoding="utf-8")).split())
    assert "93.1 ± 0.4 published 93.2 (−0.1)" in words and "91.1 ± 0.4 certified ε ≤ 0.499" in words


def test_nothing_at_all_is_an_error(study):
    with pytest.raises(StudyError, match="table t: the study has none of its cells, or 'top1' in none of them"):
        STYLE.table("t", SPEC | {"rows": SPEC["rows"][2:3]}, study.results).sheets[0]
