"""Random patches against a slow sum, and torch's pooling."""

import numpy as np
import pytest
import torch

from dpstudy.core.errors import StudyError
from dpstudy.features import open_extractor, random_patches


def random_images(n, shape, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (n, *shape)).astype(np.uint8)


def test_random_patches_equal_a_slow_sum_over_patches():
    images = random_images(2, (9, 8, 3))
    extractor = open_extractor({"extractor": "random_patches", "filters": 5, "seed": 3})
    features = extractor(images)
    assert extractor.shape((9, 8, 3)) == (10, 2, 2) and features.shape == (2, 10, 2, 2)
    filters = extractor._filters(3).astype(np.float64).reshape(5, 3, 6, 6)
    assert np.linalg.norm(filters.reshape(5, -1), axis=1) == pytest.approx(1)
    planes = images.transpose(0, 3, 1, 2) / 255
    responses = np.empty((5, 4, 3))
    for row in range(4):
        for column in range(3):
            patch = planes[1, :, row : row + 6, column : column + 6]
            patch = (patch - patch.mean()) / np.sqrt(patch.var() + 1e-2)
            responses[:, row, column] = (filters * patch).sum((1, 2, 3))
    cells = [(rows, columns) for rows in (slice(0, 2), slice(2, 4)) for columns in (slice(0, 2), slice(1, 3))]
    for sign, part in ((1, features[1, :5]), (-1, features[1, 5:])):
        rectified = np.maximum(sign * responses - 1, 0)
        slow = [rectified[:, rows, columns].mean((1, 2)) for rows, columns in cells]
        assert part.reshape(5, 4) == pytest.approx(np.stack(slow, 1), abs=1e-5)


def test_random_patches_do_not_depend_on_how_many_responses_are_held(monkeypatch):
    images = random_images(5, (12, 8, 3))
    extractor = open_extractor({"extractor": "random_patches", "filters": 7})
    whole = extractor(images)
    for responses in (1, 7 * 3 * 5, 3 * 7 * 3 * 7):  # one filter of one image; some filters; some images
        monkeypatch.setattr("dpstudy.features.random_patches._RESPONSES", responses)
        np.testing.assert_allclose(extractor(images), whole, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("size", [(2, 2), (3, 23), (22, 5), (17, 17)])
def test_the_cells_of_random_patches_are_those_of_adaptive_pooling(size):
    """Told without a matrix of all places by all, which images of 300 pixels a side would take 30 GB for."""
    places = size[0] * size[1]
    pooled = torch.nn.functional.adaptive_avg_pool2d(torch.eye(places).view(places, *size), random_patches.GRID)
    assert np.array_equal(random_patches._pooling(*size), pooled.flatten(1).numpy())


def test_random_patches_depend_on_their_seed_and_refuse_tiny_images():
    images = random_images(3, (12, 8, 1))
    first, second = (open_extractor({"extractor": "random_patches", "seed": seed})(images) for seed in (0, 1))
    assert first.shape == (3, 512, 2, 2) and not np.allclose(first, second)
    with pytest.raises(StudyError, match="at least 7 pixels"):
        open_extractor({"extractor": "random_patches"}).shape((6, 28, 1))
