import csv
import re

import numpy as np
import pytest

from dpstudy.core.errors import StudyError
from dpstudy.core.files import read_json, write_json
from dpstudy.privacy.printed import upper_bound
from dpstudy.tables.accuracies import CSV_HEADER
from dpstudy.tables.build import build_table
from dpstudy.tables.layout import lay_out
from dpstudy.tables.markup import escape
from dpstudy.tables.numbers import decimals, signed, significant

PUBLISHED = {"paper": "tramer2021", "table": "1", "dataset": "MNIST", "model": "linear", "method": "DP-SGD"}
SPEC = {
    "caption": "MNIST: 100% of $cells & {ε ≤ 2}, a_b^c ~ #1 \\ <x>",
    "dataset": "mnist",
    "rows": [
        {"features": "pixels", "entry": "ls", "label": "Pixels & LS_1"},
        {"features": "scatternet", "entry": "dp-sgd", "label": "ScatterNet", "published": PUBLISHED},
    ],
}


def build(study, spec=SPEC, name="t"):
    tex, table = study.folder / f"{name}.tex", study.folder / f"{name}.csv"
    build_table(name, spec, study.results, tex, table)
    with open(table, newline="") as file:
        return tex.read_text(), list(csv.DictReader(file))


def find(rows, features, entry, epsilon):
    [row] = [r for r in rows if (r["features"], r["entry"], r["epsilon"]) == (features, entry, epsilon)]
    return row


def test_csv_holds_the_values_computed_by_hand(study):
    _, rows = build(study)
    assert tuple(rows[0]) == CSV_HEADER and len(rows) == 8
    row = find(rows, "scatternet", "dp-sgd", "1.2")  # seeds: 97 + (-0.2, 0, 0.5); published 98.1 +- 0.1
    assert float(row["ours"]) == pytest.approx(97.1)
    assert float(row["std"]) == pytest.approx(((0.3**2 + 0.1**2 + 0.4**2) / 2) ** 0.5)
    assert (row["seeds"], row["published"], row["published_std"], row["difference"]) == ("3", "98.1", "0.1", "-1.0")
    assert (row["certified_epsilon"], row["guarantee"]) == (repr(1.2 - 0.001), "proved")
    missing = find(rows, "pixels", "ls", "0.5")
    assert [missing[key] for key in ("ours", "std", "seeds", "guarantee")] == ["", "", "0", ""]
    assert find(rows, "scatternet", "dp-sgd", "inf")["certified_epsilon"] == ""


def test_latex_lays_cells_out_as_the_papers_do(study):
    tex, _ = build(study)
    lines = [line.strip().removesuffix(" \\\\") for line in tex.splitlines() if "&" in line and "caption" not in line]
    table = [line.split(" & ") for line in lines]
    assert table[0][1:] == ["0.5", "1.2", "2", r"$\infty$"]
    assert table[1][1:] == ["0.499", "1.199", "1.999", "--"]
    assert table[2][1:] == ["proved", "proved", "proved", "none"]
    assert table[3] == [r"Pixels \& LS\_1", "--", r"91.1 $\pm$ 0.4", r"92.1 $\pm$ 0.4", r"93.1 $\pm$ 0.4"]
    assert table[4][1:3] == [r"96.1 $\pm$ 0.4", r"97.1 $\pm$ 0.4"]
    assert table[5] == [r"\quad published", "", "98.1 ($-1.0$)", "98.5 ($-0.4$)", ""]
    assert "tramer2021, Table 1 (mean)" in tex


def test_numbers_that_the_paper_cites_are_rows_of_their_own_at_epsilons_of_their_own(study):
    cited = {"label": "earlier CNNs", "published": {"paper": "tramer2021", "table": "1", "model": "CNN"}}
    cited["published"]["dataset"] = "MNIST"
    spec = SPEC | {"dataset": "mnist", "epsilons": ["1.2", "2", "3.2"], "cited": [cited]}
    tex, rows = build(study, spec)
    assert re.sub(r" +", " ", tex).count("earlier CNNs & 96.6 & 95.0 & 96.1 \\\\") == 1
    assert "Cited there: Feldman & Zrnic (2020) at ε = 1.2; Abadi et al. (2016) at ε = 2; Nasr" in notes_of(tex)
    assert [(row["ours"], row["published"]) for row in rows[-3:]] == [("", "96.6"), ("", "95.0"), ("", "96.1")]
    del spec["rows"]
    assert len(build(study, spec)[1]) == 3 * (4 + 1), "beside all rows of the study"


def notes_of(tex):
    return tex.replace(r"\&", "&").replace(r"$\varepsilon$", "ε").replace("$=$", "=")


def with_intervals(study, name):
    """Give each seed of a cell an interval of 2 below to 1 above its value."""
    metrics = read_json(study.metrics[name])
    for seed in metrics["seeds"]:
        seed |= {"top1_low": seed["top1"] - 2, "top1_high": seed["top1"] + 1}
    write_json(study.metrics[name], metrics)


def test_intervals_stand_below_the_numbers_that_have_some(study):
    with_intervals(study, "mnist/scatternet/dp-sgd/eps=1.2")
    tex, rows = build(study)
    assert r"\quad interval & & {\scriptsize 94.9--98.4} & &" in re.sub(r" +", " ", tex)
    assert r"Intervals: 95 \% for the mean, from the spread over seeds" in tex
    row = find(rows, "scatternet", "dp-sgd", "1.2")
    ends = pytest.approx(
        [94.9086, 98.4425], abs=1e-4
    )  # squares add: t of the seeds is 0.8957, the records give 2 and 1
    assert [float(row["low"]), float(row["high"])] == ends
    assert find(rows, "scatternet", "dp-sgd", "2")["low"] == ""
    (cell,) = (c for row in lay_out("t", SPEC, study.results).rows for c in row.cells if c.interval)
    assert cell.over_records == pytest.approx((95.1, 98.1)), "the seeds count once in what is bold"
    metrics = read_json(study.metrics["mnist/scatternet/dp-sgd/eps=1.2"])
    del metrics["seeds"][1]["top1_low"]  # a seed without one: no interval of the cell
    write_json(study.metrics["mnist/scatternet/dp-sgd/eps=1.2"], metrics)
    assert "interval" not in build(study)[0]


