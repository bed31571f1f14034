"""Many bits a channel through a window."""

import re
import struct

import numpy as np
import pytest
from PIL import Image
from pydicom.dataset import Dataset
from pydicom.pixels import apply_windowing

from dpstudy.core.errors import StudyError
from dpstudy.data.images import decode, image_options
from dpstudy.data.windows import EXACT, LINEAR, SIGMOID, seen_through, window_of
from tests.unit.data.test_image_files import chunk, png

VALUES = np.array([0, 1, 1000, 2047, 2048, 3000, 4095], np.uint16)
OF_12_BITS = np.rint(VALUES * (255 / 4095))
SIGNED = np.array([[-1024, 0, 300, 3000]], np.int32)


@pytest.mark.parametrize("function", [LINEAR, EXACT, SIGMOID])
@pytest.mark.parametrize(("centre", "width"), [(2048, 4096), (1500, 700), (40, 1), (3000, 2.5)])
def test_it_is_dicoms_formula(function, centre, width):
    """Against pydicom, whose output spans the depth of the file."""
    data = Dataset()
    data.PhotometricInterpretation, data.BitsStored, data.PixelRepresentation = "MONOCHROME2", 12, 0
    data.WindowCenter, data.WindowWidth, data.VOILUTFunction = centre, width, function
    with np.errstate(over="ignore"):
        known = apply_windowing(VALUES, data) * (255 / 4095)
    assert np.abs(seen_through(VALUES, centre, width, function) - known).max() <= 0.5 + 1e-9


def test_values_beyond_a_window_are_black_and_white_whatever_their_size():
    found = seen_through(np.array([-(2.0**40), -1, 2.0**40, np.inf]), 50, 10)
    np.testing.assert_array_equal(found, [0, 0, 255, 255])


@pytest.mark.parametrize("name", ["a.png", "a.tif", "a.jp2"])
def test_grey_files_of_16_bits(tmp_path, name):
    Image.fromarray(VALUES.reshape(1, 7)).save(tmp_path / name)  # a.jp2 without loss
    found = decode(tmp_path / name, "row 0", None, None, window=(2048.0, 4096.0))
    np.testing.assert_array_equal(found[0, :, 0], OF_12_BITS)
    whole = decode(tmp_path / name, "row 0", None, None, window="file")
    np.testing.assert_array_equal(whole[0, :, 0], np.rint(VALUES * (255 / 65535)))
    with pytest.raises(StudyError, match=r"has 16 bits a channel.*`window: \[centre, width\]`, or `window: file`"):
        decode(tmp_path / name, "row 0", None, None)


@pytest.mark.parametrize("kind", [np.int32, np.float32])
def test_tiff_files_with_a_sign_or_a_point_have_no_window_of_their_own(tmp_path, kind):
    Image.fromarray(SIGNED.astype(kind)).save(tmp_path / "a.tif")
    found = decode(tmp_path / "a.tif", "row 0", None, None, window=(0.0, 2048.0))
    np.testing.assert_array_equal(found[0, :, 0], seen_through(SIGNED[0], 0, 2048))
    for window, words in ((None, "`window: file`"), ("file", "no window of its own; give `window: [centre, width]`")):
        with pytest.raises(StudyError, match=re.escape(words)):
            decode(tmp_path / "a.tif", "row 0", None, None, window=window)


def test_of_colours_the_upper_8_bits_are_kept_where_it_is_asked_for(tmp_path):
    (tmp_path / "a.png").write_bytes(png(16, 2, [struct.pack(">6H", 0x1234, 0xFF00, 0, 0x80FF, 0x7F00, 0xFFFF)], 2))
    found = decode(tmp_path / "a.png", "row 0", None, None, window="file")
    np.testing.assert_array_equal(found, [[[0x12, 0xFF, 0], [0x80, 0x7F, 0xFF]]])
    with pytest.raises(StudyError, match="is in colour.*16 bits; give `window: file`"):
        decode(tmp_path / "a.png", "row 0", None, None, window=(1.0, 2.0))


def test_a_transparent_level_is_on_white_and_exif_turns(tmp_path):
    level = chunk(b"tRNS", struct.pack(">H", 1000))
    (tmp_path / "a.png").write_bytes(png(16, 0, [struct.pack(">3H", 0, 1000, 4095)], 3, level))
    found = decode(tmp_path / "a.png", "row 0", None, None, window=(2048.0, 4096.0))
    np.testing.assert_array_equal(found[0, :, 0], [0, 255, 255])
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.fromarray(VALUES[:6].reshape(2, 3)).save(tmp_path / "b.png", exif=exif)
    turned = decode(tmp_path / "b.png", "row 0", None, None, window=(2048.0, 4096.0))
    upright = np.rot90(OF_12_BITS[:6].reshape(2, 3), -1)
    np.testing.assert_array_equal(turned[..., 0], upright)


@pytest.mark.parametrize("mode", ["L", "RGB"])
def test_8_bits_are_seen_through_no_window(tmp_path, mode):
    picture = Image.new(mode, (3, 2), 77 if mode == "L" else (7, 77, 177))
    picture.save(tmp_path / "a.png")
    found = decode(tmp_path / "a.png", "row 0", None, None, window=(40.0, 100.0))
    np.testing.assert_array_equal(found, decode(tmp_path / "a.png", "row 0", None, None))


@pytest.mark.parametrize("wrong", ["files", 3, [1], [1, 2, 3], [40, 0.5], [40, float("nan")], [True, 10], ["a", 1]])
def test_what_is_no_window_is_told(wrong):
    with pytest.raises(StudyError, match="^window: .* is neither `file` nor "):
        image_options({"window": wrong})


def test_windows_of_a_config():
    assert window_of({}) is None and window_of({"window": "file"}) == "file"
    assert image_options({"window": [40, 400]})["window"] == (40.0, 400.0)
