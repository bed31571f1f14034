"""Images in one folder a class."""

import unicodedata

import numpy as np
import pytest
from PIL import Image

from dpstudy.core.errors import StudyError
from dpstudy.data.readers import open_reader
from tests.dicom_files import write_dicom

FOLDER = {"reader": "image_folder", "location": "pictures", "splits": {"test": 0.3}}
ROWS = 12


def picture(seed, size=(7, 5), channels=3):
    shape = size if channels == 1 else (*size, channels)
    return np.random.default_rng(seed).integers(0, 256, shape).astype(np.uint8)


def save(path, pixels):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path)


@pytest.fixture
def pictures(tmp_path):
    for seed in range(ROWS):
        save(tmp_path / "pictures" / ("dog", "cat", "ant")[seed % 3] / f"{seed:02d}.png", picture(seed))
    return tmp_path


def test_folder_gives_sorted_classes_and_paths_as_ids(pictures):
    (pictures / "pictures" / ".hidden").write_text("")
    (pictures / "pictures" / "cat" / ".DS_Store").write_text("")
    reader = open_reader("image_folder", FOLDER, pictures)
    assert reader.classes == ["ant", "cat", "dog"] and reader.pools == ("all",)
    ids = reader.rows("all").ids
    assert list(ids[:5]) == ["ant/02.png", "ant/05.png", "ant/08.png", "ant/11.png", "cat/01.png"]
    records = reader.read("all", np.array([4, 0]))
    np.testing.assert_array_equal(records.images, [picture(1), picture(2)])
    np.testing.assert_array_equal(records.labels, [1, 0])


