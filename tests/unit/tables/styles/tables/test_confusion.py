import csv

import pytest

from dpstudy.config.loading import load
from dpstudy.core.errors import StudyError
from dpstudy.core.files import read_json, write_json
from dpstudy.evaluation.confusion import SEVERAL
from dpstudy.tables.build import build_table
from dpstudy.tables.styles.tables.confusion import STYLE
from tests.unit.config.selecting import config

SPEC = {"style": "confusion", "epsilons": ["2"], "rows": [{"features": "pixels", "entry": "ls", "label": "LS"}]}


def with_counts(study, told, counts):
    for path in study.metrics.values():
        content = read_json(path)
        for number, row in enumerate(content["seeds"]):
            more = {name: [[one + number for one in line] for line in lines] for name, lines in counts.items()}
            row["confusion"] = {"classes": ["ill", "healthy"], "told": list(told), "counts": more}
        write_json(path, content)
    return study


def test_rows_are_shares_of_a_class_in_all_and_in_each_group(study):
    made = with_counts(study, ["ill", "healthy"], {"": [[8, 2], [30, 60]], "sex=F": [[3, 1], [9, 27]]})
    tex, path = made.folder / "t.tex", made.folder / "t.csv"
    build_table("t", SPEC, made.results, tex, path)
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    own = [row for row in rows if (row["entry"], row["epsilon"]) == ("ls", "2")]
    assert len(own) == 3 * 2 * 4  # seeds, groups, counts
    assert [row["records"] for row in own[:4]] == ["8", "2", "30", "60"] and own[4]["group"] == "sex=F"
    (sheet,) = STYLE.table("t", SPEC, made.results).sheets
    assert sheet.header == ("Method", "group", "is", "n", "ill", "healthy")
    first = next(block for block in sheet.blocks if block[0][0] == "LS, ε = 2")
    assert first[0][1:] == ("all", "ill", "12", "75.0", "25.0")  # means over seeds 0, 1, 2: 9 of 12
    assert first[1][1:] == ("", "healthy", "92", "33.7", "66.3")
    assert r"\begin{tabular}{lllrrr}" in tex.read_text()


def test_findings_are_found_or_left_alone(study):
    made = with_counts(study, SEVERAL, {"": [[80, 10, 4, 6], [50, 50, 0, 0]]})
    (sheet,) = STYLE.table("t", SPEC, made.results).sheets
    assert sheet.header == ("Method", "group", "finding", "with it", "found (%)", "without it", "left alone (%)")
    block = next(block for block in sheet.blocks if block[0][0] == "LS, ε = 2")
    assert block[0][2:] == ("ill", "12", "58.3", "92", "88.0")  # of means over seeds: 7 of 12, 81 of 92


def test_without_counts_it_says_what_is_needed(study):
    tex, path = study.folder / "t.tex", study.folder / "t.csv"
    build_table("t", SPEC, study.results, tex, path)
    (sheet,) = STYLE.table("t", SPEC, study.results).sheets
    assert sheet.blocks == () and "Of 1 cells scores are no probabilities (too few units" in " ".join(sheet.notes)
    assert len(path.read_text().splitlines()) == 1
    spec = {"style": "confusion", "rows": [{"features": "pixels", "entry": "ls"}]}
    with pytest.raises(StudyError, match=r"tables\.t: the style 'confusion' needs evaluation\.confusion: true"):
        load(config({"t": spec}))
    own = config({"t": spec})
    load(own | {"evaluation": {"metrics": ["balanced_accuracy"], "confusion": True}})  # whatever else is measured
