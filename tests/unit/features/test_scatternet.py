"""ScatterNet features against plain kymatio, one image at a time."""

import numpy as np
import pytest
import torch

from dpstudy.core.errors import StudyError
from dpstudy.features import open_extractor


def random_images(n, shape, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (n, *shape)).astype(np.uint8)


def test_roots_keep_signs_and_come_after_the_mirror_average():
    images = random_images(3, (16, 16, 3))
    options = {"extractor": "scatternet", "scaling": "opponent", "mirror": True}
    plain, rooted = open_extractor(options)(images), open_extractor(options | {"root": True})(images)
    assert (plain < 0).any() and (plain > 0).any()
    np.testing.assert_allclose(rooted * np.abs(rooted), plain, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("shape", [(32, 32, 3), (28, 28, 1)])
def test_mirrored_scatternet_averages_both_images_and_keeps_half(shape):
    images = random_images(3, shape)
    plain = open_extractor({"extractor": "scatternet"})
    mirrored = open_extractor({"extractor": "scatternet", "mirror": True})
    features, columns = mirrored(images), 4
    assert mirrored.shape(shape) == features.shape[1:] == (81 * shape[2], shape[0] // 4, columns)
    expected = (plain(images) + plain(np.flip(images, 2)))[..., :columns] / 2
    np.testing.assert_allclose(features, expected, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(mirrored(np.flip(images, 2)), features, rtol=1e-6, atol=1e-7)
    assert np.abs(features - plain(images)[..., :columns]).max() > 1e-3


@pytest.mark.parametrize(
    ("shape", "scaling", "layout"),
    [
        ((28, 28, 1), "unit", (81, 7, 7)),
        ((32, 32, 3), "imagenet", (243, 8, 8)),
        ((13, 22, 1), "unit", (81, 3, 5)),
        ((8, 8, 1), "unit", (81, 2, 2)),
    ],
)
def test_scatternet_equals_plain_kymatio_on_each_image_and_channel(shape, scaling, layout):
    from kymatio.scattering2d.frontend.torch_frontend import ScatteringTorch2D as Scattering2D

    images = random_images(9, shape)  # more than one block of maps
    extractor = open_extractor({"extractor": "scatternet", "scaling": scaling})
    features = extractor(images)
    assert extractor.shape(shape) == layout and features.shape == (9, *layout)
    plain = Scattering2D(J=2, shape=shape[:2], L=8)
    pixels = open_extractor({"extractor": "pixels", "scaling": scaling})(images)
    for row in range(9):
        channels = [plain(torch.from_numpy(pixels[row, channel].copy())).numpy() for channel in range(shape[2])]
        np.testing.assert_allclose(features[row], np.concatenate(channels), rtol=1e-5, atol=1e-5)


def test_scatternet_refuses_an_empty_batch_and_tiny_images():
    extractor = open_extractor({"extractor": "scatternet"})
    with pytest.raises(StudyError, match="empty batch"):
        extractor(np.empty((0, 28, 28, 1), np.uint8))
    with pytest.raises(StudyError, match="at least 5 pixels"):
        extractor.shape((3, 28, 1))
