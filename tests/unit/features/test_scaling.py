import numpy as np
import pytest
import torch

from dpstudy.core.errors import StudyError
from dpstudy.features.scaling import SCALINGS, scale, standardised


@pytest.mark.parametrize("scaling", SCALINGS)
def test_planes_are_scaled_as_images_are(scaling):
    images = np.random.default_rng(0).integers(0, 256, (4, 5, 6, 3)).astype(np.uint8)
    planes = torch.from_numpy(images).permute(0, 3, 1, 2).float() / 255
    expected = scale(images, scaling).transpose(0, 3, 1, 2)
    np.testing.assert_allclose(standardised(planes, scaling).numpy(), expected, rtol=1e-5, atol=1e-5)
    if scaling not in ("unit", "symmetric"):
        with pytest.raises(StudyError, match="needs 3 channels"):
            standardised(planes[:, :1], scaling)
