"""DICOM files, those that pydicom ships and small ones made here: what is seen of them, and which tags are read."""

import io
import re
import sys
import warnings

import numpy as np
import pydicom
import pytest
from PIL import Image
from pydicom.data import get_testdata_file
from pydicom.encaps import encapsulate
from pydicom.pixels import apply_modality_lut, apply_windowing, pixel_array
from pydicom.uid import JPEG2000Lossless, JPEGBaseline8Bit

from dpstudy.core.errors import StudyError
from dpstudy.data.dicom import check_keywords, is_dicom, tags
from dpstudy.data.image_files import UnreadableImageError
from dpstudy.data.images import decode
from tests.dicom_files import write_dicom


def shipped(name):
    path = get_testdata_file(name, download=False)
    assert path, f"pydicom ships no {name} any more"
    return path


def seen(path, window=None, **how):
    return decode(path, "row 0", None, None, window=window, **how)


def by_pydicom(path):
    """What pydicom's own windowing makes of a file, as grey levels from 0 to 255."""
    data = pydicom.dcmread(path)
    if data.get("VOILUTFunction") is None and isinstance(data.WindowCenter, pydicom.multival.MultiValue):
        data.WindowCenter, data.WindowWidth = data.WindowCenter[0], data.WindowWidth[0]
    values = apply_modality_lut(pixel_array(path), data)
    shown = apply_windowing(values, data)
    bits, slope, move = data.BitsStored, float(data.get("RescaleSlope", 1)), float(data.get("RescaleIntercept", 0))
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if data.PixelRepresentation else (0, 2**bits - 1)
    low, high = low * slope + move, high * slope + move
    grey = 255 * (shown - low) / (high - low)
    return 255 - grey if data.PhotometricInterpretation == "MONOCHROME1" else grey


# signed numbers, rescaled ones, MONOCHROME1 of 12 bits, two windows; raw, RLE, big-endian, JPEG-LS, JPEG 2000
OWN = [
    *(f"MR_small{kind}.dcm" for kind in ("", "_RLE", "_bigendian", "_jpeg_ls_lossless", "_jp2klossless")),
    *("693_J2KI.dcm", "77654033/CR1/6154", "98892001/CT5N/2062", "examples_overlay.dcm"),
]


