"""What holds of every extractor of features."""

import numpy as np
import pytest

from dpstudy.core.errors import StudyError
from dpstudy.features import open_extractor


def random_images(n, shape, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (n, *shape)).astype(np.uint8)


def test_a_record_alone_has_the_features_it_has_in_a_batch():
    images = random_images(7, (12, 8, 1))
    for name in ("pixels", "scatternet", "random_patches"):
        extractor = open_extractor({"extractor": name})
        together = extractor(images)
        alone = np.concatenate([extractor(images[row : row + 1]) for row in range(len(images))])
        np.testing.assert_allclose(together, alone, rtol=1e-6, atol=1e-7)


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


@pytest.mark.parametrize(
    "options",
    [
        {"extractor": "pixels"},
        {"extractor": "scatternet"},
        {"extractor": "scatternet", "mirror": True},
        {"extractor": "scatternet", "deskew": True},
        {"extractor": "random_patches", "size": 6, "filters": 8},
        {"extractor": "random_patches"},
        {"extractor": "timm", "model": "test_resnet", "weights": "random", "scaling": "model", "size": "native"},
        {"extractor": "timm", "model": "test_vit", "weights": "random", "scaling": "model", "size": "model"},
    ],
    ids=lambda options: "-".join(str(value) for value in options.values()),
)
def test_small_images_are_taken_or_refused_in_a_sentence(options):
    try:
        extractor = open_extractor(options)
    except StudyError:
        pytest.skip("no such option")
    for sides in [(side, side) for side in range(1, 13)] + [(3, 20), (20, 4), (5, 40), (40, 5)]:
        images = random_images(2, (*sides, 1))
        try:
            shape = extractor.shape(images.shape[1:])
        except StudyError:
            with pytest.raises(StudyError):
                extractor.shape(images.shape[1:])
            continue
        assert extractor(images).shape == (2, *shape), sides
