"""The file of measured numbers: what is written is read, a new number replaces its old one, and damage is told."""

from dataclasses import replace

import pytest

from dpstudy.core.errors import StudyError
from dpstudy.evidence.measured import COLUMNS, MEASURED, Measured, merged, read, write

ROW = Measured(
    "s", "mnist", "pixels", "ls", "0.1", "top1", 81.25, 0.5, 3, 80.0, 82.5, "0.1", "", "1e-05", 60_000, "record",
    "proved", "seeded", "full", "", "2026-11-27", "0123456789ab", "0123456789abcdef", "a, machine",
)  # fmt: skip


def test_what_is_written_is_read(tmp_path):
    rows = [ROW, replace(ROW, epsilon="inf", certified="", guarantee="none", low=None, high=None)]
    write(rows, tmp_path / "m.csv")
    assert read(tmp_path / "m.csv") == rows and read(tmp_path / "none.csv") == []


def test_a_new_number_stands_in_the_place_of_the_old_one():
    other, later = replace(ROW, study="a"), replace(ROW, entry="sgd")
    again = replace(ROW, mean=99.0, commit="another")
    assert merged([ROW, later], [other, again]) == [other, again, later]
    assert merged([ROW], [replace(ROW, commit="")]) == [ROW], "its code is of the same commit as before"
    anew = replace(ROW, commit="", library="other code")
    assert merged([ROW], [anew]) == [anew]


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("study,", "studies,", "its columns are not study, dataset"),
        (",81.2500,", ",much,", "line 2 is damaged"),
        (",full,,", ",full,half of it,", "kind is not full, or reduced or stand-in with what is so"),
        (",full,,", ",reduced,,", "kind is not full, or reduced or stand-in with what is so"),
        (",full,,", ",whole,x,", "kind is not full, or reduced or stand-in with what is so"),
        (',"a, machine"', "", "it has too many fields, or too few"),
        (',"a, machine"', ",a,b", "it has too many fields, or too few"),
    ],
)
def test_damage_is_a_sentence(old, new, sentence, tmp_path):
    write([ROW], tmp_path / "m.csv")
    text = (tmp_path / "m.csv").read_text()
    assert old in text
    (tmp_path / "m.csv").write_text(text.replace(old, new, 1))
    with pytest.raises(StudyError, match=sentence):
        read(tmp_path / "m.csv")


def test_no_number_stands_twice(tmp_path):
    write([ROW, ROW], tmp_path / "m.csv")
    with pytest.raises(StudyError, match=r"line 3: s/mnist/pixels/ls/0\.1/top1 stands twice"):
        read(tmp_path / "m.csv")


def test_the_file_of_this_repository_can_be_read():
    assert len(COLUMNS) == 24
    for row in read(MEASURED):
        assert row.seeds >= 1 and row.std >= 0 and row.n > 0
        assert (row.guarantee == "proved") == bool(row.certified)
