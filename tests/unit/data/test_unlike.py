"""Images of another kind than a model learned from are named, and others are not."""

import numpy as np
import pytest
from PIL import Image

from dpstudy.data.unlike import unlike
from tests.dicom_files import write_dicom

GREY = np.random.default_rng(0).integers(0, 256, (20, 30)).astype(np.uint8)
DEEP = GREY.astype(np.uint16) * 16
FEW_BITS = "has 8 bits a channel, and the model learned from images of more, seen through a window"
COLOUR = np.stack([GREY, GREY, 255 - GREY], 2)


@pytest.mark.parametrize(
    ("pixels", "how", "expected"),
    [
        (GREY, {}, []),
        (np.stack(3 * [GREY], 2), {}, []),
        (COLOUR, {}, ["is in colour, and the model learned from grey images"]),
        (COLOUR, {"channels": 3}, []),
        (GREY, {"channels": 3}, []),
        (GREY, {"window": "file"}, [FEW_BITS]),
        (DEEP, {"window": (2048.0, 4096.0)}, []),
        (GREY, {"size": (21, 30)}, ["has 20 x 30 pixels, fewer than the 21 x 30 that the model takes"]),
    ],
)  # fmt: skip
def test_what_is_unlike_is_named(pixels, how, expected, tmp_path):
    path = tmp_path / "image.png"
    Image.fromarray(pixels).save(path)
    assert list(unlike(path, "image 1", **{"size": (8, 8), "channels": 1} | how)) == expected


def test_a_scan_is_taken_as_it_is(tmp_path):
    path = write_dicom(tmp_path / "a.dcm", DEEP)
    assert list(unlike(path, "image 1", (4000, 4000), 1, window="file")) == []