def test_what_attacks_found_stands_below_what_is_certified(study):
    name = "mnist/scatternet/dp-sgd/eps=1.2"
    entry = {"bound": "gaussian-dp", "adjacency": "add-remove-one", "statistic": "ratio", "runs": 9, "confidence": 0.9}
    audit = {"audits": [entry | {"epsilon_lower": bound} for bound in (0.5, 1.0389)], "verdict": "consistent"}
    write_json(study.folder / "audit.json", audit | {"epsilon_certified": 1.199})
    study.audits = {name: study.folder / "audit.json"}
    tex, rows = build(study)
    assert r"\quad attacked $\varepsilon\geq$ & -- & 1.03 & -- & --" in tex  # rounded down
    assert float(find(rows, "scatternet", "dp-sgd", "1.2")["audited_epsilon"]) == 1.0389
    assert find(rows, "scatternet", "dp-sgd", "2")["audited_epsilon"] == ""


def test_the_median_is_the_median(study):
    _, rows = build(study, SPEC | {"statistic": "median"})
    assert float(find(rows, "scatternet", "dp-sgd", "1.2")["ours"]) == 97.0


def test_without_rows_every_features_and_entry_that_has_cells(study):
    _, rows = build(study, {"epsilons": ["2", "1.2"]})
    assert [(r["features"], r["entry"], r["epsilon"]) for r in rows] == [
        (features, entry, epsilon)
        for features in ("pixels", "scatternet")
        for entry in ("ls", "dp-sgd")
        for epsilon in ("2", "1.2")
    ]


def test_the_same_study_gives_the_same_bytes(study):
    first = build(study)
    study.ledgers = dict(reversed(study.ledgers.items()))
    assert build(study, name="t") == first


def test_the_column_shows_the_largest_epsilon_and_mixed_guarantees_are_marked(study):
    write_json(study.ledgers["mnist/pixels/ls/eps=2"], study.ledger("2", 2.5) | {"guarantee": "claimed"})
    tex, _ = build(study)
    assert re.search(r"certified.*& 2.5 & --", tex) and "proved & proved & mixed & none" in tex
    assert r"92.1 $\pm$ 0.4$^{\dagger}$ &" in tex and r"$^{\dagger}$ guarantee claimed" in tex
    assert r"$^{\ddagger}$" not in tex  # the head of the column of epsilon = inf says it already
    write_json(study.ledgers["mnist/pixels/ls/eps=1.2"], study.ledger("1.2", None))
    tex, _ = build(study)
    assert "proved & mixed & mixed & none" in tex and r"91.1 $\pm$ 0.4$^{\ddagger}$ &" in tex


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"dataset": "minst"}, "table t: data set 'minst' is not in the study; there are mnist"),
        ({"rows": [{"dataset": "minst", "features": "pixels", "entry": "ls"}]}, "data set 'minst' is not in the study"),
        ({"metric": "auc"}, "metric 'auc': no cell has it"),
    ],
)
def test_names_that_the_study_does_not_have(study, change, message):
    with pytest.raises(StudyError, match=message):
        build(study, SPEC | change)
    assert not (study.folder / "t.csv").exists() and not (study.folder / "t.tex").exists()


def test_a_cell_without_a_ledger_is_refused(study):
    del study.ledgers["mnist/pixels/ls/eps=2"]
    with pytest.raises(StudyError, match="mnist/pixels/ls/eps=2: it is in the summary but has no ledger"):
        build(study)


def test_escape():
    assert escape("a_b & 5% of $x #1 {y}") == r"a\_b \& 5\% of \$x \#1 \{y\}"
    assert escape("\\~^") == r"\textbackslash{}\textasciitilde{}\textasciicircum{}"
    assert escape("ε ≤ 2 ± 1") == r"$\varepsilon$ $\leq$ 2 $\pm$ 1"


def test_numbers():
    assert [decimals(std, "top1") for std in (None, 0.0, 2.0, 0.3, 0.08, 0.001)] == [1, 1, 1, 1, 2, 2]
    assert [decimals(std, "auc") for std in (None, 0.02, 0.0004)] == [3, 3, 4]
    assert [signed(value, 1) for value in (0.24, -0.26, -0.04)] == ["+0.2", "-0.3", "0.0"]
    assert [significant(value) for value in (1.0, 0.068266666, 60000.0, 1.23456)] == ["1", "0.06827", "60000", "1.235"]
    assert [upper_bound(value) for value in (2.0, 0.5, 1.99951, 1e-4, 1.199, 1.19901)] == [
        "2",
        "0.5",
        "2",
        "0.0001",
        "1.199",
        "1.2",
    ]


def test_a_printed_epsilon_is_never_below_the_exact_one():
    from fractions import Fraction

    for value in np.random.default_rng(0).uniform(1e-3, 20, 500):
        assert Fraction(upper_bound(value)) >= Fraction(repr(float(value)))
        assert float(upper_bound(value)) <= value * 1.002


@pytest.mark.parametrize("spec", [SPEC, {"caption": "All"}], ids=["rows", "default"])
def test_it_compiles_with_booktabs_alone(study, spec, compiles):
    build(study, spec)
    compiles(study.folder, "t")
