"""Linear models as arrays."""

import numpy as np
import pytest

from dpstudy.models.linear import LinearModel


def test_a_linear_model_has_weights_and_biases_and_its_normalisation_does_not_count():
    model = LinearModel(np.zeros((10, 3969)), np.zeros(10), center=np.zeros(3969), scale=np.ones(3969))
    assert model.parameters == 39_700


@pytest.mark.parametrize("unit", [False, True])
@pytest.mark.parametrize("width", [3, 37, 1280])
def test_a_record_s_scores_are_the_same_in_any_company(width, unit):
    """Products in float32 round by a row's place, and by where in memory the others lie."""
    rng = np.random.default_rng(width)
    weights, bias = rng.normal(size=(7, width)).astype(np.float32), rng.normal(size=7).astype(np.float32)
    model = LinearModel(weights, bias, rng.normal(size=width).astype(np.float32), unit=unit)
    features = rng.normal(size=(300, width)).astype(np.float32)
    together = model.scores(features)
    for start, step in ((0, 1), (3, 7), (299, 300)):
        np.testing.assert_array_equal(model.scores(features[start::step]), together[start::step])
        np.testing.assert_array_equal(model.scores(features[start::step][:1]), together[start : start + 1])
