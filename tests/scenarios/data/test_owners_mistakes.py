"""Mistakes that owners of images make: each is one sentence, before any image is prepared."""

import copy
import csv
import shutil

import numpy as np
import pytest
from PIL import Image

from dpstudy.core.errors import StudyError
from dpstudy.data.prepare import look_through
from tests.dicom_files import write_dicom
from tests.workflow.clinic import CONFIG, write_clinic

ENTRY = CONFIG["datasets"]["clinic"]
AGES = {"group_columns": [{"column": "age", "bands": [40]}]}
FINDINGS = {"label_columns": ["edema", "mass"], "label_column": None, "classes": None}


def value(column, text, rows=slice(2, 3)):
    return lambda table: [row.update({column: text}) for row in table[rows]]


def bytes_of(name, write):
    return lambda folder: write(folder / name)


def lines(mark):
    def write(folder):
        path = folder / "table.csv"
        path.write_text(path.read_text().replace(",", mark))

    return write


REFUSED = {  # what: (changed rows, changed keys, changed files, words)
    "semicolons": (None, {}, lines(";"), "save it with commas between the values, not semicolons"),
    "tabs": (None, {}, lines("\t"), "save it with commas between the values, not tabs"),
    "a workbook": (None, {}, bytes_of("table.csv", lambda path: path.write_bytes(b"PK\3\4" + bytes(99))), "a workbook"),
    "dates as ages": (value("age", "1957-03-02"), AGES, None, "row 2 (line 4): '1957-03-02' in the column 'age' is no"),
    "ages in words": (value("age", "57 years"), AGES, None, "'57 years' in the column 'age' is no number"),
    "one file under two patients": (value("path", "images/0.png", slice(9, 10)), {}, None, "belongs to one subject"),
    "two files with one picture": (
        None, {}, lambda folder: shutil.copy(folder / "images/1.png", folder / "images/170.png"),
        "'images/1.png' of the subject 'P0' and 'images/170.png' of the subject 'P56' are the same",
    ),
    "a missing file": (None, {}, bytes_of("images/5.png", lambda path: path.unlink()), "row 5 (line 7): no such file"),
    "a path that leaves the folder": (value("path", "/etc/passwd"), {}, None, "paths must be relative to it"),
    "a series of DICOM files": (value("path", "images"), {}, None, "images is a folder, as a series of DICOM files"),
    "DICOM without a window": (
        None, {}, bytes_of("images/0.png", lambda path: write_dicom(path, np.zeros((8, 8), np.uint16))),
        "has 12 bits a channel, or numbers with a sign or a point, and images are read at 8: name the window",
    ),
    "16 bits": (
        None, {}, bytes_of("images/0.png", lambda path: Image.fromarray(np.zeros((8, 8), np.uint16)).save(path)),
        "has 16 bits a channel, and images are read at 8 bits: name the window",
    ),
    "a label in capitals": (value("label", "A"), {}, None, "unknown class 'A' in the column 'label' (did you mean"),
    "another column's labels": (None, {"label_column": "sex"}, None, "(the first of 184 rows); the classes are a, b"),
    "a 2 among zeros and ones": (value("mass", "2"), FINDINGS, None, "'2' in the column 'mass'; it must be 0 or 1"),
    "an unknown patient": (value("patient", "unknown"), {}, None, "names no subject, but 'unknown'"),
    "a column that is not there": (None, {"subject_column": "Patient ID"}, None, "'Patient ID', as `subject_column`"),
    "a delta above 1/n": (None, {"delta": "0.5"}, None, "0.5 is not below 1/n = 1/41 for so many subjects"),
    "one person alone": (value("patient", "P1", slice(None)), {}, None, "no row falls into the split"),
}  # fmt: skip
TOLD = {
    "years of birth as ages": (
        value("age", "1957", slice(None)),
        AGES,
        "all records are of one group 'age' ('40 and a",
    ),
    "an empty finding": (value("mass", "0", slice(None)), FINDINGS, "no record bears 'mass'"),
    "a finding of everybody": (value("mass", "1", slice(None)), FINDINGS, "every record bears 'mass'"),
    "a class that is not there": (None, {"classes": ["a", "b", "ill"]}, "no record bears 'ill'"),
    "private test records called public": (None, {"test_split": "public"}, "cut at random from the private ones"),
    "paths as persons": (None, {"subject_column": "path"}, "each image is of another person"),
    "more images than anybody has": (None, {"per_subject": 9}, "nobody has more than 5 images, and per_subject is 9"),
    "averages of more than anybody has": (
        None,
        {"per_subject": 9, "contributions": "average", "subject_column": "path"},
        "each image is of another person",
    ),
    "a word for all who are not known": (
        value("patient", "somebody", slice(60, 120)),
        {},
        "'somebody' has 60 images, and nobody else more than",
    ),
    "a finding that no test person has": (
        lambda table: [row.update({"mass": str(int(row["patient"] == "P1"))}) for row in table],
        FINDINGS,
        "no test record bears 'mass', so that such metrics as auc leave it out",
    ),
    "a class of all test persons": (
        lambda table: [row.update({"label": "ab"[row["patient"] == "P1"]}) for row in table],
        {},
        "no test record bears 'b', so that such metrics as auc have no value; is `splits.test` too small?",
    ),
    "one person in two cases": (value("patient", "p2"), {}, "'P2' and 'p2' count as two persons, and differ in case"),
    "one person with a blank": (value("patient", "P 2"), {}, "'P 2' and 'P2' count as two persons"),
    "one person with zeros": (value("patient", "P002"), {}, "'P002' and 'P2' count as two persons"),
    "two persons so": (
        lambda table: [row.update({"patient": row["patient"].lower()}) for row in table[::2] if row["patient"] < "P2"],
        {},
        "more likewise)",
    ),
    "images of persons one by one": (
        None,
        {"unit": "record"},
        "unit: record, and 46 of 60 persons have several images, up to 5",
    ),
    "patients as groups": (None, {"group_columns": ["patient"]}, "the groups 'patient' are 60"),
}


