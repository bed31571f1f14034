"""Places365, from a small folder in its format."""

import numpy as np
import pytest

from dpstudy.core.errors import StudyError
from dpstudy.data.readers import open_reader
from tests.unit.data.readers.conftest import picture

SIZE = {"size": [8, 8]}


def test_places_are_listed_with_their_labels(tmp_path):
    folder = tmp_path / "places"
    picture(folder / "data_256/a/airfield/1.jpg", 0)
    picture(folder / "data_256/b/bar/2.jpg", 1)
    picture(folder / "val_256/v1.jpg", 2)
    (folder / "categories_places365.txt").write_text("/a/airfield 0\n/b/bar/indoor 1\n")
    (folder / "places365_train_standard.txt").write_text("/a/airfield/1.jpg 0\n/b/bar/2.jpg 1\n")
    (folder / "places365_val.txt").write_text("v1.jpg 1\n")
    reader = open_reader("places365", {"location": "places", **SIZE}, tmp_path)
    assert reader.classes == ["airfield", "bar/indoor"]
    records = reader.read("train", np.array([1, 0]))
    assert records.labels.tolist() == [1, 0] and records.ids.tolist()[0] == "data_256/b/bar/2.jpg"
    assert reader.read("test", np.array([0])).labels.tolist() == [1]
    (folder / "places365_val.txt").write_text("v1.jpg\n")
    with pytest.raises(StudyError, match=r"places365_val.txt: line 1: 'v1.jpg' is not a path and a label"):
        open_reader("places365", {"location": "places", **SIZE}, tmp_path)
    (folder / "places365_val.txt").write_text("../../v1.jpg 1\n")
    with pytest.raises(StudyError, match="leaves .*val_256"):
        open_reader("places365", {"location": "places", **SIZE}, tmp_path)