@pytest.mark.parametrize("name", OWN)
def test_the_window_that_stands_in_a_file_is_applied_as_pydicom_applies_it(name):
    path = shipped(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        known = by_pydicom(path)
    found = seen(path, "file")[..., 0]
    assert np.abs(found - known).max() <= 0.5 + 1e-9 and np.ptp(found) > 20


@pytest.mark.parametrize("name", ["MR_small.dcm", "MR_small_jp2klossless.dcm"])
def test_a_window_of_the_config_counts_in_the_modalitys_numbers(name, tmp_path):
    pixels = pixel_array(shipped(name)).astype(float)
    found = seen(shipped(name), (600.0, 400.0))[..., 0]
    np.testing.assert_array_equal(found, np.rint(255 * np.clip((pixels - 599.5) / 399 + 0.5, 0, 1)))
    counts = np.arange(12, dtype=np.int16).reshape(3, 4) * 300
    scan = write_dicom(tmp_path / "ct", counts, 16, RescaleSlope=2, RescaleIntercept=-1024)  # Hounsfield units
    known = np.rint(255 * np.clip((2.0 * counts - 1024 - 39.5) / 399 + 0.5, 0, 1))
    np.testing.assert_array_equal(seen(scan, (40.0, 400.0))[..., 0], known)


def test_monochrome1_is_white_where_numbers_are_small(tmp_path):
    counts = np.array([[0, 1000, 4095]], np.uint16)
    plain, other = (
        seen(write_dicom(tmp_path / kind, counts, PhotometricInterpretation=kind), (2048.0, 4096.0))[0, :, 0]
        for kind in ("MONOCHROME2", "MONOCHROME1")
    )
    np.testing.assert_array_equal(plain, [0, 62, 255])
    np.testing.assert_array_equal(other, [255, 193, 0])


def test_tables_of_the_modality_and_of_the_window(tmp_path):
    def table(first, values):
        item = pydicom.Dataset()
        item.add_new("LUTDescriptor", "US", [len(values), first, 16])
        item.add_new("LUTData", "US", list(values))
        return pydicom.Sequence([item])

    counts = np.array([[0, 1, 2, 3]], np.uint16)
    item = table(0, [10, 20, 30, 65535])
    item[0].ModalityLUTType = "US"
    path = write_dicom(tmp_path / "a", counts, ModalityLUTSequence=item)
    np.testing.assert_array_equal(seen(path, (20.0, 21.0))[0, :, 0], [6, 134, 255, 255])
    path = write_dicom(tmp_path / "b", counts, VOILUTSequence=table(1, [0, 257, 65535]), WindowCenter=9, WindowWidth=3)
    np.testing.assert_array_equal(seen(path, "file")[0, :, 0], [0, 0, 1, 255])


def test_what_has_8_bits_is_read_as_it_is(tmp_path):
    counts = np.arange(256, dtype=np.uint8).reshape(16, 16)
    for rescaled in ({}, {"RescaleSlope": 1, "RescaleIntercept": 0}):
        path = write_dicom(tmp_path / "a", counts, 8, **rescaled)
        for window in (None, "file", (40.0, 100.0)):
            np.testing.assert_array_equal(seen(path, window)[..., 0], counts)
    colour = pixel_array(shipped("examples_rgb_color.dcm"))
    for window in (None, "file", (40.0, 100.0)):
        np.testing.assert_array_equal(seen(shipped("examples_rgb_color.dcm"), window), colour)
    assert seen(shipped("examples_palette.dcm")).shape == (350, 800, 3)
    assert set(np.unique(seen(shipped("liver_1frame.dcm")))) == {0, 255}, "a single bit is black or white"


@pytest.mark.parametrize(
    "name", ["SC_rgb_jpeg_dcmtk.dcm", "SC_rgb_jpeg_gdcm.dcm", "SC_rgb_gdcm_KY.dcm", "SC_rgb_rle.dcm"]
)
def test_compressed_colours_are_near_the_same_picture_uncompressed(name):
    plain = pixel_array(shipped("SC_rgb_rle.dcm")).astype(int)
    assert np.abs(seen(shipped(name)) - plain).mean() < 4


def test_size_and_channels_are_as_of_any_image(tmp_path):
    found = decode(shipped("MR_small.dcm"), "row 0", (16, 24), 3, window="file")
    assert found.shape == (16, 24, 3) and (found[..., 0] == found[..., 2]).all()


WRONG = {
    "no window is named": ("MR_small.dcm", {}, r"has 16 bits a channel.*`window: \[centre, width\]`"),
    "it has none": ("CT_small.dcm", {"window": "file"}, r"has no window of its own; give `window: \[centre, width\]`"),
    "many frames": ("rtdose.dcm", {"window": "file"}, "holds 15 frames; .* choose one of each file by `frame`"),
    "no such frame": ("MR_small.dcm", {"frame": 1, "window": "file"}, "has no frame 1: it holds 1"),
    "a report": ("reportsi.dcm", {}, "is a DICOM file without a picture; leave it out$"),
    "deep colours": ("SC_rgb_rle_16bit.dcm", {"window": "file"}, "is in colour of 16 bits a channel; save it with 8"),
    "JPEG of 12 bits": ("JPEG-lossy.dcm", {"window": "file"},  r"is compressed \(JPEG Ext.*; save it uncompressed"),
    "deflated": ("image_dfl.dcm", {}, "is a deflated DICOM file; save it otherwise"),
}  # fmt: skip


@pytest.mark.parametrize("what", WRONG)
def test_what_cannot_be_read_is_told_in_a_sentence(what):
    name, how, words = WRONG[what]
    with pytest.raises(StudyError, match=f"^row 0: .*{name} {words}") as told:
        seen(shipped(name), **how)
    assert "\n" not in str(told.value) and not isinstance(told.value, UnreadableImageError)


DAMAGED = ["MR_truncated.dcm", "badVR.dcm", "meta_missing_tsyntax.dcm", "nested_priv_SQ.dcm", "no_meta.dcm"]


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_files_are_such_as_unreadable_tolerates(name):
    with pytest.raises(UnreadableImageError, match="^row 0: .* (cannot be decoded|is not an image)") as told:
        seen(shipped(name), (40.0, 400.0))
    assert "\n" not in str(told.value)


def test_a_file_cut_anywhere_is_damaged_and_nothing_worse(tmp_path):
    whole = open(shipped("MR_small_RLE.dcm"), "rb").read()
    for end in np.random.default_rng(0).integers(0, len(whole) - 2000, 60):
        (tmp_path / "a.dcm").write_bytes(whole[:end])
        with pytest.raises(StudyError) as told:
            seen(tmp_path / "a.dcm", "file")
        assert "\n" not in str(told.value)


def test_tags_of_a_file_cut_anywhere_are_whole_or_refused(tmp_path):
    """Half of a PatientID is another person's, and a tag behind the cut is not one that is missing."""
    kinds = {"PatientID": "PID00012345", "PatientSex": "F", "ViewPosition": "PA"}
    path = write_dicom(
        tmp_path / "a", np.zeros((2, 2), np.uint16), OtherPatientIDsSequence=[pydicom.Dataset()], **kinds
    )
    whole, asked = path.read_bytes(), list(kinds)
    first = whole.index(b"\xe0\x7f\x10\x00") + 12  # behind the head of the picture
    for end in range(len(whole)):
        path.write_bytes(whole[:end])
        if end >= first:
            assert tags(path, asked, "row 0") == list(kinds.values())
            continue
        with pytest.raises(
            StudyError, match="^row 0: .*a (is empty|is not|has no picture|cannot be read|: the tags)"
        ) as told:
            tags(path, asked, "row 0")
        assert "\n" not in str(told.value)
        with pytest.raises(UnreadableImageError):
            seen(path, "file")


@pytest.mark.parametrize("name", ["MR_small.dcm", "MR_small_bigendian.dcm", "MR_small_implicit.dcm", "rtdose.dcm"])
def test_tags_of_any_syntax(name):
    (found,) = tags(shipped(name), ["PatientID"], "row 0")
    assert found == str(pydicom.dcmread(shipped(name)).PatientID)


def test_tags_of_what_cannot_be_opened(tmp_path, monkeypatch):
    def refuse(path):
        raise PermissionError(13, "Permission denied", str(path))

    with pytest.raises(StudyError, match="^row 0: .*none cannot be read .No such file or directory.$"):
        tags(tmp_path / "none", ["PatientID"], "row 0")
    with pytest.raises(StudyError, match="^row 0: .*image_dfl.dcm is a deflated DICOM file"):
        tags(shipped("image_dfl.dcm"), ["PatientID"], "row 0")
    monkeypatch.setattr("dpstudy.data.dicom.raw", refuse)
    with pytest.raises(StudyError, match="^row 0: .*a cannot be read .Permission denied.$"):
        tags(tmp_path / "a", ["PatientID"], "row 0")


@pytest.mark.parametrize(
    "keyword", ["PixelData", "TransferSyntaxUID", "OtherPatientIDsSequence", "RedPaletteColorLookupTableData",
                "FrameIncrementPointer", "DataSetTrailingPadding", "SmallestImagePixelValue"]
)  # fmt: skip
def test_tags_that_are_never_words_or_numbers(keyword):
    if keyword == "SmallestImagePixelValue":
        assert check_keywords([keyword]) == [False], "a number, or bytes of one"
        return
    with pytest.raises(StudyError, match=f"^tags: '{keyword}' is no tag of a word or number that is read here"):
        check_keywords([keyword])


def test_more_pixels_than_are_allowed(tmp_path):
    path = write_dicom(tmp_path / "a", np.zeros((30, 40), np.uint16))
    assert seen(path, (1.0, 10.0), max_pixels=1200).shape == (30, 40, 1)
    with pytest.raises(UnreadableImageError, match="30 x 40 pixels, more than `max_pixels`"):
        seen(path, (1.0, 10.0), max_pixels=1199)


@pytest.mark.parametrize(("kind", "syntax"), [("JPEG2000", JPEG2000Lossless), ("JPEG", JPEGBaseline8Bit)])
def test_a_picture_larger_than_its_tags_say_is_not_decoded(tmp_path, monkeypatch, kind, syntax):
    """A thousand bytes may unfold to any number."""
    held = io.BytesIO()
    Image.new("L", (4000, 3000)).save(held, kind, **({"irreversible": False} if kind == "JPEG2000" else {}))
    path = write_dicom(tmp_path / "a", np.zeros((16, 16), np.uint8), 8)
    data = pydicom.dcmread(path)
    data.PixelData, data.file_meta.TransferSyntaxUID = encapsulate([held.getvalue()]), syntax
    data["PixelData"].VR = "OB"
    data.save_as(path)
    monkeypatch.setattr("pydicom.pixels.pixel_array", lambda *_, **__: pytest.fail("decoded"))
    with pytest.raises(UnreadableImageError, match="its picture is of 3000 x 4000 pixels, and its tags say otherwise"):
        seen(path)


def test_tags(tmp_path):
    who = {"PatientID": " A-17 ", "PatientName": "Doe^Jane", "PatientSex": "F", "ViewPosition": "PA"}
    path = write_dicom(tmp_path / "a", np.zeros((2, 2), np.uint16), PatientAge="057Y", **who)
    asked = ["PatientID", "PatientAge", "PatientSex", "ViewPosition", "Manufacturer"]
    assert tags(path, asked, "row 0") == ["A-17", "57", "F", "PA", ""]
    assert check_keywords(asked) == [False, True, False, False, False]
    for age, years in (("006M", 0.5), ("026W", 26 / 52.18), ("010D", 10 / 365.25), ("", None)):
        write_dicom(tmp_path / "a", np.zeros((2, 2), np.uint16), PatientAge=age)
        (found,) = tags(path, ["PatientAge"], "row 0")
        assert found == "" if years is None else abs(float(found) - years) < 1e-9
    with pytest.raises(StudyError, match="^tags: DICOM has no tag 'PatientSexx'; it has PatientID"):
        check_keywords(["PatientSexx"])
    write_dicom(tmp_path / "a", np.zeros((2, 2), np.uint16), ImageType=["ORIGINAL", "PRIMARY"])
    with pytest.raises(StudyError, match="row 0: the tag ImageType of .* has several values"):
        tags(path, ["ImageType"], "row 0")
    (tmp_path / "b.png").write_bytes(b"no")
    with pytest.raises(StudyError, match="row 3: .*b.png is not a DICOM file"):
        tags(tmp_path / "b.png", ["PatientID"], "row 3")
    assert is_dicom(path) and not is_dicom(tmp_path / "b.png") and not is_dicom(tmp_path / "none")


def test_odd_tags_are_told_by_nobody(tmp_path, capfd):
    """pydicom repeats what it finds odd, in warnings and on the log."""
    secret = "Secret^Name" * 9
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = write_dicom(
            tmp_path / "a", np.zeros((2, 2), np.uint16), PatientID="x" * 70, PatientSex="neither", PatientAge=secret
        )
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        tags(path, ["PatientID", "PatientAge"], "row 0")
        seen(path, (1.0, 10.0))
    assert not told and capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    "tag", ["Modality", "PhotometricInterpretation", "VOILUTFunction", "WindowCenter", "NumberOfFrames", "RescaleSlope"]
)
def test_no_message_repeats_the_text_of_a_tag(tmp_path, tag):
    """Whatever stands in one: somebody may have written a name there."""
    more = {"WindowCenter": "20", "WindowWidth": "30", "RescaleSlope": "2", "RescaleIntercept": "5"}
    more |= {"PixelData": None} if tag == "Modality" else {}
    held = "1234567890123456" if tag in ("WindowCenter", "NumberOfFrames", "RescaleSlope") else "DOE^JANE^OF^YORK"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = write_dicom(tmp_path / "a", np.zeros((2, 2), np.uint16), **more | {tag: held})
    path.write_bytes(path.read_bytes().replace(held.encode(), b"DOE^JANE^OF^YORK"))
    with pytest.raises(StudyError) as told:
        seen(path, "file")
    assert "JANE" not in str(told.value) and "\n" not in str(told.value)


def test_without_pydicom_it_says_what_to_install(monkeypatch):
    path = shipped("MR_small.dcm")
    monkeypatch.setitem(sys.modules, "pydicom", None)
    with pytest.raises(StudyError, match=re.escape("needs pydicom; run pip install pydicom python-gdcm")):
        seen(path, "file")