def test_folder_with_train_and_test(tmp_path):
    for seed in range(ROWS):
        pool, name = ("train", "test")[seed % 2], ("cat", "dog")[seed // 2 % 2]
        save(tmp_path / "pictures" / pool / name / f"{seed}.png", picture(seed))
    options = {"reader": "image_folder", "location": "pictures", "classes": ["dog", "cat"]}
    reader = open_reader("image_folder", options, tmp_path)
    assert reader.pools == ("train", "test") and reader.classes == ["dog", "cat"]
    records = reader.read("test", np.array([0]))
    assert records.ids[0] == "test/dog/11.png"
    assert records.labels[0] == 0
    (tmp_path / "pictures" / "train" / "bee").mkdir()
    with pytest.raises(StudyError, match="train: the folder 'bee' is none of the classes dog, cat; rename it, or mend"):
        open_reader("image_folder", options, tmp_path)
    (tmp_path / "pictures" / "train" / "bee").rmdir()
    with pytest.raises(StudyError, match=r"train: the folder 'cat' is none .* dog, cats \(did you mean 'cats'\?\)"):
        open_reader("image_folder", options | {"classes": ["dog", "cats"]}, tmp_path)
    (tmp_path / "pictures" / "val").mkdir()
    with pytest.raises(StudyError, match="stands the folder 'val'"):
        open_reader("image_folder", options, tmp_path)


def test_size_and_channels_bring_images_to_one_shape(pictures):
    save(pictures / "pictures" / "ant" / "02.png", picture(50, (14, 10), 1))
    reader = open_reader("image_folder", {**FOLDER, "size": [7, 5], "channels": 1}, pictures)
    images = reader.read("all", np.arange(ROWS)).images
    assert images.shape == (ROWS, 7, 5, 1)
    grey = picture(8).astype(float) @ [0.299, 0.587, 0.114]  # ITU-R 601 luma, what Pillow uses
    assert reader.rows("all").ids[2] == "ant/08.png"
    assert np.abs(images[2, ..., 0] - grey).max() <= 1
    reader = open_reader("image_folder", {**FOLDER, "size": [7, 5], "channels": 3}, pictures)
    colour = reader.read("all", np.array([0, 1])).images
    assert colour.shape == (2, 7, 5, 3)
    np.testing.assert_array_equal(colour[0, ..., 0], colour[0, ..., 2])
    np.testing.assert_array_equal(colour[1], picture(5))


def test_dicom_files_are_images_whatever_they_are_called(pictures, refused):
    """As archives export them; nothing else without a suffix is one."""
    folder = pictures / "pictures"
    write_dicom(folder / "cat" / "IM0000", picture(0, channels=1), 8)
    write_dicom(folder / "cat" / "1.2.840.1", picture(1, channels=1), 8)
    reader = open_reader("image_folder", FOLDER | {"size": [7, 5], "channels": 1}, pictures)
    ids = list(reader.rows("all").ids)
    assert ids[4] == "cat/01.png" and {"cat/IM0000", "cat/1.2.840.1"} < set(ids) and len(ids) == ROWS + 2
    found = reader.read("all", np.array([ids.index("cat/IM0000")])).images
    np.testing.assert_array_equal(found[0, ..., 0], picture(0, channels=1))
    (folder / "cat" / "IM0000").rename(folder / "IM0000")
    refused(FOLDER, pictures, "IM0000", "move it into one")
    (folder / "IM0000").rename(folder / "cat" / "IM0000")
    (folder / "cat" / "IM0001").write_bytes(bytes(200))
    refused(FOLDER, pictures, "IM0001", "not an image; a class folder holds .png", "and DICOM files whatever")


def test_bad_folders_are_refused(pictures, refused):
    folder = pictures / "pictures"
    everything = {**FOLDER, "splits": {"test": 0}}
    file = folder / "cat" / "04.png"
    whole = file.read_bytes()
    save(file, picture(4, (5, 7)))
    refused(everything, pictures, "04.png", "row 5", "(5, 7, 3)", "(7, 5, 3)")
    file.write_bytes(whole[: len(whole) // 2])
    refused(everything, pictures, "04.png", "row 5", "cannot be decoded")
    file.write_bytes(b"no image at all")
    refused(everything, pictures, "04.png", "row 5", "not an image")
    Image.fromarray(np.arange(35, dtype=np.uint16).reshape(7, 5)).save(file)
    refused(everything, pictures, "04.png", "8 bits")
    file.write_bytes(whole)
    (folder / "cat" / "notes.txt").write_text("")
    refused(everything, pictures, "notes.txt", "not an image")
    (folder / "cat" / "notes.txt").rename(folder / "notes.txt")
    refused(everything, pictures, "notes.txt", "a file where")
    (folder / "notes.txt").unlink()
    refused({**everything, "classes": ["ant", "cat"]}, pictures, "'dog'")
    refused({**everything, "size": [0, 5]}, pictures, "size: [0, 5]")
    refused({**everything, "channels": 2}, pictures, "channels: 2")
    (pictures / "empty").mkdir()
    refused({**everything, "location": "empty"}, pictures, "no sub-folder")
    (pictures / "empty" / "cat").mkdir()
    refused({**everything, "location": "empty"}, pictures, "no image")


def test_a_decompression_bomb_is_refused(pictures, refused, monkeypatch):
    everything = {**FOLDER, "splits": {"test": 0}}
    for limit in (20, 10):  # 35 pixels: above the limit Pillow warns, above twice the limit it raises
        monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", limit)
        refused(everything, pictures, "ant/02.png", "decompression bomb")


@pytest.mark.parametrize("names", ["train val", "Train Test", "TRAINING testing", "train valid", "train validation"])
def test_splits_as_the_fields_tools_name_them(tmp_path, names):
    train, test = names.split()
    for pool, seed in ((train, 0), (test, 1)):
        for name in ("cat", "dog"):
            save(tmp_path / "pictures" / pool / name / "x.png", picture(seed))
    reader = open_reader("image_folder", FOLDER, tmp_path)
    assert reader.pools == ("train", "test") and reader.classes == ["cat", "dog"]
    records = reader.read("test", np.array([1]))
    assert records.ids.tolist() == [f"{test}/dog/x.png"]
    np.testing.assert_array_equal(records.images[0], picture(1))


@pytest.mark.parametrize(
    ("folders", "words"),
    [
        (
            ["train/a", "valid/a", "test/a"],
            "stands the folder 'valid'; records for choosing are cut from train (`splits:",
        ),
        (["train/a", "Train/a", "test/a"], "of the folders Train and train only one may stand there; merge them"),
        (["train/a", "test/a", "masks/a"], "beside train and test stands the folder 'masks'; only these two may stand"),
        (
            ["a/P001", "a/P002", "b/P003"],
            "a: holds folders (P001, P002) and no image; if these are the classes, or train",
        ),
        (["pictures/train/a", "pictures/test/a"], "holds folders (test, train) and no image; if these are the classes"),
        (
            ["train/a", "train/b"],
            "train: holds folders (a, b) and no image; if these are the classes, or train and test",
        ),
        (
            ["a/", "a/more", "b/"],
            "a/more: a folder in the folder of a class; move its images up, or list the images in",
        ),
        (["e\u0301/", "\u00e9/"], "two folders are called 'é', in two Unicode forms; merge them"),
    ],
)
def test_folders_of_which_nobody_knows_what_they_are(tmp_path, refused, folders, words):
    for folder in folders:
        save(tmp_path / "pictures" / folder / "x.png", picture(0))
    refused(FOLDER | {"splits": {}}, tmp_path, words)


def test_classes_may_be_called_train(tmp_path):
    for name in ("train", "val", "bus"):
        save(tmp_path / "pictures" / name / "x.png", picture(0))
    assert open_reader("image_folder", FOLDER, tmp_path).classes == ["bus", "train", "val"]


def test_what_systems_leave_behind_is_no_class_and_no_image(pictures):
    before = open_reader("image_folder", FOLDER, pictures).rows("all").ids
    for name in ("__MACOSX/cat/._1.png", "cat/Thumbs.db", "Desktop.ini", "dog/.DS_Store", "ant/@eaDir/x.png"):
        (pictures / "pictures" / name).parent.mkdir(parents=True, exist_ok=True)
        (pictures / "pictures" / name).write_text("")
    reader = open_reader("image_folder", FOLDER, pictures)
    assert reader.classes == ["ant", "cat", "dog"] and list(reader.rows("all").ids) == list(before)


def test_classes_with_accents_in_either_form(tmp_path):
    form = unicodedata.normalize
    for pool, name in (("train", "NFD"), ("test", "NFC")):
        for kind in ("Übel", "gut"):
            save(tmp_path / "pictures" / pool / form(name, kind) / "é.png", picture(0))
    for classes in ({}, {"classes": [form("NFD", "Übel"), "gut"]}):
        reader = open_reader("image_folder", FOLDER | classes, tmp_path)
        assert set(reader.classes) == {"Übel", "gut"}
        place = reader.classes.index("Übel")
        assert reader.read("train", np.array([place])).ids[0] == f"train/{form('NFD', 'Übel')}/é.png"
        assert reader.read("test", np.array([place])).ids[0] == "test/Übel/é.png"
