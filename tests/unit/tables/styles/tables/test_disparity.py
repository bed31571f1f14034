import csv
import math
from dataclasses import replace

import pytest

from dpstudy.core.errors import StudyError
from dpstudy.core.files import read_json, write_json
from dpstudy.tables.build import build_figure, build_table
from dpstudy.tables.styles.tables.disparity import STYLE
from dpstudy.tables.subgroups import lay_disparities

SPEC = {
    "style": "disparity",
    "column": "sex",
    "epsilons": ["2", "inf"],
    "rows": [{"features": "pixels", "entry": "ls", "label": "LS"}, {"features": "pixels", "entry": "dp-sgd"}],
}


@pytest.fixture
def grouped(study):
    """The finished study, with two groups: women four points better than men, and less so from seed to seed."""
    for path in study.metrics.values():
        content = read_json(path)
        for number, row in enumerate(content["seeds"]):
            row["groups"] = {
                "sex=F": {"n": 60, "top1": row["top1"] + 2, "top1_low": row["top1"] - 1, "top1_high": row["top1"] + 5},
                "sex=M": {"n": 40, "top1": row["top1"] - 2 + number},
                "age=<40": {"n": 9, "top1": 1.0},
            }
        write_json(path, content)
    return study


def test_each_group_has_its_mean_and_the_gap_is_that_of_each_seed(grouped):
    scores = lay_disparities("t", SPEC, grouped.results)
    assert [score.group for score in scores[:4]] == ["", "F", "M", "gap"] and len(scores) == 16
    whole, women, men, gap = scores[:4]
    value = read_json(grouped.metrics["mnist/pixels/ls/eps=2"])["seeds"]
    assert whole.mean == pytest.approx(sum(row["top1"] for row in value) / 3) and whole.n is None
    assert women.mean == pytest.approx(whole.mean + 2) and (women.n, men.n) == (60, 40)
    seeds = 4.302653 * women.std / 3**0.5  # Student's t with two degrees of freedom
    ends = women.mean - math.hypot(3, seeds), women.mean + math.hypot(3, seeds)
    assert (women.low, women.high) == pytest.approx(ends) and men.low is None
    assert gap.mean == pytest.approx(3) and gap.std == pytest.approx(1)  # 4, 3, 2


def test_the_table_and_its_numbers(grouped):
    tex, path = grouped.folder / "t.tex", grouped.folder / "t.csv"
    build_table("t", SPEC, grouped.results, tex, path)
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 16 and {row["column"] for row in rows} == {"sex"}
    sheet = STYLE.table("t", SPEC, grouped.results).sheets[0]
    assert sheet.header == ("Method", "sex", "n", "ε = 2", "ε = ∞") and len(sheet.blocks) == 2
    first = sheet.blocks[0]
    assert [row[0] for row in first] == ["LS", "", "", ""] and [row[1] for row in first][3] == "best less worst"
    assert first[1][2] == "60" and "(" in first[1][3] and "–" in first[1][3]
    assert r"\begin{tabular}{llrrr}" in tex.read_text()


@pytest.mark.parametrize(
    ("column", "note"),
    [
        ("race", "No group by race: each has fewer test records (persons, where they are known) than"),
        ("label", "All: on every label that test records bear; 10 of 10 have too few for a row."),
    ],
)
def test_where_no_group_is_large_enough_all_records_stand_alone(grouped, column, note):
    """Once everything is trained, a study does not stop for that."""
    sheet = STYLE.table("t", SPEC | {"column": column}, grouped.results).sheets[0]
    assert [[row[1] for row in block] for block in sheet.blocks] == [["all"], ["all"]]
    assert any(note in each for each in sheet.notes)


def test_small_groups_that_stand_together_are_told_of(grouped):
    for path in grouped.metrics.values():
        content = read_json(path)
        for row in content["seeds"]:
            row["groups"]["sex=others"] = row["groups"].pop("sex=M")
        write_json(path, content)
    notes = STYLE.table("t", SPEC, grouped.results).sheets[0].notes
    assert any(note.startswith("others: groups that have fewer test records") for note in notes)


def test_of_one_draw_of_noise_the_table_says_that_another_gives_others(grouped):
    (several, *_) = STYLE.table("t", SPEC, grouped.results).sheets[0].notes
    assert "means over seeds, with 95 % intervals over seeds and test records" in several
    for path in grouped.metrics.values():
        content = read_json(path)
        write_json(path, content | {"seeds": content["seeds"][:1]})
    (one, *_) = STYLE.table("t", SPEC, grouped.results).sheets[0].notes
    assert "of one draw of noise, where another draw gives others, with 95 % intervals over test records" in one


