"""The clipped gradient sum where float32 runs out of range."""

import numpy as np
import pytest

from dpstudy.core.arrays import to_numpy
from dpstudy.methods.gradients import Head, clipped_sum
from dpstudy.methods.records import Records


@pytest.mark.parametrize("gap", [35.0, 48.0, 52.0, 60.0, 90.0])
@pytest.mark.parametrize("clip", [1e-8, 1e-4])
def test_a_record_with_a_vanishing_residual_and_a_large_norm_is_bounded(kind, gap, clip):
    """exp(-gap) is the residual: its square is lost in float32, but times 1e14 it is more than C."""
    features = np.array([[1e14, 0.0]], np.float32)
    records = Records.read([(features, np.array([0]))], 3)
    weights = kind.zeros(3, 2)
    weights[1:, 0] = -gap / 1e14
    total = to_numpy(clipped_sum(records, weights, Head("softmax", 0.0, clip))).astype(np.float64)
    assert 0 < np.linalg.norm(total) <= clip * (1 + 1e-5)


@pytest.mark.parametrize("bias", [0.0, "learned"])
def test_no_record_contributes_more_than_the_bound_not_even_by_rounding(kind, bias):
    """The sum over one record alone, measured in float64, for many of many lengths and sizes."""
    rng, longest = np.random.default_rng(0), 0.0
    for dim in (3, 40):
        features = (rng.standard_normal((200, dim)) * 10 ** rng.uniform(-1, 4, (200, 1))).astype(np.float32)
        records = Records.read([(features, rng.integers(7, size=200))], 7, picked=True)
        head = Head("softmax", bias, 0.1)
        for row in range(200):
            total = to_numpy(clipped_sum(records, head.start(records), head, np.array([row]))).astype(np.float64)
            longest = max(longest, np.linalg.norm(total))
    assert 0.0999998 < longest <= 0.1
