"""Drawn public sets: picture i is a function of (seed, i), and looks as it should."""

from pathlib import Path

import numpy as np
import pytest

from dpstudy.core.errors import StudyError
from dpstudy.data.readers import open_reader


def read(reader, indices, **options):
    return open_reader(reader, options, Path()).read("all", np.array(indices))


@pytest.mark.parametrize(
    ("reader", "options", "shape"),
    [
        ("dead_leaves", {}, (32, 32, 3)),
        ("dead_leaves", {"size": [28, 20], "channels": 1}, (28, 20, 1)),
        ("strokes", {}, (28, 28, 1)),
        ("strokes", {"size": [16, 32]}, (16, 32, 1)),
        ("cutouts", {}, (28, 28, 1)),
        ("cutouts", {"size": [32, 20], "channels": 3}, (32, 20, 3)),
        ("scenes", {}, (32, 32, 3)),
        ("scenes", {"size": [24, 20], "channels": 1, "kinds": 5}, (24, 20, 1)),
    ],
)
def test_a_picture_depends_on_the_seed_and_its_number_alone(reader, options, shape):
    records = read(reader, [3, 7], **options, count=9)
    assert records.images.shape == (2, *shape) and records.images.dtype == np.uint8
    assert list(records.ids) == [f"{reader}-000003", f"{reader}-000007"]
    again = read(reader, [7], **options, count=1000)
    assert np.array_equal(again.images[0], records.images[1])
    assert not np.array_equal(read(reader, [7], **options, seed=1).images, again.images)
    rows = open_reader(reader, options | {"count": 9}, Path()).rows("all")
    assert len(rows.ids) == 9 and rows.ids[7] == records.ids[1]


def test_dead_leaves_have_edges_at_all_scales_and_colour():
    images = read("dead_leaves", range(60)).images.astype(float)
    assert 60 < images.mean() < 180
    # the power of natural images falls about with the square of the frequency; white noise has a ratio of 1
    power = (np.abs(np.fft.fft2(images.mean(3) - images.mean((1, 2, 3), keepdims=True)[..., 0])) ** 2).mean(0)
    assert 20 < power[0, 1] / power[0, 8] < 500
    assert np.abs(images[..., 0] - images[..., 2]).mean() > 5


def test_strokes_are_thin_and_white_on_black():
    images = read("strokes", range(60)).images
    assert (images == 0).mean() > 0.7
    assert 0.02 < (images > 128).mean() < 0.25
    assert (images.max((1, 2, 3)) == 255).mean() > 0.9
    assert (images[:, :2] == 0).mean() > 0.95


@pytest.mark.slow
def test_pictures_of_a_kind_share_what_others_do_not():
    """Kinds lie apart in their mean pictures, by more than two halves of one kind do."""
    records = read("scenes", range(600), kinds=6, count=600)
    assert records.labels.tolist() == [index % 6 for index in range(600)]
    means = [records.images[records.labels == kind].astype(float).reshape(2, 50, -1).mean(1) for kind in range(6)]
    within = np.mean([np.linalg.norm(one - other) for one, other in means])
    between = np.mean([np.linalg.norm(means[a][0] - means[b][1]) for a in range(6) for b in range(6) if a != b])
    assert between > 1.3 * within


def test_cutouts_are_patterned_things_in_the_middle_of_black():
    images = read("cutouts", range(80)).images[..., 0]
    assert 0.3 < (images == 0).mean() < 0.75
    assert (images[:, [0, 0, -1, -1], [0, -1, 0, -1]] == 0).mean() > 0.98
    assert (images[:, 10:18, 10:18] > 0).mean() > 0.75
    inner = images[:, 10:18, 10:18].astype(float)
    assert (inner.std((1, 2)) > 5).mean() > 0.8


def test_a_size_too_small_is_refused():
    with pytest.raises(StudyError, match="strokes needs .* at least 8 pixels"):
        read("strokes", [0], size=[4, 28])
