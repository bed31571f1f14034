import numpy as np
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score

from dpstudy.evaluation import weighted


@pytest.mark.parametrize("ties", [False, True])
def test_weighted_areas_are_those_of_scikit_learn(ties):
    rng = np.random.default_rng(0)
    scores = rng.integers(0, 6, 80).astype(float) if ties else rng.standard_normal(80)
    member = rng.random(80) < 0.3
    weights = np.concatenate([np.ones((1, 80)), rng.integers(0, 4, (20, 80)), rng.random((5, 80))])
    for row, (area, precision) in enumerate(
        zip(weighted.auc(scores, member, weights), weighted.average_precision(scores, member, weights), strict=True)
    ):
        assert area == pytest.approx(roc_auc_score(member, scores, sample_weight=weights[row]), rel=1e-9)
        assert precision == pytest.approx(average_precision_score(member, scores, sample_weight=weights[row]), rel=1e-9)


def test_what_is_not_defined_is_no_number():
    scores, member = np.arange(4.0), np.array([True, False, False, True])
    weights = np.array([[0, 1, 1, 0], [1, 0, 0, 1], [1, 1, 1, 1]], float)
    assert np.isnan(weighted.auc(scores, member, weights)).tolist() == [True, True, False]
    assert np.isnan(weighted.average_precision(scores, member, weights)).tolist() == [True, True, False]


def test_people_are_drawn_whole_and_as_many_as_there_are():
    subjects = np.array([f"p{row // 3}" for row in range(30)], dtype=object)
    weights = weighted.resamples(30, 500, subjects)
    assert (weights.reshape(500, 10, 3) == weights.reshape(500, 10, 3)[:, :, :1]).all()
    assert (weights.reshape(500, 10, 3)[:, :, 0].sum(1) == 10).all()
    alone = weighted.resamples(30, 500)
    assert (alone.sum(1) == 30).all() and (weighted.resamples(30, 500) == alone).all()
