"""Readers of well-known collections, on small files in each format."""

import logging

import numpy as np
import pytest
from PIL import Image

from dpstudy.core.errors import StudyError
from dpstudy.data import shards
from dpstudy.data.images import decode
from dpstudy.data.listed import age_bands
from dpstudy.data.prepare import prepare_shard
from dpstudy.data.readers import open_reader

SIZE = {"size": [8, 8]}


def picture(path, seed, shape=(12, 10, 3)):
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng(seed).integers(0, 256, shape, np.uint8)
    Image.fromarray(pixels if shape[2] == 3 else pixels[..., 0]).save(path)
    return path


@pytest.fixture
def imagenet(tmp_path):
    for seed, name in enumerate(
        ("train/n02/b.JPEG", "train/n01/a.JPEG", "train/n02/a.JPEG", "val/n01/v.JPEG", "val/n02/w.JPEG")
    ):
        picture(tmp_path / "imagenet" / name, seed)
    return tmp_path


def test_imagenet_has_a_folder_a_class(imagenet):
    reader = open_reader("imagenet", {"location": "imagenet", **SIZE}, imagenet)
    assert reader.classes == ["n01", "n02"] and reader.pools == ("train", "test") and not reader.multi_label
    assert reader.rows("train").ids.tolist() == ["train/n01/a.JPEG", "train/n02/a.JPEG", "train/n02/b.JPEG"]
    records = reader.read("train", np.array([2, 0]))
    assert records.ids.tolist() == ["train/n02/b.JPEG", "train/n01/a.JPEG"] and records.labels.tolist() == [1, 0]
    assert records.images.shape == (2, 8, 8, 3)
    assert reader.read("test", np.array([1])).labels.tolist() == [1]


def test_the_middle_is_taken_where_the_aspect_is_kept(tmp_path):
    """Three stripes of equal width: stretched, all three are there; cropped to a square, the middle one alone."""
    pixels = np.repeat(np.array([0, 128, 255], np.uint8), 20)[None, :, None].repeat(20, 0).repeat(3, 2)
    Image.fromarray(pixels).save(tmp_path / "wide.png")
    cropped = decode(tmp_path / "wide.png", "here", (10, 10), None, crop=True)
    assert cropped.shape == (10, 10, 3) and (cropped[:, 1:-1] == 128).all()
    stretched = decode(tmp_path / "wide.png", "here", (10, 10), None)
    assert stretched[0, 0, 0] == 0 and stretched[0, -1, 0] == 255


def test_what_is_wrong_with_an_imagenet_folder_is_named(imagenet):
    options = {"location": "imagenet", **SIZE}
    with pytest.raises(StudyError, match="reader 'imagenet': its images have many sizes; give `size`"):
        open_reader("imagenet", {"location": "imagenet"}, imagenet)
    picture(imagenet / "imagenet/val/flat.JPEG", 9)
    with pytest.raises(StudyError, match=r"flat.JPEG: a file where only one folder a class may stand; move it"):
        open_reader("imagenet", options, imagenet)
    (imagenet / "imagenet/val/flat.JPEG").unlink()
    picture(imagenet / "imagenet/val/n03/x.JPEG", 9)
    with pytest.raises(StudyError, match="the class 'n03' stands in only one"):
        open_reader("imagenet", options, imagenet)


@pytest.fixture
def batches(tmp_path):
    """Two training files and one of validation, of 4 x 4 pixels."""
    folder = tmp_path / "small"
    folder.mkdir()
    rng = np.random.default_rng(0)
    made = {}
    for name, rows in (("train_data_batch_1", 5), ("train_data_batch_2", 3), ("val_data", 2)):
        made[name] = rng.integers(0, 256, (rows, 48), np.uint8), rng.integers(1, 8, rows)
        np.savez(folder / f"{name}.npz", data=made[name][0], labels=made[name][1], mean=np.zeros(48))
    return tmp_path, made


def test_downsampled_imagenet_is_read_file_by_file(batches):
    root, made = batches
    reader = open_reader("imagenet32", {"location": "small", "classes": 7}, root)
    assert (
        reader.rows("train").ids.tolist() == [f"train-{row:05d}" for row in range(8)] and len(reader.rows("test")) == 2
    )
    records = reader.read("train", np.array([7, 0, 4]))
    data = np.concatenate([made["train_data_batch_1"][0], made["train_data_batch_2"][0]])
    labels = np.concatenate([made["train_data_batch_1"][1], made["train_data_batch_2"][1]])
    assert records.labels.tolist() == (labels[[7, 0, 4]] - 1).tolist()
    np.testing.assert_array_equal(records.images, data[[7, 0, 4]].reshape(3, 3, 4, 4).transpose(0, 2, 3, 1))


