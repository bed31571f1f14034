"""CheXpert, from a small folder in its format."""

import numpy as np
import pytest

from dpstudy.core.errors import StudyError
from dpstudy.data.readers import open_reader

SIZE = {"size": [8, 8]}


@pytest.mark.parametrize(
    ("options", "labels"),
    [
        ({}, [[0, 1, 0, 0, 1], [0, 0, 0, 0, 0]]),
        ({"uncertain": "ones"}, [[0, 1, 0, 1, 1], [0, 0, 0, 0, 0]]),
        ({"uncertain": "ignore"}, [[0, 0, 0, 0, 0]]),
        ({"views": "all"}, [[0, 1, 0, 0, 1], [0, 1, 0, 0, 0], [0, 0, 0, 0, 0]]),
        ({"findings": ["Edema", "No Finding"], "uncertain": "ones"}, [[1, 0], [0, 1]]),
    ],
)
def test_chexpert_by_each_policy(chexpert, options, labels):
    reader = open_reader("chexpert", {"location": "chexpert", **SIZE, **options}, chexpert)
    records = reader.read("train", np.arange(len(reader.rows("train"))))
    assert records.labels.tolist() == labels and reader.multi_label
    assert records.images.shape[1:] == (8, 8, 1)


def test_chexpert_knows_patients_and_groups(chexpert):
    reader = open_reader("chexpert", {"location": "chexpert", **SIZE, "views": "all"}, chexpert)
    assert reader.classes == ["Atelectasis", "Cardiomegaly", "Consolidation", "Edema", "Pleural Effusion"]
    assert reader.rows("train").subjects.tolist() == ["patient00001", "patient00001", "patient00002"]
    groups = reader.read("train", np.arange(3)).groups
    assert groups["sex"].tolist() == ["Female", "Female", "Male"]
    assert groups["age"].tolist() == ["60-79", "60-79", "under 40"]
    assert groups["view"].tolist() == ["Frontal", "Lateral", "Frontal"]


def test_what_is_wrong_with_chexpert_is_named(chexpert):
    options = {"location": "chexpert", **SIZE}
    with pytest.raises(StudyError, match=r"no column 'Oedema' \(did you mean 'Edema'\?\); there are"):
        open_reader("chexpert", options | {"findings": ["Oedema"]}, chexpert)
    table = chexpert / "chexpert/train.csv"
    table.write_text(table.read_text().replace("-1.0", "2.0"))
    with pytest.raises(
        StudyError, match=r"train.csv: row 0 \(line 2\): '2.0' in the column 'Edema'; it must be 1, 0, -1 or empty"
    ):
        open_reader("chexpert", options, chexpert)
    table.write_text(table.read_text().replace("2.0", "1.0").replace("patient00002", "somebody"))
    with pytest.raises(StudyError, match="names no patient"):
        open_reader("chexpert", options, chexpert)
