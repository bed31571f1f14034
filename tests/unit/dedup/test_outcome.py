"""What the owner is told of a comparison."""

import pytest

from dpstudy.dedup.outcome import told, unplanted_in_words

ROWS = [("public", "web", 500, 7), ("private", "own", 1560, 456), ("private", "other", 9, 0)]


def counted(drop, calibration=()):
    """A report.json."""
    sets = [
        {"side": side, "dataset": name, "split": "train", "rows": rows, "exact": 0, "near": near}
        | {"dropped": near if side == drop else 0}
        for side, name, rows, near in ROWS
    ]
    return {"drop": drop, "sets": sets, "calibration": list(calibration)}


def test_the_owner_is_told_how_many_are_left_out_and_how_many_public_images_matched():
    assert told(counted("private")) == [
        "456 of 1,560 private records of own/train (29 %) match public images and are left out",
        "7 of 500 public images match private ones and stay",
    ]
    assert told(counted("public")) == ["7 of 500 public images match private ones and are left out"]
    assert told({"drop": "private", "sets": []}) == []


@pytest.mark.parametrize(("unplanted", "warned"), [(0, False), (2, False), (3, True), (200, True)])
def test_more_unplanted_matches_than_a_per_cent_are_a_warning(unplanted, warned):
    calibration = {"dataset": "own", "sample": 200, "unplanted": unplanted, "among": 5000, "changes": {}}
    sentences = told(counted("private", [calibration]))
    assert len(sentences) == 2 + warned and bool(unplanted_in_words(calibration)) == warned
    if warned:
        assert sentences[-1].startswith(f"of 200 private images of own {unplanted} (")
        assert "`dedup: {threshold: 1}`" in sentences[-1]