@pytest.fixture
def clinic(tmp_path):
    """A function: the clinic with rows, keys and files changed; its entry."""
    write_clinic(tmp_path / "clinic")

    def changed(rows, keys, files=None):
        path = tmp_path / "clinic" / "table.csv"
        table = list(csv.DictReader(path.open()))
        for place, row in enumerate(table):
            row |= {"age": str(20 + place % 60), "edema": str(place % 2), "mass": str(place % 3 // 2)}
        if rows:
            rows(table)
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, table[0])
            writer.writeheader()
            writer.writerows(table)
        if files:
            files(tmp_path / "clinic")
        entry = copy.deepcopy(ENTRY) | keys
        return {key: value for key, value in entry.items() if value is not None}

    return changed


@pytest.mark.parametrize("what", REFUSED)
def test_it_is_refused_in_a_sentence(what, clinic, tmp_path):
    rows, keys, files, words = REFUSED[what]
    entry = clinic(rows, keys, files)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(StudyError) as told:
        look_through("clinic", entry, tmp_path, entry["delta"])
    assert words in str(told.value) and "\n" not in str(told.value)
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("what", TOLD)
def test_it_is_told_and_left_to_the_owner(what, clinic, tmp_path):
    rows, keys, words = TOLD[what]
    entry = clinic(rows, keys)
    (told,) = look_through("clinic", entry, tmp_path, entry["delta"])
    assert words in told and "\n" not in told


def test_nothing_is_told_of_a_data_set_in_order(clinic, tmp_path):
    for keys in ({}, AGES, FINDINGS):
        entry = clinic(None, keys)
        assert look_through("clinic", entry, tmp_path, entry["delta"]) == []
