"""Images of another kind than a model learned from are named, and others are not."""

import numpy as np
import pytest
from PIL import Image

from dpstudy.data.unlike import unlike
from tests.dicom_files import write_dicom

GREY = np.random.default_rng(0).integers(0, 256, (20, 30)).astype(np.uint8)
DEEP = GREY.astype(np.uint16) * 16
FEW_BITS = "has 8 bits a channel, and the model learned from images of more, seen through a window"
IN_COLOUR = "is in colour, and the model learned from grey images"
FEWER = "pixels, fewer than the {} x {} that the model takes"
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


@pytest.mark.parametrize(
    ("pixels", "bits", "how", "expected"),
    [
        (DEEP, 12, {"window": "file"}, []),
        (GREY, 8, {}, []),
        (GREY, 8, {"window": (128.0, 256.0)}, [FEW_BITS]),
        (DEEP, 12, {"size": (21, 30), "window": "file"}, [f"has 20 x 30 {FEWER.format(21, 30)}"]),
        (COLOUR, 8, {"channels": 3}, []),
        (COLOUR, 8, {"size": (20, 31)}, [IN_COLOUR, f"has 20 x 30 {FEWER.format(20, 31)}"]),
        (np.stack(3 * [GREY], 2), 8, {}, []),
    ],
)
def test_so_it_is_of_a_scan(pixels, bits, how, expected, tmp_path):
    """Its pixels are decoded where they are coloured, and may be greys all the same."""
    more = {"PhotometricInterpretation": "RGB", "SamplesPerPixel": 3, "PlanarConfiguration": 0}
    if pixels.ndim == 3:
        path = write_dicom(tmp_path / "a.dcm", pixels[..., 0], bits, **more, PixelData=pixels.tobytes())
    else:
        path = write_dicom(tmp_path / "a.dcm", pixels, bits)
    assert list(unlike(path, "image 1", **{"size": (8, 8), "channels": 1} | how)) == expected
