"""What a line of a budget log is about, by names of folders, by where they lie, or because nobody can tell."""

import json
from pathlib import Path

import pytest

from dpstudy.core.errors import StudyError
from dpstudy.privacy.spent_lines import about, is_known, is_lost, lost_in_words, names_of, parents_of, read_lines

LEDGER = {"unit": "record", "guarantee": "proved", "delta": 1e-5, "events": []}
LINE = {"when": "2026-01-01", "dataset": "a", "cell": "x", "seed": 0, "ledger": LEDGER}


def names(*folders):
    return names_of(folders, parents_of(list(map(Path, folders))))


@pytest.mark.parametrize(
    ("folder", "known"), [("/n/x", True), ("/n/x/y", True), ("/n", True), ("/n/z", False), ("/n/xx", False)]
)
def test_folders_of_a_line_are_those_of_records_or_lie_around_or_inside(folder, known):
    """Whatever path they had when it was written."""
    entry = LINE | {"records": names("/another"), "folders": [folder]}
    assert is_known(entry, "b", names("/n/x")) == about(entry, "b", names("/n/x")) == known
    assert is_known(entry, "b", names("/another")), "by the path that it had then"


def test_a_line_is_lost_of_which_a_folder_is_not_found(tmp_path):
    """A renamed folder is forgotten otherwise, where another that enlarged it stays."""
    there, gone = str(tmp_path), str(tmp_path / "gone")
    for folders, lost in (([there], False), ([__file__], False), ([gone], True), ([gone, there], True), ([], False)):
        assert is_lost(LINE | {"folders": folders}, tmp_path) == lost
    earlier = LINE | {"records": names(tmp_path / "x")}
    assert not is_lost(earlier, tmp_path) and is_lost(earlier, tmp_path / "elsewhere")
    lines = [earlier | {"lost": True}, LINE | {"records": names("/n"), "lost": True}, LINE | {"records": names("/m")}]
    assert [about(line, "b", names("/n")) for line in lines] == [True, True, False]
    told = lost_in_words(lines, "b", names("/n"))
    assert told.startswith("; 1 training of 'a' in the budget log, whose folder is not where it was, count")
    assert lost_in_words(lines[1:], "b", names("/n")) == ""


@pytest.mark.parametrize("folders", ["/n", [1], None])
def test_folders_that_are_no_paths_are_damage(tmp_path, folders):
    (tmp_path / "log").write_text(json.dumps(LINE | {"folders": folders}))
    with pytest.raises(StudyError, match="line 1 is damaged .'folders' of the line"):
        list(read_lines(tmp_path / "log"))
