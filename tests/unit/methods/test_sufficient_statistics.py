"""A pass that is shared among jobs gives the sums of one pass, and each record stands in one of them."""

import numpy as np
import pytest

from dpstudy.core.errors import StudyError
from dpstudy.core.files import read_tensors
from dpstudy.features.batches import share_of
from dpstudy.methods.sufficient_statistics import accumulate, add_up

DIM, CLASSES = 6, 3


@pytest.fixture
def batches():
    rng = np.random.default_rng(5)
    sizes = (7, 0, 9, 4, 1)
    return [(rng.standard_normal((rows, DIM)).astype("f4"), rng.integers(CLASSES, size=rows)) for rows in sizes]


@pytest.mark.parametrize("length", [1, 2, 5, 7, 100])
@pytest.mark.parametrize("shares", [1, 2, 3, 5])
def test_shares_are_a_partition_in_order(length, shares):
    found = [share_of(list(range(length)), share, shares) for share in range(shares)]
    assert sum(found, []) == list(range(length))
    assert max(map(len, found)) - min(map(len, found)) <= 1


@pytest.mark.parametrize("per_class", [False, True])
@pytest.mark.parametrize("shares", [2, 5])
def test_the_sums_of_shares_add_up_to_those_of_one_pass(batches, tmp_path, per_class, shares):
    paths = []
    for share in range(shares):
        mine = share_of(batches, share, shares)
        paths.append(tmp_path / f"{share}.safetensors")
        accumulate(mine, CLASSES, 1.0, per_class=per_class, may_be_empty=True).save(paths[-1])
    found, whole = add_up(paths), accumulate(batches, CLASSES, 1.0, per_class=per_class)
    found.save(tmp_path / "sum.safetensors")
    whole.save(tmp_path / "whole.safetensors")
    sums, expected = read_tensors(tmp_path / "sum.safetensors"), read_tensors(tmp_path / "whole.safetensors")
    assert sums.keys() == expected.keys() == {"gram", "targets", *(["class_grams"] if per_class else [])}
    for name, value in expected.items():
        assert sums[name].dtype == np.float32
        np.testing.assert_allclose(sums[name], value, rtol=1e-5, atol=1e-6)
    assert (found.clipping_norm, found.positives) == (1.0, 1)


def test_sums_of_other_kinds_are_not_added(batches, tmp_path):
    accumulate(batches, CLASSES, 1.0).save(tmp_path / "a")
    accumulate(batches, CLASSES, 2.0).save(tmp_path / "b")
    with pytest.raises(ValueError, match="do not add up"):
        add_up([tmp_path / "a", tmp_path / "b"])


def test_no_rows_are_a_mistake_but_for_a_share():
    empty = [(np.zeros((0, DIM), "f4"), np.zeros(0, int))]
    assert not accumulate(empty, CLASSES, 1.0, may_be_empty=True).gram.any()
    with pytest.raises(StudyError, match="no training rows"):
        accumulate(empty, CLASSES, 1.0)
