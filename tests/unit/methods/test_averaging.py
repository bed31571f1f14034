from fractions import Fraction

import numpy as np
import pytest

from dpstudy.core.arrays import place
from dpstudy.methods.averaging import Subjects, count_records, scaled, weighted, weights_of
from dpstudy.methods.exact import grid_of


def test_a_persons_weights_add_up_to_one_at_most():
    for count in range(1, 2000):
        whole = count * Fraction(float(weights_of(np.array([count]))[0]))
        assert 1 - Fraction(1, 2**40) < whole <= 1


def test_what_is_scaled_is_shorter_by_its_weight_and_on_the_grid():
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((500, 7))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    weights, grid = weights_of(rng.integers(1, 9, 500)), grid_of(1.0)
    for power in (1.0, 0.5):
        found = scaled(rows, weights**power, grid)
        assert np.array_equal(found, np.trunc(found / grid) * grid)
        lengths = np.linalg.norm(found, axis=1)
        assert (lengths <= weights**power).all()
        np.testing.assert_allclose(found, rows * weights[:, None] ** power, atol=grid)
        for dtype in ("float32", "float64"):
            wide = scaled(rows.astype(dtype), weights**power)
            assert wide.dtype == dtype and (np.linalg.norm(wide, axis=1) <= weights**power).all()
            np.testing.assert_allclose(wide, rows * weights[:, None] ** power, atol=2e-6)
    assert scaled(rows, None, grid) is rows


def test_tensors_are_scaled_as_arrays_are():
    rows = np.random.default_rng(1).standard_normal((20, 3)).astype(np.float32)
    weights = weights_of(np.arange(1, 21))
    tensors = place(True)
    for grid in (None, 2.0**-15):
        found = scaled(tensors.array(rows), tensors.array(weights), grid)
        np.testing.assert_array_equal(found.numpy(), scaled(rows, weights, grid))


@pytest.mark.parametrize("cuts", [(0, 6), (0, 1, 1, 4, 6)])
def test_batches_say_how_many_rows_their_subjects_have_in_all(cuts):
    features, labels, names = np.arange(12.0).reshape(6, 2), np.arange(6), np.array(list("abacab"))
    parts = [(features[a:b], labels[a:b]) for a, b in zip(cuts, cuts[1:], strict=False)]
    found = list(weighted(Subjects(parts, names), True))
    assert count_records(names).tolist() == [3, 2, 3, 1, 3, 2]
    np.testing.assert_allclose(
        np.concatenate([weights for _, _, weights in found]), [1 / 3, 1 / 2, 1 / 3, 1, 1 / 3, 1 / 2]
    )
    assert [weights for _, _, weights in weighted(parts, False)] == [None] * len(parts)
