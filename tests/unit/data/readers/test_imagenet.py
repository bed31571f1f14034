"""ImageNet, from a small folder in its format."""

import logging

import numpy as np
import pytest
from PIL import Image

from dpstudy.core.errors import StudyError
from dpstudy.data import shards
from dpstudy.data.images import decode
from dpstudy.data.prepare import prepare_shard
from dpstudy.data.readers import open_reader
from tests.unit.data.readers.conftest import picture

SIZE = {"size": [8, 8]}


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
