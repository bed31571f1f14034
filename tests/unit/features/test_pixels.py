"""The pixels of images, as features."""

import numpy as np
import pytest

from dpstudy.features import open_extractor


def random_images(n, shape, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (n, *shape)).astype(np.uint8)


def test_unit_pixels_are_the_image_over_255_channel_first():
    images = random_images(3, (4, 5, 3))
    features = open_extractor({"extractor": "pixels"})(images)
    assert features.shape == (3, 3, 4, 5) and features.dtype == np.float32
    assert features[1, 2, 3, 4] == pytest.approx(images[1, 3, 4, 2] / 255)
