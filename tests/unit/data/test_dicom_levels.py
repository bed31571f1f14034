"""What an enhanced DICOM file is seen through, and rescalings and windows that are none."""

import warnings

import numpy as np
import pydicom
import pytest

from dpstudy.core.errors import StudyError
from tests.dicom_files import write_dicom
from tests.unit.data.test_dicom import seen


def group(slope=None, intercept=None, centre=None, width=None, function=None):
    """A functional group of an enhanced file."""
    found = pydicom.Dataset()
    for sequence, values in (
        ("PixelValueTransformationSequence", {"RescaleSlope": slope, "RescaleIntercept": intercept}),
        ("FrameVOILUTSequence", {"WindowCenter": centre, "WindowWidth": width, "VOILUTFunction": function}),
    ):
        item = pydicom.Dataset()
        for keyword, value in values.items():
            if value is not None:
                setattr(item, keyword, value)
        if len(item):
            setattr(found, sequence, pydicom.Sequence([item]))
    return found


def groups(kind, *them):
    return {f"{kind}FunctionalGroupsSequence": pydicom.Sequence(them)}


@pytest.mark.parametrize("window", [(40.0, 400.0), "file"])
def test_an_enhanced_file_is_seen_as_the_same_picture_in_a_classic_one(tmp_path, window):
    """Its rescaling and windows stand in groups, of all frames or of each."""
    counts = np.linspace(0, 4095, 576).astype(np.uint16).reshape(24, 24)
    classic = {"RescaleSlope": 1, "RescaleIntercept": -1024, "WindowCenter": 60, "WindowWidth": 350}
    known = seen(write_dicom(tmp_path / "a", counts, **classic), window)
    shared, own = group(1, -1024, 60, 350), group(1, -1024, [60, 2000], [350, 4096])
    for placed in (groups("Shared", shared), groups("PerFrame", own), groups("Shared") | groups("PerFrame", own)):
        np.testing.assert_array_equal(seen(write_dicom(tmp_path / "b", counts, **placed), window), known)
    two = groups("Shared", group(2, 0, 5, 9, "SIGMOID")) | groups("PerFrame", group(1, 0, 1, 2), shared)
    path = write_dicom(tmp_path / "c", counts, **two)
    data = pydicom.dcmread(path)
    data.NumberOfFrames, data.PixelData = 2, data.PixelData * 2
    data.save_as(path)
    np.testing.assert_array_equal(seen(path, window, frame=1), known)
    assert (seen(path, window, frame=0) != known).any()


@pytest.mark.parametrize("placed", ["classic", "enhanced"])
@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (((2, None), (60, 350, None)), "rescaling that is none: "),
        (((None, -1024), (60, 350, None)), "rescaling that is none: "),
        (((0, 5), (60, 350, None)), "rescaling that is none: "),
        ((("nan", 0), (60, 350, None)), "rescaling that is none: "),
        (((1, "inf"), (60, 350, None)), "rescaling that is none: "),
        (((1, 0), ("nan", 9, None)), "window that is none: "),
        (((1, 0), (9, "inf", None)), "window that is none: "),
        (((1, 0), (9, 0, None)), "window that is none: "),
        (((1, 0), (60, 350, "DOE^JANE")), "window that is none: "),
        (((1, 0), (60, 350, "LINEAR")), None),
        (((1, None), (60, 350, None)), None),
    ],
)
def test_half_a_rescaling_and_numbers_that_are_none_are_refused(tmp_path, placed, wrong, words):
    (slope, intercept), (centre, width, function) = wrong
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pydicom's, of what it writes
        given = groups("Shared", group(slope, intercept, centre, width, function))
        if placed == "classic":
            (one,) = given["SharedFunctionalGroupsSequence"]
            given = {item.keyword: item.value for sequence in one for item in sequence.value[0]}
        path = write_dicom(tmp_path / "a", np.arange(12, dtype=np.uint16).reshape(3, 4) * 300, **given)
    if words is None:
        assert np.ptp(seen(path, "file")) > 100
        return
    with pytest.raises(StudyError, match=f"^row 0: .*a has a {words}") as told:
        seen(path, "file")
    assert "DOE" not in str(told.value) and "\n" not in str(told.value)