def test_small_groups_that_are_left_out_are_told_of_without_their_size(grouped):
    def notes(tested):
        for path in grouped.metrics.values():
            content = read_json(path)
            for row in content["seeds"]:
                row["tested"] = {"records": tested, "names": "x"}
            write_json(path, content)
        return STYLE.table("t", SPEC, grouped.results).sheets[0].notes

    told = "Groups that have fewer test records (persons, where they are known) than"
    assert any(note.startswith(told) and note.endswith("are left out.") for note in notes(107))
    assert not any(note.startswith(told) for note in notes(100)), "all of them stand there"


def test_what_a_table_cannot_be_made_of_is_named(grouped):
    with pytest.raises(StudyError, match="no cell has 'auc'; name it in evaluation.metrics"):
        lay_disparities("t", SPEC | {"metric": "auc"}, grouped.results)


def test_what_is_claimed_and_not_proved_is_marked(grouped):
    entry = SPEC["rows"][0]["entry"]
    results = replace(grouped.results, axes=dict(grouped.results.axes) | {"claimed": [entry]})
    labels = [row[0] for block in STYLE.table("t", SPEC, results).sheets[0].blocks for row in block if row[0]]
    assert [label.endswith(" (ε claimed)") for label in labels] == [row["entry"] == entry for row in SPEC["rows"]]
    results = replace(grouped.results, axes=dict(grouped.results.axes) | {"beyond": [entry]})
    beyond = [row[0] for block in STYLE.table("t", SPEC, results).sheets[0].blocks for row in block if row[0]]
    assert beyond == [label.replace("(ε claimed)", "(certifies more than ε)") for label in labels]
    plain = [row[0] for block in STYLE.table("t", SPEC, grouped.results).sheets[0].blocks for row in block]
    assert not any("claimed" in label or "certifies" in label for label in plain)


def test_the_row_of_all_is_about_the_labels_of_its_groups(grouped):
    for path in grouped.metrics.values():
        content = read_json(path)
        for row in content["seeds"]:
            row["groups"]["sex="] = {"n": 100, "top1": 12.0, "top1_low": 11.0, "top1_high": 13.0}
        write_json(path, content)
    scores = lay_disparities("t", SPEC, grouped.results)
    assert [score.group for score in scores[:4]] == ["", "F", "M", "gap"] and len(scores) == 16
    assert {score.mean for score in scores if score.group == ""} == {12.0} and scores[0].low == pytest.approx(11)


@pytest.mark.parametrize(
    ("metric", "told"),
    [
        ("top1", ""),
        ("auc", "labels: those that 3 records of each group (persons, where they are known) bear and as many do not."),
        ("balanced_accuracy", "labels: those that 3 records of each group (persons, where they are known) bear."),
    ],
)
def test_a_table_says_on_which_labels_groups_are_compared(grouped, metric, told):
    for path in grouped.metrics.values():
        content = read_json(path)
        for row in content["seeds"]:
            row[metric] = 0.5
            for entry in row["groups"].values():
                entry[metric] = 0.5
        write_json(path, content)
    notes = " ".join(STYLE.table("t", SPEC | {"metric": metric}, grouped.results).sheets[0].notes)
    assert ("Groups, and all together, are compared on the same" in notes) == bool(told) and told in notes


def test_labels_without_a_row_that_count_in_all_are_told(grouped):
    for path in grouped.metrics.values():
        content = read_json(path)
        for row in content["seeds"]:
            row["groups"] = {f"label={name}": {"n": 9, "top1": row["top1"]} for name in "abc"} | {"label=d": {"n": 5}}
        write_json(path, content)
    notes = STYLE.table("t", SPEC | {"column": "label"}, grouped.results).sheets[0].notes
    assert notes[1] == "All: on every label that test records bear; 7 of 10 have too few for a row."
    for path in grouped.metrics.values():
        write_json(path, read_json(path) | {"classes": 3})
    assert "All:" not in " ".join(STYLE.table("t", SPEC | {"column": "label"}, grouped.results).sheets[0].notes)


def test_groups_that_a_metric_cannot_compare_are_named_all_the_same(grouped):
    """Small test sets have such groups: a study does not fail for them."""
    for path in grouped.metrics.values():
        content = read_json(path)
        for row in content["seeds"]:
            row["groups"] = {"sex=F": {"n": 60}, "sex=M": {"n": 40}}
        write_json(path, content)
    (sheet,) = [STYLE.table("t", SPEC, grouped.results).sheets[0]]
    assert [row[1:4] for row in sheet.blocks[0]][1:] == [("F", "60", "–"), ("M", "40", "–")]
    assert "too few" in sheet.notes[-2] and sheet.notes[-1].endswith("(accountant: pld); 3 seeds.")
    paths = [grouped.folder / f"empty.{kind}" for kind in ("pdf", "png", "csv", "svg")]
    build_figure("f", SPEC, grouped.results, *paths)
    assert "sex,F,60,top1,,,,,3" in paths[2].read_text()
