"""ChestX-ray14 of the NIH, from a small folder in its format; and what it shares with CheXpert."""

import numpy as np
import pytest

from dpstudy.core.errors import StudyError
from dpstudy.data.readers import open_reader
from tests.unit.data.readers.conftest import picture

SIZE = {"size": [8, 8]}


def test_group_columns_replace_the_groups_of_chexpert_and_nih(chexpert, nih):
    options = {"location": "chexpert", **SIZE, "views": "all"}
    options["group_columns"] = ["Sex", {"column": "Age", "bands": [50, 65], "name": "years"}]
    groups = open_reader("chexpert", options, chexpert).read("train", np.array([2, 0])).groups
    assert groups["Sex"].tolist() == ["Male", "Female"]
    assert set(groups) == {"Sex", "years"} and groups["years"].tolist() == ["below 50", "65 and above"]
    options = {"location": "nih", **SIZE, "group_columns": [{"column": "Patient Age", "bands": [58]}]}
    groups = open_reader("nih", options, nih).read("all", np.array([2, 0, 1])).groups
    assert set(groups) == {"Patient Age"}
    assert groups["Patient Age"].tolist() == ["58 and above", "below 58", "58 and above"]


@pytest.fixture
def nih(tmp_path):
    folder = tmp_path / "nih"
    lines = [
        "00000001_000.png,Cardiomegaly|Effusion,0,1,57,M,PA",
        "00000001_001.png,No Finding,1,1,58,M,AP",
        "00000002_000.png,Hernia,0,2,081Y,F,PA",
    ]
    for seed, line in enumerate(lines):
        picture(folder / f"images_00{seed + 1}/images" / line.split(",")[0], seed, (9, 9, 1))
    header = "Image Index,Finding Labels,Follow-up #,Patient ID,Patient Age,Patient Sex,View Position\n"
    (folder / "Data_Entry_2017_v2020.csv").write_text(header + "\n".join(lines) + "\n")
    return tmp_path


def test_nih_has_fourteen_findings_patients_and_groups(nih):
    reader = open_reader("nih", {"location": "nih", **SIZE}, nih)
    assert reader.pools == ("all",) and len(reader.classes) == 14
    records = reader.read("all", np.arange(3))
    named = [[name for name, on in zip(reader.classes, row, strict=True) if on] for row in records.labels]
    assert named == [["Cardiomegaly", "Effusion"], [], ["Hernia"]]
    assert records.subjects.tolist() == ["1", "1", "2"] and records.groups["age"].tolist() == [
        "40-59",
        "40-59",
        "80 and over",
    ]
    for name, rows in (("train_val_list", "00000001_000.png\n00000001_001.png\n"), ("test_list", "00000002_000.png\n")):
        (nih / f"nih/{name}.txt").write_text(rows)
    reader = open_reader("nih", {"location": "nih", **SIZE, "findings": ["Effusion", "Hernia"]}, nih)
    assert reader.pools == ("train", "test") and reader.read("train", np.arange(2)).labels.tolist() == [[1, 0], [0, 0]]


def test_one_finding_alone_makes_two_classes(nih, chexpert):
    options = {**SIZE, "findings": ["Cardiomegaly"]}
    for name, pool, root, labels in (("nih", "all", nih, [1, 0, 0]), ("chexpert", "train", chexpert, [1, 0])):
        reader = open_reader(name, {"location": name, **options}, root)
        assert reader.classes == ["no Cardiomegaly", "Cardiomegaly"] and not reader.multi_label
        read = reader.read(pool, np.arange(len(labels))).labels
        assert read.tolist() == labels and read.dtype == np.int32


def test_what_is_wrong_with_nih_is_named(nih):
    options = {"location": "nih", **SIZE}
    (nih / "nih/images_002/images/00000001_001.png").unlink()
    with pytest.raises(StudyError, match=r"row 1 \(line 3\): no image 00000001_001.png"):
        open_reader("nih", options, nih)
    table = nih / "nih/Data_Entry_2017_v2020.csv"
    table.write_text(table.read_text().replace("Hernia", "Hernias"))
    with pytest.raises(StudyError, match="row 2 .* unknown finding 'Hernias'; there are Atelectasis, "):
        open_reader("nih", options, nih)
    table.rename(table.with_name("table.csv"))
    with pytest.raises(StudyError, match=r"it must hold one table Data_Entry_2017\*.csv; there are 0"):
        open_reader("nih", options, nih)
