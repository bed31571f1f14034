import math

import numpy as np
import pytest

from dpstudy.core.errors import StudyError
from dpstudy.models.linear import LinearModel
from dpstudy.models.operating_points import EDGES, counts_of, thresholds, with_counts


def histogram(odds):
    return np.bincount(np.digitize(odds, EDGES), minlength=len(EDGES) + 1).astype(float)


@pytest.mark.parametrize("specificity", [0.5, 0.8, 0.9, 0.99])
def test_thresholds_are_quantiles_of_those_without_the_class(specificity):
    rng = np.random.default_rng(0)
    without, bearing = rng.normal(-2, 1.5, (2, 200_000)), rng.normal(0.5, 1.2, (2, 50_000))
    counts = np.array([[histogram(each) for each in part] for part in (without, bearing)])
    for place, found in enumerate(thresholds(counts, 0.0, specificity)):
        odds = math.log(found.probability / (1 - found.probability))
        assert odds == pytest.approx(np.quantile(without[place], specificity), abs=0.05)
        assert found.found == (pytest.approx(np.mean(bearing[place] >= odds), abs=0.01), 0.0)


def test_noise_moves_what_is_found_by_as_much_as_is_said():
    rng = np.random.default_rng(1)
    counts = np.array([[histogram(rng.normal(-2, 1.5, 20_000))], [histogram(rng.normal(0.5, 1.2, 5_000))]])
    plain, noise, moved = thresholds(counts, 0.0, 0.9)[0], 30.0, []
    for _ in range(400):
        noisy = counts + rng.normal(0, noise, counts.shape)
        noisy[0] = counts[0]  # the threshold stays
        moved.append(thresholds(noisy, noise, 0.9)[0].found)
    shares, offs = np.array(moved).T
    assert 0.5 < np.std(shares) / np.mean(offs) < 1.3 and abs(np.mean(shares) - plain.found[0]) < 0.01


def test_what_noise_hides_is_not_told():
    counts = np.zeros((2, 1, len(EDGES) + 1))
    counts[0, 0, 3], counts[1, 0, 20] = 1000, 20
    assert thresholds(counts, 100.0, 0.9) == [None]
    told = thresholds(counts, 10.0, 0.9)[0]
    assert told.found is None and EDGES[2] < math.log(told.probability / (1 - told.probability)) <= EDGES[3]
    assert thresholds(counts, 1.0, 0.9)[0].found[0] == 1.0
    counts[0, 0] = 0
    counts[0, 0, -1] = 1000  # all beyond the last edge: nobody knows where
    assert thresholds(counts, 1.0, 0.9) == [None]
    counts[0, 0] = 0
    counts[0, 0, 0] = 1000
    assert math.log(thresholds(counts, 1.0, 0.9)[0].probability) < EDGES[0] + 0.01
    for wrong in (0, 1, -1, math.nan):
        with pytest.raises(StudyError, match="a specificity is a number between 0 and 1"):
            thresholds(counts, 1.0, wrong)


def test_a_model_keeps_them_and_damaged_ones_are_refused():
    counts = np.random.default_rng(2).normal(100, 30, (2, 3, len(EDGES) + 1))
    model = with_counts(LinearModel(np.zeros((3, 2), np.float32), np.zeros(3, np.float32)), counts, 2.5)
    found, noise = counts_of(model.metadata, 3)
    np.testing.assert_allclose(found, counts, atol=0.051)
    assert noise == 2.5 and counts_of({}, 3) is None
    for metadata in (
        model.metadata | {"operating_points": "[[1]]"},
        model.metadata | {"operating_points": "{"},
        model.metadata | {"operating_points_noise": "nan"},
        {key: value for key, value in model.metadata.items() if key != "operating_points_noise"},
    ):
        with pytest.raises(StudyError, match="its operating points are not counts of 3 classes"):
            counts_of(metadata, 3)
    with pytest.raises(StudyError, match="not counts of 4 classes"):
        counts_of(model.metadata, 4)
