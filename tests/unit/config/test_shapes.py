# ruff: noqa: E501  (a sentence a line reads better than one cut in pieces)
"""Images of two shapes that must be one are told from the config alone."""

import copy
from pathlib import Path

import numpy as np
import pytest

from dpstudy.config.loading import load
from dpstudy.core.errors import StudyError
from dpstudy.data.readers import open_reader
from dpstudy.data.shard_size import told_shape
from dpstudy.schema.reading import schema

STUDY = {
    "study": "shapes",
    "datasets": {"digits": {"reader": "digits", "delta": "1e-4", "splits": {"test": 0.2}}},
    "public": {"leaves": {"reader": "dead_leaves", "count": 100, "size": [8, 8], "channels": 1}},
    "backbones": {"net": {"architecture": "small_cnn", "public": "leaves"}},
    "fits": {"pca": {"public": "leaves", "extractor": "pixels", "dim": 4}},
    "features": {
        "projected": {"extractor": "pixels", "fit": "pca"},
        "deep": {"extractor": "backbone", "backbone": "net"},
    },
    "methods": {"ls": {"method": "least_squares"}},
    "epsilons": ["1"],
    "seeds": [0],
}


def refusal(change):
    raw = copy.deepcopy(STUDY)
    change(raw)
    with pytest.raises(StudyError) as caught:
        load(raw)
    return str(caught.value)


def test_what_fits_together_is_taken():
    load(copy.deepcopy(STUDY))


@pytest.mark.parametrize(
    ("key", "value", "given"),
    [("size", [28, 28], "28 x 28 x 1"), ("channels", 3, "8 x 8 x 3")],
    ids=["size", "channels"],
)
def test_a_public_set_of_another_shape_is_told_for_each_that_reads_it(key, value, given):
    said = refusal(lambda raw: raw["public"]["leaves"].update({key: value}))
    assert said == (
        "features.projected.fit, features.deep.backbone: the images (height, width, channels) of the public set "
        f"'leaves' are {given}, those of the data set 'digits' 8 x 8 x 1; give one of them the `size` and `channels` of "
        "the other"
    )


def test_images_that_are_resized_need_no_size_and_grey_ones_no_channels():
    raw = copy.deepcopy(STUDY)
    raw["public"]["leaves"] |= {"size": [16, 16], "channels": 3}
    raw["backbones"]["net"]["size"] = [16, 16]
    del raw["fits"], raw["features"]["projected"]
    load(raw)
    raw["datasets"]["digits"] |= {"reader": "cifar", "location": "cifar"}
    load(raw)
    raw["public"]["leaves"]["channels"] = 1
    with pytest.raises(StudyError, match="leaves' are 16 x 16 x 1, those of the data set 'digits' 32 x 32 x 3"):
        load(raw)


def test_records_that_enlarge_a_data_set_have_its_shape():
    extra = {"reader": "image_folder", "location": "more", "size": [8, 8], "channels": 3}
    said = refusal(lambda raw: raw["datasets"]["digits"].update(extra=extra))
    assert said.startswith(
        "datasets.digits.extra: the images (height, width, channels) of this data set are 8 x 8 x 3,"
    )


@pytest.mark.parametrize("reader", ["digits", "glyphs", "dead_leaves", "strokes", "cutouts", "scenes"])
def test_shapes_that_the_schema_tells_are_those_of_the_readers(reader):
    opened = open_reader(reader, {}, Path())
    assert told_shape({"reader": reader}) == opened.read(opened.pools[0], np.arange(2)).images.shape[1:]
    assert set(schema("config")["$defs"]["source"]["x-shapes"]) < set(schema("config")["$defs"]["source"]["x-readers"])
