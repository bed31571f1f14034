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
