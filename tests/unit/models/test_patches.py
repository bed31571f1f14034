"""Filters that are patches: the features are those of loops over places and filters."""

import numpy as np
import pytest
import torch

from dpstudy.core.errors import StudyError
from dpstudy.models.patches import CONTRAST, Patches

SIZES, FILTERS, GRID, THRESHOLD = (3, 4), 5, 2, 0.4


@pytest.fixture
def network():
    made, generator = Patches(3, SIZES, FILTERS, GRID), torch.Generator().manual_seed(1)
    for values in made.parameters():
        values.copy_(torch.randn(values.shape, generator=generator) / 4)
    made.threshold.fill_(THRESHOLD)
    return made


def by_loops(network, image):
    """(2 F g^2 for each size,) of one image (C, H, W), in float64."""
    found = []
    for size in SIZES:
        filters, offsets = (values.double().numpy() for values in network.of_size(size))
        height, width = image.shape[1] - size + 1, image.shape[2] - size + 1
        responses = np.zeros((FILTERS, height, width))
        for row in range(height):
            for column in range(width):
                patch = image[:, row : row + size, column : column + size].reshape(-1).astype(np.float64)
                patch = (patch - patch.mean()) / np.sqrt(patch.var() + CONTRAST)
                responses[:, row, column] = filters @ patch - offsets
        for half in (np.maximum(responses - THRESHOLD, 0), np.maximum(-responses - THRESHOLD, 0)):
            for each in half:
                for top, bottom in cells(height):
                    found += [np.sqrt(each[top:bottom, left:right].mean()) for left, right in cells(width)]
    return np.array(found)


def cells(side):
    return [(cell * side // GRID, -(-(cell + 1) * side // GRID)) for cell in range(GRID)]


@pytest.mark.parametrize("shape", [(8, 8), (9, 7)])
def test_the_features_are_those_of_loops(network, shape):
    images = torch.rand(4, 3, *shape, generator=torch.Generator().manual_seed(2))
    found = network(images)
    assert found.shape == (4, len(SIZES) * 2 * FILTERS * GRID**2)
    for image, own in zip(images.numpy(), found.numpy(), strict=True):
        np.testing.assert_allclose(own, by_loops(network, image), rtol=1e-4, atol=1e-4)


def test_brightness_plays_no_part_and_contrast_hardly_any(network):
    image = torch.rand(1, 3, 8, 8, generator=torch.Generator().manual_seed(3)) * 8
    one, brighter, stronger = (network(other) for other in (image, image + 5, 3 * image))
    assert torch.allclose(one, brighter, atol=1e-4) and torch.allclose(one, stronger, rtol=0.05, atol=0.02)


def test_images_that_are_too_small_are_one_sentence(network):
    with pytest.raises(StudyError, match="patches: images of at least 5 pixels a side, not 4x9"):
        network(torch.rand(1, 3, 4, 9))
