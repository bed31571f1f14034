"""The table of black-box attacks, laid out as de2022's Table 9."""

import csv

import pytest

from dpstudy.core.errors import StudyError
from dpstudy.core.files import write_json
from dpstudy.tables.attacked import lay_membership
from dpstudy.tables.build import build_table
from dpstudy.tables.results import Results
from dpstudy.tables.styles.tables.membership import STYLE

AXES = {"datasets": ["mnist"], "features": ["images"], "entries": ["lenet", "other"], "epsilons": ["1", "8", "inf"]}
PRINTED = {"paper": "de2022", "table": "9", "method": "DP-SGD audit (|D|=100)", "metric": "eps_lower_bound"}
SPEC = {
    "style": "membership",
    "caption": "Attacks",
    "dataset": "mnist",
    "rows": [{"features": "images", "entry": "lenet", "published": PRINTED}],
}
CHOSEN = {"canary": "7-as-8", "learning_rate": 0.5, "clipping_norm": 1.0, "steps": 10, "distance": 0.4}


@pytest.fixture
def results(tmp_path):
    paths = {}
    for epsilon, lower in (("1", 0.129), ("8", 3.999)):
        found = {"records": 100, "delta": 0.01, "epsilon_certified": float(epsilon), "runs": 800, "confidence": 0.999}
        found |= {"epsilon_lower": lower, "auc": 0.661, "advantage": 0.25, "advantage_upper": 0.47, "chosen": CHOSEN}
        paths[f"mnist/images/lenet/eps={epsilon}"] = tmp_path / f"{epsilon}.json"
        write_json(tmp_path / f"{epsilon}.json", found)
    return Results(AXES, [], {}, {}, black_boxes=paths)


def test_what_was_found_stands_beside_what_is_printed(results, tmp_path):
    build_table("t", SPEC, results, tmp_path / "t.tex", tmp_path / "t.csv")
    tex = (tmp_path / "t.tex").read_text()
    one, eight = (line for line in tex.splitlines() if "& 0.66 &" in line)
    cells = [cell.strip(" \\") for cell in one.split("&")]
    assert cells == ["100", "1", "0.12", "0.361", "0.66", "0.59", "0.25", "0.13", "0.47", "0.47"]
    assert eight.split("&")[2:4] == [" 3.99 ", " 4.327 "] and not eight.split("&")[0].strip()
    assert "z 7-as-8, rate 0.5, C 1, 10 steps" in tex and "800 models a side with 99.9" in tex
    with (tmp_path / "t.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["epsilon_lower"] for row in rows] == ["0.129", "3.999"]  # not rounded
    assert rows[1]["published_auc"] == "0.91" and rows[0]["canary"] == "7-as-8"


def test_without_a_counterpart_nothing_is_printed_beside(results):
    rows = [{"features": "images", "entry": "lenet", "label": "a hundred"}]
    sheet = STYLE.table("t", SPEC | {"rows": rows, "epsilons": ["8"]}, results).sheets[0]
    assert sheet.blocks == ((("a hundred", "8", "3.99", "–", "0.66", "–", "0.25", "–", "0.47", "–"),),)


def test_a_row_that_nobody_attacked_is_refused(results):
    rows = [{"features": "images", "entry": "other"}]
    with pytest.raises(StudyError, match="no cell of mnist/images/other is attacked"):
        lay_membership("t", SPEC | {"rows": rows}, results)
