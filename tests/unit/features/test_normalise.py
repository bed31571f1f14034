import numpy as np
import pytest

from dpstudy.core.errors import StudyError
from dpstudy.features.normalise import check_normalise, normalise


def features(*shape, seed=0):
    return np.random.default_rng(seed).normal(3, 2, shape).astype(np.float32)


@pytest.mark.parametrize("groups", [9, 27, 81])
def test_group_norm_equals_torch(groups):
    import torch

    x = features(4, 81, 7, 7)
    expected = torch.nn.functional.group_norm(torch.from_numpy(x), groups, eps=1e-5).numpy()
    np.testing.assert_allclose(normalise(x, {"group_norm": groups}), expected, rtol=1e-4, atol=2e-5)


def test_group_norm_of_constant_groups_is_zero():
    assert not normalise(np.ones((2, 4, 3, 3), np.float32), {"group_norm": 2}).any()


def test_l2_gives_unit_records_and_leaves_zero_at_zero():
    x = features(5, 3, 2, 2)
    x[2] = 0
    x[3] *= 1e-4
    norms = np.linalg.norm(normalise(x, "l2").reshape(5, -1), axis=1)
    np.testing.assert_allclose(norms, [1, 1, 0, 1, 1], rtol=1e-6)
    scaled = normalise(x[:1], "l2") * np.linalg.norm(x[0])
    np.testing.assert_allclose(scaled, x[:1], rtol=1e-5)


@pytest.mark.parametrize("rule", ["none", "l2", {"group_norm": 3}])
def test_a_record_does_not_depend_on_the_others(rule):
    x = features(6, 9, 2, 2)
    alone = np.concatenate([normalise(x[row : row + 1], rule) for row in range(6)])
    np.testing.assert_array_equal(normalise(x, rule), alone)


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("l1", "does not exist"),
        ({"group_norm": 4}, "do not divide"),
        ({"group_norm": 0}, "does not exist"),
        ({}, "exist"),
    ],
)
def test_a_rule_that_does_not_exist_or_suit_is_refused(rule, words):
    with pytest.raises(StudyError, match=words):
        check_normalise(rule, (9, 2, 2))
