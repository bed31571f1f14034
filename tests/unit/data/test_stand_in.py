"""Drawn images in the place of somebody's own."""

import csv

import numpy as np
import pytest
from PIL import Image

from dpstudy.core.errors import StudyError
from dpstudy.data.readers import open_reader
from dpstudy.data.stand_in import TABLE, write_stand_in
from tests.unit.data.readers.test_image_table import TABLE as SCANS
from tests.unit.data.readers.test_image_table import save, write_csv
from tests.unit.data.test_embedded import hub as hub

ROWS = 60


@pytest.fixture
def scans(tmp_path):
    rows = []
    for row in range(ROWS):
        save(tmp_path / "scans" / f"Doe, Jane {row}.png", np.zeros((9, 7), np.uint8))
        facts = {"path": f"Doe, Jane {row}.png", "finding": ("well", "ill")[row < 20], "patient": f"Jane {row // 3}"}
        rows.append(facts | {"sex": "FM"[row % 2], "edema": int(row < 9), "mass": int(row < 33)})
    write_csv(tmp_path / "scans" / "labels.csv", rows)
    return tmp_path, rows


def counts(values):
    return sorted(np.unique(values, return_counts=True)[1].tolist())


@pytest.mark.parametrize("several", [False, True])
def test_how_many_there_are_is_kept_and_nothing_else(scans, tmp_path, several):
    root, rows = scans
    options = SCANS | {"delta": "1e-3", "unit": "subject", "per_subject": 2, "size": [5, 6], "channels": 3}
    options |= {"contributions": "average"}
    if several:
        options = {key: value for key, value in options.items() if key not in ("label_column", "classes")}
        options |= {"label_columns": ["edema", "mass"], "positives": 2}
    entry = write_stand_in(options, root, tmp_path / "drawn", np.random.default_rng(0)) | {"location": "drawn"}
    kept = ("delta", "unit", "per_subject", "contributions", "splits")
    assert {key: entry[key] for key in kept} == {key: options[key] for key in kept}
    known = open_reader("image_table", options, root).known("all")
    drawn = open_reader("image_table", entry, tmp_path)
    records = drawn.read("all", np.arange(ROWS))
    assert records.images.shape == (ROWS, 5, 6, 3) and len({image.tobytes() for image in records.images}) == ROWS
    assert counts(records.subjects) == counts(known.subjects) and len(records) == len(known)
    assert (records.labels.sum(0) == known.labels.sum(0)).all() and not np.array_equal(records.labels, known.labels)
    assert counts(records.groups["sex"]) == counts(known.groups["sex"]) and set(records.groups) == {"sex"}
    assert drawn.classes == open_reader("image_table", options, root).classes
    assert "Jane" not in (tmp_path / "drawn" / TABLE).read_text()


def test_no_pixel_is_read(scans, tmp_path):
    root, _ = scans
    for path in (root / "scans").glob("*.png"):
        path.write_bytes(b"no image")
    write_stand_in(SCANS | {"size": [5, 6], "channels": 1}, root, tmp_path / "drawn", np.random.default_rng(0))
    assert Image.open(tmp_path / "drawn" / "0.png").size == (6, 5)


def test_images_keep_the_shape_of_the_first_where_none_is_given(scans, hub, tmp_path):
    root, _ = scans
    entry = write_stand_in(SCANS, root, tmp_path / "drawn", np.random.default_rng(0))
    assert (entry["size"], entry["channels"]) == ([9, 7], 1)
    entry = write_stand_in(hub[1], hub[0], tmp_path / "other", np.random.default_rng(0))
    assert (entry["size"], entry["channels"]) == ([6, 5], 1) and "image_column" not in entry


def test_folders_of_classes_with_a_split_of_their_own(tmp_path):
    for split, number in (("train", 30), ("test", 10)):
        for row in range(number):
            save(tmp_path / "own" / split / "ab"[row % 2] / f"{row}.png", np.zeros((4, 4), np.uint8))
    options = {"reader": "image_folder", "location": "own", "classes": ["a", "b"], "splits": {"validation": 0.1}}
    entry = write_stand_in(options, tmp_path, tmp_path / "drawn", np.random.default_rng(0))
    assert entry["splits"] == {"validation": 0.1, "test": 0.25}
    with open(tmp_path / "drawn" / TABLE, newline="") as file:
        assert sorted(row["drawn label"] for row in csv.DictReader(file)) == ["a"] * 20 + ["b"] * 20


def test_what_cannot_be_stood_in_for_is_told(tmp_path):
    with pytest.raises(StudyError, match="reader 'digits': its records cannot be stood in for"):
        write_stand_in({"reader": "digits"}, tmp_path, tmp_path / "drawn", np.random.default_rng(0))
