import numpy as np
import pytest
import torch

from dpstudy.core.errors import StudyError
from dpstudy.features import open_extractor, random_patches
from dpstudy.features.scaling import constants, standardised


def random_images(n, shape, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (n, *shape)).astype(np.uint8)


def test_unit_pixels_are_the_image_over_255_channel_first():
    images = random_images(3, (4, 5, 3))
    features = open_extractor({"extractor": "pixels"})(images)
    assert features.shape == (3, 3, 4, 5) and features.dtype == np.float32
    assert features[1, 2, 3, 4] == pytest.approx(images[1, 3, 4, 2] / 255)


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
    import torch
    from kymatio.torch import Scattering2D

    images = random_images(9, shape)  # more than one block of maps
    extractor = open_extractor({"extractor": "scatternet", "scaling": scaling})
    features = extractor(images)
    assert extractor.shape(shape) == layout and features.shape == (9, *layout)
    plain = Scattering2D(J=2, shape=shape[:2], L=8)
    pixels = open_extractor({"extractor": "pixels", "scaling": scaling})(images)
    for row in range(9):
        channels = [plain(torch.from_numpy(pixels[row, channel].copy())).numpy() for channel in range(shape[2])]
        np.testing.assert_allclose(features[row], np.concatenate(channels), rtol=1e-5, atol=1e-5)


def test_a_record_alone_has_the_features_it_has_in_a_batch():
    images = random_images(7, (12, 8, 1))
    for name in ("pixels", "scatternet", "random_patches"):
        extractor = open_extractor({"extractor": name})
        together = extractor(images)
        alone = np.concatenate([extractor(images[row : row + 1]) for row in range(len(images))])
        np.testing.assert_allclose(together, alone, rtol=1e-6, atol=1e-7)


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


def test_scatternet_refuses_an_empty_batch_and_tiny_images():
    extractor = open_extractor({"extractor": "scatternet"})
    with pytest.raises(StudyError, match="empty batch"):
        extractor(np.empty((0, 28, 28, 1), np.uint8))
    with pytest.raises(StudyError, match="at least 4 pixels"):
        extractor.shape((3, 28, 1))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"extractor": "pixel"}, "'pixel' does not exist"),
        ({"extractor": "images"}, "computes no features"),
        ({"extractor": "backbone"}, "results/backbones"),
    ],
)
def test_an_extractor_that_cannot_be_opened_is_named(options, words):
    with pytest.raises(StudyError, match=words):
        open_extractor(options)


@pytest.mark.parametrize(("scaling", "words"), [("imagenet", "3 channels"), ("units", "'units' does not exist")])
def test_scaling_that_does_not_suit_grey_images_is_refused(scaling, words):
    with pytest.raises(StudyError, match=words):
        open_extractor({"extractor": "pixels", "scaling": scaling}).shape((8, 8, 1))
