"""What readers share: names on disk and labels."""

import unicodedata

import numpy as np
import pytest

from dpstudy.core.errors import StudyError
from dpstudy.data.source import class_names, location, on_disk, single_labels


@pytest.mark.parametrize(("told", "there"), [("NFC", "NFD"), ("NFD", "NFC"), ("NFC", "NFC")])
def test_accents_are_found_in_whatever_form_a_disk_has_them(tmp_path, told, there):
    on, asked = (unicodedata.normalize(form, "Röntgen/Ärzte/é.png") for form in (there, told))
    (tmp_path / on).parent.mkdir(parents=True)
    (tmp_path / on).write_text("")
    assert on_disk(tmp_path, asked) == tmp_path / on
    assert location({"location": asked.rpartition("/")[0]}, tmp_path) == (tmp_path / on).parent
    assert on_disk(tmp_path, f"{asked}é") == tmp_path / on.rpartition("/")[0] / f"{asked.rpartition('/')[2]}é"
    with pytest.raises(StudyError, match="no such folder"):
        location({"location": "/nowhere/é"}, tmp_path)
    (tmp_path / "hospitals").mkdir()
    with pytest.raises(StudyError, match=r"no such folder \(did you mean 'hospitals'\?\); mend `location`"):
        location({"location": "hospital"}, tmp_path)


def test_class_names_are_composed_and_differ():
    assert class_names({"classes": ["a\u0308", "b"]}) == ["ä", "b"]
    with pytest.raises(StudyError, match="the class 'ä' stands twice"):
        class_names({"classes": ["ä", "a\u0308"]})


def test_whole_numbers_are_labels_whatever_their_type():
    for kind in (np.int64, np.uint8, np.float32, np.float64):
        assert single_labels(np.array([0, 2, 1], kind), list("abc"), "here").tolist() == [0, 2, 1]
    refused = {
        0.5: "one integer a row, not float64",
        np.nan: "one integer a row",
        3.0: "has label 3",
        -np.inf: "has label -1",
    }
    for wrong, words in refused.items():
        with pytest.raises(StudyError, match=words):
            single_labels(np.array([wrong]), list("abc"), "here")
