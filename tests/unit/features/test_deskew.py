"""Deskewing against an independent interpolation, one image at a time, and against what it promises."""

import numpy as np
import pytest
from scipy import ndimage

from dpstudy.core.errors import StudyError
from dpstudy.features import open_extractor
from dpstudy.features.deskew import deskew


def blobs(n, size=(28, 28), seed=0):
    """Smooth figures somewhere near the middle of black pictures."""
    random = np.random.default_rng(seed)
    y, x = np.indices(size)
    pictures = []
    for _ in range(n):
        picture = np.zeros(size)
        for _ in range(4):
            row, column = random.uniform(0.35, 0.65, 2) * size
            picture += np.exp(-((y - row) ** 2 + (x - column) ** 2) / random.uniform(3, 9))
        pictures.append(np.where(picture > 0.02, picture, 0) * 100)
    return np.array(pictures)[..., None].astype(np.uint8)


def moments(picture):
    """Centre (row, column), covariance of both, and variance of the row, by sums over pixels."""
    mass = picture.astype(np.float64)
    y, x = np.indices(mass.shape)
    row, column = (y * mass).sum() / mass.sum(), (x * mass).sum() / mass.sum()
    return row, column, *(((y - row) * d * mass).sum() / mass.sum() for d in (x - column, y - row))


@pytest.mark.parametrize("size", [(28, 28), (24, 31)])
def test_the_figure_is_centred_and_upright(size):
    images = blobs(20, size)
    slants = []
    for before, after in zip(images[..., 0], deskew(images)[..., 0], strict=True):
        row, column, covariance, variance = moments(after)
        assert row == pytest.approx((size[0] - 1) / 2, abs=0.1)
        assert column == pytest.approx((size[1] - 1) / 2, abs=0.1)
        assert abs(covariance) < 0.05 * variance
        slants.append(abs(np.divide(*moments(before)[2:])))
    assert max(slants) > 0.2  # there was something to set upright


def test_values_are_those_of_an_affine_transform_of_each_image():
    images = blobs(8, (20, 26), seed=1)
    for picture, result in zip(images[..., 0], deskew(images)[..., 0], strict=True):
        row, column, covariance, variance = moments(picture)
        matrix = np.array([[1, 0], [covariance / variance, 1]])
        offset = np.array([row, column]) - matrix @ [9.5, 12.5]
        expected = ndimage.affine_transform(picture.astype(np.float64), matrix, offset, order=1, mode="grid-constant")
        np.testing.assert_allclose(result, expected, atol=2e-3)


def test_each_picture_by_itself_and_blank_or_flat_ones_stay_sane():
    images = blobs(5)
    images[1] = 0
    images[2] = 0
    images[2, 13, 4:24] = 255  # one row: no slant can be told
    results = deskew(images)
    assert results.shape == images.shape and results.dtype == np.float32
    assert (results[1] == 0).all()
    assert np.isfinite(results).all() and results.sum((1, 2, 3))[2] == pytest.approx(20 * 255, rel=1e-3)
    for row in range(5):
        assert np.array_equal(deskew(images[row : row + 1])[0], results[row])


def test_colours_are_refused():
    with pytest.raises(StudyError, match="grey figures on black, the images have 3 channels"):
        deskew(np.zeros((1, 8, 8, 3), np.uint8))


def test_pictures_are_deskewed_before_anything_else():
    figure = np.zeros((2, 28, 28, 1), np.uint8)
    for row in range(6, 22):
        figure[0, row, row - 2 : row + 1] = figure[1, row, 15:18] = 200  # slanted, upright
    for name in ("pixels", "scatternet"):
        plain, upright = (open_extractor({"extractor": name, "deskew": value})(figure) for value in (False, True))
        assert np.abs(plain[0] - plain[1]).max() > 0.1
        assert np.abs(upright[0] - upright[1]).mean() < 0.2 * np.abs(plain[0] - plain[1]).mean()


@pytest.mark.parametrize("name", ["pixels", "scatternet"])
def test_deskewing_refuses_colours_before_the_work(name):
    with pytest.raises(StudyError, match="deskew is for grey figures on black, the images have 3 channels"):
        open_extractor({"extractor": name, "deskew": True}).shape((32, 32, 3))