def test_what_is_wrong_with_a_batch_is_named(batches):
    root, made = batches
    with pytest.raises(StudyError, match=r"batch_1.npz \(less 1\): row \d has label \d, but the 2 classes are 0 to 1"):
        open_reader("imagenet32", {"location": "small", "classes": 2}, root)
    np.savez(root / "small/val_data.npz", data=made["val_data"][0][:, :40], labels=made["val_data"][1])
    reader = open_reader("imagenet32", {"location": "small", "classes": 7}, root)
    with pytest.raises(StudyError, match=r"`data` is uint8 of shape \(2, 40\), not uint8 of \(2, 3 S S\)"):
        reader.read("test", np.array([0]))
    (root / "small/val_data.npz").write_bytes(b"no archive")
    with pytest.raises(StudyError, match=r"val_data.npz: damaged or truncated"):
        open_reader("imagenet32", {"location": "small", "classes": 7}, root)
    np.savez(root / "small/val_data.npz", data=np.array([{}], dtype=object), labels=made["val_data"][1])
    reader = open_reader("imagenet32", {"location": "small", "classes": 7}, root)
    with pytest.raises(StudyError, match=r"val_data.npz: damaged .*allow_pickle"):
        reader.read("test", np.array([0]))


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


CHEXPERT = (
    "Path,Sex,Age,Frontal/Lateral,AP/PA,No Finding,Cardiomegaly,Edema,Consolidation,Atelectasis,Pleural Effusion\n"
)


@pytest.fixture
def chexpert(tmp_path):
    folder = tmp_path / "chexpert"
    rows = {
        "train": [
            "patient00001/study1/view1_frontal.jpg,Female,68,Frontal,AP,,1.0,-1.0,,0.0,1.0",
            "patient00001/study1/view2_lateral.jpg,Female,68,Lateral,,,1.0,,,,",
            "patient00002/study3/view1_frontal.jpg,Male,39,Frontal,PA,1.0,,,,,",
        ],
        "valid": ["patient64541/study1/view1_frontal.jpg,Male,85,Frontal,AP,0.0,1.0,0.0,0.0,0.0,0.0"],
    }
    for name, lines in rows.items():
        paths = [f"CheXpert-v1.0-small/{name}/{line}" for line in lines]
        (folder).mkdir(exist_ok=True)
        (folder / f"{name}.csv").write_text(CHEXPERT + "\n".join(paths) + "\n")
        for seed, line in enumerate(lines):
            picture(folder / name / line.split(",")[0], seed, (9, 11, 1))
    return tmp_path


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


def test_what_is_wrong_with_chexpert_is_named(chexpert):
    options = {"location": "chexpert", **SIZE}
    with pytest.raises(StudyError, match="uncertain is 'half'; it must be one of zeros, ones, ignore"):
        open_reader("chexpert", options | {"uncertain": "half"}, chexpert)
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


def test_ages_fall_into_bands():
    ages = ["39", "40", "59.0", "060Y", "80", "", "411"]
    assert age_bands(ages).tolist() == ["under 40", "40-59", "40-59", "60-79", "80 and over", "unknown", "unknown"]


def test_unreadable_images_are_left_out_up_to_a_limit_and_named(imagenet, caplog):
    for seed in range(7):
        picture(imagenet / f"imagenet/train/n01/more-{seed}.JPEG", seed)
    (imagenet / "imagenet/train/n02/b.JPEG").write_bytes(b"no image")
    options = {"reader": "imagenet", "location": "imagenet", **SIZE}
    path = imagenet / "part.parquet"
    with pytest.raises(StudyError, match=r"1 of 10 .* is not given; the first: .*b.JPEG is not an image"):
        prepare_shard("big", options, imagenet, "train", 0, path, False)
    with pytest.raises(
        StudyError, match=r"1 of 10 images cannot be read, but `unreadable` is 0.05; the first: .*b.JPEG"
    ):
        prepare_shard("big", options | {"unreadable": 0.05}, imagenet, "train", 0, path, False)
    with caplog.at_level(logging.WARNING, "dpstudy"):
        prepare_shard("big", options | {"unreadable": 0.1}, imagenet, "train", 0, path, False)
    assert "cannot be read: " in caplog.text and "b.JPEG" in caplog.text
    shards.write_manifest(
        imagenet / "manifest.json",
        dataset="big",
        split="train",
        shard_paths=[path],
        classes=["n01", "n02"],
        private=False,
    )
    ids = shards.load(imagenet).ids
    assert len(ids) == 9 and "train/n02/b.JPEG" not in ids
