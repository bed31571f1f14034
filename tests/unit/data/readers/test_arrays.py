"""Images and labels as numpy arrays."""

import numpy as np
import pytest

from dpstudy.core.errors import StudyError
from dpstudy.data.readers import open_reader

OPTIONS = {"reader": "arrays", "location": ".", "classes": 2}


def opened(folder, images):
    np.save(folder / "all_images.npy", images)
    np.save(folder / "all_labels.npy", np.arange(len(images)) % 2)
    return open_reader("arrays", OPTIONS, folder).read("all", np.array([1]))


@pytest.mark.parametrize("channels", [1, 3])
def test_channels_first_are_told_apart(tmp_path, channels):
    images = np.random.default_rng(0).integers(0, 256, (4, 6, 5, channels)).astype(np.uint8)
    np.testing.assert_array_equal(opened(tmp_path, images).images[0], images[1])
    np.testing.assert_array_equal(opened(tmp_path, images.transpose(0, 3, 1, 2)).images[0], images[1])
    narrow = images[:, :3]  # 3 rows and the documented order: nothing is guessed
    np.testing.assert_array_equal(opened(tmp_path, narrow).images[0], narrow[1])


@pytest.mark.parametrize(
    ("images", "words"),
    [
        (np.zeros((4, 4, 9, 8), np.uint8), r"look like \(n, C, H, W\) with 4 channels; save them as \(n, H, W, C\)"),
        (np.zeros((4, 9, 8, 3), np.float32), r"not \(4, 9, 8, 3\) float32; bring them to 0 to 255, rounded"),
        (np.zeros((4, 9, 8), np.uint16), "uint16; bring them to 0 to 255"),
        (np.zeros((4, 72), np.uint8), r"images must be \(n, H, W, C\) or \(n, H, W\) uint8, not \(4, 72\)"),
    ],
)
def test_other_arrays_are_refused(tmp_path, images, words):
    with pytest.raises(StudyError, match=words):
        opened(tmp_path, images)
