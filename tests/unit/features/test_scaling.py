import numpy as np
import pytest
import torch

from dpstudy.core.errors import StudyError
from dpstudy.features import open_extractor
from dpstudy.features.scaling import SCALINGS, constants, scale, standardised


@pytest.mark.parametrize("scaling", SCALINGS)
def test_planes_are_scaled_as_images_are(scaling):
    images = np.random.default_rng(0).integers(0, 256, (4, 5, 6, 3)).astype(np.uint8)
    planes = torch.from_numpy(images).permute(0, 3, 1, 2).float() / 255
    expected = scale(images, scaling).transpose(0, 3, 1, 2)
    np.testing.assert_allclose(standardised(planes, scaling).numpy(), expected, rtol=1e-5, atol=1e-5)
    if scaling not in ("unit", "symmetric"):
        with pytest.raises(StudyError, match="needs 3 channels"):
            standardised(planes[:, :1], scaling)


def random_images(n, shape, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (n, *shape)).astype(np.uint8)


def test_imagenet_scaling_standardises_each_channel():
    images = random_images(2, (8, 8, 3))
    features = open_extractor({"extractor": "pixels", "scaling": "imagenet"})(images)
    for channel, (mean, std) in enumerate([(0.485, 0.229), (0.456, 0.224), (0.406, 0.225)]):
        expected = (images[..., channel] / 255 - mean) / std
        np.testing.assert_allclose(features[:, channel], expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("channels", [1, 3])
def test_symmetric_scaling_ends_at_minus_one_and_one(channels):
    images = random_images(2, (8, 8, channels))
    images[0, 0, 0], images[0, 0, 1] = 0, 255
    features = open_extractor({"extractor": "pixels", "scaling": "symmetric"})(images)
    np.testing.assert_allclose(features.transpose(0, 2, 3, 1), images / 127.5 - 1, atol=1e-6)
    assert features.min() == -1 and features.max() == 1
    center, standard = constants("symmetric", (channels, 8, 8))
    np.testing.assert_allclose(
        (images.transpose(0, 3, 1, 2).reshape(2, -1) - center) * standard, features.reshape(2, -1), atol=1e-6
    )
    planes = torch.from_numpy(images.transpose(0, 3, 1, 2) / 255.0)
    np.testing.assert_allclose(standardised(planes, "symmetric").numpy(), features, atol=1e-6)


def test_opponent_scaling_turns_colours_without_stretching_them():
    images = random_images(2, (8, 8, 3))
    features = open_extractor({"extractor": "pixels", "scaling": "opponent"})(images).transpose(0, 2, 3, 1)
    scaled = (images / 255 - 0.5) * 4
    np.testing.assert_allclose((features**2).sum(3), (scaled**2).sum(3), rtol=1e-4)
    grey = np.full((1, 8, 8, 3), 200, np.uint8)
    luminance, *colour = open_extractor({"extractor": "pixels", "scaling": "opponent"})(grey)[0]
    assert luminance == pytest.approx((200 / 255 - 0.5) * 4 * 3**0.5)
    assert np.abs(colour).max() < 1e-5
    red = open_extractor({"extractor": "pixels", "scaling": "opponent"})(grey * np.array([1, 0, 0], np.uint8))[0]
    assert red[1].mean() == pytest.approx(200 / 255 * 4 / 2**0.5, rel=1e-5)


@pytest.mark.parametrize(("scaling", "words"), [("imagenet", "3 channels"), ("units", "'units' does not exist")])
def test_scaling_that_does_not_suit_grey_images_is_refused(scaling, words):
    with pytest.raises(StudyError, match=words):
        open_extractor({"extractor": "pixels", "scaling": scaling}).shape((8, 8, 1))
