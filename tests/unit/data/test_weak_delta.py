"""A delta that protects nobody is refused before an image is decoded."""

import pytest

from dpstudy.core.errors import StudyError
from dpstudy.data.weak_delta import check_delta
from tests.unit.data.conftest import prepare


def test_a_weak_delta_is_refused_before_an_image_is_decoded(own):
    root, _ = own
    (root / "own" / "0.png").write_bytes(b"no image")
    for split in ("train", "test"):
        with pytest.raises(StudyError) as caught:
            prepare(root, split, delta="0.2")
        assert str(caught.value).startswith("datasets.own.delta: 0.2 is not below 1/n = 1/")
        assert "for so many subjects" in str(caught.value)


@pytest.mark.parametrize("extra", ["image_folder", "arrays", "imagenet32"])
def test_a_weak_delta_is_refused_where_own_records_enlarge_a_benchmark(extra, caplog):
    options = {"reader": "cifar", "extra": {"reader": extra}, "delta": "1e-3"}
    if extra == "imagenet32":
        check_delta("d", options, 1000)
        assert "datasets.d.delta: 1e-3 is not below 1/n" in caplog.text
        return
    with pytest.raises(StudyError, match=r"datasets\.d\.delta: 1e-3 is not below 1/n = 1/1000"):
        check_delta("d", options, 1000)


@pytest.mark.parametrize(("unit", "below"), [("subject", 1), ("record", 2)])
def test_delta_is_compared_with_the_number_of_what_is_protected(own, unit, below):
    root, _ = own
    changes = {"splits": {"test": 0, "validation": 0.3}, "unit": unit}  # a cell learns from train and validation
    changes |= {} if unit == "subject" else {"per_subject": 9}
    prepare(root, "train", delta=str(0.99 / (12 * below)), **changes)
    with pytest.raises(StudyError, match=f"is not below 1/n = 1/{12 * below}"):
        prepare(root, "train", delta=str(1 / (12 * below)), **changes)
