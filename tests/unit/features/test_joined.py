"""Features side by side: what each part gives alone, in order, each by its own rule."""

import numpy as np
import pytest

from dpstudy.core.errors import StudyError
from dpstudy.features import extractor_modules, open_extractor, parts_of

PIXELS = {"extractor": "pixels", "scaling": "unit", "normalise": "l2"}
RANDOM = {"extractor": "timm", "model": "resnet18", "weights": "random", "scaling": "imagenet", "size": [32, 32]}
SCATTERNET = {"extractor": "scatternet", "scaling": "unit", "normalise": "none"}
JOINED = {"extractor": "joined", "parts": [SCATTERNET, PIXELS, RANDOM]}


@pytest.fixture(scope="module")
def images():
    return np.random.default_rng(0).integers(0, 256, (5, 12, 12, 3)).astype(np.uint8)


def test_each_part_stands_where_the_config_has_it(images):
    joined = open_extractor(JOINED)
    found = joined(images)
    pixels = (images / np.float32(255)).transpose(0, 3, 1, 2).reshape(5, -1)
    pixels /= np.linalg.norm(pixels, axis=1, keepdims=True)
    alone = [open_extractor(part)(images).reshape(5, -1) for part in (SCATTERNET, RANDOM)]
    expected = np.concatenate([alone[0], pixels, alone[1]], axis=1)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7)
    assert joined.shape((12, 12, 3)) == found.shape[1:] == (3 * 81 * 9 + 3 * 144 + 512,)


def test_a_record_s_features_are_equal_in_any_company(images):
    joined = open_extractor(JOINED)
    together = joined(images)
    np.testing.assert_array_equal(joined(images[::-1].copy())[::-1], together)
    np.testing.assert_array_equal(joined(images[2:3]), together[2:3])


def test_it_says_of_each_part_what_it_was_made_from(images):
    joined = open_extractor(JOINED)
    joined(images)
    assert joined.made_from == {"2.model": "resnet18", "2.weights": "random", "2.seed": "0"}
    assert joined.backend.startswith("torch") and joined.backend.count("torch") == len(joined.backend.split(", "))
    assert open_extractor({"extractor": "joined", "parts": [PIXELS]}).backend is None


def test_code_of_all_parts_counts_as_its_own():
    found = extractor_modules(JOINED)
    assert found == [f"dpstudy.features.{name}" for name in ("joined", "scatternet", "pixels", "timm")]
    assert parts_of(PIXELS) == [PIXELS] and extractor_modules(PIXELS) == ["dpstudy.features.pixels"]


def test_a_part_that_the_images_do_not_suit_says_so():
    with pytest.raises(StudyError, match="scatternet needs images of at least 5"):
        open_extractor({"extractor": "joined", "parts": [PIXELS, SCATTERNET]}).shape((3, 3, 1))
